// SPDX-License-Identifier: Apache-2.0
#include "dataset/read_runs.h"

#include <algorithm>
#include <optional>

namespace stoker {
namespace {

// Larger reads gain nothing more, and smaller ones spread better over threads.
constexpr uint64_t kMaxMerged = 4 << 20;

bool less_by_place(const Item& a, const Item& b) {
  const Extent& x = a.located.extent;
  const Extent& y = b.located.extent;
  if (a.segment != b.segment) return a.segment < b.segment;
  if (x.container != y.container) return x.container < y.container;
  if (x.number != y.number) return x.number < y.number;
  return x.offset < y.offset;
}

/// Whether `next` can be read together with a run that begins at `begin` and ends at `end`.
bool joins(const Item& previous, const Item& next, uint64_t begin, uint64_t end) {
  const Extent& x = previous.located.extent;
  const Extent& y = next.located.extent;
  return x.container == Container::shard && y.container == Container::shard &&
         previous.segment == next.segment && x.number == y.number && y.offset >= end &&
         y.offset - end <= kMaxReadGap && y.offset + y.length - begin <= kMaxMerged;
}

/// The block that an item lies in, or begins in.
std::optional<uint32_t> block_of(const Index& index, const Item& item) {
  Extent extent = item.located.extent;
  if (extent.container == Container::pieces) {
    extent = index.segment(item.segment).piece(extent.offset);
  }
  if (extent.container != Container::block) return std::nullopt;
  return extent.number;
}

}  // namespace

bool is_plain(const Item& item) {
  const Container container = item.located.extent.container;
  return container != Container::block && container != Container::pieces;
}

uint64_t decoding_cost(const Index& index, const Item& item) {
  if (is_plain(item)) return 0;
  constexpr uint64_t kSlower = 8;
  const std::optional<uint32_t> block = block_of(index, item);
  return block ? kSlower * index.segment(item.segment).block(*block).decoded_length : 0;
}

std::vector<ReadRun> merge_runs(const Index& index, const std::vector<Item>& items,
                                std::vector<uint32_t>& order) {
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return less_by_place(items[a], items[b]); });
  std::vector<ReadRun> runs;
  size_t i = 0;
  while (i < order.size()) {
    const Item& item = items[order[i]];
    const Extent& extent = item.located.extent;
    ReadRun run{i, i + 1};
    if (!is_plain(item)) {  // all that lie in one block: it is decoded once
      const std::optional<uint32_t> block = block_of(index, item);
      while (block && run.last < order.size() && items[order[run.last]].segment == item.segment &&
             items[order[run.last]].located.extent.container == extent.container &&
             block_of(index, items[order[run.last]]) == block) {
        ++run.last;
      }
      runs.push_back(run);
      i = run.last;
      continue;
    }
    uint64_t end = extent.offset + extent.length;
    while (run.last < order.size() && run.last - run.first < kMaxRunItems &&
           joins(items[order[run.last - 1]], items[order[run.last]], extent.offset, end)) {
      const Extent& next = items[order[run.last]].located.extent;
      end = next.offset + next.length;
      ++run.last;
    }
    runs.push_back(run);
    i = run.last;
  }
  return runs;
}

}  // namespace stoker
