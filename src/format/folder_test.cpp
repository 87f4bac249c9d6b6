// SPDX-License-Identifier: Apache-2.0
#include "format/folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/parallel.h"
#include "format/collecting_sink.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void make(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) files_.add_file("/data/" + path, path, 77);
  }
  Layout detect() {
    auto layout = detect_folder(source_);
    EXPECT_TRUE(layout.has_value());
    return std::move(*layout);
  }
  CollectingSink scan(const Layout& layout) {
    CollectingSink sink;
    for (const Part& part : layout.parts) scan_folder(source_, layout, part, sink);
    return sink;
  }
  CollectingSink scan() { return scan(detect()); }

  FakeFileSystem files_;
  Source source_{"/data", "", "", &files_};
};

TEST_F(Folder, ClassesAreLabels) {
  make({"dog/2.jpg", "cat/1.JPEG", "dog/deep/3.png", "top.jpg"});
  const Layout layout = detect();
  EXPECT_EQ(layout.classes, (std::vector<std::string>{"cat", "dog"}));
  const CollectingSink sink = scan(layout);
  ASSERT_EQ(sink.samples.size(), 4U);
  EXPECT_TRUE(sink.shards.empty());
  EXPECT_EQ(sink.samples[0].key, "top");
  EXPECT_FALSE(sink.samples[0].fields.contains("label"));
  EXPECT_EQ(sink.samples[1].key, "cat/1");
  EXPECT_EQ(sink.samples[1].fields.at("label").field.integer, 0);
  EXPECT_EQ(sink.samples[1].fields.at("label").field.encoding, Encoding::none);
  EXPECT_EQ(sink.samples[1].fields.at("image").suffix, "JPEG");
  EXPECT_EQ(sink.samples[3].key, "dog/deep/3");
  EXPECT_EQ(sink.samples[3].fields.at("label").field.integer, 1);
}

