// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/text.h"

namespace stoker {

void Hdf5Cursor::fail(const std::string& cause) const {
  throw Hdf5Error(ErrorKind::corrupt, begin_, fmt::format("{}: {}", what_, cause));
}

Bytes Hdf5Cursor::bytes(uint64_t size) {
  if (size > left()) {
    fail(fmt::format("ends {} bytes too early, at offset {}", size - left(),
                     begin_ + bytes_.size()));
  }
  const Bytes taken = bytes_.subspan(at_, size);
  at_ += size;
  return taken;
}

uint64_t Hdf5Cursor::number(unsigned size) {
  const Bytes from = bytes(size);
  uint64_t value = 0;
  for (size_t i = from.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(from[i]);
  return value;
}

uint64_t Hdf5Cursor::address() {
  const uint64_t value = number(offset_size_);
  const uint64_t ones = offset_size_ >= 8 ? kNowhere : (uint64_t{1} << (8 * offset_size_)) - 1;
  return value == ones ? kNowhere : value;
}

std::string_view Hdf5Cursor::text() {
  const std::string_view rest = as_text(bytes_.subspan(at_));
  const size_t end = rest.find('\0');
  if (end == rest.npos) fail("a name without an end");
  at_ += end + 1;
  return rest.substr(0, end);
}

void Hdf5Cursor::expect(std::string_view signature) {
  const std::string_view there = as_text(bytes(signature.size()));
  if (there != signature) {
    fail(fmt::format("begins with '{}', not with {}", printable(there), signature));
  }
}

uint8_t Hdf5Cursor::version(uint8_t first, uint8_t last) {
  const uint8_t version = u8();
  if (version < first || version > last) {
    throw Hdf5Error(ErrorKind::unsupported, begin_,
                    fmt::format("{}: version {} is not known", what_, version));
  }
  return version;
}

uint64_t Hdf5Bytes::offset_of(uint64_t address, uint64_t length, std::string_view what) const {
  if (address > size_ || base_ > size_ - address || length > size_ - address - base_) {
    const bool nowhere = address == kNowhere;
    throw Hdf5Error(ErrorKind::corrupt, nowhere ? 0 : base_ + address,
                    nowhere ? fmt::format("{}: was never written", what)
                            : fmt::format("{}: {} bytes from offset {} on are not in the file of "
                                          "{} bytes",
                                          what, length, base_ + address, size_));
  }
  return base_ + address;
}

std::vector<std::byte> Hdf5Bytes::read(uint64_t address, uint64_t length, std::string_view what) {
  const uint64_t offset = offset_of(address, length, what);
  if (length > kLargestStructure) {
    throw Hdf5Error(ErrorKind::corrupt, offset,
                    fmt::format("{}: a length of {} cannot be right", what, length));
  }
  std::vector<std::byte> bytes(length);
  if (length <= kPage) {
    read_paged(offset, bytes);
  } else if (file_.read_at(offset, bytes) < length) {
    throw Hdf5Error(ErrorKind::corrupt, offset, fmt::format("{}: the file was truncated", what));
  }
  return bytes;
}

size_t Hdf5Bytes::peek(uint64_t offset, MutableBytes into) {
  if (offset >= size_) return 0;
  const MutableBytes there = into.first(std::min<uint64_t>(into.size(), size_ - offset));
  if (there.size() > kPage) return file_.read_at(offset, there);
  read_paged(offset, there);
  return there.size();
}

void Hdf5Bytes::read_paged(uint64_t offset, MutableBytes into) {
  while (!into.empty()) {
    const uint64_t number = offset / kPage;
    Page& page = pages_[number % kPages];
    if (page.number != number) {
      page.number = ~uint64_t{0};
      page.bytes.resize(kPage);
      page.bytes.resize(file_.read_at(number * kPage, page.bytes));
      page.number = number;
    }
    const size_t begin = offset % kPage;
    if (begin >= page.bytes.size()) {
      throw Hdf5Error(ErrorKind::corrupt, offset, "the file was truncated while it was read");
    }
    const size_t count = std::min(into.size(), page.bytes.size() - begin);
    std::copy_n(page.bytes.begin() + static_cast<ptrdiff_t>(begin), count, into.begin());
    into = into.subspan(count);
    offset += count;
  }
}

namespace {

struct Lookup3 {
  uint32_t a, b, c;

  void mix() {
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
  }
  void finish() {
    c ^= b, c -= std::rotl(b, 14);
    a ^= c, a -= std::rotl(c, 11);
    b ^= a, b -= std::rotl(a, 25);
    c ^= b, c -= std::rotl(b, 16);
    a ^= c, a -= std::rotl(c, 4);
    b ^= a, b -= std::rotl(a, 14);
    c ^= b, c -= std::rotl(b, 24);
  }
};

}  // namespace

uint32_t hdf5_checksum(Bytes bytes) {
  const uint32_t seed = 0xdeadbeef + static_cast<uint32_t>(bytes.size());
  Lookup3 state{seed, seed, seed};
  if (bytes.empty()) return state.c;
  while (bytes.size() > 12) {
    state.a += load<uint32_t>(bytes.data());
    state.b += load<uint32_t>(bytes.data() + 4);
    state.c += load<uint32_t>(bytes.data() + 8);
    state.mix();
    bytes = bytes.subspan(12);
  }
  std::array<std::byte, 12> rest{};
  std::copy(bytes.begin(), bytes.end(), rest.begin());
  state.a += load<uint32_t>(rest.data());
  state.b += load<uint32_t>(rest.data() + 4);
  state.c += load<uint32_t>(rest.data() + 8);
  state.finish();
  return state.c;
}

void check_hdf5_checksum(const Hdf5Cursor& structure) {
  const Bytes all = structure.all();
  if (all.size() < 4) structure.fail("is too short for its checksum");
  const uint32_t stated = load<uint32_t>(all.data() + all.size() - 4);
  const uint32_t computed = hdf5_checksum(all.first(all.size() - 4));
  if (stated != computed) {
    structure.fail(fmt::format("its checksum is {:08x}, the file states {:08x}: it is damaged",
                               computed, stated));
  }
}

}  // namespace stoker
