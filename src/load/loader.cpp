// SPDX-License-Identifier: Apache-2.0
#include "load/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "load/bounded_queue.h"

namespace stoker {
namespace {

/// Rows that travel together: enough to merge reads, few enough to share a batch between threads.
constexpr uint64_t kChunk = 8;
/// Reading mostly waits; where it does not, decoding needs the cores.
constexpr unsigned kFetchThreads = 4;
/// Samples that are tried in the place of a bad one.
constexpr uint64_t kReplacements = 100;

using Clock = std::chrono::steady_clock;

/// Adds the time from one call to the next to one of three sums.
class StageClock {
 public:
  explicit StageClock(std::mutex& mutex, StageTime& time) : mutex_(mutex), time_(time) {}
  void add(double StageTime::*what) {
    const Clock::time_point now = Clock::now();
    const std::lock_guard lock(mutex_);
    time_.*what += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::mutex& mutex_;
  StageTime& time_;
  Clock::time_point last_ = Clock::now();
};

LoaderOptions completed(LoaderOptions options) {
  if (options.batch_size == 0) throw Error(ErrorKind::usage, "batch_size 0: should be 1 or more");
  if (options.ranks.world == 0 || options.ranks.rank >= options.ranks.world) {
    throw Error(ErrorKind::usage,
                fmt::format("rank {} of {}: should be 0 to {}", options.ranks.rank,
                            options.ranks.world, int64_t{options.ranks.world} - 1));
  }
  if (options.recipe.size.pixels() == 0) {
    throw Error(ErrorKind::usage, "size: the pictures of a batch need one");
  }
  if (options.threads == 0) options.threads = usable_cores();
  options.ahead = std::max(1U, options.ahead);
  return options;
}

ReaderOptions reading(std::vector<std::string> roots) {
  ReaderOptions options;
  options.roots = std::move(roots);
  options.threads = 1;
  return options;
}

}  // namespace

/// One epoch, or the rest of one, under way.
struct Loader::Run {
  /// A batch while it is made.
  struct Slot {
    std::shared_ptr<LoadedBatch> batch;
    std::vector<uint8_t> good;  // by row
    uint64_t missing = 0;       // rows that are not done
  };
  /// Rows of one batch, fetched.
  struct Chunk {
    uint64_t batch = 0;
    uint64_t first_row = 0;
    Batch samples;
    std::vector<ReadFailure> failures;
    std::unique_ptr<std::byte[]> memory;
  };

  Run(const Loader& parent, uint64_t epoch_number, uint64_t position);
  ~Run() { stop(); }

  void stop();
  Next next(std::shared_ptr<LoadedBatch>& batch, std::chrono::milliseconds patience);
  LoaderStats snapshot() const;

  uint64_t rows_of(uint64_t batch) const {
    return std::min(options.batch_size, share.size() - batch * options.batch_size);
  }
  uint64_t sample_at(uint64_t row) const { return order(share.position(row)); }
  bool begin_chunk(uint64_t& batch, uint64_t& row, StageClock& clock);
  void fetch();
  void decode();
  Chunk read(uint64_t batch, uint64_t first_row, std::span<const uint64_t> samples) const;
  void decode_chunk(ImageDecoder& decoder, Chunk& chunk);
  /// Decodes a sample into a row; throws where it is bad.
  void decode_row(ImageDecoder& decoder, const Chunk& chunk, uint32_t row, LoadedBatch& batch,
                  uint64_t to);
  bool replace_row(ImageDecoder& decoder, uint64_t batch, uint64_t row, LoadedBatch& into);
  void finish_rows(const Chunk& chunk, const std::vector<uint8_t>& good);
  void compact(Slot& slot) const;
  void fail(std::exception_ptr why);
  template <typename Work>
  void guard(Work work);

  const Loader& loader;
  const LoaderOptions& options;
  const uint64_t epoch;
  const EpochOrder order;
  const RankShare share;
  const uint64_t batch_count;
  std::optional<uint32_t> image_field, label_field;
  std::vector<uint32_t> fields;
  size_t picture_bytes = 0;

  mutable std::mutex mutex;
  std::condition_variable room, ready;
  std::deque<Slot> slots;   // from next_batch on
  uint64_t next_batch = 0;  // that is handed out
  uint64_t next_row = 0;    // of this rank, that is fetched
  bool stopping = false;
  std::exception_ptr failure;
  LoaderStats stats;
  const Clock::time_point begin = Clock::now();

  BoundedQueue<Chunk> fetched;
  std::vector<std::thread> threads;
};

Loader::Run::Run(const Loader& parent, uint64_t epoch_number, uint64_t position)
    : loader(parent),
      options(parent.options_),
      epoch(epoch_number),
      order(parent.index_->size(), options.shuffle, epoch_number),
      share(parent.index_->size(), position, options.ranks, options.remainder),
      batch_count(parent.batches(position)),
      fetched(2 * size_t{options.threads}) {
  const Schema& schema = parent.index_->schema();
  image_field = schema.find(kImageField);
  label_field = schema.find(kLabelField);
  if (!image_field) {
    throw Error(ErrorKind::unsupported, "the dataset has no field 'image' to decode");
  }
  fields = {*image_field};
  if (label_field) fields.push_back(*label_field);
  std::sort(fields.begin(), fields.end());
  picture_bytes = options.recipe.size.pixels() * 3;
  stats.fetch_threads = std::min(kFetchThreads, options.threads);
  stats.decode_threads = options.threads;
  for (unsigned i = 0; i < stats.fetch_threads; ++i) {
    threads.emplace_back([this] { guard([this] { fetch(); }); });
  }
  for (unsigned i = 0; i < stats.decode_threads; ++i) {
    threads.emplace_back([this] { guard([this] { decode(); }); });
  }
}

void Loader::Run::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  room.notify_all();
  ready.notify_all();
  fetched.close();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
}

void Loader::Run::fail(std::exception_ptr why) {
  const std::lock_guard lock(mutex);
  if (!failure) failure = std::move(why);
  stopping = true;
  room.notify_all();
  ready.notify_all();
  fetched.close();
}

template <typename Work>
void Loader::Run::guard(Work work) {
  try {
    work();
  } catch (...) {
    fail(std::current_exception());
  }
}

/// Waits until there is room for the next rows; false where there are none.
bool Loader::Run::begin_chunk(uint64_t& batch, uint64_t& row, StageClock& clock) {
  std::unique_lock lock(mutex);
  const uint64_t end = batch_count * options.batch_size;
  const auto has_room = [&] { return next_row / options.batch_size < next_batch + options.ahead; };
  if (!stopping && next_row < std::min(end, share.size()) && !has_room()) {
    lock.unlock();
    clock.add(&StageTime::busy);
    lock.lock();
    room.wait(lock, [&] { return stopping || has_room(); });
    lock.unlock();
    clock.add(&StageTime::waiting_for_room);
    lock.lock();
  }
  if (stopping || next_row >= std::min(end, share.size())) return false;
  batch = next_row / options.batch_size;
  row = next_row % options.batch_size;
  if (batch - next_batch == slots.size()) {
    Slot slot;
    slot.batch = std::make_shared<LoadedBatch>();
    slot.batch->rows = slot.missing = rows_of(batch);
    slot.good.resize(slot.missing, 1);
    slot.batch->samples.resize(slot.missing);
    if (label_field) slot.batch->labels.resize(slot.missing);
    slot.batch->position = share.after((batch + 1) * options.batch_size);
    slot.batch->images = std::make_unique_for_overwrite<uint8_t[]>(slot.missing * picture_bytes);
    slots.push_back(std::move(slot));
  }
  next_row += std::min(kChunk, rows_of(batch) - row);
  return true;
}

Loader::Run::Chunk Loader::Run::read(uint64_t batch, uint64_t first_row,
                                     std::span<const uint64_t> samples) const {
  Chunk chunk;
  chunk.batch = batch;
  chunk.first_row = first_row;
  chunk.samples = loader.reader_.locate(samples, fields);
  uint64_t bytes = 0;
  for (const Item& item : chunk.samples.items) bytes += round_up(item.length, 8);
  chunk.memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::byte* next = chunk.memory.get();
  for (Item& item : chunk.samples.items) {
    item.data = next;
    next += round_up(item.length, 8);
  }
  chunk.failures = loader.reader_.fetch(chunk.samples);
  return chunk;
}

void Loader::Run::fetch() {
  StageClock clock(mutex, stats.fetch);
  uint64_t batch = 0;
  uint64_t row = 0;
  while (begin_chunk(batch, row, clock)) {
    std::vector<uint64_t> samples;
    const uint64_t last = std::min(row + kChunk, rows_of(batch));
    for (uint64_t i = row; i < last; ++i) {
      samples.push_back(sample_at(batch * options.batch_size + i));
    }
    Chunk chunk = read(batch, row, samples);
    clock.add(&StageTime::busy);
    if (!fetched.push(std::move(chunk))) return;
    clock.add(&StageTime::waiting_for_room);
  }
}

void Loader::Run::decode() {
  StageClock clock(mutex, stats.decode);
  ImageDecoder decoder;
  while (std::optional<Chunk> chunk = fetched.pop()) {
    clock.add(&StageTime::waiting_for_input);
    decode_chunk(decoder, *chunk);
    clock.add(&StageTime::busy);
  }
}

void Loader::Run::decode_row(ImageDecoder& decoder, const Chunk& chunk, uint32_t row,
                             LoadedBatch& batch, uint64_t to) {
  const uint64_t sample = chunk.samples.samples[row];
  bool found = false;
  for (size_t i = 0; i < chunk.samples.items.size(); ++i) {
    const Item& item = chunk.samples.items[i];
    if (item.row != row) continue;
    if (item.failed) {
      const auto failed =
          std::find_if(chunk.failures.begin(), chunk.failures.end(),
                       [&](const ReadFailure& failure) { return failure.item == i; });
      throw_failure(*failed);
    }
    if (item.field == label_field) {
      const Value value = loader.reader_.decode(chunk.samples, item);
      const auto* label = std::get_if<int64_t>(&value);
      if (label == nullptr) {
        throw Error(ErrorKind::corrupt,
                    loader.reader_.fault(chunk.samples, item, "is no whole number").message());
      }
      batch.labels[to] = *label;
      continue;
    }
    try {
      SampleRandom random(options.seed, epoch, sample);
      const Size photo = decoder.open({item.data, item.length}).size;
      decoder.decode(plan_crop(options.recipe, photo, random),
                     batch.images.get() + to * picture_bytes,
                     size_t{options.recipe.size.width} * 3);
    } catch (const Error& error) {
      throw Error(error.kind(), loader.reader_.fault(chunk.samples, item, error.what()).message());
    }
    found = true;
  }
  if (!found) {
    throw Error(ErrorKind::corrupt,
                fmt::format("sample '{}' has no image", printable(loader.index_->key(sample))));
  }
  batch.samples[to] = sample;
}

/// Puts the sample of the next position that is good in the place of a bad one: the same one,
/// whoever does it.
bool Loader::Run::replace_row(ImageDecoder& decoder, uint64_t batch, uint64_t row,
                              LoadedBatch& into) {
  const uint64_t position = share.position(batch * options.batch_size + row);
  for (uint64_t k = 1; k <= std::min(kReplacements, order.size() - 1); ++k) {
    const uint64_t sample = order((position + k) % order.size());
    const Chunk other = read(batch, row, {&sample, 1});
    try {
      decode_row(decoder, other, 0, into, row);
      return true;
    } catch (const Error&) {
      continue;
    }
  }
  return false;
}

void Loader::Run::decode_chunk(ImageDecoder& decoder, Chunk& chunk) {
  std::shared_ptr<LoadedBatch> batch;
  {
    const std::lock_guard lock(mutex);
    if (stopping) return;
    batch = slots[chunk.batch - next_batch].batch;
  }
  const auto rows = static_cast<uint32_t>(chunk.samples.samples.size());
  std::vector<uint8_t> good(rows, 1);
  for (uint32_t row = 0; row < rows; ++row) {
    const uint64_t to = chunk.first_row + row;
    try {
      decode_row(decoder, chunk, row, *batch, to);
    } catch (const Error& error) {
      if (options.on_error == OnError::raise) throw;
      Fault fault;
      fault.sample = loader.index_->key(chunk.samples.samples[row]);
      fault.cause = error.what();
      good[row] =
          options.on_error == OnError::replace && replace_row(decoder, chunk.batch, to, *batch);
      const std::lock_guard lock(mutex);
      stats.bad.push_back(std::move(fault));
    }
  }
  finish_rows(chunk, good);
}

void Loader::Run::finish_rows(const Chunk& chunk, const std::vector<uint8_t>& good) {
  uint64_t bytes = 0;
  for (const Item& item : chunk.samples.items) bytes += item.length;
  const std::lock_guard lock(mutex);
  if (stopping) return;
  Slot& slot = slots[chunk.batch - next_batch];
  std::copy(good.begin(), good.end(), slot.good.begin() + static_cast<ptrdiff_t>(chunk.first_row));
  slot.missing -= good.size();
  stats.samples += good.size();
  stats.bytes += bytes;
  if (slot.missing == 0) ready.notify_all();
}

/// Takes rows out that were skipped; the order of the others stays.
void Loader::Run::compact(Slot& slot) const {
  LoadedBatch& batch = *slot.batch;
  uint64_t to = 0;
  for (uint64_t row = 0; row < slot.good.size(); ++row) {
    if (slot.good[row] == 0) continue;
    if (to != row) {
      std::copy_n(batch.images.get() + row * picture_bytes, picture_bytes,
                  batch.images.get() + to * picture_bytes);
      batch.samples[to] = batch.samples[row];
      if (label_field) batch.labels[to] = batch.labels[row];
    }
    ++to;
  }
  batch.rows = to;
  batch.samples.resize(to);
  if (label_field) batch.labels.resize(to);
}

Loader::Next Loader::Run::next(std::shared_ptr<LoadedBatch>& batch,
                               std::chrono::milliseconds patience) {
  const Clock::time_point began = Clock::now();
  std::unique_lock lock(mutex);
  const auto done = [&] {
    return stopping || next_batch == batch_count || (!slots.empty() && slots.front().missing == 0);
  };
  const bool in_time = ready.wait_for(lock, patience, done);
  stats.consumer_waited += std::chrono::duration<double>(Clock::now() - began).count();
  if (failure) std::rethrow_exception(failure);
  if (!in_time) return Next::not_yet;
  if (next_batch == batch_count || stopping) return Next::end;
  compact(slots.front());
  batch = std::move(slots.front().batch);
  slots.pop_front();
  ++next_batch;
  room.notify_all();
  return Next::batch;
}

LoaderStats Loader::Run::snapshot() const {
  const std::lock_guard lock(mutex);
  LoaderStats copy = stats;
  copy.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return copy;
}

Loader::Loader(std::shared_ptr<const Index> index, std::vector<std::string> roots,
               const LoaderOptions& options)
    : index_(std::move(index)),
      options_(completed(options)),
      reader_(index_, reading(std::move(roots))) {}

Loader::~Loader() = default;

uint64_t Loader::batches(uint64_t position) const {
  const uint64_t rows =
      RankShare(index_->size(), position, options_.ranks, options_.remainder).size();
  return options_.drop_last ? rows / options_.batch_size
                            : (rows + options_.batch_size - 1) / options_.batch_size;
}

void Loader::start(uint64_t epoch, uint64_t position) {
  if (position > index_->size()) {
    throw Error(ErrorKind::usage,
                fmt::format("position {} of an epoch of {} samples", position, index_->size()));
  }
  run_.reset();
  run_ = std::make_unique<Run>(*this, epoch, position);
}

Loader::Next Loader::next(std::shared_ptr<LoadedBatch>& batch, std::chrono::milliseconds patience) {
  return run_ ? run_->next(batch, patience) : Next::end;
}

LoaderStats Loader::stats() const { return run_ ? run_->snapshot() : LoaderStats{}; }

}  // namespace stoker
