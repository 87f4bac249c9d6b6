// SPDX-License-Identifier: Apache-2.0
#include "dataset/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "dataset/npy.h"

namespace stoker {
namespace {

using namespace std::string_literals;

Field field_of(FieldType type, Encoding encoding, DType dtype = DType::unknown) {
  Field field;
  field.type = type;
  field.encoding = encoding;
  field.dtype = dtype;
  return field;
}

const Field kDecimal = field_of(FieldType::number, Encoding::decimal, DType::int64);
const Field kNpy = field_of(FieldType::array, Encoding::npy);

template <typename T>
Array array_of(DType dtype, std::vector<int64_t> shape, std::vector<T> values) {
  Array array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  const Bytes bytes = std::as_bytes(std::span(values));
  array.owned.assign(bytes.begin(), bytes.end());
  array.data = array.owned;
  return array;
}

template <typename T>
Value decode_element(DType dtype, T element) {
  const std::string stored = write_npy(dtype, {}, std::as_bytes(std::span(&element, 1)));
  return decode_value(kNpy, as_bytes(stored));
}

std::string error_of(const Field& field, const std::string& stored) {
  try {
    decode_value(field, as_bytes(stored));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    return error.what();
  }
  return "no error";
}

TEST(Value, BytesAndText) {
  const std::string stored = "caf\xE9\0"s;
  const Value bytes = decode_value(field_of(FieldType::bytes, Encoding::raw), as_bytes(stored));
  EXPECT_EQ(std::get<Bytes>(bytes).data(), as_bytes(stored).data());
  const Value text = decode_value(field_of(FieldType::text, Encoding::raw), as_bytes(stored));
  EXPECT_EQ(std::get<std::string_view>(text), stored);
  EXPECT_TRUE(equal_values(bytes, text));
  EXPECT_EQ(encode_value(text, Encoding::raw), stored);
  EXPECT_EQ(encode_value(bytes, Encoding::raw), stored);
}

TEST(Value, DecimalNumbers) {
  const auto decode = [](const std::string& text) {
    return decode_value(kDecimal, as_bytes(text));
  };
  EXPECT_EQ(std::get<int64_t>(decode("7")), 7);
  EXPECT_EQ(std::get<int64_t>(decode(" -12\r\n")), -12);
  EXPECT_EQ(std::get<int64_t>(decode("+3")), 3);
  EXPECT_EQ(std::get<int64_t>(decode("-9223372036854775808")), INT64_MIN);
  EXPECT_EQ(std::get<double>(decode("1.5e3\n")), 1500.0);
  EXPECT_EQ(std::get<double>(decode("-inf")), -INFINITY);
  EXPECT_TRUE(std::isnan(std::get<double>(decode("nan"))));
}

TEST(Value, RefusesWhatIsNoNumber) {
  EXPECT_EQ(error_of(kDecimal, ""), "is empty, should be a number");
  EXPECT_EQ(error_of(kDecimal, " \n"), "is empty, should be a number");
  EXPECT_EQ(error_of(kDecimal, "cat"), "'cat' is not a number");
  EXPECT_EQ(error_of(kDecimal, "3 4"), "'3 4' is not a number");
  EXPECT_EQ(error_of(kDecimal, "+-3"), "'+-3' is not a number");
  EXPECT_EQ(error_of(kDecimal, "7\0"s), "'7\\x00' is not a number");
  EXPECT_EQ(error_of(kDecimal, "9223372036854775808"),
            "number 9223372036854775808 does not fit 64 bits");
  EXPECT_LT(error_of(kDecimal, std::string(100'000, 'x')).size(), 100u);
  EXPECT_EQ(error_of(field_of(FieldType::number, Encoding::none), "7"),
            "has no stored bytes, but some were given");
}

TEST(Value, ArraysWithoutDimensionsAreNumbers) {
  EXPECT_EQ(std::get<int64_t>(decode_element<uint8_t>(DType::bool8, 1)), 1);
  EXPECT_EQ(std::get<int64_t>(decode_element<int8_t>(DType::int8, -5)), -5);
  EXPECT_EQ(std::get<int64_t>(decode_element<int16_t>(DType::int16, -5)), -5);
  EXPECT_EQ(std::get<int64_t>(decode_element<int32_t>(DType::int32, -5)), -5);
  EXPECT_EQ(std::get<int64_t>(decode_element<int64_t>(DType::int64, -5)), -5);
  EXPECT_EQ(std::get<int64_t>(decode_element<uint8_t>(DType::uint8, 200)), 200);
  EXPECT_EQ(std::get<int64_t>(decode_element<uint16_t>(DType::uint16, 60000)), 60000);
  EXPECT_EQ(std::get<int64_t>(decode_element<uint32_t>(DType::uint32, 1U << 31)), 1LL << 31);
  EXPECT_EQ(std::get<int64_t>(decode_element<uint64_t>(DType::uint64, 7)), 7);
  EXPECT_EQ(std::get<double>(decode_element<float>(DType::float32, 0.5F)), 0.5);
  EXPECT_EQ(std::get<double>(decode_element<double>(DType::float64, 0.1)), 0.1);
  const Value large = decode_element<uint64_t>(DType::uint64, ~uint64_t{0});
  EXPECT_TRUE(std::get<Array>(large).shape.empty());
}

TEST(Value, HalfPrecision) {
  const std::pair<uint16_t, double> cases[] = {
      {0x0000, 0.0},     {0x3C00, 1.0},      {0xC000, -2.0},      {0x3555, 0.333251953125},
      {0x7BFF, 65504.},  {0x7C00, INFINITY}, {0xFC00, -INFINITY}, {0x0001, 0x1p-24},
      {0x0400, 0x1p-14}, {0x03FF, 0x3FFp-24}};
  for (const auto& [bits, value] : cases) {
    EXPECT_EQ(std::get<double>(decode_element<uint16_t>(DType::float16, bits)), value) << bits;
  }
  EXPECT_TRUE(std::isnan(std::get<double>(decode_element<uint16_t>(DType::float16, 0x7E00))));
}

TEST(Value, PackedListsAreNumbersOrArraysAsTheFieldSays) {
  const std::string one = "\x0A\x01\x05", two = "\x0A\x02\x05\x06";
  const Field number = field_of(FieldType::number, Encoding::tf_int64s, DType::int64);
  const Field array = field_of(FieldType::array, Encoding::tf_int64s, DType::int64);
  EXPECT_EQ(std::get<int64_t>(decode_value(number, as_bytes(one))), 5);
  EXPECT_EQ(std::get<Array>(decode_value(array, as_bytes(one))).shape, std::vector<int64_t>{1});
  EXPECT_EQ(std::get<Array>(decode_value(array, as_bytes(two))).shape, std::vector<int64_t>{2});
  EXPECT_EQ(error_of(number, two), "holds an array of shape (2), should hold one number");
  EXPECT_EQ(error_of(number, ""), "holds an array of shape (0), should hold one number");
  const std::string half = "\x0A\x04\x00\x00\x00\x3F"s;
  const Field real = field_of(FieldType::number, Encoding::tf_floats, DType::float32);
  EXPECT_EQ(std::get<double>(decode_value(real, as_bytes(half))), 0.5);
  const std::string strings = "\x0A\x01x\x0A\x00"s;
  const Value list =
      decode_value(field_of(FieldType::list, Encoding::tf_strings), as_bytes(strings));
  EXPECT_EQ(std::get<std::vector<Bytes>>(list).size(), 2u);
}

TEST(Value, Scalars) {
  const uint64_t half = std::bit_cast<uint64_t>(0.5);
  EXPECT_EQ(std::get<int64_t>(decode_scalar(kDecimal, ~uint64_t{0})), -1);
  const Field real = field_of(FieldType::number, Encoding::npy, DType::float16);
  EXPECT_EQ(std::get<double>(decode_scalar(real, half)), 0.5);
  const Field floats = field_of(FieldType::array, Encoding::tf_floats, DType::float32);
  EXPECT_TRUE(equal_values(decode_scalar(floats, half),
                           Value(array_of<float>(DType::float32, {1}, {0.5F}))));
  const Field integers = field_of(FieldType::array, Encoding::tf_int64s, DType::int64);
  EXPECT_TRUE(
      equal_values(decode_scalar(integers, 7), Value(array_of<int64_t>(DType::int64, {1}, {7}))));
}

TEST(Value, EncodesNumbers) {
  EXPECT_EQ(encode_value(int64_t{-7}, Encoding::decimal), "-7");
  EXPECT_EQ(encode_value(int64_t{300}, Encoding::tf_int64s), "\x0A\x02\xAC\x02");
  EXPECT_EQ(encode_value(0.5, Encoding::tf_floats), "\x0A\x04\x00\x00\x00\x3F"s);
  EXPECT_EQ(encode_value(2.0, Encoding::decimal), "2.0");
  EXPECT_EQ(encode_value(0.1, Encoding::decimal), "0.1");
  for (const double value :
       {0.1, 1e300, -2.0, 5e-324, double{INFINITY}, 1e22, 123456789012345680.0}) {
    for (const Encoding encoding : {Encoding::decimal, Encoding::npy}) {
      const Field field = field_of(FieldType::number, encoding);
      const std::string stored = encode_value(value, encoding);
      EXPECT_EQ(std::get<double>(decode_value(field, as_bytes(stored))), value) << stored;
    }
  }
  for (const int64_t value : {int64_t{0}, INT64_MIN, INT64_MAX}) {
    for (const Encoding encoding : {Encoding::decimal, Encoding::npy, Encoding::tf_int64s}) {
      const Field field = field_of(FieldType::number, encoding);
      const std::string stored = encode_value(value, encoding);
      EXPECT_EQ(std::get<int64_t>(decode_value(field, as_bytes(stored))), value);
    }
  }
}

TEST(Value, EncodesArraysAndLists) {
  const Value floats = array_of<float>(DType::float32, {2}, {1, 2});
  const Value plane = array_of<int64_t>(DType::int64, {1, 2}, {1, 2});
  EXPECT_TRUE(
      equal_values(floats, decode_value(kNpy, as_bytes(encode_value(floats, Encoding::npy)))));
  EXPECT_TRUE(
      equal_values(plane, decode_value(kNpy, as_bytes(encode_value(plane, Encoding::npy)))));
  const std::string packed = encode_value(floats, Encoding::tf_floats);
  const Field field = field_of(FieldType::array, Encoding::tf_floats);
  EXPECT_TRUE(equal_values(floats, decode_value(field, as_bytes(packed))));
  const Value row = array_of<int64_t>(DType::int64, {2}, {1, 2});
  EXPECT_EQ(encode_value(row, Encoding::tf_int64s), "\x0A\x02\x01\x02");
  const Value list = std::vector<Bytes>{as_bytes("ab"), {}};
  EXPECT_EQ(encode_value(list, Encoding::tf_strings),
            "\x0A\x02"
            "ab\x0A\x00"s);

  EXPECT_THROW(encode_value(plane, Encoding::tf_int64s), Error);
  EXPECT_THROW(encode_value(floats, Encoding::tf_int64s), Error);
  EXPECT_THROW(encode_value(floats, Encoding::decimal), Error);
  EXPECT_THROW(encode_value(list, Encoding::raw), Error);
  EXPECT_THROW(encode_value(0.1, Encoding::tf_floats), Error);
  EXPECT_THROW(encode_value(0.5, Encoding::tf_int64s), Error);
  EXPECT_THROW(encode_value(int64_t{1}, Encoding::raw), Error);
  EXPECT_THROW(encode_value(std::string_view("x"), Encoding::npy), Error);
  EXPECT_THROW(encode_value(Value(), Encoding::raw), Error);
}

TEST(Value, EqualNumbers) {
  EXPECT_TRUE(equal_values(int64_t{3}, 3.0));
  EXPECT_TRUE(equal_values(3.0, int64_t{3}));
  EXPECT_FALSE(equal_values(int64_t{3}, 3.5));
  EXPECT_FALSE(equal_values(int64_t{3}, int64_t{4}));
  EXPECT_TRUE(equal_values(double{NAN}, double{NAN}));
  EXPECT_FALSE(equal_values(int64_t{0}, double{NAN}));
  EXPECT_FALSE(equal_values(INT64_MAX, 0x1p63));
  EXPECT_FALSE(equal_values((int64_t{1} << 53) + 1, 0x1p53));
  EXPECT_FALSE(equal_values(int64_t{0}, double{INFINITY}));
}

TEST(Value, EqualOthers) {
  const Value five = array_of<int64_t>(DType::int64, {1}, {5});
  EXPECT_TRUE(equal_values(five, int64_t{5}));
  EXPECT_TRUE(equal_values(int64_t{5}, five));
  EXPECT_FALSE(equal_values(five, int64_t{6}));
  EXPECT_FALSE(equal_values(five, Value(array_of<int64_t>(DType::int64, {1, 1}, {5}))));
  EXPECT_FALSE(equal_values(five, Value(array_of<uint64_t>(DType::uint64, {1}, {5}))));
  EXPECT_FALSE(equal_values(five, Value(array_of<int64_t>(DType::int64, {1}, {6}))));
  EXPECT_FALSE(equal_values(Value(array_of<int64_t>(DType::int64, {2}, {5, 6})), int64_t{5}));
  EXPECT_TRUE(equal_values(Value(), Value()));
  EXPECT_FALSE(equal_values(Value(), int64_t{0}));
  EXPECT_FALSE(equal_values(int64_t{0}, Value()));
  EXPECT_FALSE(equal_values(as_bytes("1"), int64_t{1}));
  EXPECT_FALSE(equal_values(as_bytes("1"), five));
  const Value list = std::vector<Bytes>{as_bytes("a"), as_bytes("b")};
  EXPECT_TRUE(equal_values(list, Value(std::vector<Bytes>{as_bytes("a"), as_bytes("b")})));
  EXPECT_FALSE(equal_values(list, Value(std::vector<Bytes>{as_bytes("a")})));
  EXPECT_FALSE(equal_values(list, as_bytes("a")));
}

Field elements_of(DType dtype, std::vector<int64_t> shape, Encoding encoding) {
  Field field = field_of(shape.empty() ? FieldType::number : FieldType::array, encoding, dtype);
  field.shape = std::move(shape);
  return field;
}

TEST(Value, ElementsHaveTheShapeOfTheirField) {
  const std::vector<int16_t> numbers = {1, 2, 3, 4, 5, 6};
  const Bytes stored = std::as_bytes(std::span(numbers));
  const Field fixed = elements_of(DType::int16, {2, 3}, Encoding::elements);
  const Value value = decode_value(fixed, stored);
  EXPECT_EQ(std::get<Array>(value).shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::get<Array>(value).data.data(), stored.data());
  const Field open = elements_of(DType::int16, {-1, 2}, Encoding::elements);
  EXPECT_EQ(std::get<Array>(decode_value(open, stored)).shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(std::get<Array>(decode_value(open, {})).shape, (std::vector<int64_t>{0, 2}));
  EXPECT_THROW((void)decode_value(open, stored.first(6)), Error);
  EXPECT_THROW((void)decode_value(fixed, stored.first(10)), Error);
  const Field nothing = elements_of(DType::int16, {-1, 0}, Encoding::elements);
  EXPECT_THROW((void)decode_value(nothing, stored), Error);
  const Field unknown = elements_of(DType::unknown, {-1}, Encoding::elements);
  EXPECT_THROW((void)decode_value(unknown, stored), Error);
}

TEST(Value, BigEndianElementsAreTurned) {
  const Field field = elements_of(DType::int32, {2}, Encoding::elements_big);
  const Value value = decode_value(field, as_bytes("\0\0\0\1\xff\xff\xff\xfe"s));
  EXPECT_TRUE(equal_values(value, array_of<int32_t>(DType::int32, {2}, {1, -2})));
  const Field number = elements_of(DType::float64, {}, Encoding::elements_big);
  EXPECT_EQ(std::get<double>(decode_value(number, as_bytes("\x40\x09\0\0\0\0\0\0"s))), 3.125);
  const Field half = elements_of(DType::uint16, {}, Encoding::elements_big);
  EXPECT_EQ(std::get<int64_t>(decode_value(half, as_bytes("\1\2"s))), 258);
}

TEST(Value, PaddingIsNoPartOfTheText) {
  const Field text = field_of(FieldType::text, Encoding::padded);
  EXPECT_EQ(std::get<std::string_view>(decode_value(text, as_bytes("a\0b\0\0"s))), "a\0b"s);
  const Field bytes = field_of(FieldType::bytes, Encoding::padded);
  EXPECT_EQ(as_text(std::get<Bytes>(decode_value(bytes, as_bytes("\0\0"s)))), "");
}

TEST(Value, EncodesElementsOfAField) {
  const Field half = elements_of(DType::float16, {}, Encoding::elements);
  for (const double number : {0.0, -0.0, 1.0, -1.5, 65504.0, 0x1p-24, 0x1.8p-15, 0x1.ff8p-15}) {
    const std::string stored = encode_value(Value(number), half);
    EXPECT_EQ(std::get<double>(decode_value(half, as_bytes(stored))), number);
  }
  for (const double number : {0.1, 65536.0, 0x1p-25}) {
    EXPECT_THROW((void)encode_value(Value(number), half), Error) << number;
  }
  const Field byte = elements_of(DType::uint8, {}, Encoding::elements);
  EXPECT_EQ(encode_value(Value(int64_t{200}), byte), "\xC8");
  EXPECT_THROW((void)encode_value(Value(int64_t{256}), byte), Error);
  EXPECT_THROW((void)encode_value(Value(int64_t{-1}), byte), Error);
  EXPECT_THROW((void)encode_value(Value(0.5), byte), Error);
  const Field big = elements_of(DType::int16, {-1}, Encoding::elements_big);
  EXPECT_EQ(encode_value(array_of<int16_t>(DType::int16, {2}, {1, 2}), big), "\0\1\0\2"s);
  EXPECT_THROW((void)encode_value(array_of<int16_t>(DType::int16, {1, 2}, {1, 2}), big), Error);
  EXPECT_THROW((void)encode_value(array_of<int8_t>(DType::int8, {2}, {1, 2}), big), Error);
  Field npy = kNpy;
  npy.dtype = DType::float32;
  EXPECT_EQ(parse_npy(as_bytes(encode_value(Value(0.5), npy))).dtype, DType::float32);
}

}  // namespace
}  // namespace stoker
