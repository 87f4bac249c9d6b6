// SPDX-License-Identifier: Apache-2.0
// The first byte of an input says what the rest is:
//   'f'  a file as it lies on disk, maybe compressed
//   'h'  the same, but every block that begins a member gets a right checksum first: else hardly
//        any change of a header would come further than that
// What comes out must lie within the file, and be the same when it is written and read again.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/inflating_file.h"
#include "format/collecting_sink.h"
#include "format/tar.h"
#include "format/tar_header.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

CollectingSink scan(const std::string& contents, Compression compression) {
  FakeFileSystem files;
  files.add_file("/d/s.tar", contents);
  CollectingSink found;
  scan_tar({"/d", "s.tar", "", &files}, {}, {"s.tar", compression, 0, 0}, found);
  return found;
}

/// Blocks that have the magic of a header get the checksum that they should have.
void mend(std::string& contents) {
  for (size_t at = 0; at + kTarBlock <= contents.size(); at += kTarBlock) {
    TarHeader header = as_tar_header(as_bytes(contents).subspan(at));
    if (std::string_view(header.magic, 5) != "ustar") continue;
    std::memset(header.checksum, ' ', sizeof header.checksum);
    const uint32_t sum = plain_sum(reinterpret_cast<const std::byte*>(&header));
    fmt::format_to_n(header.checksum, 7, "{:06o}", sum);
    std::memcpy(contents.data() + at, &header, sizeof header);
  }
}

/// Writes what was found as a shard of its own; samples that no tar of ours can hold are left out.
std::string write(const CollectingSink& found, const std::string& contents,
                  std::vector<const CollectingSink::Sample*>& written) {
  ShardOutput out(1);
  const auto writer = kTarWrite.open({}, out);
  for (const auto& sample : found.samples) {
    std::vector<OutField> fields;
    for (const auto& [name, kept] : sample.fields) {
      OutField& field = fields.emplace_back();
      field.name = name;
      field.suffix = kept.suffix;
      field.type = kept.field.type;
      field.encoding = kept.field.encoding;
      field.length = kept.field.extent.length;
    }
    // Two samples in a row with one key could become one.
    if (!written.empty() && written.back()->key == sample.key) continue;
    try {
      const uint64_t end = out.size(0) + kTarWrite.size_of_sample(sample.key, fields);
      const OutSample one{sample.key, fields};
      writer->place({&one, 1}, out);
      require(out.size(0) == end);
      for (const OutField& field : fields) {
        const Extent& extent = sample.fields.at(std::string(field.name)).field.extent;
        std::memcpy(field.data, contents.data() + extent.offset, extent.length);
      }
      written.push_back(&sample);
    } catch (const Error& error) {
      require(error.kind() == ErrorKind::unsupported);
    }
  }
  writer->finish(out);
  std::string shard;
  for (const Bytes piece : out.pending(0)) shard += as_text(piece);
  return shard;
}

void round_trip(const CollectingSink& found, const std::string& contents) {
  std::vector<const CollectingSink::Sample*> written;
  const std::string shard = write(found, contents, written);
  const CollectingSink again = scan(shard, Compression::none);
  require(again.faults.empty() && again.samples.size() == written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    require(again.samples[i].key == written[i]->key);
    require(again.samples[i].fields.size() == written[i]->fields.size());
    for (const auto& [name, kept] : written[i]->fields) {
      const auto& other = again.samples[i].fields.at(name);
      require(other.field.type == kept.field.type && other.field.encoding == kept.field.encoding);
      const Extent& before = kept.field.extent;
      const Extent& after = other.field.extent;
      require(contents.compare(before.offset, before.length, shard, after.offset, after.length) ==
              0);
    }
  }
}

void try_file(const std::string& contents) {
  FakeFileSystem files;
  files.add_file("/d/s", contents);
  const auto layout = detect_tar({"/d", "s", "", &files});
  const Compression compression =
      layout ? layout->parts[0].compression : compression_of(as_bytes(contents));
  const CollectingSink found = scan(contents, compression);
  require(found.shards.size() == 1);
  if (compression != Compression::none) return;
  for (const auto& sample : found.samples) {
    for (const auto& [name, kept] : sample.fields) {
      const Extent& extent = kept.field.extent;
      require(extent.container == Container::shard && extent.offset <= contents.size() &&
              extent.length <= contents.size() - extent.offset);
    }
  }
  for (const Fault& fault : found.faults) require(!fault.message().empty());
  round_trip(found, contents);
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string contents(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'h') stoker::mend(contents);
  if (data[0] == 'f' || data[0] == 'h') stoker::try_file(contents);
  return 0;
}
