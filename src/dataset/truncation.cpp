// SPDX-License-Identifier: Apache-2.0
#include "dataset/truncation.h"

#include <fmt/format.h>

#include "base/text.h"

namespace stoker {
namespace {

/// Whether bytes of the extent lie in the shard at `size` or after it.
bool reaches(const Segment& segment, const Extent& extent, uint32_t shard, uint64_t size) {
  if (extent.container == Container::shard) {
    return extent.number == shard && extent.offset + extent.length > size;
  }
  if (extent.container == Container::block) {
    const Block block = segment.block(extent.number);
    return block.shard == shard && block.offset + block.stored_length > size;
  }
  if (extent.container != Container::pieces) return false;
  uint64_t length = 0;
  for (uint64_t number = extent.offset; length < extent.length; ++number) {
    const Extent piece = segment.piece(number);
    if (piece.length == 0 || piece.container == Container::pieces) return true;
    if (reaches(segment, piece, shard, size)) return true;
    length += piece.length;
  }
  return false;
}

/// Which samples a shard has lost that ends at `size`, in words; empty where that cannot be told
/// because the segment speaks of a part of the shard alone.
std::string lost_samples(const Segment& segment, uint32_t number, const Shard& shard,
                         uint64_t size) {
  if (shard.begin != 0 || shard.end != shard.size) return {};
  uint64_t lost = 0, first = 0, last = 0;
  for (uint64_t sample = 0; sample < segment.samples(); ++sample) {
    bool here = false;
    for (uint32_t field = 0; field < segment.fields().size() && !here; ++field) {
      here = reaches(segment, segment.locate(sample, field).extent, number, size);
    }
    if (!here) continue;
    if (lost++ == 0) first = sample;
    last = sample;
  }
  if (lost == 0) return "no sample is missing";
  if (lost == 1) return fmt::format("the sample '{}' is missing", printable(segment.key(first)));
  const bool rest = last == segment.samples() - 1 && last - first + 1 == lost;
  return fmt::format("{} samples{} '{}'{} are missing", lost, rest ? " from" : ", the first is",
                     printable(segment.key(first)), rest ? " on" : ",");
}

}  // namespace

std::string truncation_in_words(const Segment& segment, uint32_t number, uint64_t size) {
  const Shard shard = segment.shard(number);
  const std::string lost = lost_samples(segment, number, shard, size);
  return fmt::format("is truncated: {} of {} bytes are there{}", size, shard.size,
                     lost.empty() ? "" : "; " + lost);
}

}  // namespace stoker
