// SPDX-License-Identifier: Apache-2.0
#include "format/folder_walk.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> paths_of(const FileNames& files) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < files.files.size(); ++i) {
    paths.push_back(join_path(files.directories[files.files[i].directory], files.name(i)));
  }
  return paths;
}

std::vector<std::string> walk_fake(FakeFileSystem& files, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) files.add_file("/data/" + path, "x");
  return paths_of(walk_folder({"/data", "", "", &files}).files);
}

/// A directory that lies on the disk and goes away with the test.
class FolderWalk : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "folder_walk_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    top_ = name;
    root_ = top_ / "root";
    fs::create_directory(root_);
  }
  void TearDown() override {
    fs::permissions(top_, fs::perms::owner_all);
    fs::remove_all(top_);
  }

  void make(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << path;
  }
  void link(const std::string& path, const std::string& target) {
    fs::create_directories((root_ / path).parent_path());
    fs::create_symlink(target, root_ / path);
  }
  FolderTree walk() { return walk_folder({root_, "", "", &real_file_system()}); }

  fs::path top_, root_;
};

TEST(NameBefore, NamesWithoutDotEndInOne) {
  const std::vector<std::string> sorted = {"a b.jpg", "a-b", "a-b.jpg", "a",  "a.cls",
                                           "a.jpg",   "a/",  "aa",      "ab", "ab.x"};
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t j = 0; j < sorted.size(); ++j) {
      EXPECT_EQ(name_before(sorted[i], sorted[j]), i < j) << sorted[i] << " and " << sorted[j];
    }
  }
}

TEST(WalkFolder, SortsAsImageFolderDoes) {
  FakeFileSystem files;
  const auto paths = walk_fake(
      files, {"b/2.jpg", "a/z.jpg", "a/b/1.jpg", "a-b/1.jpg", "a/b-c/1.jpg", "a/b/c/1.jpg",
              "a/B/1.jpg", "Z/10.jpg", "Z/9.jpg", "a b/1.jpg", "\xc3\xa9/1.jpg", "top.jpg"});
  EXPECT_EQ(paths,
            (std::vector<std::string>{"top.jpg", "Z/10.jpg", "Z/9.jpg", "a/z.jpg", "a/B/1.jpg",
                                      "a/b/1.jpg", "a/b-c/1.jpg", "a/b/c/1.jpg", "a b/1.jpg",
                                      "a-b/1.jpg", "b/2.jpg", "\xc3\xa9/1.jpg"}));
}

TEST(WalkFolder, KeepsFilesOfASampleTogether) {
  FakeFileSystem files;
  const auto paths = walk_fake(files, {"a", "a.jpg", "a.cls", "a-b.jpg", "a b.jpg", "ab.jpg"});
  EXPECT_EQ(paths,
            (std::vector<std::string>{"a b.jpg", "a-b.jpg", "a", "a.cls", "a.jpg", "ab.jpg"}));
}

TEST(WalkFolder, CountsHiddenNamesAndPassesOverTheIndex) {
  FakeFileSystem files;
  const std::vector<std::string> paths = {"a/1.jpg",     "a/.DS_Store",           "a/._1.jpg",
                                          ".git/config", ".stoker/manifest.json", "a/.stoker/x"};
  for (const std::string& path : paths) files.add_file("/data/" + path, "x");
  const FolderTree tree = walk_folder({"/data", "", "", &files});
  EXPECT_EQ(paths_of(tree.files), std::vector<std::string>{"a/1.jpg"});
  EXPECT_EQ(tree.hidden, 3U);
  EXPECT_TRUE(tree.faults.empty());
}

TEST(WalkFolder, AsksForKindsThatTheListingHides) {
  FakeFileSystem files;
  files.hide_kinds();
  EXPECT_EQ(walk_fake(files, {"a/1.jpg", "b.jpg"}), (std::vector<std::string>{"b.jpg", "a/1.jpg"}));
}

