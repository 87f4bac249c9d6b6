// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <libdeflate.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/error.h"
#include "dataset/codec_decoders.h"

namespace stoker {
namespace {

[[noreturn]] void corrupt(const std::string& cause) { throw Error(ErrorKind::corrupt, cause); }

/// Memory to begin with.
std::vector<std::byte> first_room(uint64_t stored, uint64_t limit) {
  constexpr uint64_t kUsualRatio = 8;
  return std::vector<std::byte>(std::min(limit, kUsualRatio * stored + 4096));
}

bool is_gzip(Bytes stored) {
  return stored.size() > 1 && stored[0] == std::byte{0x1f} && stored[1] == std::byte{0x8b};
}

void more_room(std::vector<std::byte>& decoded, uint64_t limit) {
  decoded.resize(std::min<uint64_t>(limit, 2 * decoded.size()));
}

}  // namespace

std::vector<std::byte> decode_zlib(Bytes stored, std::string_view /*parameters*/, uint64_t limit) {
  thread_local const std::unique_ptr<libdeflate_decompressor,
                                     decltype(&libdeflate_free_decompressor)>
      decompressor(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor) throw std::bad_alloc();
  const bool gzip = is_gzip(stored);
  const auto decompress = gzip ? libdeflate_gzip_decompress_ex : libdeflate_zlib_decompress_ex;
  std::vector<std::byte> decoded = first_room(stored.size(), limit);
  size_t done = 0;
  for (;;) {
    size_t used = 0;
    size_t made = 0;
    const libdeflate_result result =
        decompress(decompressor.get(), stored.data(), stored.size(), decoded.data() + done,
                   decoded.size() - done, &used, &made);
    if (result == LIBDEFLATE_SUCCESS) {
      done += made;
      stored = stored.subspan(used);
      if (gzip && is_gzip(stored)) continue;  // several members in a row are one file
      decoded.resize(done);
      return decoded;
    }
    if (result != LIBDEFLATE_INSUFFICIENT_SPACE) corrupt("compressed bytes are damaged or cut off");
    if (decoded.size() == limit) return decoded;  // more than it should be, which the caller says
    more_room(decoded, limit);
  }
}

std::vector<std::byte> decode_zstd(Bytes stored, std::string_view /*parameters*/, uint64_t limit) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  std::vector<std::byte> decoded = first_room(stored.size(), limit);
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  ZSTD_outBuffer out{decoded.data(), decoded.size(), 0};
  for (;;) {
    const size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) {
      corrupt(fmt::format("compressed bytes are damaged: {}", ZSTD_getErrorName(left)));
    }
    const bool full = out.pos == out.size;
    if (left == 0 && in.pos == in.size) break;
    if (full && out.size == limit) break;
    if (!full && in.pos == in.size) corrupt("compressed bytes are cut off");
    if (full) {
      more_room(decoded, limit);
      out.dst = decoded.data();
      out.size = decoded.size();
    }
  }
  decoded.resize(out.pos);
  return decoded;
}

}  // namespace stoker
