// SPDX-License-Identifier: Apache-2.0
#include "os/readers.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

FileInfo with(uint32_t mode, uint32_t group) {
  FileInfo info;
  info.mode = mode;
  info.group = group;
  return info;
}

TEST(Readers, AreThoseWhoMayReadAll) {
  Readers readers;
  EXPECT_EQ(readers.at_most().keep, 0777U);
  readers.add(with(0644, 7));
  EXPECT_EQ(readers.at_most().keep, 0777U);
  EXPECT_EQ(readers.at_most().group, -1) << "anybody may read";
  EXPECT_EQ(readers.like(0755).add, 0044U);
  EXPECT_EQ(readers.like(0750).add, 0040U);
  readers.add(with(0640, 7));
  EXPECT_EQ(readers.at_most().keep, 0770U);
  EXPECT_EQ(readers.at_most().group, 7);
  EXPECT_EQ(readers.like(0755).add, 0040U);
  readers.add(with(0600, 7));
  EXPECT_EQ(readers.at_most().keep, 0700U);
  EXPECT_EQ(readers.like(0755).add, 0U);
}

TEST(Readers, TwoGroupsHaveNothingInCommon) {
  Readers readers;
  readers.add(with(0640, 7));
  readers.add(with(0640, 8));
  EXPECT_EQ(readers.at_most().keep, 0700U);
  EXPECT_EQ(readers.like(0755).add, 0U);
}

}  // namespace
}  // namespace stoker
