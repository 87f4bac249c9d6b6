// SPDX-License-Identifier: Apache-2.0
#include "os/fake_file_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"

namespace stoker {
namespace {

std::vector<std::string> names_in(FileSystem& files, const std::string& directory) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : files.list(directory)) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(FakeFileSystem, FilesAndDirectories) {
  FakeFileSystem files;
  files.add_file("/data/a/x.txt", "hello", 7);
  files.add_file("/data//y", "");
  files.add_directory("/data/empty/");
  EXPECT_EQ(names_in(files, "/data"), (std::vector<std::string>{"a", "empty", "y"}));
  EXPECT_EQ(names_in(files, "/"), (std::vector<std::string>{"data"}));
  EXPECT_EQ(names_in(files, "/data/empty"), std::vector<std::string>());
  const auto info = files.info("/data/./a/x.txt", false);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->kind, FileKind::file);
  EXPECT_EQ(info->size, 5U);
  EXPECT_EQ(info->modified_ns, 7);
  EXPECT_FALSE(files.info("/data/z", false));
  EXPECT_THROW(files.open("/data/z"), Error);
  EXPECT_THROW(names_in(files, "/data/y"), Error);
  files.remove("/data/y");
  EXPECT_FALSE(files.info("/data/y", true));
}

TEST(FakeFileSystem, CountsReads) {
  FakeFileSystem files;
  files.add_file("f", "0123456789");
  const auto file = files.open("f");
  std::array<std::byte, 6> first{};
  std::array<std::byte, 6> second{};
  const MutableBytes pieces[] = {first, second};
  EXPECT_EQ(file->read_at(1, pieces), 9U);
  EXPECT_EQ(as_text(first), "123456");
  EXPECT_EQ(as_text(Bytes(second).first(3)), "789");
  EXPECT_EQ(file->read_at(10, first), 0U);
  EXPECT_EQ(file->read_at(~uint64_t{0} - 3, first), 0U);
  EXPECT_EQ(files.reads(), 3U);
  EXPECT_EQ(files.bytes_read(), 9U);
  EXPECT_EQ(files.opens(), 1U);
  files.reset_counts();
  EXPECT_EQ(files.reads(), 0U);
}

TEST(FakeFileSystem, Links) {
  FakeFileSystem files;
  files.add_file("/d/f", "x");
  files.add_link("/d/near", "f");
  files.add_link("/far", "/d/near");
  files.add_link("/nowhere", "/gone");
  files.add_link("/loop", "/loop");
  EXPECT_EQ(files.info("/far", false)->kind, FileKind::link);
  EXPECT_EQ(files.info("/far", true)->kind, FileKind::file);
  EXPECT_EQ(files.open("/far")->info().size, 1U);
  EXPECT_FALSE(files.info("/nowhere", true));
  EXPECT_THROW(files.info("/loop", true), Error);
}

TEST(FakeFileSystem, FailsWhereItIsTold) {
  FakeFileSystem files;
  files.add_file("/d/f", "0123456789");
  files.add_file("/d/g", "0123456789");
  files.add_file("/d/h", "0123456789");
  files.fail_open("/d/f", EACCES);
  EXPECT_THROW(files.open("/d/f"), Error);
  EXPECT_FALSE(files.info("/d/f", true)->readable);
  files.fail_read("/d/g", 5, EIO);
  std::array<std::byte, 4> bytes{};
  const auto bad = files.open("/d/g");
  EXPECT_EQ(bad->read_at(1, bytes), 4U);
  EXPECT_THROW(bad->read_at(2, bytes), Error);
  files.end_reads_at("/d/h", 3);
  const auto cut = files.open("/d/h");
  EXPECT_EQ(cut->read_at(1, bytes), 2U);
  EXPECT_EQ(cut->info().size, 10U);
  files.hide_kinds();
  for (const DirectoryEntry& entry : files.list("/d")) EXPECT_EQ(entry.kind, FileKind::unknown);
}

}  // namespace
}  // namespace stoker
