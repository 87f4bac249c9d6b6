// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <atomic>

#include "base/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define STOKER_CRC_TARGET __attribute__((target("sse4.2")))
#define STOKER_CLMUL_TARGET __attribute__((target("sse4.2,pclmul")))
#define STOKER_AVX512_TARGET __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#if defined(__clang__) && __clang_major__ < 16
#define STOKER_CRC_TARGET __attribute__((target("crc")))
#else
#define STOKER_CRC_TARGET __attribute__((target("+crc")))
#endif
#endif

// Polynomials over GF(2) are bit-reflected here, as the CRC is: the top bit of a word is x^0.
// A 32-bit state S followed by data D of n bits becomes (S x^n + D x^32) mod P.

namespace stoker {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t times_x(uint32_t a) { return (a >> 1) ^ (kPolynomial & (0 - (a & 1))); }

constexpr uint32_t multiply_by_steps(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int bit = 31; bit >= 0; --bit) {
    product ^= b & (0 - ((a >> bit) & 1));
    b = times_x(b);
  }
  return product;
}

constexpr uint32_t power_of_x(uint64_t exponent) {
  uint32_t result = kOne;
  uint32_t square = kOne >> 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = multiply_by_steps(result, square);
    square = multiply_by_steps(square, square);
  }
  return result;
}

// [k][b] is what byte b contributes when k more bytes follow it.
using SliceTables = std::array<std::array<uint32_t, 256>, 8>;

constexpr SliceTables make_slice_tables() {
  SliceTables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = times_x(value);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr SliceTables kSlices = make_slice_tables();

uint32_t run_portable(uint32_t state, const std::byte* data, size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    const uint64_t word = load<uint64_t>(data) ^ state;
    state = kSlices[7][word & 0xFF] ^ kSlices[6][(word >> 8) & 0xFF] ^
            kSlices[5][(word >> 16) & 0xFF] ^ kSlices[4][(word >> 24) & 0xFF] ^
            kSlices[3][(word >> 32) & 0xFF] ^ kSlices[2][(word >> 40) & 0xFF] ^
            kSlices[1][(word >> 48) & 0xFF] ^ kSlices[0][word >> 56];
  }
  for (; size > 0; ++data, --size) {
    state = (state >> 8) ^ kSlices[0][(state ^ std::to_integer<uint32_t>(*data)) & 0xFF];
  }
  return state;
}

#if defined(STOKER_CRC_TARGET)

#if defined(__x86_64__)
STOKER_CRC_TARGET inline uint32_t step8(uint32_t state, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(state, word));
}
STOKER_CRC_TARGET inline uint32_t step4(uint32_t state, uint32_t word) {
  return _mm_crc32_u32(state, word);
}
STOKER_CRC_TARGET inline uint32_t step2(uint32_t state, uint16_t word) {
  return _mm_crc32_u16(state, word);
}
STOKER_CRC_TARGET inline uint32_t step1(uint32_t state, uint8_t word) {
  return _mm_crc32_u8(state, word);
}
#elif defined(__clang__)
// Builtins, because <arm_acle.h> declares these only when the whole file is built with +crc.
STOKER_CRC_TARGET inline uint32_t step8(uint32_t state, uint64_t word) {
  return __builtin_arm_crc32cd(state, word);
}
STOKER_CRC_TARGET inline uint32_t step4(uint32_t state, uint32_t word) {
  return __builtin_arm_crc32cw(state, word);
}
STOKER_CRC_TARGET inline uint32_t step2(uint32_t state, uint16_t word) {
  return __builtin_arm_crc32ch(state, word);
}
STOKER_CRC_TARGET inline uint32_t step1(uint32_t state, uint8_t word) {
  return __builtin_arm_crc32cb(state, word);
}
#else
STOKER_CRC_TARGET inline uint32_t step8(uint32_t state, uint64_t word) {
  return __builtin_aarch64_crc32cx(state, word);
}
STOKER_CRC_TARGET inline uint32_t step4(uint32_t state, uint32_t word) {
  return __builtin_aarch64_crc32cw(state, word);
}
STOKER_CRC_TARGET inline uint32_t step2(uint32_t state, uint16_t word) {
  return __builtin_aarch64_crc32ch(state, word);
}
STOKER_CRC_TARGET inline uint32_t step1(uint32_t state, uint8_t word) {
  return __builtin_aarch64_crc32cb(state, word);
}
#endif

