// SPDX-License-Identifier: Apache-2.0
#include "load/epoch_run.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"

namespace stoker {
namespace {

/// Pictures that travel together: few enough to share a batch between threads.
constexpr uint64_t kChunkOfPictures = 8;
/// Bytes of other samples that travel together: enough to be worth a system call and a lock.
constexpr uint64_t kChunkBytes = 1 << 20;
constexpr uint64_t kChunkOfOthers = 256;
/// Reading mostly waits; where it does not, decoding needs the cores.
constexpr unsigned kFetchThreads = 4;
constexpr unsigned kMostFetchThreads = 64;
constexpr unsigned kAhead = 3;
constexpr unsigned kMostAhead = 8;
/// Bad samples one behind the other, whichever thread met them, that are no chance any more.
constexpr uint64_t kBadInARow = 1000;
/// Those who feed step back for whoever trains: a step that does not get a core holds up all.
constexpr int kNiceness = 5;
constexpr double kTuningSeconds = 0.25;

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

uint64_t rows_per_chunk(const Loader::Parts& parts) {
  if (parts.has_pictures) return kChunkOfPictures;
  return std::clamp<uint64_t>(kChunkBytes / parts.bytes_per_sample, 1, kChunkOfOthers);
}

}  // namespace

EpochRun::EpochRun(const Loader::Parts& parts, uint64_t epoch, uint64_t position, uint64_t batches)
    : parts_(parts),
      options_(parts.options),
      epoch_(epoch),
      order_(parts.order, epoch),
      share_(parts.order.size(), position, options_.ranks, options_.remainder),
      batch_count_(batches),
      fetcher_(parts.sources, parts.columns, parts.cache.get()),
      gathers_rows_(options_.order.kind == OrderOptions::Kind::blocks),
      decodes_(parts.has_pictures || gathers_rows_),
      chunk_rows_(rows_per_chunk(parts)),
      failed_batch_(batches),
      fetched_(2 * size_t{std::max(options_.threads, usable_cores())}) {
  const unsigned cores = usable_cores();
  const unsigned threads = options_.threads != 0 ? options_.threads : cores;
  limits_.cores = cores;
  limits_.most_decode = decodes_ ? threads : 0;
  limits_.most_fetch = decodes_ || options_.threads == 0 ? kMostFetchThreads : threads;
  limits_.least_ahead = options_.ahead != 0 ? options_.ahead : kAhead;
  limits_.most_ahead = options_.ahead != 0 ? options_.ahead : kMostAhead;
  tuning_ = {decodes_ ? std::min(kFetchThreads, threads) : threads, limits_.most_decode,
             limits_.least_ahead};
  stats_.pictures = parts.has_pictures;
  stats_.bad = parts.missing;
  try {
    const std::lock_guard lock(mutex_);
    start_threads();
  } catch (...) {
    stop();
    throw;
  }
}

EpochRun::~EpochRun() { stop(); }

/// As many as are wanted now. REQUIRES: mutex_ is held.
void EpochRun::start_threads() {
  try {
    while (fetchers_.size() < tuning_.fetch) {
      const auto number = static_cast<unsigned>(fetchers_.size());
      fetchers_.emplace_back([this, number] { guard([&] { fetch(number); }); });
    }
    while (decoders_.size() < tuning_.decode) {
      const auto number = static_cast<unsigned>(decoders_.size());
      decoders_.emplace_back([this, number] { guard([&] { decode(number); }); });
    }
  } catch (const std::system_error&) {  // no more to be had: fewer do the work
    if (fetchers_.empty() || (decodes_ && decoders_.empty())) {
      throw Error(ErrorKind::io, "cannot start a thread: this process may not have more");
    }
    tuning_.fetch = limits_.most_fetch = static_cast<unsigned>(fetchers_.size());
    tuning_.decode = limits_.most_decode = static_cast<unsigned>(decoders_.size());
  }
}

void EpochRun::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  ready_.notify_all();
  allowed_.notify_all();
  fetched_.close();
  for (std::thread& thread : fetchers_) thread.join();
  for (std::thread& thread : decoders_) thread.join();
}

template <typename Work>
void EpochRun::guard(Work work) {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  ::setpriority(PRIO_PROCESS, thread, std::max(kNiceness, ::getpriority(PRIO_PROCESS, thread)));
  try {
    work();
  } catch (...) {
    fail(std::current_exception());
  }
}

/// Something that belongs to no batch.
void EpochRun::fail(std::exception_ptr why) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(why);
  stopping_ = true;
  room_.notify_all();
  ready_.notify_all();
  allowed_.notify_all();
  fetched_.close();
}

