// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <snappy-c.h>

#include "base/error.h"
#include "dataset/codec_decoders.h"

namespace stoker {

std::vector<std::byte> decode_snappy(Bytes stored, std::string_view /*parameters*/,
                                     uint64_t limit) {
  const auto* const from = reinterpret_cast<const char*>(stored.data());
  size_t length = 0;
  // The length is a claim, but `limit` is not: no more memory than that is taken.
  if (snappy_uncompressed_length(from, stored.size(), &length) != SNAPPY_OK || length > limit) {
    throw Error(ErrorKind::corrupt, "compressed bytes are damaged, or more than they should be");
  }
  std::vector<std::byte> decoded(length);
  if (snappy_uncompress(from, stored.size(), reinterpret_cast<char*>(decoded.data()), &length) !=
      SNAPPY_OK) {
    throw Error(ErrorKind::corrupt, "compressed bytes are damaged");
  }
  decoded.resize(length);
  return decoded;
}

// `limit` is one more than there should be: see decode_block().
std::vector<std::byte> decode_snappy_part(Bytes stored, std::string_view parameters,
                                          uint64_t limit) {
  std::vector<std::byte> stream;
  stream.reserve(stored.size() + 10);
  uint64_t length = limit - 1;
  for (; length >= 0x80; length >>= 7) stream.push_back(static_cast<std::byte>(length | 0x80));
  stream.push_back(static_cast<std::byte>(length));
  stream.insert(stream.end(), stored.begin(), stored.end());
  return decode_snappy(stream, parameters, limit);
}

}  // namespace stoker
