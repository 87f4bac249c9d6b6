// SPDX-License-Identifier: Apache-2.0
#include "os/open_beneath.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/error.h"
#include "os/output_file.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

/// With openat2(), and as on kernels that lack it.
class OpenBeneathTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    OpenBeneath::without_openat2(GetParam());
    root_ = scratch_.path() + "/root";
    fs::create_directories(root_ + "/a/b");
    write(root_ + "/a/b/x", "inside");
    write(scratch_.path() + "/secret", "outside");
  }
  void TearDown() override { OpenBeneath::without_openat2(false); }

  static void write(const std::string& path, const std::string& text) {
    write_file(path, as_bytes(text));
  }

  /// What is in the file, or the kind of error.
  std::string read(OpenBeneath& beneath, const std::string& name, Links links) {
    try {
      const int file = beneath.open(name, O_RDONLY | O_CLOEXEC, links);
      char text[16] = {};
      const ssize_t got = ::read(file, text, sizeof(text) - 1);
      ::close(file);
      return got < 0 ? "unreadable" : text;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::corrupt) return "corrupt";
      if (error.kind() == ErrorKind::permission) return "permission";
      return error.kind() == ErrorKind::not_found ? "not found" : error.what();
    }
  }

  ScratchDirectory scratch_;
  std::string root_;
};

TEST_P(OpenBeneathTest, OpensWhatIsInside) {
  OpenBeneath beneath(root_);
  fs::create_symlink("b", root_ + "/a/relative");
  fs::create_symlink(root_ + "/a/b/x", root_ + "/absolute");
  fs::create_symlink("../../a/b/x", root_ + "/a/b/up");
  for (const char* name : {"a/b/x", "a/relative/x", "absolute", "a/b/up"}) {
    EXPECT_EQ(read(beneath, name, Links::inside), "inside") << name;
    EXPECT_EQ(read(beneath, name, Links::trusted), "inside") << name;
  }
  EXPECT_EQ(read(beneath, "a/b/y", Links::inside), "not found");
}

TEST_P(OpenBeneathTest, NoNameLeadsOut) {
  OpenBeneath beneath(root_);
  for (const std::string& name :
       {std::string("../secret"), scratch_.path() + "/secret", std::string("a/../../secret"),
        std::string(""), std::string("a//b/x"), std::string("a\0b", 3)}) {
    EXPECT_EQ(read(beneath, name, Links::trusted), "corrupt") << name;
  }
}

TEST_P(OpenBeneathTest, LinksOutAreFollowedWhereTheyAreTrusted) {
  OpenBeneath beneath(root_);
  fs::create_symlink("../secret", root_ + "/relative");
  fs::create_symlink(scratch_.path() + "/secret", root_ + "/absolute");
  fs::create_symlink("..", root_ + "/a/up");
  fs::create_symlink(scratch_.path(), root_ + "/a/top");
  for (const char* name : {"relative", "absolute", "a/top/secret"}) {
    EXPECT_EQ(read(beneath, name, Links::inside), "permission") << name;
    EXPECT_EQ(read(beneath, name, Links::trusted), "outside") << name << ": the link is our own";
  }
  EXPECT_EQ(read(beneath, "a/up/a/b/x", Links::inside), "inside");
}

TEST_P(OpenBeneathTest, LinksOfOthersDoNotLeadToOurFiles) {
  if (::geteuid() != 0) FAIL() << "needs root, to give a link to another user";
  OpenBeneath beneath(root_);
  constexpr uid_t kOther = 65534, kThird = 65533;
  const std::string secret = scratch_.path() + "/secret", link = root_ + "/link";
  fs::create_symlink(secret, link);
  ASSERT_EQ(::lchown(link.c_str(), kOther, kOther), 0);
  EXPECT_EQ(read(beneath, "link", Links::trusted), "permission");
  ASSERT_EQ(::chown(secret.c_str(), kOther, kOther), 0);
  EXPECT_EQ(read(beneath, "link", Links::trusted), "outside") << "to a file of their own";
  ASSERT_EQ(::chown(secret.c_str(), kThird, kThird), 0);
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  EXPECT_EQ(read(beneath, "link", Links::trusted), "permission");
  ASSERT_EQ(::chmod(secret.c_str(), 0640), 0);
  EXPECT_EQ(read(beneath, "link", Links::trusted), "outside") << "which its owner shares";
}

TEST_P(OpenBeneathTest, FindsADirectoryThatWasReplaced) {
  OpenBeneath beneath(root_);
  EXPECT_EQ(read(beneath, "a/b/x", Links::inside), "inside");
  fs::rename(root_, scratch_.path() + "/old");
  EXPECT_EQ(read(beneath, "new", Links::inside), "not found");
  fs::create_directories(root_);
  write(root_ + "/new", "new");
  EXPECT_EQ(read(beneath, "new", Links::inside), "new");
  EXPECT_EQ(read(beneath, "a/b/x", Links::inside), "not found");
}

INSTANTIATE_TEST_SUITE_P(Kernels, OpenBeneathTest, testing::Values(false, true));

}  // namespace
}  // namespace stoker