/// Batches before it are still handed out; it throws in its turn.
void EpochRun::fail_batch(uint64_t batch, std::exception_ptr why) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  Slot& slot = slots_[batch - next_batch_];
  if (!slot.failure) slot.failure = std::move(why);
  slot.ready = true;
  failed_batch_ = std::min(failed_batch_, batch);
  room_.notify_all();
  ready_.notify_all();
}

/// Waits while fewer threads than this one's number should work; false: the run is over.
bool EpochRun::may_work(const unsigned& allowed, unsigned number) {
  std::unique_lock lock(mutex_);
  allowed_.wait(lock, [&] { return stopping_ || number < allowed; });
  return !stopping_;
}

uint64_t EpochRun::rows_of(uint64_t batch) const {
  return std::min(options_.batch_size, share_.size() - batch * options_.batch_size);
}

uint64_t EpochRun::end_row() const {
  return std::min(batch_count_ * options_.batch_size, share_.size());
}

/// Waits until this batch may be begun; false: it need not be any more.
bool EpochRun::wait_for_room(std::unique_lock<std::mutex>& lock, uint64_t batch,
                             StageClock& clock) {
  const auto over = [&] { return stopping_ || batch > failed_batch_; };
  const auto has_room = [&] { return batch < next_batch_ + tuning_.ahead; };
  if (!over() && !has_room()) {
    clock.busy();
    room_.wait(lock, [&] { return over() || has_room(); });
    clock.waited_for_room();
  }
  return !over();
}

EpochRun::Slot& EpochRun::open_slot(uint64_t batch) {
  while (batch - next_batch_ >= slots_.size()) {
    const uint64_t rows = rows_of(next_batch_ + slots_.size());
    Slot slot;
    slot.batch = std::make_shared<LoadedBatch>();
    slot.batch->rows = slot.missing = rows;
    slot.good.resize(rows, 1);
    slot.batch->samples.resize(rows);
    slot.batch->position = share_.after((next_batch_ + slots_.size() + 1) * options_.batch_size);
    for (const ColumnPlan& column : parts_.columns) {
      slot.batch->columns.push_back(column.make(rows, *parts_.memory));
    }
    slots_.push_back(std::move(slot));
  }
  return slots_[batch - next_batch_];
}

/// The next rows, once there is room for them; false where there are none.
bool EpochRun::begin_chunk(Chunk& chunk, std::shared_ptr<LoadedBatch>& batch, StageClock& clock) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopping_ || next_row_ >= end_row()) return false;
    const uint64_t wanted = next_row_ / options_.batch_size;
    if (!wait_for_room(lock, wanted, clock)) return false;
    if (next_row_ < end_row() && next_row_ / options_.batch_size == wanted) break;
  }
  chunk.batch = next_row_ / options_.batch_size;
  chunk.first_row = next_row_ % options_.batch_size;
  const uint64_t rows = std::min(chunk_rows_, rows_of(chunk.batch) - chunk.first_row);
  batch = open_slot(chunk.batch).batch;
  const uint64_t first = next_row_;
  next_row_ += rows;
  lock.unlock();
  chunk.draws.resize(rows);
  for (uint64_t i = 0; i < rows; ++i) chunk.draws[i] = draw(first + i);
  return true;
}

void EpochRun::fetch(unsigned number) {
  StageClock clock(fetch_sums_);
  if (gathers_rows_) return fetch_gathers(number, clock);
  fetch_chunks(number, clock);
}

void EpochRun::fetch_chunks(unsigned number, StageClock& clock) {
  RowMaker maker(parts_.sources, parts_.columns, nullptr, options_.seed, epoch_);
  std::vector<uint64_t> samples;
  while (may_work(tuning_.fetch, number)) {
    clock.skip();
    Chunk chunk;
    std::shared_ptr<LoadedBatch> batch;
    if (!begin_chunk(chunk, batch, clock)) return;
    samples.clear();
    for (const Draw& each : chunk.draws) samples.push_back(each.sample);
    try {
      chunk.rows = fetcher_.fetch(samples, batch.get(), chunk.first_row);
    } catch (...) {
      fail_batch(chunk.batch, std::current_exception());
      return;
    }
    batch.reset();
    if (!decodes_) make_rows(maker, chunk);
    clock.busy();
    if (!decodes_) continue;
    if (!fetched_.push(std::move(chunk))) return;
    clock.waited_for_room();
  }
}

void EpochRun::decode(unsigned number) {
  StageClock clock(decode_sums_);
  RowMaker maker(parts_.sources, parts_.columns, options_.picture ? &*options_.picture : nullptr,
                 options_.seed, epoch_);
  while (may_work(tuning_.decode, number)) {
    clock.skip();
    std::optional<Chunk> chunk = fetched_.pop();
    if (!chunk) return;
    clock.waited_for_input();
    make_rows(maker, *chunk);
    clock.busy();
  }
}

