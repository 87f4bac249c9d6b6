// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "probe/measurements.h"
#include "probe/stopwatch.h"

namespace stoker {
namespace {

/// Pages that are there, as memcpy() should find them.
class Pages {
 public:
  explicit Pages(size_t size) : size_(size) {
    data_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    std::memset(data_, 1, size);  // not the one page of zeros
  }
  ~Pages() { ::munmap(data_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  size_t size_;
  void* data_ = nullptr;
};

/// Much more than the caches hold, together and each.
size_t copied_bytes(const Machine& machine) {
  constexpr size_t kLeast = 64UL << 20, kMost = 2UL << 30;
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const size_t wanted = std::max<size_t>(4 * static_cast<size_t>(std::max(0L, cache)), 4 * kLeast);
  const uint64_t room = machine.memory_available_bytes / 8;
  return std::clamp<size_t>(std::min<uint64_t>(wanted, room), kLeast / 4, kMost);
}

void measure_copies(Machine& machine, double seconds, Progress& progress) {
  constexpr size_t kPiece = 1 << 20;
  const size_t all = copied_bytes(machine);
  const Pages source(all), target(all);
  const std::vector<unsigned> counts = thread_counts(machine.cores);
  for (const unsigned threads : counts) {
    const size_t share = all / threads / kPiece * kPiece;
    if (share == 0) break;
    const Trial trial{.threads = threads, .seconds = seconds / static_cast<double>(counts.size())};
    Rate rate = time_trial(trial, progress, [&](unsigned thread, unsigned, const Slot& slot) {
      uint64_t done = 0;
      while (slot.more(done)) {
        const size_t at = thread * share + done % share;
        std::memcpy(target.data() + at, source.data() + at, kPiece);
        done += kPiece;
      }
      return done;
    });
    rate.what = "copy";
    rate.unit = "bytes";
    rate.block_bytes = kPiece;
    rate.how = "memcpy; reads and writes count once";
    if (rate.repeats > 0) machine.memory.push_back(rate);
  }
}

void measure_shm(Machine& machine, uint64_t bytes, double seconds, Progress& progress) {
  Place shm;
  shm.path = "/dev/shm";
  try {
    find_facts(shm);
    ProbeDirectory::remove_leftovers(shm.path);
    const ProbeDirectory directory(shm.path);
    Allowance allowance;
    allowance.bytes = std::min(bytes, shm.free_bytes.value_or(0) / 8);
    allowance.seconds = seconds / 8;
    allowance.threads = std::min(4U, machine.cores);
    const ProbeFile file = measure_writes(shm, directory.path(), allowance, progress);
    measure_reads(shm, file, allowance, progress);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    machine.notes.push_back(std::string("/dev/shm not measured: ") + error.what());
  }
  machine.written_bytes += shm.written_bytes;
  for (Rate& rate : shm.rates) {
    if (rate.what != "read" && rate.what != "write") continue;
    rate.what = "shm_" + rate.what;
    machine.memory.push_back(rate);
  }
}

}  // namespace

void measure_memory(Machine& machine, uint64_t bytes, double seconds, Progress& progress) {
  try {
    measure_copies(machine, seconds / 2, progress);
  } catch (const std::bad_alloc&) {
    machine.notes.emplace_back("memory not measured: too little of it is left");
  }
  measure_shm(machine, bytes, seconds / 2, progress);
}

}  // namespace stoker