TEST(WalkFolder, NamesDirectoriesItCannotList) {
  FakeFileSystem files;
  files.add_file("/data/a/1.jpg", "x");
  files.add_file("/data/b/1.jpg", "x");
  files.add_file("/data/c/1.jpg", "x");
  files.fail_open("/data/b", EACCES);
  files.fail_open("/data/c", EIO);
  const FolderTree tree = walk_folder({"/data", "", "", &files});
  EXPECT_EQ(paths_of(tree.files), std::vector<std::string>{"a/1.jpg"});
  ASSERT_EQ(tree.faults.size(), 2U);
  EXPECT_EQ(tree.faults[0].shard, "b");
  EXPECT_EQ(tree.faults[0].cause, "cannot be listed: Permission denied");
  EXPECT_EQ(tree.faults[1].cause, "cannot be listed: Input/output error");
  EXPECT_EQ(tree.tops.size(), 3U);  // still classes: labels do not shift

  files.fail_open("/data", EACCES);
  EXPECT_THROW(walk_folder({"/data", "", "", &files}), Error);
  EXPECT_THROW(walk_folder({"/nowhere", "", "", &files}), Error);
}

TEST(WalkFolder, RefusesANameThatEndsInItsOnlyDot) {
  FakeFileSystem files;
  files.add_file("/data/a.", "x");
  files.add_file("/data/a..jpg", "x");
  const FolderTree tree = walk_folder({"/data", "", "", &files});
  EXPECT_EQ(paths_of(tree.files), std::vector<std::string>{"a..jpg"});
  ASSERT_EQ(tree.faults.size(), 1U);
  EXPECT_EQ(tree.faults[0].shard, "a.");
}

TEST(WalkFolder, ManyDirectoriesThreaded) {
  FakeFileSystem files;
  std::vector<std::string> paths;
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j < 5; ++j) {
      paths.push_back(std::to_string(i) + "/" + std::to_string(j) + "/x.jpg");
    }
  }
  std::vector<std::string> sorted = paths;
  std::sort(sorted.begin(), sorted.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.substr(0, a.find('/')), a) < std::pair(b.substr(0, b.find('/')), b);
  });
  EXPECT_EQ(walk_fake(files, paths), sorted);
}

TEST(FindPlace, FindsEveryFile) {
  FakeFileSystem files;
  for (const char* path : {"a", "a.jpg", "a-b.jpg", "c/a.jpg", "c/d/a.jpg", "c-d/a.jpg"}) {
    files.add_file(std::string("/data/") + path, "x");
  }
  const FolderTree tree = walk_folder({"/data", "", "", &files});
  for (size_t i = 0; i < tree.files.files.size(); ++i) {
    const std::string& directory = tree.files.directories[tree.files.files[i].directory];
    EXPECT_EQ(find_place(tree.files, directory, tree.files.name(i)), i);
  }
  EXPECT_FALSE(find_place(tree.files, "d", "a.jpg"));
}

TEST_F(FolderWalk, FollowsLinksThatStayInside) {
  make("a/1.jpg");
  make(".store/x");
  link("b", "a");
  link("c/2.jpg", "../.store/x");
  link("c/3.jpg", (root_ / "a/1.jpg").string());
  const FolderTree tree = walk();
  EXPECT_EQ(paths_of(tree.files),
            (std::vector<std::string>{"a/1.jpg", "b/1.jpg", "c/2.jpg", "c/3.jpg"}));
  EXPECT_TRUE(tree.faults.empty());
  ASSERT_EQ(tree.tops.size(), 3U);
  EXPECT_EQ(tree.tops[1].name, "b");
}

TEST_F(FolderWalk, TheRootMayBeALink) {
  make("a/1.jpg");
  link("a/2.jpg", "1.jpg");
  fs::create_symlink(root_, top_ / "way");
  const FolderTree tree = walk_folder({top_ / "way", "", "", &real_file_system()});
  EXPECT_EQ(paths_of(tree.files), (std::vector<std::string>{"a/1.jpg", "a/2.jpg"}));
  EXPECT_TRUE(tree.faults.empty());
}

