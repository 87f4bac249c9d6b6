// SPDX-License-Identifier: Apache-2.0
#include "os/slow_requests.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stoker {
namespace {

TEST(SlowRequests, EachOnceAndSideBySideOnlyWhereTheyWait) {
  for (const bool slow : {false, true}) {
    SlowRequests requests;
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::vector<int> calls(200);
    for (int round = 0; round < 2; ++round) {
      requests.run(calls.size(), [&](size_t i) {
        if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
        ++calls[i];
      });
    }
    EXPECT_EQ(calls, std::vector<int>(calls.size(), 2));
    // A busy machine may make what is fast look slow, but nothing that waits look fast.
    EXPECT_GT(threads.size(), slow ? 8U : 0U);
  }
}

TEST(SlowRequests, TheFirstFailureIsRethrown) {
  SlowRequests requests;
  std::atomic<int> calls = 0;
  const auto work = [&](size_t i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++calls;
    if (i == 50) throw std::runtime_error("fifty");
  };
  EXPECT_THROW(requests.run(1000, work), std::runtime_error);
  EXPECT_GE(calls, 50);
  EXPECT_LT(calls, 1000) << "nothing new is begun";
}

}  // namespace
}  // namespace stoker
