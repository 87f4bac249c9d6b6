// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_type.h"

#include <fmt/format.h>

#include <array>

#include "base/bytes.h"
#include "format/hdf5_btree.h"

namespace stoker {
namespace {

// Types of types of types: no file that anybody wrote comes near.
constexpr unsigned kDeepest = 16;
constexpr size_t kMostMembers = 4096;
constexpr unsigned kComplex = 11;

Hdf5Type parse_type(Hdf5Cursor& message, unsigned depth);

struct Head {
  unsigned version = 0;
  uint32_t bits = 0;
};

DType integer_type(uint64_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? DType::int8 : DType::uint8;
    case 2:
      return is_signed ? DType::int16 : DType::uint16;
    case 4:
      return is_signed ? DType::int32 : DType::uint32;
    case 8:
      return is_signed ? DType::int64 : DType::uint64;
    default:
      return DType::unknown;
  }
}

void parse_integer(Hdf5Cursor& message, const Head& head, Hdf5Type& type) {
  type.big_endian = (head.bits & 1) != 0;
  type.is_signed = type.kind == Hdf5Class::integer && (head.bits & 8) != 0;
  const uint16_t first_bit = message.u16();
  const uint16_t precision = message.u16();
  if (first_bit == 0 && precision == 8 * type.size) {
    type.dtype = integer_type(type.size, type.is_signed);
  }
}

void parse_real(Hdf5Cursor& message, const Head& head, Hdf5Type& type) {
  const bool vax = (head.bits & 0x40) != 0;
  type.big_endian = (head.bits & 1) != 0;
  std::array<uint64_t, 7> is{};
  is[0] = message.u16();                                // first bit
  is[1] = message.u16();                                // precision
  for (size_t i = 2; i < 6; ++i) is[i] = message.u8();  // exponent, mantissa: where, how many bits
  is[6] = message.u32();                                // bias
  struct Known {
    DType dtype;
    std::array<uint64_t, 7> layout;
  };
  // IEEE 754; anything else (bfloat16, float128) has no dtype here.
  constexpr std::array kKnown = {Known{DType::float16, {0, 16, 10, 5, 0, 10, 15}},
                                 Known{DType::float32, {0, 32, 23, 8, 0, 23, 127}},
                                 Known{DType::float64, {0, 64, 52, 11, 0, 52, 1023}}};
  for (const Known& known : kKnown) {
    if (!vax && is == known.layout && type.size == size_of(known.dtype)) type.dtype = known.dtype;
  }
}

void pass_padding(Hdf5Cursor& message, uint64_t begin) {
  const uint64_t odd = (message.passed() - begin) % 8;
  if (odd != 0) message.skip(8 - odd);
}

/// Dimensions that version 1 keeps beside the type of a member.
std::vector<uint64_t> parse_member_dims(Hdf5Cursor& message) {
  const unsigned rank = message.u8();
  message.skip(3 + 4 + 4);
  std::vector<uint64_t> dims;
  for (unsigned i = 0; i < 4; ++i) {
    const uint64_t dim = message.u32();
    if (i < rank) dims.push_back(dim);
  }
  return dims;
}

void set_array(Hdf5Cursor& message, std::vector<uint64_t> dims, Hdf5Type base, Hdf5Type& type) {
  type.kind = Hdf5Class::array;
  uint64_t size = base.size;
  for (const uint64_t dim : dims) {
    if (__builtin_mul_overflow(size, dim, &size) || size > UINT32_MAX) {
      message.fail("an array type larger than 4 GiB");
    }
  }
  type.size = size;
  type.shape = std::move(dims);
  type.base.clear();
  type.base.push_back(std::move(base));
}

void parse_compound(Hdf5Cursor& message, const Head& head, unsigned depth, Hdf5Type& type) {
  const size_t count = head.bits & 0xFFFF;
  if (count > kMostMembers) message.fail(fmt::format("a compound of {} members", count));
  for (size_t i = 0; i < count; ++i) {
    Hdf5Member member;
    const uint64_t begin = message.passed();
    member.name = message.text();
    if (head.version < 3) pass_padding(message, begin);
    member.offset = head.version < 3 ? message.u32() : message.number(hdf5_bytes_for(type.size));
    std::vector<uint64_t> dims;
    if (head.version == 1) dims = parse_member_dims(message);
    member.type = parse_type(message, depth + 1);
    if (!dims.empty()) {
      Hdf5Type base = std::move(member.type);
      member.type = {};
      set_array(message, std::move(dims), std::move(base), member.type);
    }
    if (member.offset > type.size || member.type.size > type.size - member.offset) {
      message.fail("a member that does not lie in its compound");
    }
    type.members.push_back(std::move(member));
  }
}

void parse_enumeration(Hdf5Cursor& message, const Head& head, unsigned depth, Hdf5Type& type) {
  const size_t count = head.bits & 0xFFFF;
  type.base.push_back(parse_type(message, depth + 1));
  const Hdf5Type& base = type.base.front();
  if (base.kind != Hdf5Class::integer || base.size > 8) message.fail("no integers");
  type.dtype = base.dtype;
  type.big_endian = base.big_endian;
  type.is_signed = base.is_signed;
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t begin = message.passed();
    names.emplace_back(message.text());
    if (head.version < 3) pass_padding(message, begin);
  }
  bool counts = true;
  for (size_t i = 0; i < count; ++i) {
    const Bytes bytes = message.bytes(base.size);
    uint64_t value = 0;
    for (size_t at = 0; at < bytes.size(); ++at) {
      const size_t from = base.big_endian ? at : bytes.size() - 1 - at;
      value = value << 8 | std::to_integer<uint64_t>(bytes[from]);
    }
    counts = counts && value == i;
  }
  if (!counts) return;
  // As h5py writes a NumPy bool.
  const bool boolean = names == std::vector<std::string>{"FALSE", "TRUE"} && base.size == 1;
  if (boolean) type.dtype = DType::bool8;
  if (!boolean) type.names = std::move(names);
}

