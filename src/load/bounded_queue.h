// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace stoker {

/// A queue between two stages, with room for so many. Either end waits; both can be told to stop.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  /// False where the queue was closed; then the element is lost.
  bool push(T element) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return closed_ || elements_.size() < capacity_; });
    if (closed_) return false;
    elements_.push_back(std::move(element));
    filled_.notify_one();
    return true;
  }

  /// Nothing where the queue was closed.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return closed_ || !elements_.empty(); });
    if (closed_) return std::nullopt;
    std::optional<T> element(std::move(elements_.front()));
    elements_.pop_front();
    room_.notify_one();
    return element;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    elements_.clear();
    room_.notify_all();
    filled_.notify_all();
  }

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable room_, filled_;
  std::deque<T> elements_;
  bool closed_ = false;
};

}  // namespace stoker
