// SPDX-License-Identifier: Apache-2.0
#include "format/snappy_parts.h"

#include <gtest/gtest.h>
#include <snappy-c.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "dataset/codec.h"

namespace stoker {
namespace {

std::string compressed(const std::string& plain) {
  std::string stream(snappy_max_compressed_length(plain.size()), '\0');
  size_t length = stream.size();
  EXPECT_EQ(snappy_compress(plain.data(), plain.size(), stream.data(), &length), SNAPPY_OK);
  stream.resize(length);
  return stream;
}

/// Some of it repeats, near by and far away, and some does not.
std::string text_of(size_t size) {
  std::string plain;
  uint64_t state = 1;
  while (plain.size() < size) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    if (state >> 60 < 8 && plain.size() > 100) {
      plain += plain.substr(plain.size() - 100 + (state >> 40) % 50, 40);
    } else {
      for (int i = 0; i < 8; ++i) plain.push_back(static_cast<char>(state >> 8 * i));
    }
  }
  plain.resize(size);
  return plain;
}

TEST(CutSnappy, EachPartDecodesByItself) {
  for (const size_t size : {1UL, 65535UL, 65536UL, 65537UL, 1000000UL}) {
    const std::string plain = text_of(size), stream = compressed(plain);
    const std::vector<uint64_t> cuts = cut_snappy(as_bytes(stream), size);
    ASSERT_EQ(cuts.size(), (size + kSnappyPart - 1) / kSnappyPart + 1) << size;
    const std::vector<Codec> chain = {{static_cast<uint16_t>(CodecId::snappy_part), {}}};
    for (size_t first = 0; first + 1 < cuts.size(); ++first) {
      const size_t last = std::min(first + 3, cuts.size() - 1);
      const std::string expected = plain.substr(first * kSnappyPart, (last - first) * kSnappyPart);
      const Bytes part = as_bytes(stream).subspan(cuts[first], cuts[last] - cuts[first]);
      const std::vector<std::byte> decoded = decode_block(part, chain, expected.size());
      EXPECT_EQ(as_text(decoded), expected) << size << " " << first;
      EXPECT_THROW(decode_block(part, chain, expected.size() + 1), Error);
      EXPECT_THROW(decode_block(part, chain, expected.size() - 1), Error);
    }
  }
}

TEST(CutSnappy, StreamThatRefersAcrossIsNotCut) {
  // 65536 times 'a': a literal of one byte and copies of 64; then a copy of 4 that reaches back.
  std::string stream("\x84\x80\x04\0a", 5);
  const auto copy = [](size_t length, size_t distance) {
    return std::string{static_cast<char>((length - 1) << 2 | 2), static_cast<char>(distance & 0xFF),
                       static_cast<char>(distance >> 8)};
  };
  for (int i = 0; i < 1023; ++i) stream += copy(64, 1);
  stream += copy(63, 1);
  EXPECT_TRUE(cut_snappy(as_bytes(stream + copy(4, 1)), 65540).empty());
  // A literal there stands for itself.
  EXPECT_EQ(cut_snappy(as_bytes(stream + std::string("\x0c") + "bcde"), 65540).size(), 3U);
  // An element that reaches across the boundary does not.
  stream.resize(stream.size() - 3);
  EXPECT_TRUE(cut_snappy(as_bytes(stream + copy(64, 1) + copy(3, 1)), 65540).empty());
}

TEST(CutSnappy, DamageIsNotCut) {
  const std::string plain = text_of(200000), stream = compressed(plain);
  EXPECT_TRUE(cut_snappy(as_bytes(stream), plain.size() + 1).empty());
  for (const size_t size : {0UL, 1UL, 2UL, 5UL, stream.size() / 2, stream.size() - 1}) {
    EXPECT_TRUE(cut_snappy(as_bytes(stream.substr(0, size)), plain.size()).empty()) << size;
  }
  EXPECT_TRUE(cut_snappy(as_bytes(std::string(100, '\xFF')), 1000).empty());
}

}  // namespace
}  // namespace stoker
