// SPDX-License-Identifier: Apache-2.0
#include "dataset/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace stoker {
namespace {

// NumPy's own limits: 64 dimensions, and a header of 10,000 bytes.
constexpr size_t kMaxDimensions = 64;
constexpr size_t kMaxHeader = 10'000;
// Elements begin at a multiple of this.
constexpr size_t kAlignment = 64;
// NumPy leaves room for the first dimension to grow to this many digits.
constexpr size_t kGrowthDigits = 21;

[[noreturn]] void corrupt(const std::string& cause) {
  throw Error(ErrorKind::corrupt, "npy: " + cause);
}

/// A dtype as NumPy writes it, without the byte order.
struct DTypeCode {
  std::string_view code;
  DType dtype;
};
constexpr std::array kCodes = {
    DTypeCode{"b1", DType::bool8},   DTypeCode{"i1", DType::int8},
    DTypeCode{"i2", DType::int16},   DTypeCode{"i4", DType::int32},
    DTypeCode{"i8", DType::int64},   DTypeCode{"u1", DType::uint8},
    DTypeCode{"u2", DType::uint16},  DTypeCode{"u4", DType::uint32},
    DTypeCode{"u8", DType::uint64},  DTypeCode{"f2", DType::float16},
    DTypeCode{"f4", DType::float32}, DTypeCode{"f8", DType::float64},
};

[[noreturn]] void unsupported_dtype(std::string_view descr) {
  throw Error(ErrorKind::unsupported,
              fmt::format("npy: dtype {} is not supported: only numbers and booleans are",
                          printable(descr)));
}

/// Reads the Python literal that a header is: a dictionary of three known keys.
class HeaderParser {
 public:
  HeaderParser(std::string_view header, NpyText text) : rest_(header), text_(text) {}

  NpyHeader parse() {
    expect('{');
    while (!take('}')) {
      entry(string());
      if (take(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (!rest_.empty()) malformed();
    if (!descr_ || !fortran_order_ || !shape_) malformed();
    NpyHeader header;
    set_dtype(header);
    header.fortran_order = *fortran_order_;
    header.shape = std::move(*shape_);
    return header;
  }

 private:
  [[noreturn]] static void malformed() {
    corrupt("the header is not a dictionary of descr, fortran_order and shape");
  }

  void skip_space() {
    const size_t word = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(word, rest_.size()));
  }

  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c)) malformed();
  }

  std::string_view string() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) malformed();
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) malformed();
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  void entry(std::string_view key) {
    expect(':');
    skip_space();
    if (key == "descr" && !descr_) {
      if (rest_.starts_with('[')) unsupported_dtype("with named fields");
      descr_ = string();
    } else if (key == "fortran_order" && !fortran_order_) {
      fortran_order_ = boolean();
    } else if (key == "shape" && !shape_) {
      shape_ = tuple();
    } else {
      malformed();
    }
  }

  bool boolean() {
    for (const std::string_view word : {"True", "False"}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    malformed();
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> dimensions;
    expect('(');
    while (!take(')')) {
      dimensions.push_back(dimension());
      if (dimensions.size() > kMaxDimensions) corrupt("the shape has too many dimensions");
      if (take(',')) continue;
      expect(')');
      break;
    }
    return dimensions;
  }

  int64_t dimension() {
    skip_space();
    int64_t value = 0;
    const char* end = rest_.data() + rest_.size();
    const auto [stop, error] = std::from_chars(rest_.data(), end, value);
    if (error != std::errc() || value < 0)
      corrupt("the shape holds something that is no dimension");
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // Python 2 wrote long integers so
    return value;
  }

  void set_dtype(NpyHeader& header) const {
    std::string_view code = *descr_;
    if (!code.empty() && std::string_view("<>|=").find(code.front()) != std::string_view::npos) {
      header.big_endian = code.front() == '>';
      code.remove_prefix(1);
    }
    if (text_ == NpyText::allowed && code.starts_with('S')) {
      const char* end = code.data() + code.size();
      const auto [stop, error] = std::from_chars(code.data() + 1, end, header.text_width);
      constexpr uint64_t kWidest = uint64_t{1} << 30;
      if (error == std::errc() && stop == end && header.text_width <= kWidest) return;
    }
    const auto found = std::find_if(kCodes.begin(), kCodes.end(),
                                    [&](const DTypeCode& known) { return known.code == code; });
    if (found == kCodes.end()) unsupported_dtype(*descr_);
    header.dtype = found->dtype;
  }

  std::string_view rest_;
  NpyText text_;
  std::optional<std::string_view> descr_;
  std::optional<bool> fortran_order_;
  std::optional<std::vector<int64_t>> shape_;
};

