// SPDX-License-Identifier: Apache-2.0
#include "load/sample_random.h"

namespace stoker {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t first = uint64_t{0xD2511F53U} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

SampleRandom::SampleRandom(uint64_t seed, uint64_t epoch, uint64_t sample)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{0, static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32),
               static_cast<uint32_t>(epoch)} {}

uint32_t SampleRandom::word() {
  if (used_ == block_.size()) {
    block_ = philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

double SampleRandom::uniform() {
  const uint64_t high = word();
  const uint64_t bits = (high << 32 | word()) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace stoker
