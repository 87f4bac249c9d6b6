// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "dataset.h"

namespace stoker::python {

/// Walks through samples in batches, and fetches the next batch while Python works on this one.
/// A sample that cannot be read raises when its turn comes; the one after it can be read then.
class SampleIterator {
 public:
  SampleIterator(const Dataset& dataset, Range range) : dataset_(dataset), range_(range) {}
  ~SampleIterator();
  SampleIterator(const SampleIterator&) = delete;
  SampleIterator& operator=(const SampleIterator&) = delete;

  /// Throws nanobind::stop_iteration() at the end.
  nanobind::dict next();

 private:
  /// A batch that is being fetched by a thread of its own.
  struct Pending {
    std::unique_ptr<Fetched> fetched;
    std::exception_ptr failure;
    pid_t process = 0;
    std::thread thread;
  };

  std::unique_ptr<Pending> start(uint64_t begin);
  Batch locate(uint64_t begin);
  /// Waits for what is pending and makes it the current batch.
  void advance();
  bool forked() const;

  const Dataset& dataset_;
  Range range_;
  uint64_t rows_ = kFirstRows;
  std::unique_ptr<Fetched> current_;
  size_t row_ = 0;           // of current_
  uint64_t next_begin_ = 0;  // of the batch after it, in range_
  std::unique_ptr<Pending> pending_;
  std::atomic_flag busy_;

  // The first sample comes quickly, the others in large batches.
  static constexpr uint64_t kFirstRows = 8;
  static constexpr uint64_t kMostRows = 1024;
  static constexpr uint64_t kMostBytes = 16'000'000;
};

}  // namespace stoker::python
