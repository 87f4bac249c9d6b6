// SPDX-License-Identifier: Apache-2.0
#include "dataset/codec.h"

#include <gtest/gtest.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include <string>

#include "base/error.h"

namespace stoker {
namespace {

const std::vector<Codec> kZlib = {{static_cast<uint16_t>(CodecId::zlib), ""}};
const std::vector<Codec> kZstd = {{static_cast<uint16_t>(CodecId::zstd), ""}};

std::string deflated(const std::string& plain) {
  uLongf size = compressBound(plain.size());
  std::string stored(size, '\0');
  compress(reinterpret_cast<Bytef*>(stored.data()), &size,
           reinterpret_cast<const Bytef*>(plain.data()), plain.size());
  stored.resize(size);
  return stored;
}

std::string zstd(const std::string& plain) {
  std::string stored(ZSTD_compressBound(plain.size()), '\0');
  stored.resize(ZSTD_compress(stored.data(), stored.size(), plain.data(), plain.size(), 1));
  return stored;
}

std::string text() {
  std::string plain;
  for (int i = 0; i < 5000; ++i) plain += std::to_string(i * i);
  return plain;
}

std::string decoded(const std::string& stored, const std::vector<Codec>& chain, uint64_t length) {
  return std::string(as_text(decode_block(as_bytes(stored), chain, length)));
}

TEST(Codec, GivesBackWhatWasEncoded) {
  const std::string plain = text();
  EXPECT_EQ(decoded(deflated(plain), kZlib, plain.size()), plain);
  EXPECT_EQ(decoded(zstd(plain), kZstd, plain.size()), plain);
  EXPECT_EQ(decoded(plain, {}, plain.size()), plain);
  const std::vector<Codec> both = {kZlib[0], kZstd[0]};
  EXPECT_EQ(decoded(zstd(deflated(plain)), both, plain.size()), plain);
  const std::string zeros(10 << 20, '\0');  // far more than is made room for at first
  EXPECT_EQ(decoded(deflated(zeros), kZlib, zeros.size()), zeros);
  EXPECT_EQ(decoded(zstd(zeros), kZstd, zeros.size()), zeros);
  EXPECT_EQ(decoded(zstd(""), kZstd, 0), "");
  EXPECT_EQ(decoded(deflated(""), kZlib, 0), "");
}

TEST(Codec, AnotherLengthIsDamage) {
  const std::string plain = text();
  for (const auto& [stored, chain] : {std::pair(deflated(plain), kZlib), {zstd(plain), kZstd}}) {
    EXPECT_THROW((void)decoded(stored, chain, plain.size() - 1), Error);
    EXPECT_THROW((void)decoded(stored, chain, plain.size() + 1), Error);
    EXPECT_THROW((void)decoded(stored, chain, 0), Error);
    for (const size_t cut : {size_t{0}, size_t{1}, stored.size() / 2, stored.size() - 1}) {
      EXPECT_THROW((void)decoded(stored.substr(0, cut), chain, plain.size()), Error) << cut;
    }
  }
}

TEST(Codec, PromisesBeyondReasonTakeNoMemory) {
  EXPECT_LE(decoded_limit(kZlib, 100), 103'200U);
  EXPECT_EQ(decoded_limit({}, 100), 100U);
  EXPECT_THROW((void)decoded(deflated("a"), kZlib, uint64_t{1} << 31), Error);
  EXPECT_THROW((void)decoded(deflated("a"), kZlib, ~uint64_t{0}), Error);
}

TEST(Codec, ElementsLargerThanTheBlockTakeNoTime) {
  const std::vector<Codec> shuffle(
      1000, {static_cast<uint16_t>(CodecId::shuffle), std::string("\xFF\xFF\xFF\xFF", 4)});
  EXPECT_EQ(decoded("abc", shuffle, 3), "abc");
}

std::string lz4_of(std::string_view text) {
  std::string stored(static_cast<size_t>(LZ4_compressBound(static_cast<int>(text.size()))), '\0');
  stored.resize(static_cast<size_t>(LZ4_compress_default(
      text.data(), stored.data(), static_cast<int>(text.size()), static_cast<int>(stored.size()))));
  return stored;
}

std::string big_endian(size_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xFF);
  return text;
}

TEST(Codec, Lz4OfHadoopHasLengthsInFrontOfItsBlocks) {
  const std::vector<Codec> hadoop = {{static_cast<uint16_t>(CodecId::lz4_hadoop), ""}};
  const std::string first(300, 'a'), second = "not the same";
  const auto framed = [](const std::string& text) {
    const std::string stored = lz4_of(text);
    return big_endian(text.size()) + big_endian(stored.size()) + stored;
  };
  EXPECT_EQ(decoded(framed(first) + framed(second), hadoop, 312), first + second);
  EXPECT_EQ(decoded(lz4_of(first), hadoop, 300), first);
  EXPECT_THROW((void)decoded(framed(first) + framed(second), hadoop, 311), Error);
  EXPECT_THROW((void)decoded(framed(first).substr(0, 12), hadoop, 300), Error);
}

TEST(Codec, AnUnknownOneIsNamed) {
  const std::vector<Codec> unknown = {{999, ""}};
  EXPECT_THROW((void)decoded("a", unknown, 1), Error);
}

}  // namespace
}  // namespace stoker
