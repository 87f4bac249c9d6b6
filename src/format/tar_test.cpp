// SPDX-License-Identifier: Apache-2.0
#include "format/tar.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>

#include "base/error.h"
#include "format/tar_samples.h"
#include "format/tar_test_data.h"

namespace stoker::tar_test {
namespace {

using Texts = std::vector<std::string>;

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  return out;
}

/// Exactly one fault, which contains these words.
void expect_fault(const Recorder& found, uint64_t offset, std::string_view sample,
                  std::string_view words) {
  ASSERT_EQ(found.faults.size(), 1U) << found.faults_text();
  EXPECT_EQ(found.faults[0].shard, "x.tar");
  EXPECT_EQ(found.faults[0].offset, offset);
  EXPECT_EQ(found.faults[0].sample, sample);
  EXPECT_NE(found.faults[0].cause.find(words), std::string::npos) << found.faults[0].cause;
}

TEST(TarScan, ConsecutiveMembersWithOneKeyAreASample) {
  const Recorder found = scan(member("a/1.jpg", "one") + member("a/1.cls", "7") +
                              member("./a/2.jpg", "two") + member("3", "three") + kEnd);
  EXPECT_EQ(found.samples,
            (Texts{"a/1: image(jpg)=one label(cls)=7", "a/2: image(jpg)=two", "3: data()=three"}));
  EXPECT_EQ(found.faults_text(), "");
  ASSERT_EQ(found.shards.size(), 1U);
  EXPECT_EQ(found.shards[0].path, "x.tar");
  EXPECT_EQ(found.shards[0].size, 5U * 1024 - 1024 + 1024);
  EXPECT_EQ(found.shards[0].end, found.shards[0].size);
}

TEST(TarScan, SuffixThatComesAgainBeginsANewSample) {
  const Recorder found = scan(member("a.jpg", "1") + member("a.cls", "2") + member("a.jpg", "3") +
                              member("b.jpg", "4") + member("a.cls", "5") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"a: image(jpg)=1 label(cls)=2", "a: image(jpg)=3",
                                  "b: image(jpg)=4", "a: label(cls)=5"}));
}

TEST(TarScan, HiddenMembersAndDirectoriesAreNoSamples) {
  const Recorder found =
      scan(member("d", "", '5') + member("d/._a.jpg", "x") + member(".DS_Store", "y") +
           member("v7dir/", "") + member("d/a.jpg", "z") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"d/a: image(jpg)=z"}));
  EXPECT_EQ(found.hidden_members, 2);
  EXPECT_EQ(found.faults_text(), "");
}

TEST(TarScan, PrefixBelongsToPosixHeadersOnly) {
  TarHeader posix = make_header("b.jpg", 0);
  std::memcpy(posix.prefix, "some/where", 10);
  set_checksum(posix);
  TarHeader gnu = make_header("c.jpg", 0);
  std::memcpy(gnu.magic, "ustar  ", 8);
  std::memcpy(gnu.prefix, "14203410000", 11);  // atime
  set_checksum(gnu);
  TarHeader old = make_header("d.jpg", 0, '\0');
  std::memset(old.magic, 0, 8);
  set_checksum(old);
  const Recorder found = scan(bytes_of(posix) + bytes_of(gnu) + bytes_of(old) + kEnd);
  EXPECT_EQ(found.samples,
            (Texts{"some/where/b: image(jpg)=", "c: image(jpg)=", "d: image(jpg)="}));
  EXPECT_EQ(found.faults_text(), "");
}

TEST(TarScan, NameThatFillsItsField) {
  const std::string name = std::string(96, 'n') + ".jpg";
  EXPECT_EQ(scan(member(name, "") + kEnd).samples[0], std::string(96, 'n') + ": image(jpg)=");
}

TEST(TarScan, SignedChecksums) {
  TarHeader header = make_header("\xff\xfe.jpg", 1);
  std::memset(header.checksum, ' ', 8);
  const auto sum = plain_sum(reinterpret_cast<const std::byte*>(&header)) - 2 * 256;
  fmt::format_to_n(header.checksum, 7, "{:06o}\0", sum);
  const Recorder found = scan(bytes_of(header) + padded("x") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"\xff\xfe: image(jpg)=x"}));
}