TEST_F(Folder, EmptyClassesCount) {
  make({"b/1.jpg"});
  files_.add_directory("/data/a");
  EXPECT_EQ(detect().classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(scan().samples[0].fields.at("label").field.integer, 1);
}

TEST_F(Folder, FlatFoldersHaveNoLabels) {
  make({"1.jpg", "2.jpg"});
  files_.add_directory("/data/empty");
  EXPECT_TRUE(detect().classes.empty());
  EXPECT_EQ(scan().samples[0].fields.size(), 1U);
}

TEST_F(Folder, AnExplicitLabelLeavesNoneToDerive) {
  make({"a/1.jpg", "a/1.cls", "b/2.jpg"});
  EXPECT_TRUE(detect().classes.empty());
  const CollectingSink sink = scan();
  EXPECT_EQ(sink.samples[0].fields.at("label").field.encoding, Encoding::decimal);
  EXPECT_FALSE(sink.samples[1].fields.contains("label"));
}

TEST_F(Folder, FilesOfOneStemAreOneSample) {
  make({"x", "x.jpg", "x.seg.png", "x.json", "x-y.jpg"});
  const CollectingSink sink = scan();
  ASSERT_EQ(sink.samples.size(), 2U);
  EXPECT_EQ(sink.samples[0].key, "x-y");
  const auto& fields = sink.samples[1].fields;
  EXPECT_EQ(sink.samples[1].key, "x");
  ASSERT_EQ(fields.size(), 4U);
  EXPECT_EQ(fields.at("data").suffix, "");
  EXPECT_EQ(fields.at("json").field.type, FieldType::text);
  const Extent& extent = fields.at("seg.png").field.extent;
  EXPECT_EQ(extent.container, Container::file);
  EXPECT_EQ(extent.offset, 77U);
  EXPECT_EQ(extent.length, 9U);
  EXPECT_EQ(fields.at("seg.png").suffix, "seg.png");
}

TEST_F(Folder, PartsNeverSplitASample) {
  for (int i = 0; i < 9'999; ++i) files_.add_file(fmt::format("/data/{:05}.jpg", i), "");
  make({"09999.cls", "09999.jpg", "09999.txt", "10000.jpg"});
  const Layout layout = detect();
  ASSERT_EQ(layout.parts.size(), 2U);
  EXPECT_EQ(layout.parts[0].first, 0U);
  EXPECT_EQ(layout.parts[0].last, 10'002U);
  EXPECT_EQ(layout.parts[1].last, 10'003U);
  EXPECT_EQ(scan(layout).samples.size(), 10'001U);
}

TEST_F(Folder, FaultsOfFilesAreNamed) {
  make({"a.jpg", "b.jpg", "c.cls", "c.jpg", "d.jpg"});
  const Layout layout = detect();
  files_.remove("/data/a.jpg");
  files_.fail_open("/data/c.jpg", EACCES);
  files_.add_directory("/data/d.jpg");
  const CollectingSink sink = scan(layout);
  ASSERT_EQ(sink.faults.size(), 3U);
  EXPECT_EQ(sink.faults[0], (Fault{"a.jpg", {}, "a", "", "is gone since the folder was listed"}));
  EXPECT_EQ(sink.faults[1], (Fault{"c.jpg", {}, "c", "", "cannot be read: Permission denied"}));
  EXPECT_EQ(sink.faults[2], (Fault{"d.jpg", {}, "d", "", "is no file any more"}));
  ASSERT_EQ(sink.samples.size(), 2U);
  EXPECT_EQ(sink.samples[1].key, "c");
  EXPECT_EQ(sink.samples[1].fields.size(), 1U);
}

TEST_F(Folder, OpensNothingThatModeBitsCallReadable) {
  make({"a/1.jpg", "b/2.jpg"});
  scan();
  EXPECT_EQ(files_.opens(), 0U);
}

TEST_F(Folder, UnreadableFilesOnDiskAreNamed) {
  std::string root = testing::TempDir() + "folder_XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  fs::permissions(root, fs::perms(0755));
  for (const char* name : {"a.jpg", "b.jpg"}) std::ofstream(fs::path(root) / name) << name;
  fs::permissions(root + "/b.jpg", fs::perms::none);
  const Source source{root, "", "", &real_file_system()};
  const uid_t user = geteuid();
  if (user == 0) {
    ASSERT_EQ(seteuid(65534), 0);  // permissions do not stop root
  }
  CollectingSink sink;
  const auto layout = detect_folder(source);
  scan_folder(source, *layout, layout->parts.at(0), sink);
  EXPECT_EQ(seteuid(user), 0);
  fs::remove_all(root);
  EXPECT_EQ(sink.samples.size(), 1U);
  ASSERT_EQ(sink.faults.size(), 1U);
  EXPECT_EQ(sink.faults[0], (Fault{"b.jpg", {}, "b", "", "cannot be read: Permission denied"}));
}

TEST_F(Folder, AFileIsNoFolder) {
  make({"a.tar"});
  EXPECT_FALSE(detect_folder({"/data", "a.tar", "", &files_}).has_value());
}

TEST_F(Folder, AFolderOfDatasetsIsRefused) {
  make({"train/x-000000.tar", "train/x-000001.tar", "val/x-00000-of-00002"});
  try {
    detect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), "/data holds 2 datasets: /data/train, /data/val; name one of them");
  }
  make({"val/readme.txt"});
  EXPECT_THROW(detect(), Error);  // describes the shards
  make({"cat/1.jpg", "banner.png"});
  try {
    detect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "/data holds 2 datasets: /data/train, /data/val, next to cat; name one of them, or "
        "/data::all for a folder of all files");
  }
  source_.split = "all";
  EXPECT_EQ(detect().classes.size(), 3U);
}

TEST_F(Folder, AFolderOfIndexedFoldersIsRefused) {
  make(
      {"train/a/1.jpg", "train/.stoker/manifest.json", "val/a/2.jpg", "val/.stoker/manifest.json"});
  EXPECT_THROW(detect(), Error);
  make({"test/a/3.jpg"});  // not a dataset by itself: the three are classes
  EXPECT_EQ(detect().classes.size(), 3U);
}

TEST_F(Folder, ShardsNextToFilesAreFilesOnPurposeAlone) {
  make({"train/x-000000.tar", "README.md"});
  EXPECT_THROW(detect(), Error);  // a description is no sample
  make({"a.jpg"});
  EXPECT_THROW(detect(), Error);
  source_.split = "all";
  EXPECT_EQ(scan().samples.size(), 3U);
}

TEST_F(Folder, PartsOfSamplesAreNoClasses) {
  make({"JPEGImages/1.jpg", "Annotations/1.xml"});
  try {
    detect();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(),
                 "/data has sub-directories that do not look like classes: /data/JPEGImages, next "
                 "to /data/Annotations; name the one with the samples, such as /data/JPEGImages, "
                 "or /data::all to take all sub-directories as classes");
  }
  source_.split = "all";
  EXPECT_EQ(detect().classes, (std::vector<std::string>{"Annotations", "JPEGImages"}));
}

TEST_F(Folder, ScansPartsThreaded) {
  for (int i = 0; i < 100; ++i) make({fmt::format("{}/{}.jpg", i % 7, i)});
  Layout layout = detect();
  layout.parts.clear();
  for (size_t i = 0; i < 100; i += 10) layout.parts.push_back({"", Compression::none, i, i + 10});
  std::vector<CollectingSink> sinks(layout.parts.size());
  parallel_for(sinks.size(), 4,
               [&](size_t i) { scan_folder(source_, layout, layout.parts[i], sinks[i]); });
  std::vector<std::string> keys;
  for (const CollectingSink& sink : sinks) {
    for (const auto& sample : sink.samples) keys.push_back(sample.key);
  }
  std::vector<std::string> expected;
  for (const auto& sample : scan().samples) expected.push_back(sample.key);
  EXPECT_EQ(keys, expected);
}

}  // namespace
}  // namespace stoker
