// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <string_view>
#include <tuple>
#include <vector>

#include "dataset/scan.h"
#include "format/folder_walk.h"

namespace stoker {

/// Collects faults from many threads; counts all, keeps the first thousand in the order of the
/// shards.
class Faults {
 public:
  void add(Fault fault) {
    const std::lock_guard lock(mutex_);
    ++count_;
    faults_.push_back(std::move(fault));
    if (faults_.size() > 4 * kKept) shorten();
  }
  void add(const std::vector<Fault>& faults) {
    for (const Fault& fault : faults) add(fault);
  }
  /// Takes over the faults of a dataset that lies in `directory`.
  void add(Faults& others, std::string_view directory) {
    const uint64_t all = count_ + others.count_;
    for (Fault& fault : others.take()) {
      fault.shard = join_path(directory, fault.shard);
      add(std::move(fault));
    }
    count_ = all;
  }
  uint64_t count() const { return count_; }
  std::vector<Fault> take() {
    shorten();
    return std::move(faults_);
  }

 private:
  static constexpr size_t kKept = 1000;

  void shorten() {
    const auto order = [](const Fault& f) {
      return std::tie(f.shard, f.offset, f.sample, f.field);
    };
    std::stable_sort(faults_.begin(), faults_.end(),
                     [&](const Fault& a, const Fault& b) { return order(a) < order(b); });
    if (faults_.size() > kKept) faults_.resize(kKept);
  }

  std::mutex mutex_;
  std::vector<Fault> faults_;
  uint64_t count_ = 0;
};

}  // namespace stoker
