// SPDX-License-Identifier: Apache-2.0
// What HDF5 stores chunks with, besides zlib: shuffle, Fletcher-32, LZF, and values never written.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "dataset/codec.h"
#include "dataset/codec_decoders.h"

namespace stoker {
namespace {

[[noreturn]] void corrupt(const std::string& cause) { throw Error(ErrorKind::corrupt, cause); }

/// Becomes vectors where the size is known, see CMakeLists.txt.
template <size_t kSize>
void unshuffle(const std::byte* __restrict from, std::byte* __restrict to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t b = 0; b < kSize; ++b) to[i * kSize + b] = from[b * count + i];
  }
}

void unshuffle(const std::byte* from, std::byte* to, size_t count, size_t size) {
  for (size_t b = 0; b < size; ++b) {
    for (size_t i = 0; i < count; ++i) to[i * size + b] = from[b * count + i];
  }
}

/// Sums of 16-bit words, big-endian, as the library computes them on every machine.
uint32_t fletcher32(Bytes bytes) {
  constexpr size_t kBeforeOverflow = 360;
  uint32_t first = 0;
  uint32_t second = 0;
  const auto fold = [](uint32_t sum) { return (sum & 0xFFFF) + (sum >> 16); };
  size_t words = bytes.size() / 2;
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  while (words > 0) {
    const size_t now = std::min(words, kBeforeOverflow);
    for (size_t i = 0; i < now; ++i, at += 2) {
      first += static_cast<uint32_t>(at[0]) << 8 | at[1];
      second += first;
    }
    words -= now;
    first = fold(first);
    second = fold(second);
  }
  if (bytes.size() % 2 == 1) {
    first += static_cast<uint32_t>(*at) << 8;
    second += first;
    first = fold(first);
    second = fold(second);
  }
  return fold(second) << 16 | fold(first);
}

}  // namespace

std::vector<std::byte> decode_shuffle(Bytes stored, std::string_view parameters, uint64_t) {
  if (parameters.size() != 4) corrupt("shuffle without the size of its elements");
  const size_t size = load<uint32_t>(as_bytes(parameters).data());
  // No element is whole: nothing was moved, however large a file says that they are.
  if (size <= 1 || size > stored.size()) return {stored.begin(), stored.end()};
  std::vector<std::byte> decoded(stored.size());
  const size_t count = stored.size() / size;
  // What is left over lies at the end as it was.
  std::copy(stored.begin() + static_cast<ptrdiff_t>(count * size), stored.end(),
            decoded.begin() + static_cast<ptrdiff_t>(count * size));
  switch (size) {
    case 2:
      unshuffle<2>(stored.data(), decoded.data(), count);
      break;
    case 4:
      unshuffle<4>(stored.data(), decoded.data(), count);
      break;
    case 8:
      unshuffle<8>(stored.data(), decoded.data(), count);
      break;
    default:
      unshuffle(stored.data(), decoded.data(), count, size);
  }
  return decoded;
}

std::vector<std::byte> decode_fletcher32(Bytes stored, std::string_view /*parameters*/, uint64_t) {
  if (stored.size() < 4) corrupt("no room for its checksum");
  const Bytes data = stored.first(stored.size() - 4);
  const auto stated = load<uint32_t>(stored.data() + data.size());
  const uint32_t computed = fletcher32(data);
  // Libraries before 1.6.3 swapped the bytes of each word on little-endian machines.
  const uint32_t swapped = (computed & 0x00FF00FF) << 8 | (computed >> 8 & 0x00FF00FF);
  if (stated != computed && stated != swapped) {
    corrupt(fmt::format("its Fletcher-32 checksum is {:08x}, the file states {:08x}", computed,
                        stated));
  }
  return {data.begin(), data.end()};
}

std::vector<std::byte> decode_lzf(Bytes stored, std::string_view /*parameters*/, uint64_t limit) {
  std::vector<std::byte> decoded;
  decoded.reserve(std::min<uint64_t>(limit, 4 * stored.size()));
  size_t at = 0;
  const auto next = [&]() -> size_t {
    if (at >= stored.size()) corrupt("LZF: compressed bytes are cut off");
    return std::to_integer<size_t>(stored[at++]);
  };
  while (at < stored.size() && decoded.size() < limit) {
    const size_t control = next();
    if (control < 32) {
      const size_t count = control + 1;
      if (count > stored.size() - at) corrupt("LZF: compressed bytes are cut off");
      const Bytes plain = stored.subspan(at, count);
      decoded.insert(decoded.end(), plain.begin(), plain.end());
      at += count;
      continue;
    }
    size_t count = control >> 5;
    if (count == 7) count += next();
    count += 2;
    const size_t back = ((control & 31) << 8 | next()) + 1;
    if (back > decoded.size()) corrupt("LZF: refers to bytes before the first");
    const size_t from = decoded.size() - back;
    decoded.resize(decoded.size() + count);
    std::byte* const to = decoded.data() + decoded.size() - count;
    const std::byte* const source = decoded.data() + from;
    if (back >= count) {
      std::memcpy(to, source, count);
    } else {
      for (size_t i = 0; i < count; ++i) to[i] = source[i];  // overlaps: repeats itself
    }
  }
  if (decoded.size() > limit) decoded.resize(limit);
  return decoded;
}

std::vector<std::byte> decode_fill(Bytes /*stored*/, std::string_view parameters, uint64_t limit) {
  if (parameters.size() < 4) corrupt("a fill value without its length");
  const uint64_t length = load<uint32_t>(as_bytes(parameters).data());
  const Bytes value = as_bytes(parameters.substr(4));
  if (length > kLargestFill) corrupt("a fill value that is too large");
  std::vector<std::byte> decoded(std::min(length, limit));
  for (size_t i = 0; !value.empty() && i < decoded.size(); ++i)
    decoded[i] = value[i % value.size()];
  return decoded;
}

}  // namespace stoker
