// SPDX-License-Identifier: Apache-2.0
#include "dataset/npy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"

namespace stoker {
namespace {

using namespace std::string_literals;

/// An .npy file whose header is `dictionary`, unpadded.
std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string out(kNpyMagic);
  out += static_cast<char>(version);
  out += '\0';
  const auto length = static_cast<uint32_t>(dictionary.size());
  out.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return out + dictionary + data;
}

std::string header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr,
                     fortran ? "True" : "False", shape);
}

template <typename T>
std::string elements(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T));
}

template <typename T>
std::vector<T> values_of(const Array& array) {
  std::vector<T> values(array.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
  return values;
}

using Shape = std::vector<int64_t>;

void expect_error(const std::string& stored, ErrorKind kind, const std::string& part) {
  try {
    parse_npy(as_bytes(stored));
    ADD_FAILURE() << "no error, expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Npy, ReadsEveryVersion) {
  for (const int version : {1, 2, 3}) {
    const std::string stored =
        npy(header("<i4", "(2, 3)"), elements<int32_t>({1, 2, 3, 4, 5, 6}), version);
    const Array array = parse_npy(as_bytes(stored));
    EXPECT_EQ(array.dtype, DType::int32);
    EXPECT_EQ(array.shape, (Shape{2, 3}));
    EXPECT_EQ(values_of<int32_t>(array), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  }
}

TEST(Npy, ReadsEveryDType) {
  const std::pair<const char*, DType> dtypes[] = {
      {"|b1", DType::bool8},   {"|i1", DType::int8},    {"<i2", DType::int16},
      {"<i4", DType::int32},   {"<i8", DType::int64},   {"|u1", DType::uint8},
      {"<u2", DType::uint16},  {"<u4", DType::uint32},  {"<u8", DType::uint64},
      {"<f2", DType::float16}, {"<f4", DType::float32}, {"<f8", DType::float64}};
  for (const auto& [descr, dtype] : dtypes) {
    const std::string data(2 * size_of(dtype), '\x01');
    const std::string stored = npy(header(descr, "(2,)"), data);
    const Array array = parse_npy(as_bytes(stored));
    EXPECT_EQ(array.dtype, dtype) << descr;
    EXPECT_EQ(as_text(array.data), data);
  }
}

TEST(Npy, AcceptsOtherSpellingsOfTheHeader) {
  const std::string data = elements<float>({1.5F, 2.5F});
  for (const char* dictionary :
       {"{\"shape\":(1,2),\"descr\":\"<f4\",\"fortran_order\":False}",
        "{'descr':'=f4','shape':(2L,),\n"
        "'fortran_order':False}",
        "{ 'descr' : 'f4' , 'fortran_order' : True , 'shape' : ( 2 , ) , } "}) {
    const std::string stored = npy(dictionary, data);
    EXPECT_EQ(values_of<float>(parse_npy(as_bytes(stored))), (std::vector<float>{1.5F, 2.5F}));
  }
}

TEST(Npy, PointsIntoTheStoredBytesWhereAligned) {
  const std::string file = write_npy(DType::float64, Shape{2}, as_bytes(std::string(16, 'x')));
  std::vector<uint64_t> memory(file.size() / 8 + 2);
  auto* bytes = reinterpret_cast<std::byte*>(memory.data());
  std::memcpy(bytes, file.data(), file.size());
  Array array = parse_npy({bytes, file.size()});
  EXPECT_TRUE(array.owned.empty());
  EXPECT_EQ(array.data.data(), bytes + file.size() - 16);

  std::memcpy(bytes + 1, file.data(), file.size());
  array = parse_npy({bytes + 1, file.size()});
  EXPECT_EQ(array.data.data(), array.owned.data());
  EXPECT_EQ(as_text(array.data), std::string(16, 'x'));
}

TEST(Npy, ConvertsByteOrder) {
  const std::string stored = npy(header(">i2", "(2,)"), "\x01\x02\xFF\xFE"s);
  const Array array = parse_npy(as_bytes(stored));
  EXPECT_EQ(values_of<int16_t>(array), (std::vector<int16_t>{0x0102, -2}));
}

TEST(Npy, ConvertsFortranOrder) {
  // [[0, 1, 2], [3, 4, 5]] column by column.
  const std::string plane =
      npy(header("<u2", "(2, 3)", true), elements<uint16_t>({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values_of<uint16_t>(parse_npy(as_bytes(plane))),
            (std::vector<uint16_t>{0, 1, 2, 3, 4, 5}));
  const std::string cube = npy(header("|u1", "(2, 1, 3)", true), "\0\3\1\4\2\5"s);
  EXPECT_EQ(as_text(parse_npy(as_bytes(cube)).data), "\0\1\2\3\4\5"s);
  const std::string both = npy(header(">u2", "(2, 2)", true), "\0\0\0\2\0\1\0\3"s);
  EXPECT_EQ(values_of<uint16_t>(parse_npy(as_bytes(both))), (std::vector<uint16_t>{0, 1, 2, 3}));
  const std::string none = npy(header("<u2", "(2, 0, 3)", true), "");
  EXPECT_EQ(parse_npy(as_bytes(none)).shape, (Shape{2, 0, 3}));
}

TEST(Npy, RefusesOtherDTypes) {
  expect_error(npy(header("<c8", "(1,)"), "12345678"), ErrorKind::unsupported, "dtype <c8");
  expect_error(npy(header("|O", "()"), "x"), ErrorKind::unsupported, "dtype |O");
  expect_error(npy(header("<U3", "(1,)"), std::string(12, 'x')), ErrorKind::unsupported,
               "dtype <U3");
  expect_error(npy(header("", "()"), "x"), ErrorKind::unsupported, "not supported");
  expect_error(npy("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}", "1234"),
               ErrorKind::unsupported, "named fields");
  expect_error(npy(header("<i4", "(1,)"), "1234", 4), ErrorKind::unsupported, "version 4.0");
}

TEST(Npy, RefusesWrongSizes) {
  expect_error(npy(header("<i4", "(2,)"), "1234567"), ErrorKind::corrupt,
               "holds 7 bytes of elements, but the header says 8");
  expect_error(npy(header("<i4", "(2,)"), "123456789"), ErrorKind::corrupt, "says 8");
  expect_error(npy(header("<i4", "()"), ""), ErrorKind::corrupt, "says 4");
  expect_error(npy(header("|u1", "(9223372036854775807, 2)"), ""), ErrorKind::corrupt, "too large");
  expect_error(npy(header("<f8", "(4611686018427387904, 4)"), ""), ErrorKind::corrupt, "too large");
  expect_error(npy(header("|u1", "(4294967296, 4294967296, 0)"), ""), ErrorKind::corrupt,
               "too large");
  expect_error(npy(header("|u1", "(18446744073709551617,)"), "x"), ErrorKind::corrupt,
               "no dimension");
  expect_error(npy(header("|u1", "(-1,)"), "x"), ErrorKind::corrupt, "no dimension");
  std::string dimensions;
  for (int i = 0; i < 65; ++i) dimensions += "1,";
  expect_error(npy(header("|u1", "(" + dimensions + ")"), "x"), ErrorKind::corrupt, "too many");
}

TEST(Npy, RefusesBrokenHeaders) {
  const std::string whole = npy(header("|u1", "(3,)"), "abc");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse_npy(as_bytes(whole.substr(0, size))), Error) << size;
  }
  expect_error("\x93NUMPZ\1\0v\0{}", ErrorKind::corrupt, "magic");
  expect_error(npy(std::string(20'000, ' '), ""), ErrorKind::corrupt, "header of 20000 bytes");
  std::string lies = whole;
  lies[9] = '\x7F';
  expect_error(lies, ErrorKind::corrupt, "says its header has");
  for (const char* dictionary :
       {"", "{", "}", "{}", "[]", "{'descr': '|u1'", "{'descr': '|u1', 'fortran_order': False}",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': 3}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '|u1' 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|u1, 'fortran_order': False, 'shape': (3,)}"}) {
    expect_error(npy(dictionary, "abc"), ErrorKind::corrupt, "not a dictionary");
  }
}

// What numpy.save of NumPy 2.4 wrote.
TEST(Npy, WritesWhatNumpyWrites) {
  const auto numpy = [](const std::string& dictionary, size_t length, const std::string& data) {
    return npy(dictionary + std::string(length - dictionary.size() - 1, ' ') + "\n", data);
  };
  const std::string twelve = elements<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(write_npy(DType::float32, Shape{3, 4}, as_bytes(twelve)),
            numpy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", 118, twelve));
  EXPECT_EQ(
      write_npy(DType::int64, {}, as_bytes("\5\0\0\0\0\0\0\0"s)),
      numpy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", 118, "\5\0\0\0\0\0\0\0"s));
  EXPECT_EQ(write_npy(DType::bool8, Shape{1}, as_bytes("\1")),
            numpy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", 118, "\1"));
  const Shape ones(15, 1);
  EXPECT_EQ(write_npy(DType::uint8, ones, as_bytes("x")).size(), 192 + 1u);
}

TEST(Npy, RefusesToWriteNonsense) {
  EXPECT_THROW(write_npy(DType::unknown, Shape{1}, as_bytes("x")), Error);
  EXPECT_THROW(write_npy(DType::uint8, Shape{2}, as_bytes("x")), Error);
  EXPECT_THROW(write_npy(DType::uint8, Shape{-1}, as_bytes("x")), Error);
}

}  // namespace
}  // namespace stoker
