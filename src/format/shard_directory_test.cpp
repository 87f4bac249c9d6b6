// SPDX-License-Identifier: Apache-2.0
#include "format/shard_directory.h"

#include <gtest/gtest.h>

#include "os/fake_file_system.h"

namespace stoker {
namespace {

using Names = std::vector<std::string>;

bool is_shard(std::string_view name) { return name.ends_with(".s"); }

ShardDirectory look(FakeFileSystem& files, size_t most_loose = 10) {
  return look_at_shards({"/d", "", "", &files}, is_shard, most_loose);
}

TEST(ShardDirectory, SortsShardsAndOthers) {
  FakeFileSystem files;
  for (const char* name : {"b.s", "a.s", "z", "y.jpg", ".hidden", ".stoker/manifest.json"}) {
    files.add_file(std::string("/d/") + name, "");
  }
  const ShardDirectory found = look(files);
  EXPECT_EQ(found.shards, (Names{"a.s", "b.s"}));
  EXPECT_EQ(found.loose, (Names{"y.jpg", "z"}));
  EXPECT_FALSE(found.more_loose);
  EXPECT_EQ(found.images, 1u);
  EXPECT_EQ(found.hidden, 1u);
  EXPECT_FALSE(found.deep);
  EXPECT_TRUE(look(files, 1).more_loose);
  EXPECT_TRUE(look(files, 0).loose.empty());
}

TEST(ShardDirectory, FollowsLinks) {
  for (const bool hide_kinds : {false, true}) {
    FakeFileSystem files;
    files.add_file("/elsewhere/x", "");
    files.add_link("/d/c.s", "/elsewhere/x");
    files.add_link("/d/b.s", "/nowhere");
    files.add_other("/d/a.s");
    if (hide_kinds) files.hide_kinds();
    const ShardDirectory found = look(files);
    EXPECT_EQ(found.shards, Names{"c.s"});
    ASSERT_EQ(found.faults.size(), 2u);
    EXPECT_EQ(found.faults[0].cause, "not a regular file");
    EXPECT_EQ(found.faults[1].cause, "a link that leads nowhere");
  }
}

TEST(ShardDirectory, SubDirectories) {
  FakeFileSystem files;
  files.add_file("/d/a.s", "");
  files.add_directory("/d/empty");
  files.add_file("/d/almost/.hidden", "");
  EXPECT_FALSE(look(files).deep);
  files.add_file("/d/b.s/x", "");
  const ShardDirectory found = look(files);
  EXPECT_TRUE(found.deep);
  EXPECT_EQ(found.shards, Names{"a.s"});
  EXPECT_TRUE(found.faults.empty());
}

TEST(ShardDirectory, NamesWhatIsMissing) {
  EXPECT_EQ(missing_shards("t-", 5, "-of-9", 3, 3),
            (Fault{"t-00003-of-9", {}, {}, {}, "t-00003-of-9 is missing"}));
  EXPECT_EQ(missing_shards("t-", 2, ".s", 3, 12).cause, "t-03.s to t-12.s are missing: 10 shards");
}

}  // namespace
}  // namespace stoker
