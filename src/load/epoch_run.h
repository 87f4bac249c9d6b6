// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "load/bounded_queue.h"
#include "load/fetch.h"
#include "load/loader.h"
#include "load/row_maker.h"
#include "load/stage_clock.h"
#include "load/tuning.h"

namespace stoker {

/// One epoch, or the rest of one, under way: the threads, and the batches that they make.
class EpochRun {
 public:
  EpochRun(const Loader::Parts& parts, uint64_t epoch, uint64_t position, uint64_t batches);
  ~EpochRun();

  Loader::Next next(std::shared_ptr<LoadedBatch>& batch, std::chrono::milliseconds patience);
  LoaderStats stats() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// A batch while it is made.
  struct Slot {
    std::shared_ptr<LoadedBatch> batch;
    std::vector<uint8_t> good;  // by row
    uint64_t missing = 0;       // rows that are not done
    bool ready = false;
    std::exception_ptr failure;
  };
  /// Rows of one batch, that travel together.
  struct Chunk {
    uint64_t batch = 0;
    uint64_t first_row = 0;  // in it
    std::vector<Draw> draws;
    std::vector<FetchedRow> rows;
  };
  /// Rows of a window of a block shuffle, that are read in the order in which they lie.
  struct Gather {
    uint64_t first_row = 0;  // of this rank
    std::vector<Draw> draws;
    std::vector<uint32_t> by_place;
    size_t next = 0, done = 0;  // of by_place, that are read
    std::vector<FetchedRow> rows;
  };

  void start_threads();
  void stop();
  template <typename Work>
  void guard(Work work);
  bool may_work(const unsigned& allowed, unsigned number);
  void fail(std::exception_ptr why);
  void fail_batch(uint64_t batch, std::exception_ptr why);

  uint64_t rows_of(uint64_t batch) const;
  uint64_t end_row() const;
  Draw draw(uint64_t row) const { return order_(share_.position(row)); }
  bool wait_for_room(std::unique_lock<std::mutex>& lock, uint64_t batch, StageClock& clock);
  Slot& open_slot(uint64_t batch);
  bool begin_chunk(Chunk& chunk, std::shared_ptr<LoadedBatch>& batch, StageClock& clock);
  void fetch(unsigned number);
  void fetch_chunks(unsigned number, StageClock& clock);
  void fetch_gathers(unsigned number, StageClock& clock);
  std::shared_ptr<Gather> begin_piece(size_t& first, size_t& last, StageClock& clock);
  void begin_gather();
  void dispatch(StageClock& clock);
  void decode(unsigned number);
  void make_rows(RowMaker& maker, Chunk& chunk);
  void note_bad(const SampleError& error);
  void replace_row(RowMaker& maker, uint64_t batch, uint64_t row, LoadedBatch& into,
                   const SampleError& why);
  void finish_rows(const Chunk& chunk, const std::vector<uint8_t>& good,
                   const DecodeReport& decoded);
  void finish_batch(Slot& slot, uint64_t number) const;
  bool drop_empty();
  void refuse_nothing();
  void tune(double waited);

  const Loader::Parts& parts_;
  const LoaderOptions& options_;
  const uint64_t epoch_;
  const EpochOrder order_;
  const RankShare share_;
  const uint64_t batch_count_;
  const SampleFetcher fetcher_;
  const bool gathers_rows_;  // a block shuffle
  const bool decodes_;       // in threads of its own
  const uint64_t chunk_rows_;
  TuningLimits limits_;

  mutable std::mutex mutex_;
  std::condition_variable room_, ready_, allowed_;
  std::deque<Slot> slots_;   // from next_batch_ on
  uint64_t next_batch_ = 0;  // that is handed out
  uint64_t next_row_ = 0;    // of this rank, that is fetched
  uint64_t failed_batch_;    // no row behind it is begun
  std::deque<std::shared_ptr<Gather>> gathers_;
  bool dispatching_ = false;
  std::atomic<bool> stopping_{false};  // set with the lock held, looked at without it between rows
  std::exception_ptr failure_;
  LoaderStats stats_;
  std::optional<SampleError> first_bad_;
  uint64_t rows_handed_out_ = 0;
  Tuning tuning_;
  StageSums fetch_sums_, decode_sums_;
  std::atomic<uint64_t> bad_in_a_row_{0};
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point first_batch_, tuned_ = begin_;
  LoaderStats at_last_tuning_;
  double waited_since_tuning_ = 0;

  BoundedQueue<Chunk> fetched_;
  std::vector<std::thread> fetchers_, decoders_;
};

}  // namespace stoker
