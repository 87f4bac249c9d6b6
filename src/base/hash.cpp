// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <bit>
#include <cstring>

#include "base/bytes.h"

namespace stoker {
namespace {

uint64_t absorb(uint64_t hash, uint64_t word) {
  word *= 0xC2B2AE3D27D4EB4Fu;
  word ^= word >> 32;
  return (std::rotl(hash, 29) ^ word) * 0x9FB21C651E98DF25u;
}

}  // namespace

uint64_t hash64(std::string_view bytes) {
  const std::byte* data = as_bytes(bytes).data();
  size_t left = bytes.size();
  uint64_t hash = 0x9E3779B97F4A7C15u * (uint64_t{left} + 1);
  for (; left >= 8; data += 8, left -= 8) hash = absorb(hash, load<uint64_t>(data));
  if (left > 0) {
    uint64_t word = 0;
    if (bytes.size() >= 8) {  // the same word without a copy of unknown length
      word = load<uint64_t>(data + left - 8) >> (8 * (8 - left));
    } else {
      std::memcpy(&word, data, left);
    }
    hash = absorb(hash, word);
  }
  return mix64(hash ^ (hash >> 32));
}

}  // namespace stoker
