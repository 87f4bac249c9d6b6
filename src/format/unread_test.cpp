// SPDX-License-Identifier: Apache-2.0
#include "format/unread.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

using namespace std::string_literals;

std::string describe(std::string_view name, std::string_view begin) {
  return describe_unread_file(name, begin).value_or("");
}

/// The error for a directory of these files; empty: it is a folder.
std::string refusal(const std::vector<std::pair<std::string, std::string>>& contents) {
  FakeFileSystem files;
  for (const auto& [name, bytes] : contents) files.add_file("/d/" + name, bytes);
  try {
    const Detected detected = detect_format({"/d", "", "", &files});
    EXPECT_EQ(detected.format->name, "folder");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    return error.what();
  }
}

TEST(Unread, FilesByTheirFirstBytes) {
  EXPECT_EQ(
      describe("x.zip", "PK\x03\x04"s + std::string(40, '\0')),
      "is a zip archive, which is not read: unpack it (unzip x.zip -d DIRECTORY) and name the "
      "directory");
  EXPECT_EQ(describe("x.tar.xz",
                     "\xfd"
                     "7zXZ\0"s),
            "is an xz file, which is not read: decompress it first: xz -dk x.tar.xz, then x.tar is "
            "read if it is a tar archive");
  EXPECT_NE(describe("x.tar.bz2", "BZh91AY").find("bzip2 -dk x.tar.bz2"), std::string::npos);
  EXPECT_NE(describe("x.tar.lz4", "\x04\x22\x4d\x18").find("lz4 -d x.tar.lz4 x.tar"),
            std::string::npos);
  EXPECT_NE(describe("x", "7z\xbc\xaf\x27\x1c").find("7z archive"), std::string::npos);
  EXPECT_NE(describe("x", "Rar!\x1a\x07\x01").find("rar archive"), std::string::npos);
  EXPECT_NE(describe("x.mat", "MATLAB 5.0 MAT-file, Platform").find("-v7.3"), std::string::npos);
  EXPECT_NE(describe("x", "\x80\x04\x95").find("pickle"), std::string::npos);
  EXPECT_NE(describe("x.beton", "\x02\x00\x02\x00"s).find("FFCV"), std::string::npos);
  EXPECT_NE(describe("x.csv", "a,b\n1,2\n").find("table of text"), std::string::npos);
  EXPECT_EQ(describe("x.bin", "\x02\x00\x02\x00"s), "");
  EXPECT_EQ(describe("x.bin", "\x80\x02"), "");
  EXPECT_EQ(describe("x.txt", "hello"), "");
}

TEST(Unread, WhatAZipHolds) {
  const auto zip = [](const std::string& member) {
    std::string bytes = "PK\x03\x04"s + std::string(26, '\0');
    bytes[26] = static_cast<char>(member.size());
    return bytes + member;
  };
  EXPECT_NE(describe("x.pt", zip("archive/data.pkl")).find("torch.save"), std::string::npos);
  EXPECT_NE(describe("x.zip", zip("a/.zarray")).find("Zarr"), std::string::npos);
  EXPECT_NE(describe("x.zip", zip("a.jpg")).find("a zip archive"), std::string::npos);
}

TEST(Unread, Directories) {
  EXPECT_EQ(
      refusal({{".zgroup", R"({"zarr_format": 2})"}, {"train/.zarray", "{}"}, {"test/0", ""}}),
      "/d: is a Zarr store (.zgroup), which is not read yet: write its arrays as HDF5 or "
      ".npy, which are read");
  EXPECT_NE(refusal({{"zarr.json", R"({"zarr_format": 3})"}, {"c/0/0", ""}}).find("Zarr"),
            std::string::npos);
  EXPECT_NE(refusal({{"index.json", R"({"shards": [{"format": "mds", "raw_data": {}}]})"},
                     {"shard.00000.mds", "x"}})
                .find("MDS"),
            std::string::npos);
  EXPECT_NE(refusal({{"index.json", R"({"chunks": [{"filename": "chunk-0-0.bin"}], "config": {}})"},
                     {"chunk-0-0.bin", "x"}})
                .find("LitData"),
            std::string::npos);
  EXPECT_NE(refusal({{"CURRENT", "MANIFEST-000004\n"}, {"000005.ldb", "x"}}).find("LevelDB"),
            std::string::npos);
  EXPECT_NE(refusal({{"_versions/1.manifest", "x"}, {"data/a.lance", "x"}}).find("Lance"),
            std::string::npos);
  EXPECT_NE(refusal({{"_delta_log/0.json", "x"}, {"part-0.parquet", "PAR1"}}).find("Delta Lake"),
            std::string::npos);
  EXPECT_NE(refusal({{"data_batch_1", "\x80\x02}q"}, {"batches.meta", "\x80\x02}q"}})
                .find("cifar-10-binary.tar.gz"),
            std::string::npos);
  EXPECT_NE(refusal({{"train", "\x80\x02}q"}, {"test", "\x80\x02}q"}, {"meta", "\x80\x02}q"}})
                .find("CIFAR-100"),
            std::string::npos);
}

TEST(Unread, FilesOfAFolder) {
  EXPECT_NE(
      refusal({{"train.rec", "\x0a\x23\xd7\xce...."}, {"train.idx", "0\t0"}, {"train.lst", ""}})
          .find("RecordIO"),
      std::string::npos);
  EXPECT_NE(refusal({{"a-0.tar.xz",
                      "\xfd"
                      "7zXZ\0"s},
                     {"a-1.tar.xz",
                      "\xfd"
                      "7zXZ\0"s},
                     {"README.md", ""}})
                .find("holds 2 files such as a-0.tar.xz, which is an xz file"),
            std::string::npos);
  EXPECT_NE(refusal({{"train.csv", "a,b"}, {"test.csv", "a,b"}}).find("table of text"),
            std::string::npos);
  EXPECT_NE(refusal({{"train.pkl", "\x80\x04\x95"}, {"test.pkl", "\x80\x04\x95"}}).find("pickle"),
            std::string::npos);
}

TEST(Unread, FoldersOfFilesStayFolders) {
  EXPECT_EQ(refusal({{"a.jpg", "x"}, {"index.json", R"({"shards": 3})"}}), "");
  EXPECT_EQ(refusal({{"a.jpg", "x"}, {"index.json", R"([1, 2])"}, {"CURRENT", "x"}}), "");
  EXPECT_EQ(refusal({{"a.jpg", "x"}, {"zarr.json", "{}"}}), "");
  EXPECT_EQ(refusal({{"a.jpg", "x"},
                     {"b.tar.xz",
                      "\xfd"
                      "7zXZ\0"s}}),
            "");
  EXPECT_EQ(refusal({{"s1.pt", "\x80\x04\x95"}, {"s2.pt", "\x80\x04\x95"}}), "");
  EXPECT_EQ(refusal({{"walk01.csv", "a,b"}, {"walk02.csv", "a,b"}}), "");
  EXPECT_EQ(refusal({{"a.rec", "no magic"}}), "");
  EXPECT_EQ(refusal({{"cats/a.csv", "a"}, {"dogs/train.csv", "a"}}), "");
}

}  // namespace
}  // namespace stoker