/// Puts the sample of the next position that is good in the place of a bad one: the same one,
/// whoever does it.
void EpochRun::replace_row(RowMaker& maker, uint64_t batch, uint64_t row, LoadedBatch& into,
                           const SampleError& why) {
  const uint64_t position = share_.position(batch * options_.batch_size + row);
  for (uint64_t k = 1; k < std::min(kBadInARow, order_.size()); ++k) {
    const Draw other = order_((position + k) % order_.size());
    try {
      const std::vector<FetchedRow> rows = fetcher_.fetch({&other.sample, 1}, nullptr, 0);
      return maker.make(rows.front(), other, into, row);
    } catch (const SampleError&) {
      continue;
    }
  }
  throw Error(why.kind(), fmt::format("{}; and nothing after it can take its place", why.what()),
              why.os_error());
}

/// Throws where so many are bad that it is not the samples.
void EpochRun::note_bad(const SampleError& error) {
  if (++bad_in_a_row_ >= kBadInARow) {
    throw Error(error.kind(),
                fmt::format("{} samples in a row cannot be loaded, the last one: {}", kBadInARow,
                            error.what()),
                error.os_error());
  }
  const std::lock_guard lock(mutex_);
  stats_.bad.push_back(error.fault());
  stats_.bad.back().samples = 1;
  if (!first_bad_) first_bad_ = error;
}

void EpochRun::make_rows(RowMaker& maker, Chunk& chunk) {
  std::shared_ptr<LoadedBatch> batch;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    batch = slots_[chunk.batch - next_batch_].batch;
  }
  std::vector<uint8_t> good(chunk.rows.size(), 1);
  try {
    for (size_t i = 0; i < chunk.rows.size(); ++i) {
      if (stopping_) return;
      const uint64_t to = chunk.first_row + i;
      try {
        maker.make(chunk.rows[i], chunk.draws[i], *batch, to);
        bad_in_a_row_ = 0;
      } catch (const SampleError& error) {
        if (options_.on_error == OnError::raise) throw;
        note_bad(error);
        if (options_.on_error == OnError::replace) {
          replace_row(maker, chunk.batch, to, *batch, error);
        } else {
          good[i] = 0;
        }
      }
    }
    finish_rows(chunk, good, maker.take_report());
  } catch (...) {
    fail_batch(chunk.batch, std::current_exception());
  }
}

void EpochRun::finish_rows(const Chunk& chunk, const std::vector<uint8_t>& good,
                           const DecodeReport& decoded) {
  uint64_t bytes = 0;
  for (const FetchedRow& row : chunk.rows) {
    if (!row.from) continue;
    for (const Item& item : row.from->items(row.row)) bytes += item.length;
  }
  std::unique_lock lock(mutex_);
  if (stopping_) return;
  Slot& slot = slots_[chunk.batch - next_batch_];
  std::copy(good.begin(), good.end(), slot.good.begin() + static_cast<ptrdiff_t>(chunk.first_row));
  slot.missing -= good.size();
  stats_.samples += good.size();
  stats_.bytes += bytes;
  for (size_t i = 0; i < decoded.paths.size(); ++i) stats_.decoders[i] += decoded.paths[i];
  stats_.damaged.insert(stats_.damaged.end(), decoded.damaged.begin(), decoded.damaged.end());
  if (slot.missing != 0 || slot.failure) return;
  // The slot stays where it is: only one that is ready is taken out.
  lock.unlock();
  finish_batch(slot, chunk.batch);
  lock.lock();
  slot.ready = true;
  ready_.notify_all();
}

/// What concerns all rows of a batch, once they are there.
void EpochRun::finish_batch(Slot& slot, uint64_t number) const {
  LoadedBatch& batch = *slot.batch;
  batch.keep_rows(slot.good);
  for (size_t i = 0; i < parts_.columns.size(); ++i) {
    const ColumnPlan& plan = parts_.columns[i];
    if (plan.padding) pad_column(plan, *parts_.memory, batch, i);
  }
  if (!options_.picture || options_.picture->mixing.empty()) return;
  // Numbers that belong to the place of the batch in the epoch, not to a sample.
  constexpr uint64_t kBatches = uint64_t{1} << 62;
  SampleRandom random(options_.seed, epoch_,
                      kBatches | share_.position(number * options_.batch_size));
  mix_batch(*options_.picture, options_.image, random, *parts_.memory, batch);
}

