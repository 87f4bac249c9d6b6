// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/codec.h"
#include "dataset/value.h"
#include "format/format.h"
#include "os/fake_file_system.h"

namespace stoker {

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// Compares what a scan of one file finds with the file, and keeps none of it: an input of a few
/// bytes may stand for a million rows.
class CheckingSink final : public ScanSink {
 public:
  explicit CheckingSink(const std::string& contents) : contents_(contents) {}

  uint32_t shard(const Shard&) override { return shards_++; }
  uint32_t codecs(std::span<const Codec> chain) override {
    chains_.emplace_back(chain.begin(), chain.end());
    return static_cast<uint32_t>(chains_.size() - 1);
  }
  uint32_t block(const Block& block) override {
    require(block.shard < shards_ && block.codecs < chains_.size());
    inside(block.offset, block.stored_length, contents_.size());
    require(block.decoded_length <= decoded_limit(chains_[block.codecs], block.stored_length));
    blocks_.push_back(block);
    return static_cast<uint32_t>(blocks_.size() - 1);
  }
  void sample(std::string_view key, std::span<const FoundField> fields) override {
    require(!key.empty());
    for (const FoundField& field : fields) {
      require(!field.name.empty() || field.extent.container != Container::file);
      check(field.extent);
      uint64_t length = 0;
      for (const Extent& piece : field.pieces) {
        require(piece.container != Container::pieces && piece.length > 0);
        check(piece);
        length += piece.length;
      }
      if (field.extent.container == Container::pieces) require(length == field.extent.length);
      if (values_left_ > 0 && field.extent.container == Container::shard) try_value(field);
    }
  }
  void stated(const StatedChecksum& checksum) override {
    inside(checksum.offset, checksum.length, contents_.size());
  }
  void fault(Fault fault) override { require(!fault.message().empty()); }

 private:
  static void inside(uint64_t offset, uint64_t length, uint64_t size) {
    require(offset <= size && length <= size - offset);
  }

  void check(const Extent& extent) const {
    if (extent.container == Container::shard) {
      inside(extent.offset, extent.length, contents_.size());
    } else if (extent.container == Container::block) {
      require(extent.number < blocks_.size());
      inside(extent.offset, extent.length, blocks_[extent.number].decoded_length);
    }
  }

  /// What was found decodes, or is refused.
  void try_value(const FoundField& found) {
    --values_left_;
    Field field;
    field.type = found.type;
    field.encoding = found.encoding;
    field.dtype = found.dtype;
    field.shape = found.shape;
    // At an address that is aligned for every dtype.
    std::vector<uint64_t> memory(found.extent.length / 8 + 1);
    std::memcpy(memory.data(), contents_.data() + found.extent.offset, found.extent.length);
    try {
      const Value value =
          decode_value(field, std::as_bytes(std::span(memory)).first(found.extent.length));
      require(equal_values(value, value));
    } catch (const Error& error) {
      require(error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported);
    }
  }

  const std::string& contents_;
  uint32_t shards_ = 0;
  std::vector<std::vector<Codec>> chains_;
  std::vector<Block> blocks_;
  unsigned values_left_ = 100;
};

/// Detects and scans an input as the file `name`.
inline void try_columnar(const std::string& contents, const std::string& name,
                         std::optional<Layout> (*detect)(const Source&),
                         void (*scan)(const Source&, const Layout&, const Part&, ScanSink&)) {
  FakeFileSystem files;
  files.add_file("/d/" + name, contents);
  const Source source{"/d", name, "", &files};
  const auto layout = detect(source);
  require(layout && layout->parts.size() == 1);
  CheckingSink sink(contents);
  scan(source, *layout, layout->parts[0], sink);
}

}  // namespace stoker
