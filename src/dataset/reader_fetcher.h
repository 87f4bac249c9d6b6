// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/transient.h"
#include "base/worker_pool.h"
#include "dataset/block_reader.h"
#include "dataset/reader.h"
#include "dataset/shard_files.h"

namespace stoker {

// What the files that make up Reader share.

// Below this, waking other threads costs more than it saves.
inline constexpr uint64_t kMinThreaded = 512 << 10;

/// What does not survive a fork: threads, and locks that one of them may hold. A child process
/// makes its own and leaves its parent's alone.
struct Reader::Fetcher {
  Fetcher(const ReaderOptions& options, unsigned threads)
      : process(::getpid()),
        files(options.file_system != nullptr ? *options.file_system : real_file_system(),
              options.roots, options.open_files, options.views, options.staged),
        blocks(options.block_cache),
        pool(threads) {}

  const pid_t process;
  ShardFiles files;
  BlockCache blocks;
  WorkerPool pool;
};

/// By segment and shard: what ShardFiles::untouched() says, which is asked once in each fetch. Not
/// kept for longer: files are edited while they are read from.
struct Reader::Untouched {
  std::mutex mutex;
  std::unordered_map<uint64_t, bool> known;
  std::unordered_map<uint64_t, std::exception_ptr> thrown;
};

/// The shard that was read last, which is mostly the one that is read next.
struct Reader::OpenShard {
  explicit OpenShard(Fetcher& all) : fetcher(all) {}

  ReadableFile& open(const Segment& wanted_segment, uint32_t wanted) {
    if (segment == &wanted_segment && number == wanted) return *file;
    file = fetcher.files.open(wanted_segment, wanted);
    segment = &wanted_segment;
    number = wanted;
    return *file;
  }

  /// Before what was decoded earlier is believed: the file may be another one by now.
  void look(const Segment& wanted_segment, uint32_t wanted) {
    if (seen_segment == &wanted_segment && seen_number == wanted) return;
    fetcher.files.look(wanted_segment, wanted);
    segment = nullptr;  // the file that is open may be the one that was there before
    seen_segment = &wanted_segment;
    seen_number = wanted;
  }

  Fetcher& fetcher;
  const Segment* segment = nullptr;
  uint32_t number = 0;
  std::shared_ptr<ReadableFile> file;
  const Segment* seen_segment = nullptr;
  uint32_t seen_number = 0;
};

/// What went wrong with the items of a batch. Safe from many threads.
class Reader::Failures {
 public:
  Failures(const Reader& reader, Batch& batch) : reader_(reader), batch_(batch) {}

  void add(uint32_t item, const Error& error) {
    Fault fault;
    try {
      fault = reader_.fault(batch_, batch_.items[item], error.what());
    } catch (const std::exception&) {  // the index is what is damaged
      fault.cause = error.what();
    }
    for (const std::string& root : reader_.options_.roots) {
      // The fault names the shard: the message need not repeat it, nor say where it lies.
      const std::string prefix = printable(root + "/" + fault.shard) + ": ";
      if (fault.cause.starts_with(prefix)) fault.cause.erase(0, prefix.size());
    }
    fault.transient = is_transient(error.os_error());
    add({item, error.kind(), std::move(fault), error.os_error()});
  }
  void add(ReadFailure failure) {
    batch_.items[failure.item].failed = true;
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(failure));
  }

  /// In the order of the items.
  std::vector<ReadFailure> take() {
    std::sort(all_.begin(), all_.end(),
              [](const ReadFailure& a, const ReadFailure& b) { return a.item < b.item; });
    return std::move(all_);
  }

 private:
  const Reader& reader_;
  Batch& batch_;
  std::mutex mutex_;
  std::vector<ReadFailure> all_;
};

}  // namespace stoker