TEST(TarScan, LongNames) {
  const std::string key(300, 'k');
  const Recorder found =
      scan(member("././@LongLink", key + ".jpg" + '\0', 'L') + member("cut", "1") +
           pax(record("path", key + ".cls")) + member("cut", "2") +
           member("././@LongLink", "target", 'K') + member("d", "", '5') + kEnd);
  EXPECT_EQ(found.samples, (Texts{key + ": image(jpg)=1 label(cls)=2"}));
}

TEST(TarScan, PaxRecords) {
  const Recorder found =
      scan(pax(record("comment", "whatever"), 'g') +
           pax(record("hdrcharset", "BINARY") + record("path", "\xff/a.jpg") +
               record("mtime", "1700000000.123456789")) +
           member("cut", "1") + pax("10 size=3\n" + std::string(20, '\0')) +
           bytes_of(make_header("b.jpg", 0)) + padded("two") + member("c.jpg", "3") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"\xff/a: image(jpg)=1", "b: image(jpg)=two", "c: image(jpg)=3"}));
  EXPECT_EQ(found.faults_text(), "");
}

TEST(TarScan, DamagedPaxHeaderCostsItsMember) {
  for (const char* records :
       {"99 path=a.jpg\n", "12 path=a.jpg", "path=a.jpg\n", "-1 path=a.jpg\n", "0 path=a.jpg\n",
        "18446744073709551616 path=x\n", "14 size=twelve\n", "9 =a.jpg\n", "5\n", "9 pathpath\n"}) {
    const Recorder found = scan(member("a.jpg", "1") + pax(records) + member("b.jpg", "2") +
                                member("c.jpg", "3") + kEnd);
    EXPECT_EQ(found.samples, (Texts{"a: image(jpg)=1", "c: image(jpg)=3"})) << records;
    expect_fault(found, 2048, "b", "pax header");
  }
}

TEST(TarScan, ExtendedHeaderOfAbsurdSize) {
  const std::string body = padded(std::string((1 << 20) + 1, 'x'));
  for (const char type : {'x', 'L'}) {
    const Recorder found = scan(member("a", body.substr(0, (1 << 20) + 1), type) +
                                member("b.jpg", "2") + member("c.jpg", "3") + kEnd);
    EXPECT_EQ(found.samples, (Texts{"c: image(jpg)=3"}));
    expect_fault(found, 512 + body.size(), "b", "extended header of 1048577 bytes");
  }
}

TEST(TarScan, ExtendedHeaderWithoutAMember) {
  expect_fault(scan(pax(record("path", "abc")) + kEnd), 0, "", "without a member");
}

TEST(TarScan, GlobalHeaderWithAPathIsReported) {
  const Recorder found = scan(pax(record("path", "evil.cls"), 'g') + member("a.jpg", "1") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"a: image(jpg)=1"}));
  EXPECT_EQ(found.faults.size(), 1U);
}

TEST(TarScan, Base256Sizes) {
  TarHeader header = make_header("a.jpg", 0);
  std::memset(header.size, 0, 12);
  header.size[0] = '\x80';
  header.size[11] = 3;
  set_checksum(header);
  EXPECT_EQ(scan(bytes_of(header) + padded("abc") + kEnd).samples, (Texts{"a: image(jpg)=abc"}));
}

TEST(TarScan, AbsurdSizes) {
  TarHeader huge = make_header("b.jpg", 0);
  huge.size[0] = '\x80';
  TarHeader negative = huge;
  std::memset(huge.size + 1, 0, 3);
  std::memset(huge.size + 4, 0xff, 8);  // 2^64-1
  set_checksum(huge);
  Recorder found = scan(member("a.jpg", "1") + bytes_of(huge) + padded("2") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"a: image(jpg)=1"}));
  expect_fault(found, 1024, "b", "truncated: the file ends 18446744073709550079 bytes before");

  std::memset(huge.size, 0x81, 12);  // more than 64 bits
  set_checksum(huge);
  found = scan(bytes_of(huge) + kEnd);
  expect_fault(found, 0, "b", "truncated");

  std::memset(negative.size, 0xff, 12);
  set_checksum(negative);
  found = scan(bytes_of(negative) + member("c.jpg", "3") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"c: image(jpg)=3"}));
  expect_fault(found, 0, "b", "size is no number");

  found = scan(pax(record("size", "18446744073709551615")) + member("b.jpg", "2") + kEnd);
  expect_fault(found, 1024, "b", "truncated");
  found = scan(pax(record("size", "9999999999999999999999")) + member("b.jpg", "2") + kEnd);
  expect_fault(found, 1024, "b", "truncated");
}