/// Elements in Fortran order, the first index running fastest, to C order.
void to_c_order(std::span<const int64_t> shape, size_t element, const std::byte* from,
                std::vector<std::byte>& to) {
  std::vector<size_t> strides(shape.size());  // of `from`, in bytes
  size_t stride = element;
  for (size_t i = 0; i < shape.size(); ++i) {
    strides[i] = stride;
    stride *= static_cast<size_t>(shape[i]);
  }
  std::vector<int64_t> index(shape.size());
  size_t source = 0;
  for (size_t at = 0; at < to.size(); at += element) {
    std::memcpy(&to[at], from + source, element);
    for (size_t i = shape.size(); i-- > 0;) {
      source += strides[i];
      if (++index[i] < shape[i]) break;
      source -= strides[i] * static_cast<size_t>(shape[i]);
      index[i] = 0;
    }
  }
}

std::string descr_of(DType dtype) {
  for (const DTypeCode& known : kCodes) {
    if (known.dtype == dtype) return (size_of(dtype) == 1 ? "|" : "<") + std::string(known.code);
  }
  throw Error(ErrorKind::unsupported, "npy: cannot write an array of unknown dtype");
}

}  // namespace

NpyHeader parse_npy_header(Bytes stored, NpyText text_elements) {
  const std::string_view text = as_text(stored);
  if (!text.starts_with(kNpyMagic)) corrupt("does not begin with the magic bytes of an .npy file");
  constexpr size_t kVersionAt = kNpyMagic.size(), kLengthAt = kVersionAt + 2;
  if (text.size() < kLengthAt + 4) corrupt("is cut off in the header");
  const auto major = static_cast<unsigned char>(text[kVersionAt]);
  const auto minor = static_cast<unsigned char>(text[kVersionAt + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("npy: version {}.{} is not known", major, minor));
  }
  const std::byte* length_at = stored.data() + kLengthAt;
  const size_t length = major == 1 ? load<uint16_t>(length_at) : load<uint32_t>(length_at);
  const size_t begin = kLengthAt + (major == 1 ? 2 : 4);
  if (length > text.size() - begin) {
    corrupt(fmt::format("says its header has {} bytes, but only {} are left", length,
                        text.size() - begin));
  }
  if (length > kMaxHeader) corrupt(fmt::format("has a header of {} bytes", length));
  NpyHeader header = HeaderParser(text.substr(begin, length), text_elements).parse();
  header.size = begin + length;
  const bool is_text = header.dtype == DType::unknown;
  auto data_size = size_of_elements(is_text ? DType::uint8 : header.dtype, header.shape);
  uint64_t size = data_size.value_or(0);
  if (is_text && __builtin_mul_overflow(size, header.text_width, &size)) data_size.reset();
  if (!data_size) corrupt("the shape is too large");
  header.data_size = size;
  return header;
}

Array parse_npy(Bytes stored) {
  NpyHeader header = parse_npy_header(stored);
  const size_t element = size_of(header.dtype);
  const Bytes data = stored.subspan(header.size);
  if (data.size() != header.data_size) {
    corrupt(fmt::format("holds {} bytes of elements, but the header says {}", data.size(),
                        header.data_size));
  }
  Array array;
  array.dtype = header.dtype;
  array.shape = std::move(header.shape);
  const bool reorder = header.fortran_order && array.shape.size() > 1;
  const bool swap = header.big_endian && element > 1;
  const bool aligned = reinterpret_cast<uintptr_t>(data.data()) % element == 0;
  if (!reorder && !swap && aligned) {
    array.data = data;
    return array;
  }
  array.owned.resize(data.size());
  if (reorder) {
    to_c_order(array.shape, element, data.data(), array.owned);
  } else {
    std::copy(data.begin(), data.end(), array.owned.begin());
  }
  if (swap) swap_bytes(array.owned, element);
  array.data = array.owned;
  return array;
}

namespace {

std::string header_of(std::string_view descr, std::span<const int64_t> shape) {
  // Space for space what numpy.save writes, also where it pads a whole unit.
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  if (!shape.empty()) header.append(kGrowthDigits - fmt::formatted_size("{}", shape[0]), ' ');
  const size_t prefix = kNpyMagic.size() + 4;
  header.append(kAlignment - (prefix + header.size() + 1) % kAlignment, ' ');
  header += '\n';

  std::string out(kNpyMagic);
  out += {'\x01', '\x00'};
  const auto length = static_cast<uint16_t>(header.size());
  out += as_text(std::as_bytes(std::span(&length, 1)));
  out += header;
  return out;
}

}  // namespace

std::string write_npy_header(DType dtype, std::span<const int64_t> shape) {
  return header_of(descr_of(dtype), shape);
}

std::string write_npy_text_header(uint64_t width, uint64_t rows) {
  const auto count = static_cast<int64_t>(rows);
  return header_of(fmt::format("|S{}", width), {&count, 1});
}

std::string write_npy(DType dtype, std::span<const int64_t> shape, Bytes data) {
  if (size_of_elements(dtype, shape) != data.size()) {
    (void)descr_of(dtype);
    throw Error(ErrorKind::usage, "npy: the elements do not fit the shape");
  }
  return write_npy_header(dtype, shape).append(as_text(data));
}

}  // namespace stoker
