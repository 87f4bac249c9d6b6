// SPDX-License-Identifier: Apache-2.0
#include "dataset/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "dataset/npy.h"
#include "dataset/tf_list.h"

namespace stoker {
namespace {

[[noreturn]] void corrupt(const std::string& cause) { throw Error(ErrorKind::corrupt, cause); }

Value decode_decimal(Bytes stored) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  std::string_view text = as_text(stored);
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  if (text.empty()) corrupt("is empty, should be a number");
  const std::string shown = printable(text.substr(0, 40));
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  int64_t integer = 0;
  const auto as_integer = std::from_chars(text.data(), end, integer);
  if (as_integer.ptr == end) {
    if (as_integer.ec == std::errc()) return integer;
    if (as_integer.ec == std::errc::result_out_of_range) {
      corrupt(fmt::format("number {} does not fit 64 bits", shown));
    }
  }
  double real = 0;
  const auto as_real = std::from_chars(text.data(), end, real);
  if (as_real.ptr == end && as_real.ec == std::errc()) return real;
  corrupt(fmt::format("'{}' is not a number", shown));
}

bool is_float(DType dtype) {
  return dtype == DType::float16 || dtype == DType::float32 || dtype == DType::float64;
}

double to_double(DType dtype, const std::byte* element) {
  if (dtype == DType::float64) return load<double>(element);
  if (dtype == DType::float32) return load<float>(element);
  // float16: 1 bit sign, 5 exponent, 10 fraction.
  const auto bits = load<uint16_t>(element);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = std::ldexp(exponent == 0 ? fraction : fraction + 1024, std::max(exponent, 1) - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return bits >> 15 != 0 ? -value : value;
}

std::optional<int64_t> to_integer(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::bool8:
      return load<uint8_t>(element) != 0 ? 1 : 0;
    case DType::int8:
      return load<int8_t>(element);
    case DType::int16:
      return load<int16_t>(element);
    case DType::int32:
      return load<int32_t>(element);
    case DType::int64:
      return load<int64_t>(element);
    case DType::uint8:
      return load<uint8_t>(element);
    case DType::uint16:
      return load<uint16_t>(element);
    case DType::uint32:
      return load<uint32_t>(element);
    default:
      break;
  }
  const auto value = load<int64_t>(element);
  return dtype == DType::uint64 && value >= 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

void swap_bytes(MutableBytes data, size_t element) {
  const auto swap = [&]<typename T>(T (*reversed)(T)) {
    for (size_t at = 0; at + sizeof(T) <= data.size(); at += sizeof(T)) {
      const T value = reversed(load<T>(data.data() + at));
      std::memcpy(data.data() + at, &value, sizeof(T));
    }
  };
  if (element == 2) swap(+[](uint16_t v) { return __builtin_bswap16(v); });
  if (element == 4) swap(+[](uint32_t v) { return __builtin_bswap32(v); });
  if (element == 8) swap(+[](uint64_t v) { return static_cast<uint64_t>(__builtin_bswap64(v)); });
}

// A uint64 beyond int64 is absent as well.
Value only_element(const Array& array) {
  const size_t element = size_of(array.dtype);
  if (element == 0 || array.data.size() != element) return {};
  if (is_float(array.dtype)) return to_double(array.dtype, array.data.data());
  const std::optional<int64_t> integer = to_integer(array.dtype, array.data.data());
  return integer ? Value(*integer) : Value();
}

namespace {

/// What a field of type number makes of an array.
Value decode_array(const Field& field, Array array) {
  const bool number = field.type == FieldType::number;
  if (number ? array.data.size() == size_of(array.dtype) : array.shape.empty()) {
    Value value = only_element(array);
    if (!std::holds_alternative<std::monostate>(value)) return value;
  } else if (number) {
    corrupt(fmt::format("holds an array of shape ({}), should hold one number",
                        fmt::join(array.shape, ", ")));
  }
  return array;
}

/// The shape of a field's value that takes this many bytes: a first dimension of -1 follows.
std::vector<int64_t> shape_of(const Field& field, uint64_t length) {
  if (!field.shape || field.dtype == DType::unknown) {
    corrupt("the index does not say what elements it consists of: run stoker index");
  }
  std::vector<int64_t> shape = *field.shape;
  const bool open = !shape.empty() && shape.front() == -1;
  if (open) shape.front() = 1;
  const std::optional<uint64_t> size = size_of_elements(field.dtype, shape);
  if (open && size && *size > 0 && length % *size == 0) {
    shape.front() = static_cast<int64_t>(length / *size);
  } else if (open && length == 0) {
    shape.front() = 0;
  } else if (size != length || open) {
    corrupt(fmt::format("holds {} bytes, which is no {} array of shape ({})", length,
                        name_of(field.dtype), fmt::join(*field.shape, ", ")));
  }
  return shape;
}

Array parse_elements(const Field& field, Bytes stored) {
  Array array;
  array.dtype = field.dtype;
  array.shape = shape_of(field, stored.size());
  const size_t element = size_of(field.dtype);
  const bool swap = field.encoding == Encoding::elements_big && element > 1;
  if (!swap && reinterpret_cast<uintptr_t>(stored.data()) % element == 0) {
    array.data = stored;
    return array;
  }
  array.owned.assign(stored.begin(), stored.end());
  if (swap) swap_bytes(array.owned, element);
  array.data = array.owned;
  return array;
}

/// Without the NUL bytes at its end.
Bytes without_padding(Bytes stored) {
  while (!stored.empty() && stored.back() == std::byte{0}) stored = stored.first(stored.size() - 1);
  return stored;
}

Array array_of(DType dtype, std::vector<int64_t> shape, Bytes element) {
  Array array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.owned.assign(element.begin(), element.end());
  array.data = array.owned;
  return array;
}

template <typename T>
Bytes bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

[[noreturn]] void cannot_encode(const char* what, Encoding encoding) {
  throw Error(ErrorKind::unsupported,
              fmt::format("{} cannot be stored in the encoding {}", what, name_of(encoding)));
}

std::string encode_integer(int64_t value, Encoding encoding) {
  switch (encoding) {
    case Encoding::decimal:
      return fmt::format("{}", value);
    case Encoding::npy:
      return write_npy(DType::int64, {}, bytes_of(value));
    case Encoding::tf_int64s:
      return write_int64_list(bytes_of(value));
    default:
      cannot_encode("an integer", encoding);
  }
}

std::string encode_real(double value, Encoding encoding) {
  if (encoding == Encoding::npy) return write_npy(DType::float64, {}, bytes_of(value));
  if (encoding == Encoding::tf_floats) {
    const auto single = static_cast<float>(value);
    if (!std::isnan(value) && single != value) cannot_encode("a float64", encoding);
    return write_float_list(bytes_of(single));
  }
  if (encoding != Encoding::decimal) cannot_encode("a number with a fraction", encoding);
  // The fewest digits that give the same double again, and a sign that it is one.
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string encode_array(const Array& array, Encoding encoding) {
  if (encoding == Encoding::npy) return write_npy(array.dtype, array.shape, array.data);
  const bool flat = array.shape.size() == 1;
  if (flat && encoding == Encoding::tf_int64s && array.dtype == DType::int64) {
    return write_int64_list(array.data);
  }
  if (flat && encoding == Encoding::tf_floats && array.dtype == DType::float32) {
    return write_float_list(array.data);
  }
  cannot_encode("an array of this dtype and shape", encoding);
}

/// Whether an array fits a field's shape, whose first dimension may be open.
bool has_shape(const std::vector<int64_t>& is, const std::vector<int64_t>& should) {
  if (is.size() != should.size()) return false;
  for (size_t i = 0; i < is.size(); ++i) {
    if (is[i] != should[i] && (i > 0 || should[i] != -1)) return false;
  }
  return true;
}

/// The bits of a float16 that is exactly this number; others give another one.
uint16_t to_half(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return sign | 0x7E00;
  if (std::isinf(value)) return sign | 0x7C00;
  int exponent = 0;
  (void)std::frexp(value, &exponent);
  exponent = std::max(exponent + 14, 1);  // of the smallest numbers there is one for all
  const auto fraction = static_cast<int64_t>(std::ldexp(std::abs(value), 25 - exponent));
  if (exponent >= 31) return sign | 0x7C00;
  return static_cast<uint16_t>(sign +
                               (fraction < 1024 ? fraction : fraction - 1024 + (exponent << 10)));
}

void put_real(double value, DType dtype, MutableBytes to) {
  if (dtype == DType::float64) store(to.data(), value);
  if (dtype == DType::float32) store(to.data(), static_cast<float>(value));
  if (dtype == DType::float16) store(to.data(), to_half(value));
  if (!is_float(dtype)) cannot_encode("a number with a fraction", Encoding::elements);
  const double stored = to_double(dtype, to.data());
  if (stored != value && !std::isnan(value)) {
    throw Error(ErrorKind::unsupported, fmt::format("{} is no {}", value, name_of(dtype)));
  }
}

void put_integer(int64_t value, DType dtype, MutableBytes to) {
  if (is_float(dtype)) return put_real(static_cast<double>(value), dtype, to);
  std::memcpy(to.data(), &value, to.size());
  if (dtype == DType::unknown || to_integer(dtype, to.data()) != value) {
    throw Error(ErrorKind::unsupported, fmt::format("{} is no {}", value, name_of(dtype)));
  }
}

/// Values that are compared by their bytes.
std::optional<Bytes> plain_bytes(const Value& value) {
  if (const auto* bytes = std::get_if<Bytes>(&value)) return *bytes;
  if (const auto* text = std::get_if<std::string_view>(&value)) return as_bytes(*text);
  return std::nullopt;
}

bool same_bytes(Bytes a, Bytes b) { return as_text(a) == as_text(b); }

bool equal_numbers(int64_t a, double b) {
  // 2^63 is the first double that no int64 equals; beyond it the conversion is undefined.
  return b >= -0x1p63 && b < 0x1p63 && static_cast<int64_t>(b) == a && std::trunc(b) == b;
}

bool equal_numbers(const Value& a, const Value& b) {
  const auto *integer_a = std::get_if<int64_t>(&a), *integer_b = std::get_if<int64_t>(&b);
  const auto *real_a = std::get_if<double>(&a), *real_b = std::get_if<double>(&b);
  if (integer_a && integer_b) return *integer_a == *integer_b;
  if (integer_a && real_b) return equal_numbers(*integer_a, *real_b);
  if (real_a && integer_b) return equal_numbers(*integer_b, *real_a);
  if (!real_a || !real_b) return false;
  return *real_a == *real_b || (std::isnan(*real_a) && std::isnan(*real_b));
}

}  // namespace

Value decode_value(const Field& field, Bytes stored) {
  switch (field.encoding) {
    case Encoding::raw:
      if (field.type == FieldType::text) return as_text(stored);
      return stored;
    case Encoding::none:
      corrupt("has no stored bytes, but some were given");
    case Encoding::decimal:
      return decode_decimal(stored);
    case Encoding::npy:
      return decode_array(field, parse_npy(stored));
    case Encoding::tf_int64s:
      return decode_array(field, parse_int64_list(stored));
    case Encoding::tf_floats:
      return decode_array(field, parse_float_list(stored));
    case Encoding::tf_strings:
      return parse_bytes_list(stored);
    case Encoding::elements:
    case Encoding::elements_big:
      return decode_array(field, parse_elements(field, stored));
    case Encoding::padded:
      if (field.type == FieldType::text) return as_text(without_padding(stored));
      return without_padding(stored);
  }
  corrupt("has an unknown encoding");
}

Value decode_scalar(const Field& field, uint64_t bits) {
  const bool array = field.type == FieldType::array;
  // Once other samples hold more than one, one is an array as well.
  if (array && field.encoding == Encoding::tf_int64s) {
    return array_of(DType::int64, {1}, bytes_of(bits));
  }
  if (array && field.encoding == Encoding::tf_floats) {
    return array_of(DType::float32, {1}, bytes_of(static_cast<float>(std::bit_cast<double>(bits))));
  }
  if (is_float(field.dtype)) return std::bit_cast<double>(bits);
  return std::bit_cast<int64_t>(bits);
}

std::string encode_value(const Value& value, Encoding encoding) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return encode_integer(*integer, encoding);
  if (const auto* real = std::get_if<double>(&value)) return encode_real(*real, encoding);
  if (const auto* array = std::get_if<Array>(&value)) return encode_array(*array, encoding);
  if (const auto* list = std::get_if<std::vector<Bytes>>(&value)) {
    if (encoding != Encoding::tf_strings) cannot_encode("a list", encoding);
    return write_bytes_list(*list);
  }
  const std::optional<Bytes> bytes = plain_bytes(value);
  if (!bytes) cannot_encode("an absent value", encoding);
  if (encoding != Encoding::raw) cannot_encode("a value that is bytes or text", encoding);
  return std::string(as_text(*bytes));
}

std::string encode_value(const Value& value, const Field& as) {
  const bool number =
      std::holds_alternative<int64_t>(value) || std::holds_alternative<double>(value);
  if (number && as.encoding == Encoding::npy && as.dtype != DType::unknown) {
    Field element = as;
    element.encoding = Encoding::elements;
    return write_npy(as.dtype, {}, as_bytes(encode_value(value, element)));
  }
  if (!is_elements(as.encoding)) return encode_value(value, as.encoding);
  std::string stored(size_of(as.dtype), '\0');
  const MutableBytes element = std::as_writable_bytes(std::span(stored));
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    put_integer(*integer, as.dtype, element);
  } else if (const auto* real = std::get_if<double>(&value)) {
    put_real(*real, as.dtype, element);
  } else if (const auto* array = std::get_if<Array>(&value)) {
    if (array->dtype != as.dtype || !as.shape || !has_shape(array->shape, *as.shape)) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("is a {} array of shape ({}), should be {} of shape ({})",
                              name_of(array->dtype), fmt::join(array->shape, ", "),
                              name_of(as.dtype), fmt::join(as.shape.value_or(array->shape), ", ")));
    }
    stored = as_text(array->data);
  } else {
    cannot_encode("a value that is no number or array", as.encoding);
  }
  if (as.encoding == Encoding::elements_big) {
    swap_bytes(std::as_writable_bytes(std::span(stored)), size_of(as.dtype));
  }
  return stored;
}

