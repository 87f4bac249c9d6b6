// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace stoker {

/// A bijection of 64-bit words in which every input bit changes about half of the output bits.
/// Its values are part of what makes files and shuffles reproducible: they never change.
constexpr uint64_t mix64(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;  // multipliers of splitmix64
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
  return word ^ (word >> 31);
}

/// Hash of `bytes`, for tables and files, not against an adversary. Its values are stored in
/// files: they never change. Arithmetic is modulo 2^64, words are little-endian:
///
///   h = 0x9E3779B97F4A7C15 * (length + 1)
///   for each 8 bytes as a word w, the last 1 to 7 bytes padded with zeros to a word:
///     w = w * 0xC2B2AE3D27D4EB4F;  w = w ^ (w >> 32)
///     h = (rotate_left(h, 29) ^ w) * 0x9FB21C651E98DF25
///   hash64 = mix64(h ^ (h >> 32))
uint64_t hash64(std::string_view bytes);

}  // namespace stoker
