// SPDX-License-Identifier: Apache-2.0
#include "link.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace stoker {
namespace {

using std::chrono::milliseconds;

const SharedLink::Clock::time_point kBegin{std::chrono::hours(1)};

TEST(SharedLink, BytesOfRequestsAtTheSameTimeComeOneBehindTheOther) {
  SharedLink link(1'000'000);
  EXPECT_EQ(link.arrival(kBegin, 10'000), kBegin + milliseconds(10));
  EXPECT_EQ(link.arrival(kBegin, 10'000), kBegin + milliseconds(20));
  EXPECT_EQ(link.arrival(kBegin + milliseconds(5), 5'000), kBegin + milliseconds(25));
}

TEST(SharedLink, IdleTimeIsNotSavedUp) {
  SharedLink link(1'000'000);
  EXPECT_EQ(link.arrival(kBegin, 1'000), kBegin + milliseconds(1));
  EXPECT_EQ(link.arrival(kBegin + milliseconds(500), 1'000), kBegin + milliseconds(501));
}

TEST(SharedLink, WithoutALimitNothingWaits) {
  SharedLink link(0);
  EXPECT_EQ(link.arrival(kBegin, UINT64_MAX), kBegin);
  EXPECT_EQ(link.arrival(kBegin, UINT64_MAX), kBegin);
}

TEST(SharedLink, ThreadedRequestsTakeTogetherWhatTheirBytesTake) {
  SharedLink link(1'000'000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) (void)link.arrival(kBegin, 1'000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(link.arrival(kBegin, 1'000), kBegin + milliseconds(401));
}

}  // namespace
}  // namespace stoker
