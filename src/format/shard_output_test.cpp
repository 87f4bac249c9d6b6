// SPDX-License-Identifier: Apache-2.0
#include "format/shard_output.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/crc32c.h"

namespace stoker {
namespace {

std::string text_of(const ShardOutput& out, uint32_t file) {
  std::string text;
  for (const Bytes piece : out.pending(file)) text += as_text(piece);
  return text;
}

TEST(ShardOutput, WhatWasAppendedStaysWhereItIs) {
  ShardOutput out(2);
  std::byte* first = out.append(0, 4);
  for (int i = 0; i < 100; ++i) out.append(0, as_bytes(std::string(100'000, 'x')));
  std::memcpy(first, "abcd", 4);
  out.append(1, as_bytes("other"));
  EXPECT_EQ(out.size(0), 10'000'004U);
  EXPECT_EQ(text_of(out, 0).substr(0, 5), "abcdx");
  EXPECT_EQ(text_of(out, 0).size(), 10'000'004U);
  EXPECT_EQ(text_of(out, 1), "other");
  EXPECT_EQ(out.pending(), 10'000'009U);
}

TEST(ShardOutput, ChecksumsFollowPatchesAndKnownParts) {
  ShardOutput out(1);
  out.append(0, as_bytes(std::string(8, '\0')));
  std::byte* known = out.append(0, 5);
  std::memcpy(known, "known", 5);
  out.append(0, as_bytes("rest"));
  out.sum({{known, 5, crc32c(as_bytes("known"))}});
  ShardOutput::Pending spent = out.take();
  std::byte* memory = spent[0].front().bytes.get();
  EXPECT_EQ(out.size(0), 17U);
  EXPECT_EQ(out.pending(), 0U);
  (void)out.take(std::move(spent));
  EXPECT_EQ(out.append(0, 3), memory) << "what was written is used again";
  std::memcpy(memory, "end", 3);
  out.patch(0, 2, as_bytes("abc"));
  out.sum();
  EXPECT_EQ(out.crc(0), crc32c(as_bytes(std::string("\0\0abc\0\0\0knownrestend", 20))));
}

TEST(ShardOutput, GoesBackToAMark) {
  ShardOutput out(2);
  out.append(0, as_bytes("kept"));
  out.sum();
  const ShardOutput::Mark mark = out.mark();
  out.append(0, 5'000'000);
  out.append(1, as_bytes("gone"));
  (void)out.block({});
  out.rewind(mark);
  out.append(0, as_bytes("more"));
  out.sum();
  EXPECT_EQ(text_of(out, 0), "keptmore");
  EXPECT_EQ(out.size(1), 0U);
  EXPECT_EQ(out.crc(0), crc32c(as_bytes("keptmore")));
  EXPECT_EQ(out.crc(1), crc32c({}));
  EXPECT_TRUE(out.blocks().empty());
}

TEST(ShardOutput, EqualChainsAreOne) {
  ShardOutput out(1);
  EXPECT_EQ(out.codecs({{1, "a"}}), 0U);
  EXPECT_EQ(out.codecs({{1, "b"}}), 1U);
  EXPECT_EQ(out.codecs({{1, "a"}}), 0U);
}

}  // namespace
}  // namespace stoker