// For less than 8 bytes.
STOKER_CRC_TARGET inline uint32_t run_tail(uint32_t state, const std::byte* data, size_t size) {
  if (size & 4) {
    state = step4(state, load<uint32_t>(data));
    data += 4;
  }
  if (size & 2) {
    state = step2(state, load<uint16_t>(data));
    data += 2;
  }
  if (size & 1) state = step1(state, load<uint8_t>(data));
  return state;
}

STOKER_CRC_TARGET inline uint32_t run_serial(uint32_t state, const std::byte* data, size_t size) {
  for (; size >= 8; data += 8, size -= 8) state = step8(state, load<uint64_t>(data));
  return run_tail(state, data, size);
}

// [k][b] is byte k of a state, times x^(8 * bytes): what `bytes` zero bytes make of it.
using ShiftTables = std::array<std::array<uint32_t, 256>, 4>;

constexpr ShiftTables make_shift_tables(uint64_t bytes) {
  ShiftTables tables{};
  uint32_t image = power_of_x(8 * bytes);
  for (int bit = 31; bit >= 0; --bit) {
    tables[static_cast<size_t>(bit) / 8][size_t{1} << (bit % 8)] = image;
    image = times_x(image);
  }
  for (auto& table : tables) {
    for (size_t byte = 1; byte < 256; ++byte)
      table[byte] = table[byte & (byte - 1)] ^ table[byte & (0 - byte)];
  }
  return tables;
}

template <size_t kBytes>
inline constexpr ShiftTables kShift = make_shift_tables(kBytes);

template <size_t kBytes>
inline uint32_t shift(uint32_t state) {
  const ShiftTables& tables = kShift<kBytes>;
  return tables[0][state & 0xFF] ^ tables[1][(state >> 8) & 0xFF] ^
         tables[2][(state >> 16) & 0xFF] ^ tables[3][state >> 24];
}

// The instruction takes three cycles but can start every cycle: three lanes keep it busy.
template <size_t kLane>
STOKER_CRC_TARGET inline uint32_t run_three_lanes(uint32_t state, const std::byte*& data,
                                                  size_t& size) {
  while (size >= 3 * kLane) {
    uint32_t second = 0;
    uint32_t third = 0;
    for (size_t at = 0; at < kLane; at += 8) {
      state = step8(state, load<uint64_t>(data + at));
      second = step8(second, load<uint64_t>(data + kLane + at));
      third = step8(third, load<uint64_t>(data + 2 * kLane + at));
    }
    state = shift<kLane>(shift<kLane>(state) ^ second) ^ third;
    data += 3 * kLane;
    size -= 3 * kLane;
  }
  return state;
}

STOKER_CRC_TARGET uint32_t run_instruction(uint32_t state, const std::byte* data, size_t size) {
  state = run_three_lanes<1024>(state, data, size);
  state = run_three_lanes<128>(state, data, size);
  return run_serial(state, data, size);
}

#endif  // STOKER_CRC_TARGET

#if defined(__x86_64__)

// Folding keeps 16 bytes V with the CRC of all bytes so far, and moves V over the next n bits:
// V x^n = V.low x^(n+64) + V.high x^n, each factor reduced mod P. The exponents are one less
// because the product of two reflected 64-bit words comes out one bit too low.
constexpr int64_t fold_factor(uint64_t exponent) {
  return static_cast<int64_t>(uint64_t{power_of_x(exponent - 1)} << 32);
}
template <unsigned kBits>
inline constexpr int64_t kFoldLow = fold_factor(kBits + 64);
template <unsigned kBits>
inline constexpr int64_t kFoldHigh = fold_factor(kBits);