std::optional<Bytes> encoded_already(const Value& value, const Field& as) {
  const auto* array = std::get_if<Array>(&value);
  const bool same = array != nullptr && array->owned.empty() && as.encoding == Encoding::elements &&
                    array->dtype == as.dtype && as.shape && has_shape(array->shape, *as.shape);
  if (!same) return std::nullopt;
  return array->data;
}

bool equal_values(const Value& a, const Value& b) {
  if (const auto bytes_a = plain_bytes(a), bytes_b = plain_bytes(b); bytes_a && bytes_b) {
    return same_bytes(*bytes_a, *bytes_b);
  }
  const auto *array_a = std::get_if<Array>(&a), *array_b = std::get_if<Array>(&b);
  if (array_a && array_b) {
    return array_a->dtype == array_b->dtype && array_a->shape == array_b->shape &&
           same_bytes(array_a->data, array_b->data);
  }
  if (array_a) return equal_numbers(only_element(*array_a), b);
  if (array_b) return equal_numbers(a, only_element(*array_b));
  const auto *list_a = std::get_if<std::vector<Bytes>>(&a),
             *list_b = std::get_if<std::vector<Bytes>>(&b);
  if (list_a && list_b) {
    return std::equal(list_a->begin(), list_a->end(), list_b->begin(), list_b->end(), same_bytes);
  }
  if (std::holds_alternative<std::monostate>(a)) return std::holds_alternative<std::monostate>(b);
  return equal_numbers(a, b);
}

}  // namespace stoker
