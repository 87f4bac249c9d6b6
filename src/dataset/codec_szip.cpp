// SPDX-License-Identifier: Apache-2.0
// The Rice coder of CCSDS 121.0-B, as HDF5's szip filter uses it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "dataset/codec_decoders.h"

namespace stoker {
namespace {

[[noreturn]] void corrupt(const char* cause) {
  throw Error(ErrorKind::corrupt, fmt::format("szip: {}", cause));
}

class BitReader {
 public:
  explicit BitReader(Bytes bytes) : bytes_(bytes) {}

  uint32_t get(unsigned count) {
    if (count == 0) return 0;
    while (have_ < count) refill();
    const auto value = static_cast<uint32_t>(window_ >> (64 - count));
    drop(count);
    return value;
  }
  /// Zeros up to the next one, which is passed over.
  uint32_t zeros() {
    uint32_t count = 0;
    while (window_ == 0) {
      count += have_;
      have_ = 0;
      refill();
    }
    const auto more = static_cast<unsigned>(std::countl_zero(window_));
    drop(more + 1);
    return count + more;
  }

 private:
  void refill() {
    if (at_ == bytes_.size()) corrupt("compressed bytes are cut off");
    while (have_ <= 56 && at_ < bytes_.size()) {
      window_ |= std::to_integer<uint64_t>(bytes_[at_++]) << (56 - have_);
      have_ += 8;
    }
  }
  void drop(unsigned count) {
    window_ = count >= 64 ? 0 : window_ << count;
    have_ -= count;
  }

  Bytes bytes_;
  size_t at_ = 0;
  uint64_t window_ = 0;  // the next bits, from the highest down; zeros behind them
  unsigned have_ = 0;
};

struct Layout {
  unsigned bits = 0;         // of a sample
  unsigned sample_size = 0;  // bytes it takes when decoded
  uint32_t block = 0;        // samples of a block
  uint32_t interval = 0;     // blocks from one reference sample to the next
  bool differences = false;  // samples are stored as what they differ from the one before
  bool big_endian = false;
};

/// Undoes the coding of one reference interval after the other.
class RiceDecoder {
 public:
  RiceDecoder(Bytes bytes, const Layout& layout) : bits_(bytes), layout_(layout) {
    id_bits_ = layout.bits > 16 ? 5 : layout.bits > 8 ? 4 : 3;
    samples_.reserve(uint64_t{layout.block} * layout.interval);
  }

  /// The samples of the next interval; `wanted` of them are needed at least.
  const std::vector<uint32_t>& next(uint64_t wanted) {
    samples_.clear();
    const uint64_t all = uint64_t{layout_.block} * layout_.interval;
    while (samples_.size() < std::min(all, wanted)) read_block();
    samples_.resize(std::min<uint64_t>(samples_.size(), all));
    if (layout_.differences) add_up();
    return samples_;
  }

 private:
  void read_block() {
    const bool reference = layout_.differences && samples_.empty();
    const uint32_t id = bits_.get(id_bits_);
    if (id == (1U << id_bits_) - 1) {
      for (uint32_t i = 0; i < layout_.block; ++i) samples_.push_back(bits_.get(layout_.bits));
      return;
    }
    const bool pairs = id == 0 && bits_.get(1) == 1;
    if (reference) samples_.push_back(bits_.get(layout_.bits));
    const uint32_t first = reference ? 1 : 0;
    if (id != 0) return read_split(id - 1, first);
    if (pairs) return read_pairs(first);
    read_zeros(first);
  }

  void read_split(unsigned low_bits, uint32_t first) {
    const size_t begin = samples_.size();
    for (uint32_t i = first; i < layout_.block; ++i) {
      samples_.push_back(low_bits < 32 ? bits_.zeros() << low_bits : 0);
    }
    for (size_t i = begin; i < samples_.size(); ++i) samples_[i] |= bits_.get(low_bits);
  }

  void read_zeros(uint32_t first) {
    constexpr uint32_t kRest = 5;  // as many as remain
    uint64_t blocks = uint64_t{bits_.zeros()} + 1;
    const uint64_t before = samples_.size() / layout_.block;
    if (blocks == kRest) {
      blocks = std::min(layout_.interval - before, 64 - before % 64);
    } else if (blocks > kRest) {
      --blocks;
    }
    if (blocks > layout_.interval - before) corrupt("more blocks than an interval has");
    samples_.resize(samples_.size() + blocks * layout_.block - first, 0);
  }

