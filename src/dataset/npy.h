// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "dataset/value.h"

namespace stoker {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// What an .npy file says about the elements behind it.
struct NpyHeader {
  DType dtype = DType::unknown;
  uint64_t text_width = 0;  // of elements that are bytes padded with NUL (NumPy's S); dtype unknown
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t size = 0;         // of everything before the elements, in bytes
  uint64_t data_size = 0;  // of the elements
};

/// Whether elements that are text of a fixed width are wanted as well.
enum class NpyText : uint8_t { refused, allowed };

/// Reads the header of versions 1.0 to 3.0. Throws Error(corrupt), or Error(unsupported) for
/// dtypes that are no DType, with the cause alone.
NpyHeader parse_npy_header(Bytes stored, NpyText text = NpyText::refused);

/// Every header that NumPy or write_npy_header() makes is shorter, and so is all that this reads.
inline constexpr size_t kLongestNpyHeader = 16384;

/// The header of such an array, as numpy.save writes it; as long for any first dimension.
std::string write_npy_header(DType dtype, std::span<const int64_t> shape);
/// The same for `rows` texts.
std::string write_npy_text_header(uint64_t width, uint64_t rows);

/// The array in an .npy file; its data lies in `stored` where order, byte order and alignment
/// allow. Throws like parse_npy_header(), and where there are more or fewer elements than the
/// shape says.
Array parse_npy(Bytes stored);

/// Bytes as numpy.save writes them. Throws Error(unsupported) for an unknown dtype, Error(usage)
/// where `data` does not fit the shape.
std::string write_npy(DType dtype, std::span<const int64_t> shape, Bytes data);

}  // namespace stoker