void parse_array(Hdf5Cursor& message, const Head& head, unsigned depth, Hdf5Type& type) {
  const unsigned rank = message.u8();
  if (rank > Hdf5Space::kMaxRank) message.fail(fmt::format("an array of {} dimensions", rank));
  if (head.version < 3) message.skip(3);
  std::vector<uint64_t> dims;
  for (unsigned i = 0; i < rank; ++i) dims.push_back(message.u32());
  if (head.version < 3) message.skip(uint64_t{4} * rank);
  const uint64_t stated = type.size;
  set_array(message, std::move(dims), parse_type(message, depth + 1), type);
  if (type.size != stated) message.fail("an array whose size is not that of its elements");
}

/// Complex numbers of HDF5 2.0: a compound of r and i, as h5py writes NumPy's.
void parse_complex(Hdf5Cursor& message, const Head& head, unsigned depth, Hdf5Type& type) {
  constexpr uint32_t kRectangular = 1;  // and both parts of one type
  if (head.bits != kRectangular) {
    throw Hdf5Error(ErrorKind::unsupported, message.offset(), "complex numbers of an unknown form");
  }
  const Hdf5Type part = parse_type(message, depth + 1);
  if (part.size > type.size / 2) message.fail("a complex number smaller than its parts");
  type.kind = Hdf5Class::compound;
  type.members = {{"r", 0, part}, {"i", part.size, part}};
}

Hdf5Type parse_type(Hdf5Cursor& message, unsigned depth) {
  if (depth > kDeepest) message.fail("types nested too deeply");
  const uint8_t first = message.u8();
  const Head head{unsigned{first} >> 4U, static_cast<uint32_t>(message.number(3))};
  const unsigned kind = first & 15U;
  if (head.version < 1 || head.version > 5 || kind > kComplex) {
    throw Hdf5Error(
        ErrorKind::unsupported, message.offset(),
        fmt::format("{}: class {} of version {} is not known", message.what(), kind, head.version));
  }
  Hdf5Type type;
  type.size = message.u32();
  if (type.size == 0) message.fail("a type of no bytes");
  if (kind == kComplex) {
    parse_complex(message, head, depth, type);
    return type;
  }
  type.kind = static_cast<Hdf5Class>(kind);
  switch (type.kind) {
    case Hdf5Class::integer:
    case Hdf5Class::bits:
      parse_integer(message, head, type);
      break;
    case Hdf5Class::real:
      parse_real(message, head, type);
      break;
    case Hdf5Class::time:
      message.skip(2);
      break;
    case Hdf5Class::text:
      if ((head.bits & 15U) > 2) message.fail("an unknown padding of text");
      type.padding = static_cast<Hdf5Type::Padding>(head.bits & 15U);
      break;
    case Hdf5Class::opaque:
      message.skip(head.bits & 0xFF);
      break;
    case Hdf5Class::compound:
      parse_compound(message, head, depth, type);
      break;
    case Hdf5Class::reference:
      break;
    case Hdf5Class::enumeration:
      parse_enumeration(message, head, depth, type);
      break;
    case Hdf5Class::variable:
      type.variable_text = (head.bits & 15U) == 1;
      type.base.push_back(parse_type(message, depth + 1));
      break;
    case Hdf5Class::array:
      parse_array(message, head, depth, type);
      break;
  }
  return type;
}

}  // namespace

Hdf5Type parse_hdf5_type(Hdf5Cursor& message) { return parse_type(message, 0); }

std::string_view name_of(Hdf5Class kind) {
  constexpr std::array<std::string_view, 11> kNames = {
      "integer", "real",     "time",      "text",        "bit field",
      "opaque",  "compound", "reference", "enumeration", "variable length",
      "array"};
  return kNames.at(static_cast<size_t>(kind));
}

Hdf5Space parse_hdf5_space(Hdf5Cursor& message) {
  const uint8_t version = message.version(1, 2);
  const unsigned rank = message.u8();
  const uint8_t flags = message.u8();
  const uint8_t kind = message.u8();  // reserved in version 1
  if (version == 1) message.skip(4);
  if (rank > Hdf5Space::kMaxRank) message.fail(fmt::format("a rank of {}", rank));
  Hdf5Space space;
  space.simple = rank > 0 && (version == 1 || kind == 1);
  for (unsigned i = 0; i < rank; ++i) space.dims.push_back(message.length());
  space.max_dims = space.dims;
  if ((flags & 1) == 0) return space;
  const uint64_t ones =
      message.length_size() >= 8 ? kNowhere : (uint64_t{1} << (8 * message.length_size())) - 1;
  for (unsigned i = 0; i < rank; ++i) {
    const uint64_t dim = message.length();
    space.max_dims[i] = dim == ones ? kNowhere : dim;
    if (space.max_dims[i] < space.dims[i]) message.fail("more elements than its greatest size");
  }
  return space;
}

}  // namespace stoker