  void read_pairs(uint32_t first) {
    constexpr uint32_t kMost = 90;
    for (uint32_t i = first; i < layout_.block;) {
      const uint32_t code = bits_.zeros();
      if (code > kMost) corrupt("a pair that cannot be");
      uint32_t sum = 0;
      while ((sum + 1) * (sum + 2) / 2 <= code) ++sum;
      const uint32_t second = code - sum * (sum + 1) / 2;
      if (i % 2 == 0) {
        samples_.push_back(sum - second);
        ++i;
      }
      samples_.push_back(second);
      ++i;
    }
  }

  /// Differences are folded so that small ones of either sign are small numbers.
  void add_up() {
    const uint32_t most = layout_.bits == 32 ? ~0U : (1U << layout_.bits) - 1;
    const uint32_t middle = most / 2 + 1;
    uint32_t value = samples_.empty() ? 0 : samples_[0];
    for (size_t i = 1; i < samples_.size(); ++i) {
      const uint32_t folded = samples_[i];
      const uint32_t half = (folded >> 1) + (folded & 1);
      const uint32_t mask = (value & middle) == 0 ? 0 : most;
      if (half <= (mask ^ value)) {
        value += (folded >> 1) ^ ~((folded & 1) - 1);
      } else {
        value = mask ^ folded;
      }
      samples_[i] = value;
    }
  }

  BitReader bits_;
  Layout layout_;
  unsigned id_bits_ = 0;
  std::vector<uint32_t> samples_;
};

void append(uint32_t sample, const Layout& layout, std::vector<std::byte>& decoded) {
  for (unsigned i = 0; i < layout.sample_size; ++i) {
    const unsigned shift = 8 * (layout.big_endian ? layout.sample_size - 1 - i : i);
    decoded.push_back(static_cast<std::byte>(sample >> shift));
  }
}

}  // namespace

std::vector<std::byte> decode_szip(Bytes stored, std::string_view parameters, uint64_t limit) {
  constexpr uint32_t kBigEndian = 16, kDifferences = 32, kMostPerBlock = 32, kMostPerLine = 4096;
  if (parameters.size() != 16 || stored.size() < 4) corrupt("parameters are missing");
  const std::byte* const values = as_bytes(parameters).data();
  const auto options = load<uint32_t>(values);
  const auto pixel_bits = load<uint32_t>(values + 4);
  const auto per_line = load<uint32_t>(values + 12);
  Layout layout;
  layout.block = load<uint32_t>(values + 8);
  // Pixels of 32 and 64 bits are coded byte by byte: all first bytes, then all second ones.
  const bool planes = pixel_bits == 32 || pixel_bits == 64;
  layout.bits = planes ? 8 : pixel_bits;
  layout.differences = (options & kDifferences) != 0;
  layout.big_endian = (options & kBigEndian) != 0;
  if (layout.bits == 0 || layout.bits > 32 || layout.block == 0 || layout.block > kMostPerBlock ||
      layout.block % 2 != 0 || per_line == 0 || per_line > kMostPerLine) {
    corrupt("parameters that cannot be right");
  }
  layout.sample_size = layout.bits > 16 ? 4 : layout.bits > 8 ? 2 : 1;
  layout.interval = (per_line + layout.block - 1) / layout.block;

  const uint64_t size = load<uint32_t>(stored.data());
  if (size > limit) corrupt("more bytes than the chunk has");
  RiceDecoder decoder(stored.subspan(4), layout);
  std::vector<std::byte> decoded;
  // A line that does not fill its last block is padded there.
  while (decoded.size() < size) {
    const uint64_t left = (size - decoded.size() + layout.sample_size - 1) / layout.sample_size;
    const std::vector<uint32_t>& samples = decoder.next(std::min<uint64_t>(left, per_line));
    const uint64_t useful = std::min<uint64_t>({left, per_line, samples.size()});
    for (uint64_t i = 0; i < useful; ++i) append(samples[i], layout, decoded);
  }
  decoded.resize(size);
  if (!planes) return decoded;
  std::string element(4, '\0');
  store(std::as_writable_bytes(std::span(element)).data(), pixel_bits / 8);
  return decode_shuffle(decoded, element, limit);
}

}  // namespace stoker
