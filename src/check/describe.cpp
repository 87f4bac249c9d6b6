// SPDX-License-Identifier: Apache-2.0
#include "check/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace stoker {
namespace {

// The median is taken over this many samples at most, evenly spaced: memory stays bounded.
constexpr uint64_t kMedianSamples = 1 << 20;
// A label with more values than this counts something else than classes.
constexpr size_t kMaxClasses = 100'000;

FieldSizes sizes_of(const Index& index, uint32_t field) {
  FieldSizes sizes;
  std::vector<uint64_t> lengths;
  const uint64_t stride = index.size() / kMedianSamples + 1;
  bool first = true;
  for (uint32_t s = 0; s < index.manifest().segments.size(); ++s) {
    const std::optional<uint32_t> local = index.local_field(s, field);
    if (!local) continue;
    const Segment& segment = index.segment(s);
    for (uint64_t i = 0; i < segment.samples(); ++i) {
      const Located located = segment.locate(i, *local);
      if (!located.present) continue;
      const uint64_t length = located.extent.length;
      sizes.total += length;
      sizes.smallest = first ? length : std::min(sizes.smallest, length);
      sizes.largest = std::max(sizes.largest, length);
      first = false;
      if ((index.first_sample(s) + i) % stride == 0) lengths.push_back(length);
    }
  }
  if (!lengths.empty()) {
    const auto middle = lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2);
    std::nth_element(lengths.begin(), middle, lengths.end());
    sizes.median = *middle;
  }
  return sizes;
}

std::vector<ClassCount> count_classes(const Index& index) {
  const Schema& schema = index.schema();
  const std::optional<uint32_t> label = schema.find(kLabelField);
  if (!label || schema.fields[*label].dtype != DType::int64 ||
      schema.fields[*label].type != FieldType::number) {
    return {};
  }
  std::map<int64_t, uint64_t> counts;
  for (size_t i = 0; i < schema.classes.size(); ++i) counts[static_cast<int64_t>(i)] = 0;
  for (uint32_t s = 0; s < index.manifest().segments.size(); ++s) {
    const std::optional<uint32_t> local = index.local_field(s, *label);
    if (!local) continue;
    const Segment& segment = index.segment(s);
    for (uint64_t i = 0; i < segment.samples(); ++i) {
      const Located located = segment.locate(i, *local);
      if (!located.present) continue;
      if (!located.has_scalar) return {};  // known at full depth only
      ++counts[static_cast<int64_t>(located.scalar)];
      if (counts.size() > kMaxClasses) return {};
    }
  }
  std::vector<ClassCount> classes;
  for (const auto& [number, samples] : counts) {
    const bool named = number >= 0 && static_cast<size_t>(number) < schema.classes.size();
    classes.push_back(
        {named ? schema.classes[static_cast<size_t>(number)] : fmt::to_string(number), samples});
  }
  return classes;
}

}  // namespace

void describe(const Index& index, CheckResult& result) {
  result.format = index.manifest().format;
  result.samples = index.size();
  result.shards = index.manifest().shards();
  result.schema = index.schema();
  for (uint32_t f = 0; f < result.schema.fields.size(); ++f) {
    result.field_sizes.push_back(sizes_of(index, f));
  }
  for (uint32_t s = 0; s < index.manifest().segments.size(); ++s) {
    const Segment& segment = index.segment(s);
    for (uint32_t i = 0; i < segment.shard_count(); ++i) {
      const Shard shard = segment.shard(i);
      if (begins(shard)) result.bytes += shard.size;
    }
    if (segment.shard_count() == 0) result.bytes += index.manifest().segments[s].bytes;
  }
  result.classes = count_classes(index);
}

}  // namespace stoker
