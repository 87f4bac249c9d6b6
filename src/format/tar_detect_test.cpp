// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "format/tar.h"
#include "format/tar_test_data.h"

namespace stoker::tar_test {
namespace {

using Texts = std::vector<std::string>;

class TarDetect : public testing::Test {
 protected:
  std::optional<Layout> directory() { return detect_tar({"/d", "", "", &files_}); }
  std::optional<Layout> file(const std::string& name, const std::string& contents) {
    files_.add_file("/d/" + name, contents);
    return detect_tar({"/d", name, "", &files_});
  }
  static Texts missing(const Texts& names) {
    FakeFileSystem files;
    for (const std::string& name : names) files.add_file("/d/" + name, "");
    Texts causes;
    const Layout layout = detect_tar({"/d", "", "", &files}).value();
    for (const Fault& fault : layout.faults) causes.push_back(fault.cause);
    return causes;
  }

  FakeFileSystem files_;
};

Texts shards_of(const std::optional<Layout>& layout) {
  Texts shards;
  if (!layout) return {"none"};
  for (const Part& part : layout->parts) shards.push_back(part.shard);
  return shards;
}

TEST_F(TarDetect, FileByContent) {
  const std::string archive = member("a.jpg", "1") + kEnd;
  EXPECT_EQ(shards_of(file("whatever", archive)), (Texts{"whatever"}));
  TarHeader old = make_header("a.jpg", 0);
  std::memset(old.magic, 0, 8);
  set_checksum(old);
  EXPECT_TRUE(file("v7", bytes_of(old)));
  EXPECT_FALSE(file("noise", std::string(1024, 'x')));
  EXPECT_FALSE(file("zeros", kEnd));
  EXPECT_FALSE(file("empty", ""));
  EXPECT_FALSE(file("short", archive.substr(0, 511)));
  // The first letters of this name could be those of a compressed file.
  const auto layout = file("x", member("x^y.jpg", "1") + kEnd);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->parts[0].compression, Compression::none);
}

TEST_F(TarDetect, FileByName) {
  for (const char* name : {"a.tar", "a.tgz", "a.tar.gz", "a.tar.zst"}) {
    EXPECT_TRUE(file(name, "")) << name;
    EXPECT_TRUE(file(name, "noise")) << name;
  }
  EXPECT_EQ(file("a.tgz", "noise")->parts[0].compression, Compression::gzip);
  EXPECT_EQ(file("a.tar.zst", "noise")->parts[0].compression, Compression::zstd);
  EXPECT_EQ(file("a.tar.gz", member("a.jpg", "1"))->parts[0].compression, Compression::none);
  EXPECT_EQ(file("a.tar", "\x1f\x8b\x08 damaged")->parts[0].compression, Compression::gzip);
  EXPECT_FALSE(file(".tar", ""));
  EXPECT_FALSE(file("a.gz", "\x1f\x8b\x08 damaged"));
  EXPECT_THROW(detect_tar({"/d", "gone.tar", "", &files_}), Error);
}

TEST_F(TarDetect, DirectoryOfShards) {
  for (const char* name :
       {"b.tar", "a.tar.gz", "B.tar", "README.md", "00000_stats.json", ".x.tar"}) {
    files_.add_file(std::string("/d/") + name, "");
  }
  files_.add_file("/d/.stoker/manifest.json", "");
  files_.add_directory("/d/empty");
  files_.add_file("/elsewhere/c.tar", "");
  files_.add_link("/d/c.tar", "/elsewhere/c.tar");
  for (const bool hide_kinds : {false, true}) {
    if (hide_kinds) files_.hide_kinds();
    const auto layout = directory();
    EXPECT_EQ(shards_of(layout), (Texts{"B.tar", "a.tar.gz", "b.tar", "c.tar"}));
    EXPECT_EQ(layout->parts[1].compression, Compression::gzip);
    EXPECT_EQ(layout->hidden, 1U);
    EXPECT_TRUE(layout->faults.empty());
  }
}

TEST_F(TarDetect, DirectoriesThatAreFolders) {
  files_.add_directory("/d");
  EXPECT_FALSE(directory());
  files_.add_file("/d/a.jpg", "");
  EXPECT_FALSE(directory());
  files_.add_file("/d/a.tar", "");
  EXPECT_TRUE(directory());
  files_.add_file("/d/b.jpg", "");
  EXPECT_FALSE(directory()) << "more images than tars";
  files_.add_file("/d/b.tar", "");
  EXPECT_TRUE(directory());
  files_.add_file("/d/class/x.jpg", "");
  EXPECT_FALSE(directory()) << "something in a sub-directory";
}

TEST_F(TarDetect, AListNamesTheFilesOfAFolder) {
  files_.add_file("/d/a.tar", "");
  EXPECT_FALSE(detect_tar({"/d", "", "list.csv", &files_}));
}

TEST_F(TarDetect, ShardsThatAreNoFilesAreReported) {
  files_.add_file("/d/a.tar", "");
  files_.add_link("/d/b.tar", "/gone");
  files_.add_other("/d/c.tar");
  const auto layout = directory();
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->faults.size(), 2U);
  EXPECT_EQ(layout->faults[0].shard, "b.tar");
  EXPECT_EQ(layout->faults[1].shard, "c.tar");
}

TEST_F(TarDetect, GapsInASeries) {
  EXPECT_EQ(missing({"n-000000.tar", "n-000001.tar", "n-000002.tar"}), Texts());
  EXPECT_EQ(missing({"n-000000.tar", "n-000002.tar"}), (Texts{"n-000001.tar is missing"}));
  EXPECT_EQ(missing({"n-0007.tgz", "n-0008.tgz", "n-0012.tgz"}),
            (Texts{"n-0009.tgz to n-0011.tgz are missing: 3 shards"}));
  EXPECT_EQ(missing({"a-0.tar", "b-2.tar", "plain.tar", "0000.tar", "0001.tar"}), Texts());
  EXPECT_EQ(missing({"a-99999999999999999999999.tar", "a-99999999999999999999997.tar"}), Texts());
  EXPECT_EQ(missing({"n-0007.tgz", "n-0011.tgz"}),
            (Texts{"n-0008.tgz to n-0010.tgz are missing: 3 shards"}));
  EXPECT_EQ(missing({"n01440764.tar", "n01443537.tar", "n01484850.tar"}), Texts());
  EXPECT_EQ(missing({"a-00000000000000000000.tar", "a-18446744073709551615.tar"}), Texts());
}

TEST_F(TarDetect, SeriesThatSaysHowManyThereAre) {
  EXPECT_EQ(missing({"t-00000-of-00002.tar", "t-00001-of-00002.tar"}), Texts());
  EXPECT_EQ(missing({"t-00001-of-00004.tar", "t-00002-of-00004.tar"}),
            (Texts{"t-00000-of-00004.tar is missing", "t-00003-of-00004.tar is missing"}));
  EXPECT_EQ(missing({"-of-3.tar"}), Texts());
  EXPECT_EQ(missing({"t-0-of-9.tar", "t-8-of-9.tar"}),
            (Texts{"t-1-of-9.tar to t-7-of-9.tar are missing: 7 shards"}));
}

}  // namespace
}  // namespace stoker::tar_test
