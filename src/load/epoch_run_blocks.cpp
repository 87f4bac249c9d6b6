// SPDX-License-Identifier: Apache-2.0

// The fetch stage of a block shuffle: a window is read in the order in which it lies, then handed
// out row by row while the next one is read.

#include <algorithm>

#include "load/epoch_run.h"

namespace stoker {
namespace {

/// Bytes that are read at once.
constexpr uint64_t kPieceBytes = 4 << 20;

}  // namespace

/// Rows of the next window, in the order in which they lie. REQUIRES: mutex_ is held.
void EpochRun::begin_gather() {
  const uint64_t window = parts_.order.window();
  auto gather = std::make_shared<Gather>();
  gather->first_row = next_row_;
  const uint64_t number = share_.position(next_row_) / window;
  while (next_row_ < end_row() && share_.position(next_row_) / window == number) {
    gather->draws.push_back(draw(next_row_++));
  }
  gather->rows.resize(gather->draws.size());
  gather->by_place.resize(gather->draws.size());
  for (uint32_t i = 0; i < gather->by_place.size(); ++i) gather->by_place[i] = i;
  std::sort(gather->by_place.begin(), gather->by_place.end(), [&](uint32_t a, uint32_t b) {
    return gather->draws[a].sample < gather->draws[b].sample;
  });
  gathers_.push_back(std::move(gather));
}

/// The next piece to read: [first, last) of the samples of a gather; null where there is none.
std::shared_ptr<EpochRun::Gather> EpochRun::begin_piece(size_t& first, size_t& last,
                                                        StageClock& clock) {
  constexpr size_t kWindows = 2;  // one is taken from while the other is filled
  const size_t piece = std::max<uint64_t>(1, kPieceBytes / parts_.bytes_per_sample);
  std::unique_lock lock(mutex_);
  const auto begun = [&] {
    return !gathers_.empty() && gathers_.back()->next < gathers_.back()->by_place.size();
  };
  if (!stopping_ && !begun() && next_row_ < end_row() && gathers_.size() >= kWindows) {
    clock.busy();
    room_.wait(lock, [&] {
      return stopping_ || begun() || next_row_ >= end_row() || gathers_.size() < kWindows;
    });
    clock.waited_for_room();
  }
  if (stopping_) return nullptr;
  if (!begun()) {
    if (next_row_ >= end_row()) return nullptr;
    begin_gather();
  }
  const std::shared_ptr<Gather> gather = gathers_.back();
  first = gather->next;
  last = std::min(first + piece, gather->by_place.size());
  gather->next = last;
  return gather;
}

void EpochRun::fetch_gathers(unsigned number, StageClock& clock) {
  while (may_work(tuning_.fetch, number)) {
    clock.skip();
    size_t first = 0;
    size_t last = 0;
    const std::shared_ptr<Gather> gather = begin_piece(first, last, clock);
    if (!gather) return;
    std::vector<uint64_t> samples;
    for (size_t i = first; i < last; ++i) {
      samples.push_back(gather->draws[gather->by_place[i]].sample);
    }
    std::vector<FetchedRow> rows = fetcher_.fetch(samples, nullptr, 0);
    clock.busy();
    bool dispatches = false;
    {
      const std::lock_guard lock(mutex_);
      for (size_t i = first; i < last; ++i) {
        gather->rows[gather->by_place[i]] = std::move(rows[i - first]);
      }
      gather->done += last - first;
      dispatches = !dispatching_ && gathers_.front()->done == gathers_.front()->rows.size();
      if (dispatches) dispatching_ = true;
    }
    if (dispatches) dispatch(clock);
  }
}

/// Hands out windows that are read, row by row, until one is met that is not.
void EpochRun::dispatch(StageClock& clock) {
  for (;;) {
    std::shared_ptr<Gather> gather;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || gathers_.empty() ||
          gathers_.front()->done != gathers_.front()->rows.size()) {
        dispatching_ = false;
        return;
      }
      gather = gathers_.front();
    }
    for (size_t i = 0; i < gather->rows.size();) {
      const uint64_t row = gather->first_row + i;
      Chunk chunk;
      chunk.batch = row / options_.batch_size;
      chunk.first_row = row % options_.batch_size;
      {
        std::unique_lock lock(mutex_);
        if (!wait_for_room(lock, chunk.batch, clock)) return;
        open_slot(chunk.batch);
      }
      const size_t last = std::min(
          {i + chunk_rows_, gather->rows.size(), i + rows_of(chunk.batch) - chunk.first_row});
      for (; i < last; ++i) {
        chunk.draws.push_back(gather->draws[i]);
        chunk.rows.push_back(std::move(gather->rows[i]));
      }
      clock.busy();
      if (!fetched_.push(std::move(chunk))) return;
      clock.waited_for_room();
    }
    const std::lock_guard lock(mutex_);
    gathers_.pop_front();
    room_.notify_all();
  }
}

}  // namespace stoker
