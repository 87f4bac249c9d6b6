// SPDX-License-Identifier: Apache-2.0

// Reads pieces of shards in random order, by io_uring beside a pool of threads with pread,
// interleaved in one process. Warm: the pieces lie in the page cache. Cold: the shards are dropped
// from it before every run (the host of a virtual machine may still have them in its memory).
//
//   uring_bench DATASET_DIR_OR_FILES... [--length 110000] [--reads 4000] [--rounds 5]

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "os/page_cache.h"

namespace {

namespace fs = std::filesystem;

struct Contender {
  unsigned threads;
  unsigned depth;  // of each thread's queue; 0: pread
};

constexpr Contender kContenders[] = {{1, 0}, {2, 0}, {4, 0},  {8, 0},  {16, 0}, {32, 0},
                                     {1, 1}, {1, 4}, {1, 16}, {1, 32}, {1, 64}, {2, 32}};

// As many as the deepest queue takes. Every contender fills all of them in turn, so that none gains
// by keeping a few in the CPU's cache.
constexpr unsigned kBuffers = 64;

[[noreturn]] void fail(const std::string& what, int error) {
  fmt::print(stderr, "{}: {}\n", what, std::strerror(error));
  std::exit(1);
}

struct Range {
  int descriptor;
  uint64_t offset;
};

struct Work {
  const std::vector<Range>& ranges;
  size_t reads;   // the first so many of the ranges
  size_t length;  // of each range
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> sum{0};  // of each range's first and last byte
};

uint64_t ends_of(std::span<const std::byte> bytes) {
  return std::to_integer<uint64_t>(bytes.front()) + std::to_integer<uint64_t>(bytes.back());
}

void read_by_pread(Work& work, std::span<std::byte> memory) {
  uint64_t sum = 0;
  size_t used = 0;
  for (size_t i = work.next++; i < work.reads; i = work.next++) {
    const Range& range = work.ranges[i];
    const std::span buffer = memory.subspan(used, work.length);
    const ssize_t got =
        ::pread(range.descriptor, buffer.data(), buffer.size(), static_cast<off_t>(range.offset));
    if (got != static_cast<ssize_t>(work.length)) fail("pread", got < 0 ? errno : ENODATA);
    sum += ends_of(buffer);
    used = (used + work.length) % memory.size();
  }
  work.sum += sum;
}

/// One thread's queue of reads.
class Ring {
 public:
  explicit Ring(unsigned depth) {
    // One thread submits and waits, so completions need not interrupt it; Linux 6.1 and later.
    params_.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    descriptor_ = static_cast<int>(::syscall(SYS_io_uring_setup, depth, &params_));
    if (descriptor_ < 0 && errno == EINVAL) {
      params_ = {};
      descriptor_ = static_cast<int>(::syscall(SYS_io_uring_setup, depth, &params_));
    }
    error_ = descriptor_ < 0 ? errno : 0;
    if (error_ != 0) return;
    // Both queues lie in one mapping since Linux 5.4.
    queue_bytes_ = std::max(params_.sq_off.array + params_.sq_entries * sizeof(unsigned),
                            params_.cq_off.cqes + params_.cq_entries * sizeof(io_uring_cqe));
    queues_ = static_cast<std::byte*>(map(queue_bytes_, IORING_OFF_SQ_RING));
    entries_ = static_cast<io_uring_sqe*>(map(entry_bytes(), IORING_OFF_SQES));
    for (unsigned i = 0; i < params_.sq_entries; ++i) {
      number(params_.sq_off.array + i * sizeof(unsigned)) = i;
    }
  }
  ~Ring() {
    if (error_ != 0) return;
    ::munmap(entries_, entry_bytes());
    ::munmap(queues_, queue_bytes_);
    ::close(descriptor_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Why the kernel gave none; 0: it did.
  int error() const { return error_; }

  void push(const Range& range, std::span<std::byte> buffer) {
    unsigned& tail = number(params_.sq_off.tail);
    io_uring_sqe& entry = entries_[tail & (params_.sq_entries - 1)];
    entry = {};
    entry.opcode = IORING_OP_READ;
    entry.fd = range.descriptor;
    entry.off = range.offset;
    entry.addr = reinterpret_cast<uint64_t>(buffer.data());
    entry.len = static_cast<unsigned>(buffer.size());
    entry.user_data = entry.addr;
    std::atomic_ref(tail).store(tail + 1, std::memory_order_release);
    ++pushed_;
  }

  /// Hands the kernel what was pushed and waits until at least one read has ended.
  void submit_and_wait() {
    const long taken =
        ::syscall(SYS_io_uring_enter, descriptor_, pushed_, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
    if (taken < 0 && errno != EINTR) fail("io_uring_enter", errno);
    if (taken > 0) pushed_ -= static_cast<unsigned>(taken);
  }

  /// Calls each(buffer's first byte, result) for every read that has ended.
  template <typename Each>
  void reap(const Each& each) {
    const auto* ended = reinterpret_cast<io_uring_cqe*>(queues_ + params_.cq_off.cqes);
    const std::atomic_ref tail(number(params_.cq_off.tail));
    unsigned head = number(params_.cq_off.head);
    for (const unsigned end = tail.load(std::memory_order_acquire); head != end; ++head) {
      const io_uring_cqe& entry = ended[head & (params_.cq_entries - 1)];
      each(reinterpret_cast<std::byte*>(entry.user_data), entry.res);
    }
    std::atomic_ref(number(params_.cq_off.head)).store(head, std::memory_order_release);
  }

 private:
  unsigned& number(size_t offset) { return *reinterpret_cast<unsigned*>(queues_ + offset); }
  size_t entry_bytes() const { return params_.sq_entries * sizeof(io_uring_sqe); }
  void* map(size_t bytes, off_t offset) const {
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                          descriptor_, offset);
    if (mapped == MAP_FAILED) fail("mmap of io_uring", errno);
    return mapped;
  }

  io_uring_params params_{};
  int descriptor_ = -1;
  int error_ = 0;
  size_t queue_bytes_ = 0;
  std::byte* queues_ = nullptr;
  io_uring_sqe* entries_ = nullptr;
  unsigned pushed_ = 0;  // and not taken by the kernel yet
};

void read_by_ring(Ring& ring, unsigned depth, Work& work, std::span<std::byte> memory) {
  std::deque<std::byte*> unused;
  for (size_t at = 0; at < memory.size(); at += work.length) unused.push_back(&memory[at]);
  uint64_t sum = 0;
  unsigned in_flight = 0;
  do {
    for (; in_flight < depth; ++in_flight) {
      const size_t i = work.next++;
      if (i >= work.reads) break;
      ring.push(work.ranges[i], {unused.front(), work.length});
      unused.pop_front();
    }
    if (in_flight != 0) ring.submit_and_wait();
    ring.reap([&](std::byte* buffer, int result) {
      if (result != static_cast<int>(work.length)) fail("io_uring", result < 0 ? -result : ENODATA);
      sum += ends_of({buffer, work.length});
      unused.push_back(buffer);
      --in_flight;
    });
  } while (in_flight != 0 || work.next < work.reads);
  work.sum += sum;
}

struct Cost {
  double seconds;
  double cpu_seconds;  // of all threads, in user and kernel
  double disk_bytes;
};

Cost spent() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return {now.count(), seconds(used.ru_utime) + seconds(used.ru_stime),
          static_cast<double>(used.ru_inblock) * 512};
}

/// Times the reads alone: threads and queues are made before.
Cost run(const Contender& contender, Work& work, std::vector<std::byte>& memory) {
  std::vector<Cost> marks;
  std::barrier all(contender.threads, [&]() noexcept { marks.push_back(spent()); });
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < contender.threads; ++i) {
    threads.emplace_back([&, i] {
      const size_t share = memory.size() / contender.threads;
      const std::span own = std::span(memory).subspan(i * share, share);
      std::optional<Ring> ring;
      if (contender.depth != 0) ring.emplace(contender.depth);
      if (ring && ring->error() != 0) fail("io_uring_setup", ring->error());
      all.arrive_and_wait();
      if (ring) {
        read_by_ring(*ring, contender.depth, work, own);
      } else {
        read_by_pread(work, own);
      }
      all.arrive_and_wait();
    });
  }
  threads.clear();
  return {marks[1].seconds - marks[0].seconds, marks[1].cpu_seconds - marks[0].cpu_seconds,
          marks[1].disk_bytes - marks[0].disk_bytes};
}

/// The shards and, back to back, the pieces they are cut into.
struct Shards {
  std::vector<std::string> paths;
  std::vector<Range> ranges;