template <unsigned kBits>
STOKER_CLMUL_TARGET inline __m128i fold(__m128i value, __m128i next) {
  const __m128i factor = _mm_set_epi64x(kFoldHigh<kBits>, kFoldLow<kBits>);
  const __m128i low = _mm_clmulepi64_si128(value, factor, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, factor, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

STOKER_CLMUL_TARGET inline __m128i load128(const std::byte* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

// The end of both folding kernels: the folded 16 bytes, then less than 64 bytes more.
STOKER_CLMUL_TARGET inline uint32_t finish_fold(__m128i value, const std::byte* data, size_t size) {
  for (; size >= 16; data += 16, size -= 16) value = fold<128>(value, load128(data));
  uint32_t state = step8(0, static_cast<uint64_t>(_mm_cvtsi128_si64(value)));
  state = step8(state, static_cast<uint64_t>(_mm_extract_epi64(value, 1)));
  if (size & 8) {
    state = step8(state, load<uint64_t>(data));
    data += 8;
  }
  return run_tail(state, data, size);
}

STOKER_CLMUL_TARGET uint32_t run_clmul(uint32_t state, const std::byte* data, size_t size) {
  if (size < 64) return run_serial(state, data, size);
  __m128i v0 = _mm_xor_si128(load128(data), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i v1 = load128(data + 16);
  __m128i v2 = load128(data + 32);
  __m128i v3 = load128(data + 48);
  for (data += 64, size -= 64; size >= 64; data += 64, size -= 64) {
    v0 = fold<512>(v0, load128(data));
    v1 = fold<512>(v1, load128(data + 16));
    v2 = fold<512>(v2, load128(data + 32));
    v3 = fold<512>(v3, load128(data + 48));
  }
  return finish_fold(fold<384>(v0, fold<256>(v1, fold<128>(v2, v3))), data, size);
}

template <unsigned kBits>
STOKER_AVX512_TARGET inline __m512i fold512(__m512i value, __m512i next) {
  const __m512i factor =
      _mm512_set_epi64(kFoldHigh<kBits>, kFoldLow<kBits>, kFoldHigh<kBits>, kFoldLow<kBits>,
                       kFoldHigh<kBits>, kFoldLow<kBits>, kFoldHigh<kBits>, kFoldLow<kBits>);
  const __m512i low = _mm512_clmulepi64_epi128(value, factor, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(value, factor, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // three-way xor
}

STOKER_AVX512_TARGET inline __m512i load512(const std::byte* data) {
  return _mm512_loadu_si512(data);
}

// The masked form: gcc 12 warns of an uninitialised value inside the plain one.
template <int kLane>
STOKER_AVX512_TARGET inline __m128i lane(__m512i value) {
  return _mm512_maskz_extracti32x4_epi32(0xF, value, kLane);
}

STOKER_AVX512_TARGET inline __m128i fold_to_128(__m512i value) {
  const __m512i factor = _mm512_set_epi64(0, 0, kFoldHigh<128>, kFoldLow<128>, kFoldHigh<256>,
                                          kFoldLow<256>, kFoldHigh<384>, kFoldLow<384>);
  const __m512i folded = _mm512_xor_si512(_mm512_clmulepi64_epi128(value, factor, 0x00),
                                          _mm512_clmulepi64_epi128(value, factor, 0x11));
  const __m128i first = _mm_xor_si128(lane<0>(folded), lane<1>(folded));
  const __m128i last = _mm_xor_si128(lane<2>(folded), lane<3>(value));
  return _mm_xor_si128(first, last);
}

// Shorter input stays with 128 bits: such calls may be rare, and each would then pay for the CPU
// waking its 512-bit units.
constexpr size_t kWideFrom = 512;

// From here on, 64-byte loads that straddle cache lines cost more than aligning them.
constexpr size_t kAlignFrom = 8192;

STOKER_AVX512_TARGET uint32_t run_avx512(uint32_t state, const std::byte* data, size_t size) {
  if (size < kWideFrom) return run_clmul(state, data, size);
  if (size >= kAlignFrom) {
    const size_t head = (0 - reinterpret_cast<uintptr_t>(data)) & 63;
    state = run_serial(state, data, head);
    data += head;
    size -= head;
  }
  const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i v0 = _mm512_xor_si512(load512(data), start);
  __m512i v1 = load512(data + 64);
  __m512i v2 = load512(data + 128);
  __m512i v3 = load512(data + 192);
  for (data += 256, size -= 256; size >= 256; data += 256, size -= 256) {
    v0 = fold512<2048>(v0, load512(data));
    v1 = fold512<2048>(v1, load512(data + 64));
    v2 = fold512<2048>(v2, load512(data + 128));
    v3 = fold512<2048>(v3, load512(data + 192));
  }
  v0 = fold512<1536>(v0, fold512<1024>(v1, fold512<512>(v2, v3)));
  for (; size >= 64; data += 64, size -= 64) v0 = fold512<512>(v0, load512(data));
  return finish_fold(fold_to_128(v0), data, size);
}

// For the 32-bit factors of crc32c_combine().
STOKER_CLMUL_TARGET uint32_t multiply_clmul(uint32_t a, uint32_t b) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(a)),
                                               _mm_cvtsi64_si128(int64_t{b} << 1), 0x00);
  const auto bits = static_cast<uint64_t>(_mm_cvtsi128_si64(product));
  return step4(0, static_cast<uint32_t>(bits)) ^ static_cast<uint32_t>(bits >> 32);
}

#endif  // __x86_64__

// [k][b] is x^(8 b 256^k): what a byte count with the value b in its byte k multiplies by.
using LengthTables = std::array<std::array<uint32_t, 256>, 8>;

constexpr LengthTables make_length_tables() {
  LengthTables tables{};
  uint32_t step = power_of_x(8);
  for (auto& table : tables) {
    table[0] = kOne;
    for (size_t byte = 1; byte < 256; ++byte) {
      table[byte] = multiply_by_steps(table[byte - 1], step);
    }
    step = multiply_by_steps(table[255], step);
  }
  return tables;
}

constexpr LengthTables kLengths = make_length_tables();

// The 32 partial products do not wait for each other, as the steps of multiply_by_steps() do.
uint32_t multiply_portable(uint32_t a, uint32_t b) {
  uint64_t product = 0;
  for (int bit = 0; bit < 32; ++bit) {
    product ^= (uint64_t{b} << (bit + 1)) & (0 - uint64_t{(a >> bit) & 1});
  }
  return static_cast<uint32_t>(product >> 32) ^ kSlices[3][product & 0xFF] ^
         kSlices[2][(product >> 8) & 0xFF] ^ kSlices[1][(product >> 16) & 0xFF] ^
         kSlices[0][(product >> 24) & 0xFF];
}

template <auto kMultiply>
uint32_t append_zeros(uint32_t crc, uint64_t length) {
  for (size_t k = 0; length != 0; ++k, length >>= 8) {
    if (length & 0xFF) crc = kMultiply(crc, kLengths[k][length & 0xFF]);
  }
  return crc;
}

struct Kernels {
  std::array<Crc32cKernel, 4> rows{};
  size_t count = 0;

  Kernels() {
#if defined(__x86_64__)
    const bool crc = __builtin_cpu_supports("sse4.2");
    const bool clmul = crc && __builtin_cpu_supports("pclmul");
    const bool wide =
        clmul && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
    if (wide) rows[count++] = {"avx512-vpclmulqdq", run_avx512};
    if (clmul) rows[count++] = {"pclmulqdq", run_clmul};
    if (crc) rows[count++] = {"sse4.2", run_instruction};
#elif defined(__aarch64__)
    if (getauxval(AT_HWCAP) & HWCAP_CRC32) rows[count++] = {"armv8-crc", run_instruction};
#endif
    rows[count++] = {"portable", run_portable};
  }
};

// The first call through each of these replaces it by what suits the CPU. A plain static would
// cost small inputs a guard check and could be used before it is initialised.
uint32_t choose_run(uint32_t state, const std::byte* data, size_t size);
uint32_t choose_append(uint32_t crc, uint64_t length);
constinit std::atomic<decltype(&choose_run)> chosen_run{choose_run};
constinit std::atomic<decltype(&choose_append)> chosen_append{choose_append};

uint32_t choose_run(uint32_t state, const std::byte* data, size_t size) {
  const auto best = crc32c_kernels().front().run;
  chosen_run.store(best, std::memory_order_relaxed);
  return best(state, data, size);
}

uint32_t choose_append(uint32_t crc, uint64_t length) {
  auto best = append_zeros<multiply_portable>;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
    best = append_zeros<multiply_clmul>;
  }
#endif
  chosen_append.store(best, std::memory_order_relaxed);
  return best(crc, length);
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> data, uint32_t crc) {
  return ~chosen_run.load(std::memory_order_relaxed)(~crc, data.data(), data.size());
}

uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t length_b) {
  return chosen_append.load(std::memory_order_relaxed)(crc_a, length_b) ^ crc_b;
}

std::span<const Crc32cKernel> crc32c_kernels() {
  static const Kernels kernels;
  return std::span(kernels.rows).first(kernels.count);
}

}  // namespace stoker
