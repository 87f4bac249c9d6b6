// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the tests of tars: makes archives byte by byte, good and bad, and records what a scan finds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/scan.h"
#include "format/pax.h"
#include "format/tar.h"
#include "format/tar_header.h"
#include "format/tar_ranges.h"
#include "os/fake_file_system.h"

namespace stoker::tar_test {

inline void set_checksum(TarHeader& header) {
  std::memset(header.checksum, ' ', sizeof header.checksum);
  const auto sum = plain_sum(reinterpret_cast<const std::byte*>(&header));
  fmt::format_to_n(header.checksum, 7, "{:06o}\0", sum);
}

inline TarHeader make_header(std::string_view name, uint64_t size, char type = '0') {
  TarHeader header{};
  std::memcpy(header.name, name.data(), std::min(name.size(), sizeof header.name));
  fmt::format_to_n(header.mode, 7, "0000644");
  fmt::format_to_n(header.size, 11, "{:011o}", size);
  header.type = type;
  std::memcpy(header.magic,
              "ustar\0"
              "00",
              8);
  set_checksum(header);
  return header;
}

inline std::string bytes_of(const TarHeader& header) {
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

inline std::string padded(std::string contents) {
  contents.resize(round_up(contents.size(), kTarBlock));
  return contents;
}

inline std::string member(std::string_view name, std::string_view contents, char type = '0') {
  return bytes_of(make_header(name, contents.size(), type)) + padded(std::string(contents));
}

inline std::string pax(std::string_view records, char type = 'x') {
  return member("././@PaxHeader", records, type);
}

inline std::string record(std::string_view key, std::string_view value) {
  std::string text;
  append_pax(text, key, value);
  return text;
}

inline const std::string kEnd(2 * kTarBlock, '\0');

/// What a scan found, as text that is easy to compare.
class Recorder final : public ScanSink {
 public:
  uint32_t shard(const Shard& shard) override {
    shards.push_back(shard);
    return 5;
  }
  uint32_t codecs(std::span<const Codec>) override { return 0; }
  uint32_t block(const Block&) override { return 0; }
  void sample(std::string_view key, std::span<const FoundField> fields) override {
    std::string text = std::string(key) + ":";
    for (const FoundField& field : fields) {
      text += fmt::format(" {}({})={}", field.name, field.suffix, contents_of(field.extent));
    }
    samples.push_back(text);
  }
  void stated(const StatedChecksum&) override {}
  void fault(Fault fault) override { faults.push_back(std::move(fault)); }
  void hidden(uint64_t) override { ++hidden_members; }

  std::string faults_text() const {
    std::string text;
    for (const Fault& fault : faults) text += fault.message() + "\n";
    return text;
  }

  std::string decoded;  // the shard's bytes as they are when not compressed
  std::vector<Shard> shards;
  std::vector<std::string> samples;
  std::vector<Fault> faults;
  int hidden_members = 0;

 private:
  std::string contents_of(const Extent& extent) const {
    if (extent.container != Container::shard || extent.number != 5) return "?";
    return extent.offset + extent.length > decoded.size()
               ? "outside"
               : decoded.substr(extent.offset, extent.length);
  }
};

/// Scans `archive`; `decoded` where it is compressed. Whatever ranges it is walked in, the same
/// must be found.
inline Recorder scan(const std::string& archive, Compression compression = Compression::none,
                     const std::string& decoded = {}) {
  FakeFileSystem files;
  files.add_file("/d/x.tar", archive);
  const auto scan_in = [&](const TarRanges& ranges) {
    Recorder recorder;
    recorder.decoded = decoded.empty() ? archive : decoded;
    scan_tar_in_ranges({"/d", "x.tar", "", &files}, {"x.tar", compression, 0, 0}, ranges, recorder);
    return recorder;
  };
  Recorder recorder = scan_in({1});
  for (const unsigned count : {2U, 5U, 17U}) {
    const uint64_t size = archive.size() / count + 1;
    const Recorder other = scan_in({3, size});
    EXPECT_EQ(other.samples, recorder.samples) << "in ranges of " << size;
    EXPECT_EQ(other.faults_text(), recorder.faults_text()) << "in ranges of " << size;
    EXPECT_EQ(other.hidden_members, recorder.hidden_members) << "in ranges of " << size;
  }
  return recorder;
}

}  // namespace stoker::tar_test
