// SPDX-License-Identifier: Apache-2.0
#include "load/sample_cache.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

/// Bytes that say which sample they are.
std::vector<std::byte> bytes_of(uint64_t sample) {
  std::vector<std::byte> bytes(100 + sample % 50);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(sample * 31 + i);
  return bytes;
}

TEST(SampleCacheThreaded, GivesBackWhatWasPutWithinItsLimit) {
  const ScratchDirectory scratch;
  for (const std::string& where : {std::string(), scratch.path()}) {
    SampleCache cache(where, 50'000);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < 1'000; ++i) {
          const uint64_t sample = (i * 7 + static_cast<uint64_t>(t)) % 1'000;
          const std::vector<std::byte> wanted = bytes_of(sample);
          std::vector<std::byte> got(wanted.size());
          if (cache.get(sample, 1, got)) {
            EXPECT_EQ(got, wanted);
          } else {
            cache.put(sample, 1, wanted);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(cache.bytes(), 50'000U);
    EXPECT_GT(cache.bytes(), 45'000U);
    EXPECT_GT(cache.hits(), 100U);
    std::vector<std::byte> other(100);
    EXPECT_FALSE(cache.get(0, 2, other));
  }
  EXPECT_THROW(SampleCache(scratch.path() + "/missing", 1), Error);
}

}  // namespace
}  // namespace stoker