  void add(const std::string& path, size_t length) {
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::directory_iterator(path)) {
        if (entry.is_regular_file()) add(entry.path(), length);
      }
      return;
    }
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail(path, errno);
    const uint64_t size = fs::file_size(path);
    for (uint64_t at = 0; at + length <= size; at += length) ranges.push_back({descriptor, at});
    paths.push_back(path);
  }
};

/// Returns how many bytes stay in the page cache all the same.
uint64_t drop(const Shards& shards) {
  uint64_t kept = 0;
  // A page that some other core still holds goes at the next attempt.
  for (int attempt = 0; attempt == 0 || (kept != 0 && attempt < 10); ++attempt) {
    kept = 0;
    for (const std::string& path : shards.paths) kept += stoker::drop_from_page_cache(path).cached;
  }
  return kept;
}

/// "median (least–most)", each times `unit`
std::string spread(std::vector<double> values, double unit, int digits) {
  std::sort(values.begin(), values.end());
  return fmt::format("{:.{}f} ({:.{}f}–{:.{}f})", values[values.size() / 2] * unit, digits,
                     values.front() * unit, digits, values.back() * unit, digits);
}

void measure(bool cold, size_t rounds, size_t reads, size_t length, Shards& shards) {
  std::mt19937_64 random(0);
  std::vector<std::byte> memory(kBuffers * length);
  std::vector<double> rates[std::size(kContenders)];
  std::vector<double> cpu[std::size(kContenders)];
  std::vector<double> disk[std::size(kContenders)];
  std::vector<double> ratios;
  const double bytes = static_cast<double>(reads) * static_cast<double>(length);
  for (size_t round = 0; round < rounds; ++round) {
    std::shuffle(shards.ranges.begin(), shards.ranges.end(), random);
    Work first{shards.ranges, reads, length};
    run({1, 0}, first, memory);
    std::vector<size_t> turns;
    for (size_t i = 0; i < std::size(kContenders); ++i) turns.push_back(i);
    std::shuffle(turns.begin(), turns.end(), random);
    double pread = 0;
    double uring = 0;
    for (const size_t turn : turns) {
      const uint64_t kept = cold ? drop(shards) : 0;
      if (kept != 0) return fmt::print("cold: left out, {} bytes stay in the page cache\n", kept);
      Work work{shards.ranges, reads, length};
      const Cost cost = run(kContenders[turn], work, memory);
      if (work.sum != first.sum) fail("io_uring and pread", EBADMSG);
      rates[turn].push_back(static_cast<double>(reads) / cost.seconds);
      cpu[turn].push_back(cost.cpu_seconds / bytes * 1e9);
      disk[turn].push_back(cost.disk_bytes / bytes);
      double& best = kContenders[turn].depth == 0 ? pread : uring;
      best = std::max(best, rates[turn].back());
    }
    ratios.push_back(uring / pread);
  }
  constexpr std::string_view kRow = "{:>8} {:>8} {:>6} {:>26} {:>18} {:>20} {:>17}\n";
  fmt::print(kRow, cold ? "cold" : "warm", "threads", "depth", "reads/s", "MB/s", "CPU s/GB",
             "GB from disk/GB");
  for (size_t i = 0; i < std::size(kContenders); ++i) {
    const auto& [threads, depth] = kContenders[i];
    fmt::print(kRow, depth == 0 ? "pread" : "io_uring", threads,
               depth == 0 ? "" : std::to_string(depth), spread(rates[i], 1, 0),
               spread(rates[i], static_cast<double>(length) * 1e-6, 0), spread(cpu[i], 1, 3),
               spread(disk[i], 1, 2));
  }
  fmt::print("best io_uring / best pread of a round: {}\n\n", spread(ratios, 1, 2));
}

}  // namespace

