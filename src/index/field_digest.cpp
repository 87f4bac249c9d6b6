// SPDX-License-Identifier: Apache-2.0
#include "index/field_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/parallel.h"
#include "dataset/block_reader.h"

namespace stoker {
namespace {

/// Reads fields for one thread.
class FieldSource {
 public:
  FieldSource(const SegmentWriter& segment, const Source& source)
      : segment_(segment),
        source_(source),
        files_(segment.shards().size()),
        blocks_([this](uint32_t number) { return decode(number); }) {}

  void digest(FieldPlace& place) {
    const Extent& extent = segment_.extent(place.sample, place.field);
    try {
      if (extent.container == Container::pieces) {
        for (const Extent& piece : segment_.pieces(extent)) add(piece, place);
      } else {
        add(extent, place);
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      place.cause = error.what();
      place.os_error = error.os_error();
    }
  }

 private:
  ReadableFile& file(uint32_t shard) {
    if (!files_[shard]) {
      files_[shard] = source_.file_system->open(source_.root + "/" + segment_.shards()[shard].path);
    }
    return *files_[shard];
  }

  DecodedBlock decode(uint32_t number) {
    const Block& block = segment_.blocks()[number];
    return std::make_shared<const std::vector<std::byte>>(
        read_block(file(block.shard), segment_.shards()[block.shard].size, block,
                   segment_.codec_chain(block.codecs), true));
  }

  void add(const Extent& extent, FieldPlace& place) {
    if (extent.container == Container::block) {
      const std::vector<std::byte>& decoded = blocks_.get(extent.number);
      if (extent.offset > decoded.size() || extent.length > decoded.size() - extent.offset) {
        throw Error(ErrorKind::corrupt, "lies outside of its block");
      }
      return take(Bytes(decoded).subspan(extent.offset, extent.length), place);
    }
    constexpr uint64_t kChunk = 256 << 10;
    buffer_.resize(std::min(kChunk, extent.length));
    for (uint64_t done = 0; done < extent.length;) {
      const uint64_t size = std::min(kChunk, extent.length - done);
      const uint64_t offset = extent.offset + done;
      if (file(extent.number).read_at(offset, MutableBytes(buffer_).first(size)) != size) {
        throw Error(ErrorKind::corrupt,
                    fmt::format("the file ends before offset {}", offset + size));
      }
      take(Bytes(buffer_).first(size), place);
      done += size;
    }
  }

  static void take(Bytes bytes, FieldPlace& place) {
    place.crc = crc32c(bytes, place.crc);
    const size_t missing = place.wanted - place.beginning.size();
    const Bytes first = bytes.first(std::min(missing, bytes.size()));
    place.beginning.insert(place.beginning.end(), first.begin(), first.end());
  }

  const SegmentWriter& segment_;
  const Source& source_;
  std::vector<std::unique_ptr<ReadableFile>> files_;
  DecodedBlocks blocks_;
  std::vector<std::byte> buffer_;
};

/// Says in which shard, and from where on, a field or its first block lies.
void set_place(const SegmentWriter& segment, FieldPlace& place) {
  Extent extent = segment.extent(place.sample, place.field);
  if (extent.container == Container::pieces) {
    if (extent.length == 0) return;
    extent = segment.pieces(extent).front();
  }
  place.shard = extent.number;
  place.offset = extent.offset;
  if (extent.container == Container::block) {
    const Block& block = segment.blocks()[extent.number];
    place.shard = block.shard;
    place.offset = block.offset;
  }
}

}  // namespace

void digest_fields(const SegmentWriter& segment, const Source& source,
                   std::vector<FieldPlace>& places, unsigned threads, Progress* progress) {
  for (FieldPlace& place : places) set_place(segment, place);
  std::stable_sort(places.begin(), places.end(), [](const FieldPlace& a, const FieldPlace& b) {
    return a.shard != b.shard ? a.shard < b.shard : a.offset < b.offset;
  });
  // What lies in one block stays together.
  constexpr uint64_t kTaskBytes = 8 << 20;
  std::vector<size_t> ends;
  uint64_t bytes = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    bytes += segment.extent(places[i].sample, places[i].field).length;
    const bool together = i + 1 < places.size() && places[i].shard == places[i + 1].shard &&
                          places[i].offset == places[i + 1].offset;
    if (i + 1 < places.size() && (bytes < kTaskBytes || together)) continue;
    ends.push_back(i + 1);
    bytes = 0;
  }
  parallel_for(ends.size(), threads, [&](size_t task) {
    FieldSource fields(segment, source);
    for (size_t i = task == 0 ? 0 : ends[task - 1]; i < ends[task]; ++i) {
      fields.digest(places[i]);
      if (progress != nullptr) progress->check_stop();
    }
  });
}

}  // namespace stoker
