// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "format/shard_output.h"
#include "os/output_file.h"

namespace stoker {

/// The files of a shard on the storage. Where a core is idle they are written on a thread of their
/// own, so that the next bytes are read meanwhile.
class FilesOfShard {
 public:
  FilesOfShard(const std::vector<std::string>& paths, bool own_thread);
  ~FilesOfShard();
  FilesOfShard(const FilesOfShard&) = delete;
  FilesOfShard& operator=(const FilesOfShard&) = delete;

  /// Takes what is in memory out of `out` and writes it. On a thread of its own it waits for what
  /// was handed over before, and throws what went wrong there.
  void write(ShardOutput& out);
  /// All is written; what went wrong is thrown.
  void wait();
  /// One of the files; behind wait() only.
  OutputFile& file(uint32_t number) { return *files_[number]; }
  uint32_t count() const { return static_cast<uint32_t>(files_.size()); }

 private:
  void put(const ShardOutput::Pending& pending);
  void serve();
  /// Until the thread has nothing to do; throws what went wrong there.
  void wait(std::unique_lock<std::mutex>& lock);

  std::vector<std::unique_ptr<OutputFile>> files_;
  std::mutex mutex_;  // for what follows
  std::condition_variable changed_;
  std::optional<ShardOutput::Pending> handed_over_;
  ShardOutput::Pending spent_;  // written: memory to go on with
  std::exception_ptr failure_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace stoker