TEST(TarScan, WhatIsNoRegularFileIsLeftOut) {
  for (const char type : {'1', '2', '3', '4', '6', 'S', 'D', 'M', 'Z'}) {
    const Recorder found =
        scan(member("a.jpg", "1") + member("a.cls", "", type) + member("b.jpg", "2") + kEnd);
    EXPECT_EQ(found.samples, (Texts{"b: image(jpg)=2"})) << type;
    expect_fault(found, 1024, "a", "not a regular file");
    EXPECT_EQ(found.faults[0].field, "label");
    EXPECT_EQ(found.faults[0].samples, 1U);
  }
  // Two members of one sample: it is missing once.
  const Recorder found =
      scan(member("a.jpg", "", '2') + member("a.cls", "", '2') + member("b.jpg", "2") + kEnd);
  ASSERT_EQ(found.faults.size(), 2U);
  EXPECT_EQ(found.faults[0].samples, 1U);
  EXPECT_EQ(found.faults[1].samples, 0U);
}

TEST(TarScan, SparseFiles) {
  TarHeader old = make_header("a.bin", 5, 'S');
  old.prefix[482 - 345] = 1;
  set_checksum(old);
  std::string map(512, 'm');
  std::string last_map = map;
  last_map[504] = '\0';
  const Recorder found =
      scan(bytes_of(old) + map + last_map + padded("12345") +
           pax(record("GNU.sparse.major", "1") + record("GNU.sparse.name", "dir/b.bin")) +
           member("GNUSparseFile.0/b.bin", "1234") + member("c.jpg", "3") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"c: image(jpg)=3"}));
  ASSERT_EQ(found.faults.size(), 2U) << found.faults_text();
  EXPECT_EQ(found.faults[0].sample, "a");
  EXPECT_EQ(found.faults[1].sample, "dir/b");
}

TEST(TarScan, UnsafeNames) {
  using namespace std::string_literals;
  const Recorder found =
      scan(member("../a.jpg", "1") + member("/etc/b.jpg", "2") + member("x/../../c.jpg", "3") +
           pax(record("path", "a\0b.jpg"s)) + member("cut", "4") + member("", "5") +
           member("ok\n.jpg", "6") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"ok\n: image(jpg)=6"}));
  EXPECT_EQ(found.faults.size(), 5U) << found.faults_text();
}

TEST(TarScan, TruncatedAnywhereIsNoticed) {
  const std::string archive = member("a.jpg", std::string(700, 'a')) +
                              pax(record("mtime", "1700000000.123456789")) + member("a.cls", "1") +
                              member("b.jpg", "bb") + member("b.cls", "2") + kEnd;
  for (size_t size = 0; size + kEnd.size() <= archive.size(); ++size) {
    const Recorder found = scan(archive.substr(0, size));
    EXPECT_GE(found.faults.size(), 1U) << size;
    for (const std::string& sample : found.samples) {
      // Whole, or so that nobody can tell: the first sample, cut between its members.
      EXPECT_TRUE(sample.ends_with("=1") || sample.ends_with("=2") || size <= 3072)
          << size << sample;
      EXPECT_EQ(sample.find("outside"), std::string::npos) << size;
    }
  }
  EXPECT_EQ(scan(archive).faults_text(), "");
  // One block of zeros is an end.
  EXPECT_EQ(scan(archive.substr(0, archive.size() - 512)).faults_text(), "");
}

TEST(TarScan, TruncatedPayloadNamesTheSample) {
  const std::string archive = member("a.jpg", std::string(700, 'a'));
  expect_fault(scan(archive.substr(0, 1000)), 0, "a",
               "truncated: the file ends 212 bytes before the 700 bytes here do");
  const Recorder found = scan(archive.substr(0, 1000));
  EXPECT_EQ(found.faults[0].field, "image");
  EXPECT_TRUE(found.samples.empty());
}

