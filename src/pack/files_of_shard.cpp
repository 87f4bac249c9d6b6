// SPDX-License-Identifier: Apache-2.0
#include "pack/files_of_shard.h"

#include <system_error>
#include <utility>

namespace stoker {

FilesOfShard::FilesOfShard(const std::vector<std::string>& paths, bool own_thread) {
  for (const std::string& path : paths) files_.push_back(std::make_unique<OutputFile>(path));
  if (!own_thread) return;
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {  // none to be had: whoever calls write() does
  }
}

FilesOfShard::~FilesOfShard() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FilesOfShard::put(const ShardOutput::Pending& pending) {
  for (size_t i = 0; i < pending.size(); ++i) {
    for (const ShardOutput::Slab& slab : pending[i]) {
      files_[i]->write({slab.bytes.get(), slab.used});
    }
  }
}

void FilesOfShard::write(ShardOutput& out) {
  if (!thread_.joinable()) {
    ShardOutput::Pending pending = out.take(std::move(spent_));
    put(pending);
    spent_ = std::move(pending);
    return;
  }
  {
    std::unique_lock lock(mutex_);
    wait(lock);
    handed_over_ = out.take(std::move(spent_));
  }
  changed_.notify_all();
}

void FilesOfShard::wait() {
  std::unique_lock lock(mutex_);
  wait(lock);
}

void FilesOfShard::wait(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return !handed_over_; });
  if (failure_) std::rethrow_exception(failure_);
}

void FilesOfShard::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || handed_over_; });
    if (ending_) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      put(*handed_over_);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    spent_ = std::move(*handed_over_);
    handed_over_.reset();
    changed_.notify_all();
  }
}

}  // namespace stoker
