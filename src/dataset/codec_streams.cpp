// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
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

void more_room(std::vector<std::byte>& decoded, uint64_t limit) {
  decoded.resize(std::min<uint64_t>(limit, 2 * decoded.size()));
}

}  // namespace

std::vector<std::byte> decode_zlib(Bytes stored, std::string_view /*parameters*/, uint64_t limit) {
  struct End {
    void operator()(z_stream* stream) const { inflateEnd(stream); }
  };
  z_stream stream{};
  constexpr int kZlibOrGzip = 15 + 32;
  if (inflateInit2(&stream, kZlibOrGzip) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, End> end(&stream);
  std::vector<std::byte> decoded = first_room(stored.size(), limit);
  // zlib counts in 32 bits.
  const auto portion = [](uint64_t bytes) {
    return static_cast<uInt>(std::min<uint64_t>(bytes, std::numeric_limits<uInt>::max()));
  };
  uint64_t taken = 0;
  uint64_t made = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (made == decoded.size() && made < limit) more_room(decoded, limit);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data() + taken));
    stream.avail_in = portion(stored.size() - taken);
    stream.next_out = reinterpret_cast<Bytef*>(decoded.data() + made);
    stream.avail_out = portion(decoded.size() - made);
    const uInt in = stream.avail_in;
    const uInt out = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    made += out - stream.avail_out;
    if (status == Z_STREAM_END || (made == limit && status == Z_BUF_ERROR)) break;
    const bool stuck = status == Z_BUF_ERROR || (taken == stored.size() && stream.avail_out > 0);
    if (stuck) corrupt("compressed bytes are cut off");
    if (status != Z_OK) {
      corrupt(fmt::format("compressed bytes are damaged{}{}", stream.msg != nullptr ? ": " : "",
                          stream.msg != nullptr ? stream.msg : ""));
    }
  }
  decoded.resize(made);
  return decoded;
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