TEST(TarScan, TruncatedBetweenMembers) {
  Recorder found = scan(member("a.jpg", "1") + member("b.jpg", "2"));
  EXPECT_EQ(found.samples.size(), 2U);
  expect_fault(found, 2048, "", "ends without end-of-archive marker: truncated?");
  // The last sample lacks what the one before has.
  found = scan(member("a.jpg", "1") + member("a.cls", "2") + member("b.jpg", "3"));
  EXPECT_EQ(found.samples.size(), 1U);
  ASSERT_EQ(found.faults.size(), 2U);
  EXPECT_EQ(found.faults[1].sample, "b");
}

TEST(TarScan, EmptyArchives) {
  expect_fault(scan(""), 0, "", "ends without end-of-archive marker");
  expect_fault(scan("abc"), 0, "", "truncated: ends within a header, 509 bytes of it are missing");
  EXPECT_EQ(scan(kEnd).faults_text(), "");
  EXPECT_EQ(scan(std::string(10240, '\0')).faults_text(), "");
}

TEST(TarScan, BytesBehindTheEnd) {
  std::string archive = member("a.jpg", "1") + std::string(200'000, '\0');
  EXPECT_EQ(scan(archive).faults_text(), "");
  archive[150'000] = 'x';
  expect_fault(scan(archive), 150'000, "", "not zero");
  expect_fault(scan(member("a.jpg", "1") + kEnd + member("b.jpg", "2") + kEnd), 2048, "",
               "not zero");
}

TEST(TarScan, GoesOnBehindADamagedHeader) {
  std::string archive;
  for (const char* key : {"a", "b", "c"}) {
    archive += member(std::string(key) + ".jpg", std::string(1000, *key)) +
               member(std::string(key) + ".cls", key);
  }
  archive += kEnd;
  // Headers begin at 0, 1536, 2560, 4096, 5120, 6656.
  for (const size_t header : {0, 1536, 2560, 4096, 5120, 6656}) {
    for (const size_t byte : {0, 3, 105, 126, 150, 156, 257, 500}) {
      std::string damaged = archive;
      damaged[header + byte] = static_cast<char>(damaged[header + byte] ^ 0x10);
      const Recorder found = scan(damaged);
      const std::string where = fmt::format("{}+{}\n{}", header, byte, found.faults_text());
      ASSERT_GE(found.faults.size(), 1U);
      EXPECT_EQ(found.faults[0].offset, header) << where;
      EXPECT_NE(found.faults[0].cause.find("header checksum"), std::string::npos) << where;
      // What lies beside the damage is whole or left out; only the very first sample has none
      // before it that tells how many fields it should have.
      if (header > 0) {
        EXPECT_GE(found.samples.size(), 1U) << where;
        for (const std::string& sample : found.samples) {
          const bool whole =
              sample.find("label") != sample.npos && sample.find("image") != sample.npos;
          EXPECT_TRUE(whole || header < 2560) << where << sample;
        }
      }
    }
  }
  std::string damaged = archive;
  damaged[2560 + 105] ^= 1;
  Recorder found = scan(damaged);
  expect_fault(found, 2560, "b", "header checksum is ");
  expect_fault(found, 2560, "b", "passed over 1536 bytes to the next header");
  EXPECT_EQ(found.samples.size(), 2U);
  // A name that nobody can read is that of the sample around it, or of none that is known.
  damaged = archive;
  damaged[4096] = 'x';
  found = scan(damaged);
  ASSERT_EQ(found.faults.size(), 2U) << found.faults_text();
  EXPECT_EQ(found.faults[0].sample, "x");
  EXPECT_EQ(found.faults[1].sample, "b");
  EXPECT_EQ(found.samples.size(), 2U);
}

TEST(TarScan, DamageInTheMiddleOfASample) {
  std::string archive = member("a.jpg", "1") + member("a.txt", "2") + member("a.cls", "3") + kEnd;
  archive[1024] = 'x';
  const Recorder found = scan(archive);
  EXPECT_EQ(found.samples, Texts());
  ASSERT_EQ(found.faults.size(), 2U) << found.faults_text();
  EXPECT_EQ(found.faults[1].sample, "a");
}

TEST(TarScan, DamagedExtendedHeaderCostsItsMember) {
  std::string archive = member("a.jpg", "1") + pax(record("path", "long.jpg")) +
                        member("cut.jpg", "2") + member("c.jpg", "3") + kEnd;
  archive[1024 + 110] ^= 1;
  const Recorder found = scan(archive);
  EXPECT_EQ(found.samples, (Texts{"a: image(jpg)=1", "c: image(jpg)=3"}));
  EXPECT_EQ(found.faults.size(), 2U) << found.faults_text();
}

TEST(TarScan, NothingButNoise) {
  const Recorder found = scan(std::string(5000, 'x'));
  expect_fault(found, 0, "", "no header follows in the 5000 bytes up to the end");
}

TEST(TarScan, TooManyMembersWithOneKey) {
  std::string archive;
  for (size_t i = 0; i <= TarSamples::kMaxMembers + 5; ++i)
    archive += member(fmt::format("a.{}", i), "");
  const Recorder found = scan(archive + member("b.jpg", "1") + kEnd);
  EXPECT_EQ(found.samples, (Texts{"b: image(jpg)=1"}));
  EXPECT_EQ(found.faults.size(), 1U);
}

TEST(TarScan, Compressed) {
  const std::string archive = member("a.jpg", std::string(300'000, 'a')) + member("a.cls", "1") +
                              member("b.jpg", "bb") + kEnd;
  const Recorder plain = scan(archive);
  EXPECT_EQ(plain.samples.size(), 2U);
  for (const auto& [packed, compression] :
       {std::pair(gzip(archive), Compression::gzip), std::pair(zstd(archive), Compression::zstd)}) {
    const Recorder found = scan(packed, compression, archive);
    EXPECT_EQ(found.samples, plain.samples);
    EXPECT_EQ(found.faults_text(), "");
    EXPECT_EQ(found.shards[0].compression, compression);
    EXPECT_EQ(found.shards[0].size, packed.size());
  }
}

TEST(TarScan, CompressedAndTruncatedBeforePacking) {
  const std::string archive = member("a.jpg", std::string(300'000, 'a')).substr(0, 250'000);
  expect_fault(scan(gzip(archive), Compression::gzip, archive), 0, "a",
               "truncated: the file ends 50512 bytes before the 300000 bytes here do");
}

TEST(TarScan, CompressedAndDamaged) {
  std::string archive;
  for (int i = 0; i < 100; ++i) {
    archive += member(fmt::format("{}.jpg", i), fmt::format("{}", i * 12345.678));
  }
  archive += kEnd;
  for (const auto& [packed, compression] :
       {std::pair(gzip(archive), Compression::gzip), std::pair(zstd(archive), Compression::zstd)}) {
    const Recorder cut = scan(packed.substr(0, packed.size() / 2), compression, archive);
    EXPECT_GE(cut.faults.size(), 1U);
    for (const std::string& sample : cut.samples)
      EXPECT_EQ(sample.find("outside"), std::string::npos);
    expect_fault(scan("", compression), 0, "", "");
    expect_fault(scan("noise", compression), 0, "", "damaged");
  }
  expect_fault(scan(gzip(archive)), 0, "", "compressed, although");
}

TEST(TarScan, PayloadsAreNotRead) {
  std::string archive;
  for (int i = 0; i < 50; ++i)
    archive += member(fmt::format("{}.jpg", i), std::string(100'000, 'x'));
  FakeFileSystem files;
  files.add_file("/d/x.tar", archive + kEnd);
  Recorder found;
  scan_tar({"/d", "x.tar", "", &files}, {}, {"x.tar", Compression::none, 0, 0}, found);
  EXPECT_EQ(found.samples.size(), 50U);
  EXPECT_LT(files.bytes_read(), 50U * 8192 + 20'000);
  EXPECT_LT(files.reads(), 60U);
}

TEST(TarScan, FailuresOfTheSystemAreThrown) {
  FakeFileSystem files;
  files.add_file("/d/x.tar", member("a.jpg", "1") + kEnd);
  files.fail_read("/d/x.tar", 600, EIO);
  Recorder found;
  const Source source{"/d", "x.tar", "", &files};
  EXPECT_THROW(scan_tar(source, {}, {"x.tar", Compression::none, 0, 0}, found), Error);
  EXPECT_THROW(scan_tar(source, {}, {"gone.tar", Compression::none, 0, 0}, found), Error);
}

}  // namespace
}  // namespace stoker::tar_test
