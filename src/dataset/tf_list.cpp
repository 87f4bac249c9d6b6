// SPDX-License-Identifier: Apache-2.0
#include "dataset/tf_list.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "dataset/protobuf.h"

namespace stoker {
namespace {

// All three messages have one field, `value`, with this number.
constexpr uint32_t kValue = 1;

[[noreturn]] void corrupt(const char* cause) { throw Error(ErrorKind::corrupt, cause); }

Array make_array(DType dtype, Bytes elements) {
  Array array;
  array.dtype = dtype;
  array.shape = {static_cast<int64_t>(elements.size() / size_of(dtype))};
  array.data = elements;
  return array;
}

Array make_array(DType dtype, std::vector<std::byte> elements) {
  Array array = make_array(dtype, Bytes(elements));
  array.owned = std::move(elements);  // keeps its memory, so `data` stays right
  return array;
}

void append_packed_int64s(std::vector<std::byte>& elements, Bytes run) {
  const auto count = static_cast<size_t>(
      std::count_if(run.begin(), run.end(), [](std::byte b) { return b < std::byte{0x80}; }));
  size_t at = elements.size();
  elements.resize(at + count * sizeof(uint64_t));
  for (; !run.empty(); at += sizeof(uint64_t)) {
    const std::optional<uint64_t> value = take_varint(run);
    if (!value) corrupt("an int64 of the list is cut off or too long");
    store(&elements[at], *value);
  }
}

void append_tag(std::string& to) { append_varint(to, wire_tag(kValue, WireType::bytes)); }

}  // namespace

Array parse_int64_list(Bytes body) {
  std::vector<std::byte> elements;
  WireReader reader(body);
  WireField field;
  while (reader.next(field)) {
    if (field.is(kValue, WireType::bytes)) {
      append_packed_int64s(elements, field.payload);
    } else if (field.is(kValue, WireType::varint)) {
      const auto value = std::as_bytes(std::span(&field.value, 1));
      elements.insert(elements.end(), value.begin(), value.end());
    } else if (field.number == kValue) {
      corrupt("a list of int64 holds something else");
    }
  }
  return make_array(DType::int64, std::move(elements));
}

Array parse_float_list(Bytes body) {
  std::vector<Bytes> runs;
  WireReader reader(body);
  WireField field;
  while (reader.next(field)) {
    if (field.number != kValue) continue;
    if (field.type != WireType::bytes && field.type != WireType::fixed32) {
      corrupt("a list of floats holds something else");
    }
    if (field.payload.size() % sizeof(float) != 0) corrupt("a float of the list is cut off");
    runs.push_back(field.payload);
  }
  if (runs.size() == 1 && reinterpret_cast<uintptr_t>(runs[0].data()) % alignof(float) == 0) {
    return make_array(DType::float32, runs[0]);
  }
  std::vector<std::byte> elements;
  for (const Bytes run : runs) elements.insert(elements.end(), run.begin(), run.end());
  return make_array(DType::float32, std::move(elements));
}

std::vector<Bytes> parse_bytes_list(Bytes body) {
  std::vector<Bytes> values;
  WireReader reader(body);
  WireField field;
  while (reader.next(field)) {
    if (field.number != kValue) continue;
    if (field.type != WireType::bytes) corrupt("a list of bytes holds something else");
    values.push_back(field.payload);
  }
  return values;
}

std::string write_int64_list(Bytes elements) {
  std::string packed;
  for (size_t at = 0; at + sizeof(uint64_t) <= elements.size(); at += sizeof(uint64_t)) {
    append_varint(packed, load<uint64_t>(&elements[at]));
  }
  std::string body;
  if (packed.empty()) return body;
  append_tag(body);
  append_varint(body, packed.size());
  return body + packed;
}

std::string write_float_list(Bytes elements) {
  std::string body;
  if (elements.empty()) return body;
  append_tag(body);
  append_varint(body, elements.size());
  return body += as_text(elements);
}

std::string write_bytes_list(std::span<const Bytes> values) {
  std::string body;
  for (const Bytes value : values) {
    append_tag(body);
    append_varint(body, value.size());
    body += as_text(value);
  }
  return body;
}

}  // namespace stoker
