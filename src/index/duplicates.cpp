// SPDX-License-Identifier: Apache-2.0
#include "index/duplicates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <string>

namespace stoker {
namespace {

/// The next hash of one segment.
struct Cursor {
  uint64_t hash = 0;
  uint64_t sample = 0;  // in the dataset
  uint32_t segment = 0;
  uint64_t next = 0;  // position in the segment's sorted hashes

  bool operator>(const Cursor& other) const {
    return hash != other.hash ? hash > other.hash : sample > other.sample;
  }
};

/// Compares the keys of samples that have one hash.
void compare_keys(const Index& index, const std::vector<uint64_t>& samples,
                  std::vector<DuplicateKey>& duplicates) {
  if (samples.size() < 2) return;
  std::map<std::string, uint64_t> first;
  for (const uint64_t sample : samples) {
    const auto [known, is_new] = first.emplace(index.key(sample), sample);
    if (!is_new) duplicates.push_back({sample, known->second});
  }
}

}  // namespace

std::vector<DuplicateKey> find_duplicates(const Index& index) {
  std::priority_queue<Cursor, std::vector<Cursor>, std::greater<>> cursors;
  const auto push = [&](uint32_t segment, uint64_t position) {
    const Segment& from = index.segment(segment);
    if (position >= from.samples()) return;
    const auto [hash, sample] = from.hash_at(position);
    cursors.push({hash, index.first_sample(segment) + sample, segment, position + 1});
  };
  for (uint32_t i = 0; i < index.manifest().segments.size(); ++i) push(i, 0);

  std::vector<DuplicateKey> duplicates;
  std::vector<uint64_t> same;
  uint64_t hash = 0;
  while (!cursors.empty()) {
    const Cursor least = cursors.top();
    cursors.pop();
    if (!same.empty() && least.hash != hash) {
      compare_keys(index, same, duplicates);
      same.clear();
    }
    hash = least.hash;
    same.push_back(least.sample);
    push(least.segment, least.next);
  }
  compare_keys(index, same, duplicates);
  std::sort(duplicates.begin(), duplicates.end(),
            [](const DuplicateKey& a, const DuplicateKey& b) { return a.sample < b.sample; });
  return duplicates;
}

Fault duplicate_fault(const Index& index, const DuplicateKey& twice) {
  const Index::Place place = index.place(twice.sample);
  const Segment& segment = index.segment(place.segment);
  Fault fault;
  fault.sample = segment.key(place.sample);
  fault.shard = fault.sample;
  for (uint32_t f = 0; f < segment.fields().size(); ++f) {
    const Extent extent = segment.locate(place.sample, f).extent;
    if (extent.container != Container::shard) continue;
    fault.shard = segment.shard(extent.number).path;
    fault.offset = extent.offset;
    break;
  }
  fault.cause =
      fmt::format("duplicate key: sample {} has the key of sample {}", twice.sample, twice.first);
  return fault;
}

}  // namespace stoker
