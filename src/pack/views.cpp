// SPDX-License-Identifier: Apache-2.0
#include "pack/views.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"

namespace stoker {
namespace {

// Of rows that are brought together, for all threads.
constexpr uint64_t kMemory = uint64_t{512} << 20;

template <typename Take>
void each_view(const Index& source, Take take) {
  for (uint32_t s = 0; s < source.manifest().segments.size(); ++s) {
    const Segment& segment = source.segment(s);
    for (uint32_t i = 0; i < segment.shard_count(); ++i) {
      const std::string view = segment.view(i);
      if (!view.empty()) take(s, parse_tiled_view(as_bytes(view)));
    }
  }
}

/// Whether samples in the order of their keys are in the order of their numbers.
bool keys_ascend(const Index& source) {
  std::string last;
  for (uint64_t i = 0; i < source.size(); ++i) {
    std::string key = source.key(i) + '.';
    if (i > 0 && key < last) return false;
    last = std::move(key);
  }
  return true;
}

}  // namespace

ViewReading plan_views(const Index& source, const PackOptions& options) {
  ViewReading reading;
  reading.writers = options.jobs != 0 ? options.jobs : usable_cores();
  std::vector<uint64_t> counts(source.manifest().segments.size());
  each_view(source, [&](uint32_t segment, const TiledView&) { ++counts[segment]; });
  const uint64_t side_by_side =
      counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  if (side_by_side == 0) return reading;
  const uint64_t each = std::min(reading.limits.memory, kMemory / side_by_side);
  uint64_t band = 1;
  uint64_t largest = 0;
  each_view(source, [&](uint32_t, const TiledView& view) {
    band = std::max(band, view.band_rows(each) * view.row_bytes());
    largest = std::max(largest, view.rows * view.row_bytes());
  });
  // What is written as it is costs little beside decoding, which all cores share. Two writers would
  // decode the chunks twice that the samples of both lie in; it is worth it where they compress.
  const unsigned jobs = reading.writers;
  const uint64_t fit = std::max<uint64_t>(kMemory / (side_by_side * band), 1);
  reading.writers =
      options.compress.empty() ? 1 : static_cast<unsigned>(std::min<uint64_t>(jobs, fit));
  reading.limits.memory = std::min(each, kMemory / (side_by_side * reading.writers));
  reading.limits.threads = std::max(1U, jobs / reading.writers);
  reading.in_order = largest > reading.limits.memory;
  return reading;
}

void refuse_other_orders(const Index& source, const std::string& path, const WriteFormat& write,
                         const PackOptions& options) {
  const bool by_key = write.by_key && !keys_ascend(source);
  if ((!options.shuffle && !by_key) || !plan_views(source, options).in_order) return;
  const std::string_view advice =
      options.shuffle ? "pack it first without --shuffle, then shuffle the result"
                      : "pack it first to another format, as tar, then the result to this one, "
                        "which keeps its samples in the order of their keys";
  throw Error(ErrorKind::usage, fmt::format("{}: has chunks that cut through its samples, and can "
                                            "only be read front to back: {}",
                                            printable(path), advice));
}

}  // namespace stoker
