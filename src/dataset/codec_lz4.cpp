// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <lz4.h>
#include <lz4frame.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include "base/error.h"
#include "dataset/codec_decoders.h"

namespace stoker {
namespace {

[[noreturn]] void corrupt(const std::string& cause) { throw Error(ErrorKind::corrupt, cause); }

// A byte of LZ4 stands for so many, at most.
constexpr uint64_t kRatio = 255;

uint64_t take_big_endian(Bytes& from) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(uint32_t); ++i)
    value = value << 8 | std::to_integer<uint64_t>(from[i]);
  from = from.subspan(sizeof(uint32_t));
  return value;
}

}  // namespace

std::vector<std::byte> decode_lz4_frame(Bytes stored, std::string_view /*parameters*/,
                                        uint64_t limit) {
  LZ4F_dctx* made_context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made_context, LZ4F_VERSION)) != 0) {
    throw std::bad_alloc();
  }
  const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> context(
      made_context, LZ4F_freeDecompressionContext);
  std::vector<std::byte> decoded(std::min(limit, 8 * stored.size() + 4096));
  size_t taken = 0;
  size_t made = 0;
  for (;;) {
    size_t in = stored.size() - taken;
    size_t out = decoded.size() - made;
    const size_t left = LZ4F_decompress(context.get(), decoded.data() + made, &out,
                                        stored.data() + taken, &in, nullptr);
    if (LZ4F_isError(left) != 0) {
      corrupt(fmt::format("compressed bytes are damaged: {}", LZ4F_getErrorName(left)));
    }
    taken += in;
    made += out;
    if (left == 0 || made == limit) break;
    if (made == decoded.size()) {
      decoded.resize(std::min<uint64_t>(limit, 2 * decoded.size()));
    } else if (taken == stored.size()) {
      corrupt("compressed bytes are cut off");
    }
  }
  decoded.resize(made);
  return decoded;
}

std::vector<std::byte> decode_lz4_block(Bytes stored, std::string_view /*parameters*/,
                                        uint64_t limit) {
  constexpr uint64_t kMost = std::numeric_limits<int>::max();
  const uint64_t room = std::min({limit, kRatio * stored.size(), kMost});
  if (stored.size() > kMost) corrupt(fmt::format("an LZ4 block of {} bytes", stored.size()));
  std::vector<std::byte> decoded(room);
  const int made = LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()),
                                       reinterpret_cast<char*>(decoded.data()),
                                       static_cast<int>(stored.size()), static_cast<int>(room));
  if (made < 0) corrupt("compressed bytes are damaged, or more than they should be");
  decoded.resize(static_cast<size_t>(made));
  return decoded;
}

// Parquet's codec LZ4: Hadoop frames its blocks, older versions of Arrow did not.
std::vector<std::byte> decode_lz4_hadoop(Bytes stored, std::string_view parameters,
                                         uint64_t limit) {
  std::vector<std::byte> decoded;
  for (Bytes rest = stored; !rest.empty();) {
    if (rest.size() < 2 * sizeof(uint32_t)) return decode_lz4_block(stored, parameters, limit);
    const uint64_t wanted = take_big_endian(rest);
    const uint64_t length = take_big_endian(rest);
    if (length > rest.size() || wanted > limit - decoded.size() || wanted > kRatio * length) {
      return decode_lz4_block(stored, parameters, limit);
    }
    const size_t before = decoded.size();
    decoded.resize(before + wanted);
    const int made = LZ4_decompress_safe(reinterpret_cast<const char*>(rest.data()),
                                         reinterpret_cast<char*>(decoded.data() + before),
                                         static_cast<int>(length), static_cast<int>(wanted));
    if (made < 0 || static_cast<uint64_t>(made) != wanted) {
      return decode_lz4_block(stored, parameters, limit);
    }
    rest = rest.subspan(length);
  }
  return decoded;
}

}  // namespace stoker
