// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataset/schema.h"
#include "format/hdf5_bytes.h"

namespace stoker {

enum class Hdf5Class : uint8_t {
  integer,
  real,
  time,
  text,
  bits,
  opaque,
  compound,
  reference,
  enumeration,
  variable,
  array,
};

struct Hdf5Member;

/// A datatype message.
struct Hdf5Type {
  Hdf5Class kind = Hdf5Class::opaque;
  uint64_t size = 0;  // bytes of one element as it is stored
  bool big_endian = false;
  bool is_signed = false;
  /// Integers and reals whose bits are those of a NumPy dtype; enumerations by their base.
  DType dtype = DType::unknown;
  /// Text: what lies behind its end, where it is of fixed size.
  enum class Padding : uint8_t { terminated, nul, space } padding = Padding::terminated;
  bool variable_text = false;       // of Hdf5Class::variable: text, not a sequence
  std::vector<uint64_t> shape;      // of arrays
  std::vector<Hdf5Type> base;       // one, of arrays, enumerations and sequences
  std::vector<Hdf5Member> members;  // of compounds
  std::vector<std::string> names;   // of enumerations whose values count from 0
};

struct Hdf5Member {
  std::string name;
  uint64_t offset = 0;
  Hdf5Type type;
};

/// Throws Hdf5Error where it is damaged.
Hdf5Type parse_hdf5_type(Hdf5Cursor& message);

/// "compound", "reference": for messages.
std::string_view name_of(Hdf5Class kind);

/// A dataspace message.
struct Hdf5Space {
  bool simple = true;  // neither scalar nor null
  std::vector<uint64_t> dims;
  std::vector<uint64_t> max_dims;  // kNowhere: without a limit

  static constexpr unsigned kMaxRank = 32;
};
Hdf5Space parse_hdf5_space(Hdf5Cursor& message);

}  // namespace stoker
