// SPDX-License-Identifier: Apache-2.0
#include "format/folder_list.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/error.h"
#include "format/collecting_sink.h"
#include "format/folder.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

class FolderList : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* path : {"a/1.jpg", "a/1.txt", "a/2.jpg", "b/3.jpg", "4.jpg"}) {
      files_.add_file(std::string("/data/") + path, path);
    }
  }
  Layout detect(const std::string& list) {
    files_.add_file("/list.csv", list);
    return std::move(*detect_folder(source_));
  }
  CollectingSink scan(const std::string& list) {
    const Layout layout = detect(list);
    CollectingSink sink;
    for (const Part& part : layout.parts) scan_folder(source_, layout, part, sink);
    return sink;
  }
  std::string error_of(const std::string& list) {
    try {
      detect(list);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  FakeFileSystem files_;
  Source source_{"/data", "", "/list.csv", &files_};
};

TEST_F(FolderList, RowsDecideSamplesOrderAndFields) {
  const Layout layout = detect("path,n,score,note\n4.jpg,7,1,x\na/1.jpg,,2.5,\"\"\n");
  EXPECT_EQ(layout.unlisted, 2U);
  EXPECT_TRUE(layout.faults.empty());
  CollectingSink sink;
  scan_folder(source_, layout, layout.parts.at(0), sink);
  ASSERT_EQ(sink.samples.size(), 2U);
  const auto& first = sink.samples[0];
  EXPECT_EQ(first.key, "4");
  EXPECT_EQ(first.fields.at("n").field.integer, 7);
  EXPECT_EQ(first.fields.at("score").field.real, 1.0);
  EXPECT_EQ(first.fields.at("note").field.extent.container, Container::here);
  EXPECT_EQ(first.fields.at("note").field.extent.length, 1U);
  EXPECT_EQ(first.fields.at("note").inline_bytes, "x");
  const auto& second = sink.samples[1];
  EXPECT_EQ(second.key, "a/1");
  EXPECT_TRUE(second.fields.contains("image"));
  EXPECT_TRUE(second.fields.contains("txt"));  // lies beside it
  EXPECT_FALSE(second.fields.contains("n"));
  EXPECT_FALSE(second.fields.contains("note"));
  EXPECT_EQ(second.fields.at("score").field.real, 2.5);
}

TEST_F(FolderList, TextLabelsBecomeClasses) {
  for (const std::string heading : {"label", "class"}) {
    const Layout layout = detect("path," + heading + "\na/1.jpg,dog\na/2.jpg,\nb/3.jpg,cat\n");
    EXPECT_EQ(layout.classes, (std::vector<std::string>{"cat", "dog"}));
    CollectingSink sink;
    scan_folder(source_, layout, layout.parts.at(0), sink);
    EXPECT_EQ(sink.samples[0].fields.at("label").field.integer, 1);
    EXPECT_FALSE(sink.samples[1].fields.contains("label"));
    EXPECT_EQ(sink.samples[2].fields.at("label").field.integer, 0);
  }
}

TEST_F(FolderList, NumbersAndOtherColumnsLeaveClassesAlone) {
  const Layout numbers = detect("path,label,class\na/1.jpg,5,x\n");
  EXPECT_TRUE(numbers.classes.empty());
  CollectingSink sink;
  scan_folder(source_, numbers, numbers.parts.at(0), sink);
  EXPECT_EQ(sink.samples[0].fields.at("label").field.integer, 5);
  EXPECT_EQ(sink.samples[0].fields.at("class").inline_bytes, "x");
  // No label in the list: directories are classes as ever.
  EXPECT_EQ(detect("path,n\na/1.jpg,5\n").classes, (std::vector<std::string>{"a", "b"}));
}

TEST_F(FolderList, JsonLinesMayBringColumnsLate) {
  const CollectingSink sink = scan(
      "{\"path\": \"a/1.jpg\"}\n{\"path\": \"a/2.jpg\", \"boxes\": [[1, 2]]}\n"
      "{\"path\": \"b/3.jpg\", \"s\": \"\"}\n");
  ASSERT_EQ(sink.samples.size(), 3U);
  EXPECT_FALSE(sink.samples[0].fields.contains("boxes"));
  EXPECT_EQ(sink.samples[1].fields.at("boxes").inline_bytes, "[[1,2]]");
  EXPECT_FALSE(sink.samples[2].fields.contains("boxes"));
  EXPECT_TRUE(sink.samples[2].fields.contains("s"));  // empty, but there
}

TEST_F(FolderList, RowsThatNameNothingAreFaults) {
  files_.add_file("/data/locked/5.jpg", "x");
  files_.fail_open("/data/locked", EACCES);
  files_.add_file("/data/a/.6.jpg", "x");
  const Layout layout = detect(
      "path\na/1.jpg\nnowhere.jpg\n../x.jpg\n/etc/passwd\nlocked/5.jpg\na/.6.jpg\na/1.png\n"
      "./a//1.txt\n/data/a/2.jpg\n");
  const auto fault = [&](size_t i) { return layout.faults.at(i).message(); };
  ASSERT_EQ(layout.faults.size(), 7U);
  EXPECT_EQ(
      layout.faults[0],
      (Fault{"nowhere.jpg", {}, "", "", "is listed in line 3 of /list.csv, but does not exist"}));
  EXPECT_NE(fault(1).find("line 4 of /list.csv, but leads out of the folder"), std::string::npos);
  EXPECT_NE(fault(2).find("line 5 of /list.csv, but leads out of the folder"), std::string::npos);
  EXPECT_NE(fault(3).find("but 'locked' cannot be listed: Permission denied"), std::string::npos);
  EXPECT_NE(fault(4).find("begins with a dot"), std::string::npos);
  EXPECT_NE(fault(5).find("line 8 of /list.csv, but does not exist"), std::string::npos);
  EXPECT_NE(fault(6).find("line 9 of /list.csv, but line 2 lists the same sample"),
            std::string::npos);
  EXPECT_EQ(layout.files.files.size(), 3U);  // a/1.jpg, a/1.txt, a/2.jpg by its full path
}

TEST_F(FolderList, FaultsOfUnlistedFilesDoNotMatter) {
  files_.add_other("/data/socket");
  EXPECT_TRUE(detect("path\na/1.jpg\n").faults.empty());
}

TEST_F(FolderList, ARowMayNameTheKey) {
  const CollectingSink sink = scan("id,n\na/1,3\n4,5\n");
  ASSERT_EQ(sink.samples.size(), 2U);
  EXPECT_EQ(sink.samples[0].key, "a/1");
  EXPECT_EQ(sink.samples[0].fields.at("n").field.integer, 3);
}

TEST_F(FolderList, AListWithoutHeaderIsRefused) {
  EXPECT_EQ(error_of("a/1.jpg,3\na/2.jpg,4\n"),
            "/list.csv: line 1 names the file 'a/1.jpg' where a list has the names of its columns, "
            "such as \"path,label\"");
}

TEST_F(FolderList, UnusableListsAreRefused) {
  EXPECT_EQ(error_of(""), "/list.csv: lists no files");
  EXPECT_EQ(error_of("path,image\na/1.jpg,3\n"),
            "/list.csv: column 'image' has the name of a field that comes from files such as "
            "'1.jpg': rename the column");
  source_.list = "/nowhere.csv";
  EXPECT_NE(error_of("").find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace stoker
