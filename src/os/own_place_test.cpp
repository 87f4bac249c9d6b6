// SPDX-License-Identifier: Apache-2.0
// As root, which can give directories away; tests/faults/test_run_users.py has two real users.
#include "os/own_place.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class OwnPlaces : public testing::Test {
 protected:
  std::string make(const std::string& name, mode_t mode) {
    const std::string path = scratch_.path() + "/" + name;
    fs::create_directories(path);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  ScratchDirectory scratch_;
};

TEST_F(OwnPlaces, OnlyWhatOthersCannotWriteTo) {
  EXPECT_EQ(why_not_ours(make("own", 0755)), "");
  EXPECT_EQ(why_not_ours(make("private", 0700)), "");
  EXPECT_NE(why_not_ours(make("open", 0777)).find("is writable by everybody"), std::string::npos);
  EXPECT_NE(why_not_ours(make("sticky", 01777)).find("everybody"), std::string::npos);
}

TEST_F(OwnPlaces, WhatIsAboveCounts) {
  make("open", 0777);
  EXPECT_NE(why_not_ours(make("open/own", 0755)).find("/open is writable"), std::string::npos);
  make("sticky", 01777);
  EXPECT_EQ(why_not_ours(make("sticky/own", 0755)), "");
  make("sticky/own/open", 0777);
  EXPECT_NE(why_not_ours(make("sticky/own/open/own", 0755)), "");
}

TEST_F(OwnPlaces, LinksAreWhatTheyLeadTo) {
  make("open/own", 0755);
  make("open", 0777);
  fs::create_symlink(scratch_.path() + "/open/own", scratch_.path() + "/link");
  EXPECT_NE(why_not_ours(scratch_.path() + "/link"), "");
}

TEST_F(OwnPlaces, OfAnotherUser) {
  if (::geteuid() != 0) FAIL() << "needs root, to give a directory away";
  const std::string theirs = make("theirs", 0755);
  ASSERT_EQ(::chown(theirs.c_str(), 65534, 65534), 0);
  EXPECT_NE(why_not_ours(theirs).find("belongs to nobody (65534)"), std::string::npos);
  EXPECT_NE(why_not_ours(make("theirs/own", 0755)).find("/theirs belongs to"), std::string::npos);
}

TEST_F(OwnPlaces, WhatIsNotThere) { EXPECT_THROW(why_not_ours(scratch_.path() + "/no"), Error); }

}  // namespace
}  // namespace stoker