Loader::Next EpochRun::next(std::shared_ptr<LoadedBatch>& batch,
                            std::chrono::milliseconds patience) {
  const Clock::time_point began = Clock::now();
  std::unique_lock lock(mutex_);
  const auto done = [&] {
    return stopping_ || next_batch_ == batch_count_ || (!slots_.empty() && slots_.front().ready);
  };
  bool in_time = ready_.wait_for(lock, patience, done);
  while (in_time && drop_empty()) in_time = ready_.wait_for(lock, patience, done);
  const Clock::time_point now = Clock::now();
  const double waited = seconds(now - began);
  stats_.waited += waited;
  if (rows_handed_out_ > 0) stats_.waited_behind_first += waited;
  tune(waited);
  if (failure_) std::rethrow_exception(failure_);
  if (!in_time) return Loader::Next::not_yet;
  if (next_batch_ == batch_count_ && !stopping_) refuse_nothing();
  if (next_batch_ == batch_count_ || stopping_) return Loader::Next::end;
  if (const std::exception_ptr failure = slots_.front().failure) {
    stopping_ = true;
    fetched_.close();
    room_.notify_all();
    allowed_.notify_all();
    std::rethrow_exception(failure);
  }
  batch = std::move(slots_.front().batch);
  const bool first = rows_handed_out_ == 0;  // empty ones are not handed out
  rows_handed_out_ += batch->rows;
  slots_.pop_front();
  ++next_batch_;
  if (first) {
    first_batch_ = now;
  } else {
    stats_.samples_behind_first += batch->rows;
  }
  stats_.seconds_behind_first = seconds(now - first_batch_);
  room_.notify_all();
  return Loader::Next::batch;
}

/// Takes out a batch of which no row could be read; false where the next one is not such. REQUIRES:
/// mutex_ is held.
bool EpochRun::drop_empty() {
  if (stopping_ || slots_.empty() || !slots_.front().ready || slots_.front().failure ||
      slots_.front().batch->rows > 0) {
    return false;
  }
  if (options_.ranks.world > 1 && first_bad_) {
    stopping_ = true;
    throw Error(first_bad_->kind(),
                fmt::format("a batch of rank {} has no sample that could be loaded, and without it "
                            "the ranks would get out of step: on_error=\"replace\" takes others; "
                            "the first: {}",
                            options_.ranks.rank, first_bad_->what()),
                first_bad_->os_error());
  }
  slots_.pop_front();
  ++next_batch_;
  room_.notify_all();
  return true;
}

/// Throws at the end of an epoch that had samples, but not one that could be read. REQUIRES: mutex_
/// is held.
void EpochRun::refuse_nothing() {
  if (rows_handed_out_ > 0 || !first_bad_) return;
  stopping_ = true;
  throw Error(first_bad_->kind(),
              fmt::format("not one sample of this epoch could be loaded; the first: {}",
                          first_bad_->what()),
              first_bad_->os_error());
}

/// Looks now and then at what the queues show. REQUIRES: mutex_ is held.
void EpochRun::tune(double waited) {
  waited_since_tuning_ += waited;
  const Clock::time_point now = Clock::now();
  const double passed = seconds(now - tuned_);
  if (passed < kTuningSeconds || next_batch_ == 0 || stopping_) return;
  const auto since = [](StageTime stage, const StageTime& before) {
    stage.busy -= before.busy;
    stage.computing -= before.computing;
    stage.waiting_for_input -= before.waiting_for_input;
    stage.waiting_for_room -= before.waiting_for_room;
    return stage;
  };
  LoaderStats current;
  current.fetch = fetch_sums_.read(tuning_.fetch);
  current.decode = decode_sums_.read(tuning_.decode);
  const Tuning wanted =
      tuned(tuning_, since(current.fetch, at_last_tuning_.fetch),
            since(current.decode, at_last_tuning_.decode), waited_since_tuning_, passed, limits_);
  at_last_tuning_ = current;
  tuned_ = now;
  waited_since_tuning_ = 0;
  if (wanted == tuning_) return;
  tuning_ = wanted;
  start_threads();
  room_.notify_all();
  allowed_.notify_all();
}

LoaderStats EpochRun::stats() const {
  const std::lock_guard lock(mutex_);
  LoaderStats copy = stats_;
  copy.fetch = fetch_sums_.read(tuning_.fetch);
  copy.decode = decode_sums_.read(tuning_.decode);
  copy.seconds = seconds(Clock::now() - begin_);
  copy.ahead = tuning_.ahead;
  if (parts_.cache) {
    copy.cache_hits = parts_.cache->hits();
    copy.cache_bytes = parts_.cache->bytes();
  }
  return copy;
}

}  // namespace stoker
