// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cerrno>

#include "base/error.h"
#include "format/tfrecord.h"
#include "format/tfrecord_bytes.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

using namespace std::string_literals;

const std::string kRecord = record("some data");

std::string zlib_of(const std::string& text) {
  std::string out(compressBound(text.size()), '\0');
  uLongf size = out.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size,
                     reinterpret_cast<const Bytef*>(text.data()), text.size()),
            Z_OK);
  out.resize(size);
  return out;
}

std::optional<Layout> detect_file(const std::string& name, const std::string& contents) {
  FakeFileSystem files;
  files.add_file("/d/" + name, contents);
  return detect_tfrecord({"/d", name, "", &files});
}

std::optional<Layout> detect(FakeFileSystem& files) {
  return detect_tfrecord({"/d", "", "", &files});
}

std::vector<std::string> names_of(const std::optional<Layout>& layout) {
  std::vector<std::string> names;
  if (!layout) return {"nothing"};
  for (const Part& part : layout->parts) names.push_back(part.shard);
  return names;
}

using Names = std::vector<std::string>;

TEST(TfrecordDetect, AFileByItsContent) {
  const auto layout = detect_file("x", kRecord);
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->parts.size(), 1u);
  EXPECT_EQ(layout->parts[0].shard, "x");
  EXPECT_EQ(layout->parts[0].compression, Compression::none);
  EXPECT_FALSE(detect_file("x", "something else altogether"));
  EXPECT_FALSE(detect_file("x", kRecord.substr(0, 11)));
  EXPECT_FALSE(detect_file("x", ""));
  EXPECT_FALSE(detect_file("x", std::string(100, '\0')));
}

TEST(TfrecordDetect, AFileByItsName) {
  for (const char* name :
       {"x.tfrecord", "x.tfrecords", "x.tfrec", "x.tfrecord.gz", "x-00000-of-00001",
        "x.tfrecord-00000-of-00001", "x-00000-of-00001.tfrecord", "x-000000-of-100000",
        "x-00000-of-00001.gz"}) {
    EXPECT_TRUE(detect_file(name, "")) << name;
    EXPECT_TRUE(detect_file(name, "damaged damaged damaged")) << name;
  }
  for (const char* name :
       {"x", ".tfrecord", "x-of-00001", "x-0000-of-0001", "-00000-of-00001", "x00000-of-00001",
        "x-00000-of-00001.txt", "tfrecord", "x.gz", "00000-of-00001"}) {
    EXPECT_FALSE(detect_file(name, "")) << name;
  }
}

TEST(TfrecordDetect, ACompressedFile) {
  EXPECT_EQ(detect_file("x", zlib_of(kRecord))->parts[0].compression, Compression::gzip);
  EXPECT_FALSE(detect_file("x", zlib_of("something else altogether")));
  EXPECT_FALSE(detect_file("x", zlib_of(kRecord).substr(0, 5)));
  // Its length begins like a zlib stream.
  const std::string begins_so = record(std::string(0x9C78, 'x'));
  EXPECT_EQ(begins_so.substr(0, 2), "\x78\x9C");
  EXPECT_EQ(detect_file("x", begins_so)->parts[0].compression, Compression::none);
  std::string damaged = begins_so;
  damaged[5] = '\x01';
  EXPECT_EQ(detect_file("x.tfrecord", damaged)->parts[0].compression, Compression::none);
  const std::string empty_gzip = "\x1F\x8B\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0"s;
  EXPECT_EQ(detect_file("x.tfrecord", empty_gzip)->parts[0].compression, Compression::gzip);
  EXPECT_FALSE(detect_file("x", empty_gzip));
}

TEST(TfrecordDetect, ADirectoryByNames) {
  FakeFileSystem files;
  files.add_file("/d/b.tfrecord", kRecord);
  files.add_file("/d/a.tfrecord", zlib_of(kRecord));
  files.add_file("/d/dataset_info.json", "{}");
  files.add_file("/d/.hidden", "x");
  files.add_file("/d/.stoker/manifest.json", "{}");
  const auto layout = detect(files);
  EXPECT_EQ(names_of(layout), (Names{"a.tfrecord", "b.tfrecord"}));
  EXPECT_EQ(layout->parts[0].compression, Compression::gzip);
  EXPECT_EQ(layout->hidden, 1u);
  EXPECT_TRUE(layout->faults.empty());
}

