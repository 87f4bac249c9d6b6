// SPDX-License-Identifier: Apache-2.0
// An input is a file as it lies on disk. Newer structures carry checksums, which would stop every
// changed input at once: where a fault names one that differs, it is put right, and the scan begins
// again. What comes out must lie within the file, and decode or be refused.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "dataset/codec.h"
#include "dataset/tiled_file.h"
#include "dataset/value.h"
#include "format/collecting_sink.h"
#include "format/hdf5.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

constexpr size_t kMostSamples = 200;
constexpr uint64_t kMostBytes = 1 << 16;  // of a value that is decoded
constexpr int kMostRepairs = 8;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Has enough of a file that states a billion samples.
class BoundedSink final : public ScanSink {
 public:
  CollectingSink found;

  uint32_t shard(const Shard& shard) override { return found.shard(shard); }
  uint32_t codecs(std::span<const Codec> chain) override { return found.codecs(chain); }
  uint32_t block(const Block& block) override {
    if (block.decoded_length > decoded_limit(found.chains.at(block.codecs), block.stored_length)) {
      throw Error(ErrorKind::corrupt, "a block that cannot be");
    }
    return found.block(block);
  }
  void sample(std::string_view key, std::span<const FoundField> fields) override {
    found.sample(key, fields);
    if (found.samples.size() >= kMostSamples) throw Error(ErrorKind::interrupted, "enough");
  }
  void stated(const StatedChecksum& checksum) override { found.stated(checksum); }
  void fault(Fault fault) override {
    found.fault(std::move(fault));
    if (found.faults.size() >= kMostSamples) throw Error(ErrorKind::interrupted, "enough");
  }
  bool takes_views() const override { return true; }
};

/// What was found in a file, which lies in memory.
struct Scanned {
  const CollectingSink& found;
  const std::string& file;
  FileSystem& files;
  std::map<uint32_t, std::unique_ptr<ReadableFile>> views;  // by shard; null: too large to read
};

/// The bytes of a row that a view shows; nothing where chunks are damaged or large.
std::optional<std::string> row_of(Scanned& scanned, const Extent& extent) {
  const auto [known, is_new] = scanned.views.try_emplace(extent.number);
  if (is_new) {
    TiledView view = parse_tiled_view(as_bytes(scanned.found.shards.at(extent.number).view));
    require(to_bytes(view) == scanned.found.shards[extent.number].view);
    if (view.chunk_bytes() > kMostBytes) return std::nullopt;
    known->second = as_rows(scanned.files.open("/d/s"), std::move(view), {16 * kMostBytes, 1});
  }
  if (!known->second) return std::nullopt;
  std::string row(extent.length, '\0');
  try {
    const auto into = std::as_writable_bytes(std::span(row));
    require(known->second->read_at(extent.offset, into) == row.size());
    return row;
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::corrupt);
    return std::nullopt;
  }
}

/// The bytes of an extent, as a reader would have them; nothing where a block is damaged or large.
std::optional<std::string> bytes_of(Scanned& scanned, const Extent& extent) {
  const CollectingSink& found = scanned.found;
  const std::string& file = scanned.file;
  if (extent.length > kMostBytes) return std::nullopt;
  if (extent.container == Container::shard) {
    if (!found.shards.at(extent.number).view.empty()) return row_of(scanned, extent);
    require(extent.offset <= file.size() && extent.length <= file.size() - extent.offset);
    return file.substr(extent.offset, extent.length);
  }
  require(extent.container == Container::block);
  const Block& block = found.blocks.at(extent.number);
  require(block.offset <= file.size() && block.stored_length <= file.size() - block.offset);
  require(extent.offset <= block.decoded_length &&
          extent.length <= block.decoded_length - extent.offset);
  if (block.decoded_length > kMostBytes) return std::nullopt;
  try {
    const auto decoded = decode_block(as_bytes(file).subspan(block.offset, block.stored_length),
                                      found.chains.at(block.codecs), block.decoded_length);
    return std::string(as_text(Bytes(decoded).subspan(extent.offset, extent.length)));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::corrupt);
    return std::nullopt;
  }
}

void try_field(Scanned& scanned, const CollectingSink::Found& kept) {
  const FoundField& field = kept.field;
  if (field.extent.container == Container::absent) {
    return require(field.integer.has_value() || field.real.has_value());
  }
  std::string bytes;
  if (field.extent.container == Container::pieces) {
    uint64_t sum = 0;
    for (const Extent& piece : kept.pieces) {
      sum += piece.length;
      const auto part = bytes_of(scanned, piece);
      if (!part || bytes.size() > kMostBytes) return;
      bytes += *part;
    }
    require(sum == field.extent.length);
  } else {
    const auto part = bytes_of(scanned, field.extent);
    if (!part) return;
    bytes = *part;
  }
  Field as;
  as.type = field.type;
  as.encoding = field.encoding;
  as.dtype = field.dtype;
  as.shape = field.shape;
  // At an address that is aligned for every dtype.
  std::vector<uint64_t> memory(bytes.size() / 8 + 1);
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  try {
    (void)decode_value(as, std::as_bytes(std::span(memory)).first(bytes.size()));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported);
  }
}

/// Puts the checksum right that a fault names; false where none is.
bool repair(const CollectingSink& found, std::string& file) {
  for (const Fault& fault : found.faults) {
    const size_t is = fault.cause.find("its checksum is ");
    const size_t stated = fault.cause.find("the file states ");
    if (is == std::string::npos || stated == std::string::npos || !fault.offset) continue;
    const auto number = [&](size_t at) {
      return static_cast<uint32_t>(std::stoul(fault.cause.substr(at + 16, 8), nullptr, 16));
    };
    const uint32_t right = number(is), wrong = number(stated);
    const std::string_view pattern(reinterpret_cast<const char*>(&wrong), 4);
    const size_t at = file.find(pattern, *fault.offset);
    if (at == std::string::npos) continue;
    std::memcpy(file.data() + at, &right, 4);
    return true;
  }
  return false;
}

void try_file(std::string file) {
  for (int round = 0; round <= kMostRepairs; ++round) {
    FakeFileSystem files;
    files.add_file("/d/s", file);
    const Source source{"/d", "s", "", &files};
    BoundedSink sink;
    try {
      (void)detect_hdf5(source);
      scan_hdf5(source, {}, {"s", Compression::none, 0, 0, {}}, sink);
    } catch (const Error& error) {
      require(error.kind() != ErrorKind::io && error.kind() != ErrorKind::permission);
    }
    Scanned scanned{sink.found, file, files, {}};
    for (const auto& sample : sink.found.samples) {
      for (const auto& [name, kept] : sample.fields) try_field(scanned, kept);
    }
    for (const Fault& fault : sink.found.faults) require(!fault.message().empty());
    if (!repair(sink.found, file)) return;
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::try_file({reinterpret_cast<const char*>(data), size});
  return 0;
}
