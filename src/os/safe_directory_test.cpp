// SPDX-License-Identifier: Apache-2.0
#include "os/safe_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class SafeDirectoryTest : public testing::Test {
 protected:
  ScratchDirectory scratch_;
  SafeDirectory directory_{scratch_.path()};

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_.path() + "/" + name) << text;
  }
};

TEST_F(SafeDirectoryTest, MakesWithTheModeAskedFor) {
  const mode_t before = ::umask(0);
  const SafeDirectory made = directory_.make("private", 0700);
  ::umask(before);
  EXPECT_EQ(made.ownership().mode, 0700U);
  EXPECT_EQ(made.ownership().user, ::geteuid());
  EXPECT_EQ(directory_.make("private", 0755).ownership().mode, 0700U) << "is left as it is";
}

TEST_F(SafeDirectoryTest, FollowsNoLink) {
  directory_.make("target", 0700);
  write("target/file", "secret");
  fs::create_symlink("target", scratch_.path() + "/link");
  fs::create_symlink("target/file", scratch_.path() + "/file");
  EXPECT_THROW(directory_.find("link"), Error);
  EXPECT_THROW(directory_.make("link", 0700), Error);
  EXPECT_THROW(directory_.make_parents("link/x", 0700), Error);
  EXPECT_THROW(directory_.read("file", 100), Error);
  EXPECT_EQ(directory_.create("file", 0600), -1);
  EXPECT_EQ(directory_.info("link")->kind, FileKind::link);
}

TEST_F(SafeDirectoryTest, RemovesTreesButNotWhatLinksLeadTo) {
  directory_.make("keep", 0700);
  write("keep/file", "x");
  const SafeDirectory tree = directory_.make("tree", 0700);
  tree.make_parents("a/b/", 0700);
  write("tree/a/b/file", "y");
  fs::create_symlink("../keep", scratch_.path() + "/tree/link");
  directory_.remove_tree("tree");
  directory_.remove_tree("tree");
  EXPECT_FALSE(fs::exists(scratch_.path() + "/tree"));
  EXPECT_TRUE(fs::exists(scratch_.path() + "/keep/file"));
  fs::create_symlink("keep", scratch_.path() + "/link");
  directory_.remove_tree("link");
  EXPECT_TRUE(fs::exists(scratch_.path() + "/keep/file"));
}

TEST_F(SafeDirectoryTest, StaysTheSameWhenItsNameIsTaken) {
  const SafeDirectory held = directory_.make("a", 0700);
  fs::rename(scratch_.path() + "/a", scratch_.path() + "/b");
  directory_.make("a", 0700);
  ::close(held.create("file", 0600));
  EXPECT_TRUE(fs::exists(scratch_.path() + "/b/file"));
  EXPECT_FALSE(fs::exists(scratch_.path() + "/a/file"));
}

TEST_F(SafeDirectoryTest, MarksAreThereOnce) {
  EXPECT_TRUE(directory_.mark("claim", "who"));
  EXPECT_FALSE(directory_.mark("claim", "other"));
  EXPECT_EQ(directory_.read_mark("claim"), "who");
  directory_.remove("claim");
  directory_.remove("claim");
  EXPECT_EQ(directory_.read_mark("claim"), std::nullopt);
}

TEST_F(SafeDirectoryTest, ReadsSmallFilesOnly) {
  write("text", "12345");
  EXPECT_EQ(directory_.read("text", 5), "12345");
  EXPECT_EQ(directory_.read("none", 5), std::nullopt);
  write("large", std::string(10000, 'x'));
  EXPECT_THROW(directory_.read("large", 5), Error);
}

TEST_F(SafeDirectoryTest, NamesAreSingleComponents) {
  directory_.make("inner", 0700);
  write("file", "x");
  const SafeDirectory inner = directory_.make("inner", 0700);
  for (const std::string name : {"../file", "..", "", "a/b", "/etc"}) {
    EXPECT_THROW(inner.remove(name), Error) << name;
    EXPECT_THROW(inner.create(name, 0600), Error) << name;
    EXPECT_THROW(inner.read(name, 100), Error) << name;
    EXPECT_THROW((void)inner.find(name), Error) << name;
    EXPECT_THROW(inner.rename("x", directory_, name), Error) << name;
    EXPECT_FALSE(inner.info(name)) << name;
    inner.remove_tree(name);
  }
  EXPECT_TRUE(fs::exists(scratch_.path() + "/file"));
}

TEST_F(SafeDirectoryTest, RemovesWhatIsEmptyAlone) {
  directory_.make("empty", 0700);
  directory_.make("full", 0700);
  write("full/file", "x");
  directory_.remove_empty("empty");
  directory_.remove_empty("full");
  EXPECT_FALSE(fs::exists(scratch_.path() + "/empty"));
  EXPECT_TRUE(fs::exists(scratch_.path() + "/full/file"));
}

}  // namespace
}  // namespace stoker