TEST(TfrecordDetect, ThreadedDirectoryByContent) {
  FakeFileSystem files;
  files.add_file("/d/README", "hello");
  for (int i = 0; i < 100; ++i) files.add_file(fmt::format("/d/part{:03}", i), kRecord);
  const auto layout = detect(files);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->parts.size(), 100u);
}

TEST(TfrecordDetect, ManyOtherFilesAreNotAllOpened) {
  FakeFileSystem files;
  for (int i = 0; i < 5000; ++i) files.add_file(fmt::format("/d/{:05}", i), "x");
  EXPECT_FALSE(detect(files));
  EXPECT_EQ(files.opens(), 0u);
  for (int i = 1000; i < 5000; ++i) files.remove(fmt::format("/d/{:05}", i));
  EXPECT_FALSE(detect(files));
  EXPECT_EQ(files.opens(), 64u);
}

TEST(TfrecordDetect, AFolderOfSomethingElse) {
  FakeFileSystem files;
  files.add_file("/d/x.tfrecord", kRecord);
  files.add_file("/d/1.jpg", "x");
  EXPECT_TRUE(detect(files));
  files.add_file("/d/2.jpg", "x");
  EXPECT_FALSE(detect(files));
  files.remove("/d/2.jpg");
  files.add_directory("/d/empty");
  EXPECT_TRUE(detect(files));
  files.add_file("/d/cat/1.jpg", "x");
  EXPECT_FALSE(detect(files));
  FakeFileSystem empty;
  empty.add_directory("/d");
  EXPECT_FALSE(detect(empty));
  FakeFileSystem listed;
  listed.add_file("/d/x.tfrecord", kRecord);
  EXPECT_FALSE(detect_tfrecord({"/d", "", "/d/list.csv", &listed}));
}

TEST(TfrecordDetect, LinksAndOtherThings) {
  FakeFileSystem files;
  files.add_file("/elsewhere/x", kRecord);
  files.add_link("/d/a.tfrecord", "/elsewhere/x");
  files.add_link("/d/b.tfrecord", "/nowhere");
  files.add_other("/d/c.tfrecord");
  files.add_file("/d/d.tfrecord", kRecord);
  files.fail_open("/d/d.tfrecord", EACCES);
  const auto layout = detect(files);
  EXPECT_EQ(names_of(layout), Names{"a.tfrecord"});
  ASSERT_EQ(layout->faults.size(), 3u);
  EXPECT_EQ(layout->faults[0].message(), "b.tfrecord: a link that leads nowhere");
  EXPECT_EQ(layout->faults[1].message(), "c.tfrecord: not a regular file");
  EXPECT_EQ(layout->faults[2].shard, "d.tfrecord");
  EXPECT_NE(layout->faults[2].cause.find("Permission denied"), std::string::npos);
}

TEST(TfrecordDetect, MissingMembersOfASeries) {
  FakeFileSystem files;
  for (const char* name : {"t-00001-of-00006", "t-00004-of-00006", "v.tfrecord-00000-of-00002",
                           "w-00000-of-00001.tfrecord", "w-00001-of-00001.tfrecord"}) {
    files.add_file("/d/"s + name, kRecord);
  }
  const auto layout = detect(files);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->parts.size(), 5u);
  std::vector<std::string> causes;
  for (const Fault& fault : layout->faults) causes.push_back(fault.shard + ": " + fault.cause);
  EXPECT_EQ(causes,
            (Names{"t-00000-of-00006: t-00000-of-00006 is missing",
                   "t-00002-of-00006: t-00002-of-00006 to t-00003-of-00006 are missing: 2 shards",
                   "t-00005-of-00006: t-00005-of-00006 is missing",
                   "v.tfrecord-00001-of-00002: v.tfrecord-00001-of-00002 is missing",
                   "w-00001-of-00001.tfrecord: its number is not below its count"}));
}

TEST(TfrecordDetect, StemsOfKeys) {
  EXPECT_EQ(shard_stem("train.tfrecord"), "train");
  EXPECT_EQ(shard_stem("train.tfrecords.gz"), "train");
  EXPECT_EQ(shard_stem("a.b.tfrec"), "a_b");
  EXPECT_EQ(shard_stem("train-00003-of-00128"), "train-00003-of-00128");
  EXPECT_EQ(shard_stem("train.tfrecord-00003-of-00128"), "train-00003-of-00128");
  EXPECT_EQ(shard_stem("train-00003-of-00128.tfrecord"), "train-00003-of-00128");
  EXPECT_EQ(shard_stem("plain"), "plain");
}

}  // namespace
}  // namespace stoker
