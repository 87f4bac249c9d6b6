// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/error.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

class DetectFormat : public testing::Test {
 protected:
  void add(const std::string& path, const std::string& contents) {
    files_.add_file("/data/" + path, contents);
  }
  std::string error_of(const std::string& file, ErrorKind kind, const std::string& list = "") {
    try {
      return std::string(detect_format({"/data", file, list, &files_}).format->name);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
  }

  FakeFileSystem files_;
};

TEST(Formats, AreFoundByName) {
  for (const Format& format : formats()) EXPECT_EQ(find_format(format.name), &format);
  EXPECT_EQ(find_format("parchment"), nullptr);
  EXPECT_EQ(formats().back().name, "folder");  // takes any directory: nothing behind it is asked
}

TEST_F(DetectFormat, TakesTheMostSpecific) {
  add("a/1.jpg", "x");
  EXPECT_EQ(detect_format({"/data", "", "", &files_}).format->name, "folder");
  add("tars/x-000000.tar", "");
  EXPECT_EQ(detect_format({"/data/tars", "", "", &files_}).format->name, "tar");
  add("records/x-00000-of-00001", std::string(16, '\0'));
  EXPECT_EQ(detect_format({"/data/records", "", "", &files_}).format->name, "tfrecord");
}

TEST_F(DetectFormat, SaysWhatAFileLooksLike) {
  add("x.sqsh", "hsqs............");
  add("x.txt", "hello\n");
  add("x.bin", std::string("\x01\x02\x00\xff", 4));
  add("empty.bin", "");
  std::string known;
  for (const Format& format : formats()) {
    known += std::string(known.empty() ? "" : ", ") + std::string(format.name);
  }
  const std::string end = "; the formats known here are " + known;
  EXPECT_EQ(error_of("x.sqsh", ErrorKind::unsupported),
            "/data/x.sqsh: is a squashfs image, which is not read: mount it (squashfuse x.sqsh "
            "DIRECTORY) and name the directory");
  EXPECT_EQ(error_of("x.txt", ErrorKind::unsupported),
            "/data/x.txt: looks like text: 'hello\\n'" + end);
  EXPECT_EQ(error_of("x.bin", ErrorKind::unsupported),
            "/data/x.bin: begins with the bytes 01 02 00 ff" + end);
  EXPECT_EQ(error_of("empty.bin", ErrorKind::unsupported), "/data/empty.bin: is empty" + end);
}

TEST_F(DetectFormat, SaysWhyAFolderHasNoSamples) {
  files_.add_directory("/data");
  EXPECT_EQ(error_of("", ErrorKind::not_found), "/data: no files in it");
  add(".DS_Store", "x");
  EXPECT_EQ(error_of("", ErrorKind::not_found), "/data: no files in it (1 hidden)");
  add("a/1.jpg", "x");
  files_.fail_open("/data/a", EACCES);
  EXPECT_NE(error_of("", ErrorKind::not_found).find("cannot be listed: Permission denied"),
            std::string::npos);
}

TEST_F(DetectFormat, AListMakesAFolder) {
  add("x-000000.tar", "x");
  files_.add_file("/list.csv", "path,n\nx-000000.tar,1\n");
  EXPECT_EQ(error_of("", ErrorKind::usage, "/list.csv"), "folder");
  files_.add_file("/list.csv", "path,n\ny.tar,1\n");
  EXPECT_NE(error_of("", ErrorKind::not_found, "/list.csv").find("line 2"), std::string::npos);
  EXPECT_EQ(error_of("x-000000.tar", ErrorKind::usage, "/list.csv"),
            "/data/x-000000.tar: a list is for folders, and this is a file");
}

TEST_F(DetectFormat, MissingDirectoriesAreNotFound) {
  EXPECT_NE(error_of("", ErrorKind::not_found).find("No such file or directory"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker
