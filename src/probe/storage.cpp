// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/permutation.h"
#include "os/page_cache.h"
#include "probe/measurements.h"
#include "probe/stopwatch.h"

namespace stoker {
namespace {

constexpr uint64_t kBlock = 1 << 20;    // of sequential reads and writes
constexpr uint64_t kSyncedBlocks = 16;  // written between two fdatasync()
constexpr double kColdEnough = 0.01;    // share that may have stayed in memory

/// Memory as O_DIRECT wants it, filled with bytes that do not compress.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(uint64_t size)
      : size_(size), data_(static_cast<std::byte*>(std::aligned_alloc(4096, size))) {
    if (data_ == nullptr) throw std::bad_alloc();
    uint64_t state = 1;
    for (uint64_t at = 0; at < size; at += sizeof(state)) {
      state = mix64(state + at);
      std::memcpy(data_.get() + at, &state, sizeof(state));
    }
  }
  std::byte* data() const { return data_.get(); }
  /// Makes its pages differ from those written before, in case the storage looks for equal ones.
  void stamp(uint64_t number) {
    for (uint64_t at = 0; at < size_; at += 4096) {
      const uint64_t mark = mix64(number * size_ + at);
      std::memcpy(data_.get() + at, &mark, sizeof(mark));
    }
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  uint64_t size_;
  std::unique_ptr<std::byte, Free> data_;
};

/// One for each thread, made before the clock runs.
std::vector<AlignedBuffer> buffers_for(unsigned threads, uint64_t size) {
  std::vector<AlignedBuffer> buffers;
  for (unsigned i = 0; i < threads; ++i) buffers.emplace_back(size);
  return buffers;
}

bool no_room(int cause) { return cause == ENOSPC || cause == EDQUOT || cause == EFBIG; }

/// Returns false where there is no room for more.
bool write_block(int descriptor, const std::byte* data, uint64_t size, uint64_t offset) {
  uint64_t done = 0;
  while (done < size) {
    const ssize_t put =
        ::pwrite(descriptor, data + done, size - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && no_room(errno)) return false;
    if (put <= 0) throw system_error("the file that is measured", "cannot write", errno);
    done += static_cast<uint64_t>(put);
  }
  return true;
}

void read_block(int descriptor, std::byte* data, uint64_t size, uint64_t offset) {
  ssize_t got = 0;
  do {
    got = ::pread(descriptor, data, size, static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got < 0 || static_cast<uint64_t>(got) != size) {
    throw system_error("the file that is measured", "cannot read", got < 0 ? errno : EIO);
  }
}

Rate named(Rate rate, const char* what, const char* unit, uint64_t block, bool cold,
           std::string how) {
  rate.what = what;
  rate.unit = unit;
  rate.block_bytes = block;
  rate.cold = cold;
  rate.how = std::move(how);
  return rate;
}

void add(Place& place, Rate rate) {
  if (rate.repeats > 0) place.rates.push_back(std::move(rate));
}

/// What an O_DIRECT descriptor that could be opened is worth: some file systems refuse only when
/// it is used.
bool direct_reads_work(const ProbeFile& file) {
  if (file.direct() < 0) return false;
  const AlignedBuffer page(kSmallBlock);
  return ::pread(file.direct(), page.data(), kSmallBlock, 0) >= 0;
}

/// Each thread writes a stretch of its own, `bytes` all together at most; without gaps where there
/// is one thread.
Rate sequential_writes(const ProbeFile& file, bool direct, Trial trial, uint64_t bytes,
                       Progress& progress) {
  const uint64_t each = bytes / kBlock / trial.threads / trial.repeats;  // blocks in a repeat
  const int descriptor = direct ? file.direct() : file.buffered();
  std::vector<AlignedBuffer> buffers = buffers_for(trial.threads, kBlock);
  std::vector<uint64_t> next(trial.threads);
  for (unsigned i = 0; i < trial.threads; ++i) next[i] = each * trial.repeats * i;
  return time_trial(trial, progress, [&](unsigned thread, unsigned, const Slot& slot) {
    uint64_t done = 0;
    for (; done < each && slot.more(done); ++done, ++next[thread]) {
      buffers[thread].stamp(next[thread]);
      if (!write_block(descriptor, buffers[thread].data(), kBlock, next[thread] * kBlock)) break;
      if (!direct && done % kSyncedBlocks == kSyncedBlocks - 1) ::fdatasync(descriptor);
    }
    if (!direct) ::fdatasync(descriptor);
    return done * kBlock;
  });
}

/// Blocks of a file in an order without repetitions, past the cache or synced at the end.
Rate random_writes(const ProbeFile& file, bool direct, Trial trial, uint64_t bytes,
                   Progress& progress) {
  const uint64_t blocks = file.size() / kSmallBlock;
  const uint64_t each = bytes / kSmallBlock / trial.threads / trial.repeats;
  if (blocks == 0) return {};
  const Permutation order(blocks, 1);
  const int descriptor = direct ? file.direct() : file.buffered();
  std::vector<AlignedBuffer> buffers = buffers_for(trial.threads, kSmallBlock);
  return time_trial(trial, progress, [&](unsigned thread, unsigned repeat, const Slot& slot) {
    AlignedBuffer& buffer = buffers[thread];
    uint64_t done = 0;
    while (done < each && slot.more(done)) {
      const uint64_t number = (uint64_t{repeat} * each + done) * trial.threads + thread;
      buffer.stamp(number);
      if (!write_block(descriptor, buffer.data(), kSmallBlock,
                       order(number % blocks) * kSmallBlock)) {
        break;
      }
      ++done;
    }
    if (!direct) ::fdatasync(descriptor);
    return done;
  });
}

/// How a trial that should come from the storage does so.
struct Cold {
  const ProbeFile& file;
  bool direct;
  double kept = 0;  // the largest share that was still in memory

  int descriptor() const { return direct ? file.direct() : file.buffered(); }
  void prepare() {
    if (direct) return;
    const CachedBytes left = drop_from_page_cache(file.buffered());
    if (left.all > 0) {
      kept = std::max(kept, static_cast<double>(left.cached) / static_cast<double>(left.all));
    }
  }
  bool proven() const { return direct || kept <= kColdEnough; }
  std::string how() const {
    if (direct) return "O_DIRECT";
    return fmt::format("fadvise; mincore: {:.1f} % in memory", 100 * kept);
  }
};

/// Each thread begins elsewhere and goes round; `once`: over its own part only.
Rate sequential_reads(int descriptor, uint64_t bytes, bool once, Trial trial, Progress& progress,
                      const std::function<void()>& before_each) {
  const uint64_t blocks = bytes / kBlock;
  if (blocks == 0) return {};
  trial.threads = static_cast<unsigned>(std::min<uint64_t>(trial.threads, blocks));
  const std::vector<AlignedBuffer> buffers = buffers_for(trial.threads, kBlock);
  return time_trial(
      trial, progress,
      [&](unsigned thread, unsigned, const Slot& slot) {
        const uint64_t first = blocks * thread / trial.threads;
        const uint64_t most =
            once ? blocks * (thread + 1) / trial.threads - first : UINT64_MAX / kBlock;
        uint64_t done = 0;
        for (; done < most && slot.more(done); ++done) {
          read_block(descriptor, buffers[thread].data(), kBlock, (first + done) % blocks * kBlock);
        }
        return done * kBlock;
      },
      before_each);
}

Rate random_reads(int descriptor, uint64_t bytes, uint64_t block, bool once, Trial trial,
                  Progress& progress, const std::function<void()>& before_each) {
  const uint64_t blocks = bytes / block;
  if (blocks == 0) return {};
  trial.threads = static_cast<unsigned>(std::min<uint64_t>(trial.threads, blocks));
  const Permutation order(blocks, block);
  const std::vector<AlignedBuffer> buffers = buffers_for(trial.threads, block);
  return time_trial(
      trial, progress,
      [&](unsigned thread, unsigned, const Slot& slot) {
        const uint64_t most = once ? blocks / trial.threads : UINT64_MAX;
        uint64_t done = 0;
        for (; done < most && slot.more(done); ++done) {
          const uint64_t number = (done * trial.threads + thread) % blocks;
          read_block(descriptor, buffers[thread].data(), block, order(number) * block);
        }
        return done;
      },
      before_each);
}

/// How much of the file could be brought into memory in the time of a few trials.
uint64_t warm_up(const ProbeFile& file, uint64_t size, double seconds, const Progress& progress) {
  const Slot slot(seconds, progress);
  const AlignedBuffer buffer(kBlock);
  uint64_t done = 0;
  for (; done + kBlock <= size && !slot.over(); done += kBlock) {
    read_block(file.buffered(), buffer.data(), kBlock, done);
  }
  return done;
}

}  // namespace

ProbeFile measure_writes(Place& place, const std::string& directory, Allowance& allowance,
                         Progress& progress) {
  const bool in_memory = is_in_memory(place.type);
  const uint64_t all = allowance.bytes;
  const auto charge = [&](Rate rate, uint64_t unit_bytes, const char* what, const char* unit,
                          uint64_t block, const char* how) {
    const uint64_t written = rate.amount * unit_bytes;
    allowance.bytes -= std::min(allowance.bytes, written);
    place.written_bytes += written;
    add(place, named(std::move(rate), what, unit, block, !in_memory, in_memory ? "memory" : how));
  };
  const auto write = [&](const ProbeFile& file, bool direct, unsigned threads, uint64_t bytes) {
    if (allowance.over()) return;
    const Trial trial{.threads = threads, .seconds = allowance.seconds};
    charge(sequential_writes(file, direct, trial, bytes, progress), 1, "write", "bytes", kBlock,
           direct ? "O_DIRECT" : "fdatasync every 16 MiB");
  };
  ProbeFile kept = ProbeFile::create(directory);
  place.direct = !in_memory && direct_reads_work(kept);
  write(kept, place.direct, 1, all / 8 * 3);
  for (const unsigned threads : thread_counts(std::min(4U, allowance.threads))) {
    if (threads == 1) continue;
    write(ProbeFile::create(directory), place.direct, threads, all / 4);
  }
  if (const Rate* direct = place.best("write"); place.direct && direct != nullptr) {
    // No more than the disk takes in the time: what is in memory by then would have to be waited
    // for.
    const auto in_time = static_cast<uint64_t>(direct->per_s * allowance.seconds);
    write(ProbeFile::create(directory), false, 1, std::min(all / 16 * 3, in_time));
  }
  for (const unsigned threads : thread_counts(allowance.threads)) {
    if ((threads != 1 && threads != allowance.threads) || allowance.over()) continue;
    const Trial trial{.threads = threads, .seconds = allowance.seconds};
    charge(random_writes(kept, place.direct, trial, all / 32, progress), kSmallBlock,
           "random_write", "operations", kSmallBlock,
           place.direct ? "O_DIRECT" : "fdatasync at the end");
  }
  return kept;
}

void measure_reads(Place& place, const ProbeFile& file, const Allowance& allowance,
                   Progress& progress) {
  const uint64_t size = file.size() / kBlock * kBlock;
  place.file_bytes = file.size();
  if (size == 0) return;
  place.direct = !is_in_memory(place.type) && direct_reads_work(file);
  if (!is_in_memory(place.type)) {
    const auto add_cold = [&](const char* what, const char* unit, uint64_t block, unsigned threads,
                              const auto& reads) {
      if (allowance.over()) return;
      Cold cold{file, place.direct};
      const Trial trial{.threads = threads, .seconds = allowance.seconds};
      Rate rate = reads(trial, cold, [&] { cold.prepare(); });
      add(place, named(std::move(rate), what, unit, block, cold.proven(), cold.how()));
    };
    for (const unsigned threads : thread_counts(allowance.threads)) {
      add_cold("read", "bytes", kBlock, threads,
               [&](const Trial& trial, const Cold& cold, const std::function<void()>& prepare) {
                 return sequential_reads(cold.descriptor(), size, !cold.direct, trial, progress,
                                         prepare);
               });
      for (const uint64_t block : {kSmallBlock, kPhotoBlock}) {
        if (!place.direct) ::posix_fadvise(file.buffered(), 0, 0, POSIX_FADV_RANDOM);
        add_cold("random_read", "operations", block, threads,
                 [&](const Trial& trial, const Cold& cold, const std::function<void()>& prepare) {
                   return random_reads(cold.descriptor(), size, block, !cold.direct, trial,
                                       progress, prepare);
                 });
        if (!place.direct) ::posix_fadvise(file.buffered(), 0, 0, POSIX_FADV_NORMAL);
      }
    }
  }
  const uint64_t warm = warm_up(file, size, 3 * allowance.seconds, progress);
  for (const unsigned threads : thread_counts(std::min(4U, allowance.threads))) {
    if (allowance.over()) break;
    const Trial trial{.threads = threads, .seconds = allowance.seconds / 2};
    add(place, named(sequential_reads(file.buffered(), warm, false, trial, progress, {}), "read",
                     "bytes", kBlock, false, "memory"));
    add(place, named(random_reads(file.buffered(), warm, kSmallBlock, false, trial, progress, {}),
                     "random_read", "operations", kSmallBlock, false, "memory"));
  }
}

}  // namespace stoker
