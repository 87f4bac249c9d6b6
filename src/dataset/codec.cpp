// SPDX-License-Identifier: Apache-2.0
#include "dataset/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "dataset/codec_decoders.h"

namespace stoker {
namespace {

// No block needs more; what a file claims beyond that is a lie or a mistake.
constexpr uint64_t kMaxBlock = uint64_t{1} << 32;

[[noreturn]] void corrupt(const std::string& cause) { throw Error(ErrorKind::corrupt, cause); }

/// One row per codec.
struct CodecRow {
  CodecId id;
  std::vector<std::byte> (*decode)(Bytes stored, std::string_view parameters, uint64_t limit);
  /// How much longer than stored the decoded bytes can be, at most.
  uint64_t ratio;
};

constexpr std::array kCodecs = {
    CodecRow{CodecId::zlib, decode_zlib, 1032},
    CodecRow{CodecId::zstd, decode_zstd, 1 << 15},  // 128 KiB of one byte take 4
    CodecRow{CodecId::shuffle, decode_shuffle, 1},
    CodecRow{CodecId::fletcher32, decode_fletcher32, 1},
    CodecRow{CodecId::lzf, decode_lzf, 128},        // 264 bytes take 3
    CodecRow{CodecId::szip, decode_szip, 1 << 14},  // a line of 4096 samples takes some 4 bytes
    CodecRow{CodecId::fill, decode_fill, 1},
    CodecRow{CodecId::lz4_frame, decode_lz4_frame, 255},
    CodecRow{CodecId::lz4_block, decode_lz4_block, 255},
    CodecRow{CodecId::lz4_hadoop, decode_lz4_hadoop, 255},
    CodecRow{CodecId::snappy, decode_snappy, 64},
    CodecRow{CodecId::snappy_part, decode_snappy_part, 64},
};

const CodecRow& row_of(uint16_t id) {
  for (const CodecRow& row : kCodecs) {
    if (static_cast<uint16_t>(row.id) == id) return row;
  }
  throw Error(ErrorKind::unsupported, fmt::format("codec {} is not known", id));
}

}  // namespace

uint64_t decoded_limit(std::span<const Codec> chain, uint64_t stored_length) {
  uint64_t limit = std::min(stored_length, kMaxBlock);
  if (chain.size() == 1 && row_of(chain[0].id).id == CodecId::fill) limit = kLargestFill;
  for (const Codec& codec : chain) limit = std::min(limit * row_of(codec.id).ratio, kMaxBlock);
  return limit;
}

std::vector<std::byte> decode_block(Bytes stored, std::span<const Codec> chain,
                                    uint64_t decoded_length) {
  if (decoded_length > decoded_limit(chain, stored.size())) {
    corrupt(fmt::format("block of {} bytes cannot decode to {}", stored.size(), decoded_length));
  }
  std::vector<std::byte> decoded;
  Bytes bytes = stored;
  for (size_t i = chain.size(); i-- > 0;) {
    // One byte more than expected, so that too much is noticed without decoding all of it. No codec
    // makes incompressible bytes much longer.
    const uint64_t limit = decoded_length + 1 + (i == 0 ? 0 : decoded_length / 8 + 65536);
    decoded = row_of(chain[i].id).decode(bytes, chain[i].parameters, limit);
    bytes = decoded;
  }
  if (bytes.size() != decoded_length) {
    corrupt(fmt::format("block decodes to {} bytes{}, should be {}", bytes.size(),
                        bytes.size() > decoded_length ? " or more" : "", decoded_length));
  }
  if (chain.empty()) decoded.assign(stored.begin(), stored.end());
  return decoded;
}

}  // namespace stoker
