// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace stoker {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Every file format here is little-endian, and so is every machine it is built for.
static_assert(std::endian::native == std::endian::little);

/// Reads a T that need not be aligned.
template <typename T>
T load(const std::byte* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* to, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof(T));
}

/// The smallest multiple of `unit` (a power of two) that is >= value.
constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

}  // namespace stoker
