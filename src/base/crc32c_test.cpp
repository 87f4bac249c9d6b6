// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace stoker {
namespace {

using Data = std::vector<std::byte>;

Data random_bytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  Data data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

uint32_t reference_state(uint32_t state, std::span<const std::byte> data) {
  for (const std::byte byte : data) {
    state ^= std::to_integer<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) ? 0x82F63B78u : 0u);
  }
  return state;
}

uint32_t crc_of_text(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

TEST(Crc32c, KnownVectors) {
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc_of_text("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(Data(32, std::byte{0})), 0x8A9136AAu);
  EXPECT_EQ(crc32c(Data(32, std::byte{0xFF})), 0x62A8AB43u);
  Data ascending(32);
  for (size_t i = 0; i < ascending.size(); ++i) ascending[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
  std::reverse(ascending.begin(), ascending.end());
  EXPECT_EQ(crc32c(ascending), 0x113FDB5Cu);
}

TEST(Crc32c, PortableKernelIsLastAndAllHaveNames) {
  const auto kernels = crc32c_kernels();
  ASSERT_FALSE(kernels.empty());
  EXPECT_EQ(kernels.back().name, "portable");
  for (const Crc32cKernel& kernel : kernels) EXPECT_FALSE(kernel.name.empty());
}

TEST(Crc32c, EveryKernelOnEverySmallSizeAndAlignment) {
  constexpr size_t kMost = 1100;
  const Data data = random_bytes(kMost + 64, 1);
  for (const size_t offset : {0, 1, 3, 7, 8, 16, 33, 63}) {
    uint32_t expected = 0x12345678;
    for (size_t size = 0; size <= kMost; ++size) {
      for (const Crc32cKernel& kernel : crc32c_kernels()) {
        ASSERT_EQ(kernel.run(0x12345678, data.data() + offset, size), expected)
            << kernel.name << " size " << size << " offset " << offset;
      }
      expected = reference_state(expected, std::span(data).subspan(offset + size, 1));
    }
  }
}

// An exact allocation, so that the address sanitizer sees a read past the end.
TEST(Crc32c, EveryKernelStaysInside) {
  for (size_t size = 0; size <= 700; ++size) {
    const Data data = random_bytes(size, size);
    const uint32_t expected = reference_state(~0u, data);
    for (const Crc32cKernel& kernel : crc32c_kernels()) {
      ASSERT_EQ(kernel.run(~0u, data.data(), size), expected) << kernel.name << " size " << size;
    }
  }
}

TEST(Crc32c, EveryKernelOnBigSizes) {
  std::mt19937_64 random(2);
  const Data data = random_bytes(300'000, 3);
  for (int round = 0; round < 20; ++round) {
    const size_t offset = random() % 128;
    const auto part = std::span(data).subspan(offset, random() % (data.size() - offset));
    const auto state = static_cast<uint32_t>(random());
    const uint32_t expected = reference_state(state, part);
    for (const Crc32cKernel& kernel : crc32c_kernels()) {
      ASSERT_EQ(kernel.run(state, part.data(), part.size()), expected)
          << kernel.name << " size " << part.size() << " offset " << offset;
    }
  }
}

TEST(Crc32c, GoesOnFromAnySplit) {
  const Data data = random_bytes(4000, 4);
  const std::span<const std::byte> all(data);
  const uint32_t whole = crc32c(all);
  for (size_t split = 0; split <= all.size(); ++split) {
    ASSERT_EQ(crc32c(all.subspan(split), crc32c(all.first(split))), whole) << split;
  }
}

TEST(Crc32c, CombineEqualsDirect) {
  const Data data = random_bytes(70'000, 5);
  const std::span<const std::byte> all(data);
  for (const size_t size_a : {0, 1, 9, 255, 256, 4000}) {
    for (const size_t size_b : {0, 1, 2, 255, 256, 257, 511, 65'535, 65'536, 66'000}) {
      const auto a = all.first(size_a);
      const auto b = all.subspan(size_a, size_b);
      EXPECT_EQ(crc32c_combine(crc32c(a), crc32c(b), size_b), crc32c(all.first(size_a + size_b)))
          << size_a << " " << size_b;
    }
  }
}

TEST(Crc32c, CombineAddsUpForLengthsTooBigToTry) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 100; ++round) {
    const auto crc = static_cast<uint32_t>(random());
    const uint64_t first = random() >> (random() % 60 + 1);
    const uint64_t second = random() >> (random() % 60 + 1);
    const uint32_t one_step = crc32c_combine(crc, 0, first + second);
    EXPECT_EQ(crc32c_combine(crc32c_combine(crc, 0, first), 0, second), one_step);
  }
  // x has the order 2^31 - 1 modulo the polynomial, so a multiple of it in bits changes nothing.
  EXPECT_EQ(crc32c_combine(0xDEADBEEF, 0, (uint64_t{1} << 31) - 1), 0xDEADBEEFu);
}

TEST(Crc32c, MaskIsTfrecords) {
  static_assert(crc32c_unmask(crc32c_mask(0xE3069283u)) == 0xE3069283u);
  EXPECT_EQ(crc32c_mask(0), 0xA282EAD8u);
  EXPECT_EQ(crc32c_mask(1), 0xA284EAD8u);
  for (const uint32_t crc : {0u, 1u, 0xFFFFFFFFu, 0x80000000u, 0x12345678u}) {
    EXPECT_EQ(crc32c_unmask(crc32c_mask(crc)), crc);
  }
}

}  // namespace
}  // namespace stoker