int main(int argc, char** argv) {
  size_t length = 110'000;
  size_t reads = 4'000;
  size_t rounds = 5;
  std::map<std::string_view, size_t*> options = {
      {"--length", &length}, {"--reads", &reads}, {"--rounds", &rounds}};
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    if (!options.contains(argv[i])) {
      paths.push_back(argv[i]);
    } else if (i + 1 < argc) {
      *options[argv[i]] = std::strtoull(argv[i + 1], nullptr, 10);
      ++i;
    }
  }
  Shards shards;
  for (const std::string& path : paths) shards.add(path, std::max<size_t>(1, length));
  reads = std::min(reads, shards.ranges.size());
  if (reads == 0 || length == 0 || rounds == 0) {
    fmt::print(stderr,
               "uring_bench DATASET_DIR_OR_FILES... [--length N] [--reads N] [--rounds N]\n");
    return 2;
  }
  if (const int error = Ring(1).error(); error == EPERM || error == ENOSYS) {
    fmt::print("no io_uring here: {}\n", std::strerror(error));
    return 0;
  }
  fmt::print("{} reads of {} bytes from {} files, {} rounds\n\n", reads, length,
             shards.paths.size(), rounds);
  measure(false, rounds, reads, length, shards);
  measure(true, rounds, reads, length, shards);
}