TEST_F(FolderWalk, NamesLinksThatLeadOut) {
  make("a/1.jpg");
  fs::create_directory(top_ / "root2");  // begins like the root and is another
  std::ofstream(top_ / "root2/x.jpg") << "x";
  link("a/2.jpg", "../../root2/x.jpg");
  link("b", "../root2");
  link("c.jpg", "nowhere");
  link("d.jpg", "d.jpg");
  link("e", "/dev/null");
  const FolderTree tree = walk();
  EXPECT_EQ(paths_of(tree.files), std::vector<std::string>{"a/1.jpg"});
  ASSERT_EQ(tree.faults.size(), 5U);
  EXPECT_EQ(tree.faults[0].shard, "a/2.jpg");
  EXPECT_EQ(tree.faults[0].cause, "is a link to '../../root2/x.jpg', which is outside the folder");
  EXPECT_EQ(tree.faults[1].cause, "is a link to '../root2', which is outside the folder");
  EXPECT_EQ(tree.faults[2].cause, "is a link to 'nowhere', which does not exist");
  EXPECT_EQ(tree.faults[3].cause, "is a link to 'd.jpg', which leads in a circle");
  EXPECT_EQ(tree.faults[4].cause, "is a link to '/dev/null', a device, not a file");
  EXPECT_EQ(tree.tops.size(), 2U);
}

TEST_F(FolderWalk, LinksInACircleEnd) {
  make("a/1.jpg");
  make("b/2.jpg");
  link("a/up", "..");
  link("a/to_b", "../b");
  link("b/to_a", "../a");
  link("self", ".");
  const FolderTree tree = walk();
  EXPECT_EQ(paths_of(tree.files),
            (std::vector<std::string>{"a/1.jpg", "a/to_b/2.jpg", "b/2.jpg", "b/to_a/1.jpg"}));
  std::vector<std::string> faults;
  for (const Fault& fault : tree.faults) faults.push_back(fault.shard);
  EXPECT_EQ(faults,
            (std::vector<std::string>{"a/to_b/to_a", "a/up", "b/to_a/to_b", "b/to_a/up", "self"}));
}

TEST_F(FolderWalk, WaysThatMultiplyEnd) {
  constexpr int kDirectories = 12;
  for (int i = 0; i < kDirectories; ++i) {
    make(std::to_string(i) + "/x.jpg");
    for (int j = 0; j < kDirectories; ++j) {
      if (i != j) link(std::to_string(i) + "/to_" + std::to_string(j), "../" + std::to_string(j));
    }
  }
  const FolderTree tree = walk();
  EXPECT_FALSE(tree.faults.empty());
  EXPECT_LE(tree.files.files.size(), 101U * kDirectories * 2);
}

TEST_F(FolderWalk, NamesWhatIsNoFile) {
  make("a/1.jpg");
  ASSERT_EQ(mkfifo((root_ / "a/pipe.jpg").c_str(), 0600), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (root_ / "a/s.sock").string();
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::copy(path.begin(), path.end(), address.sun_path);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const FolderTree tree = walk();
  close(socket);
  ASSERT_EQ(tree.faults.size(), 2U);
  EXPECT_EQ(tree.faults[0].cause, "is a fifo, not a file");
  EXPECT_EQ(tree.faults[1].shard, "a/s.sock");
  EXPECT_EQ(tree.faults[1].cause, "is a socket, not a file");
}

TEST_F(FolderWalk, TakesNamesOfAnyBytes) {
  const std::string wild = "\xff new\nline\x01.jpg";
  make(wild);
  make(std::string(250, 'n') + ".jpg");
  EXPECT_EQ(paths_of(walk().files),
            (std::vector<std::string>{std::string(250, 'n') + ".jpg", wild}));
}

}  // namespace
}  // namespace stoker
