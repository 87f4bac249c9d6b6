// SPDX-License-Identifier: Apache-2.0
#include "format/thrift.h"

#include <fmt/format.h>

#include <limits>

#include "dataset/protobuf.h"
#include "format/columnar.h"

namespace stoker {
namespace {

constexpr unsigned kMaxDepth = 32;

struct ListHead {
  ThriftType type;
  uint64_t count;
};

ListHead list_head(ThriftBytes& bytes) {
  const uint8_t head = bytes.byte();
  uint64_t count = head >> 4;
  if (count == 15) count = bytes.varint();
  // Every element takes a byte.
  if (count > bytes.left()) corrupt(fmt::format("metadata is cut off in a list of {}", count));
  return {static_cast<ThriftType>(head & 15), count};
}

bool is_boolean(ThriftType type) { return type == ThriftType::yes || type == ThriftType::no; }

}  // namespace

uint8_t ThriftBytes::byte() { return static_cast<uint8_t>(take(1)[0]); }

Bytes ThriftBytes::take(uint64_t size) {
  if (size > rest_.size()) corrupt("metadata is cut off");
  const Bytes taken = rest_.first(size);
  rest_ = rest_.subspan(size);
  return taken;
}

uint64_t ThriftBytes::varint() {
  const auto value = take_varint(rest_);
  if (!value) corrupt("metadata has a number that is cut off or too long");
  return *value;
}

int64_t ThriftBytes::integer() { return from_zigzag(varint()); }

void ThriftBytes::skip(ThriftType type, unsigned depth) {
  if (depth > kMaxDepth) corrupt("metadata is nested too deep");
  switch (type) {
    case ThriftType::yes:
    case ThriftType::no:
      return;
    case ThriftType::byte:
      byte();
      return;
    case ThriftType::int16:
    case ThriftType::int32:
    case ThriftType::int64:
      varint();
      return;
    case ThriftType::real:
      take(sizeof(double));
      return;
    case ThriftType::binary:
      take(varint());
      return;
    case ThriftType::uuid:
      take(16);
      return;
    case ThriftType::list:
    case ThriftType::set: {
      const ListHead list = list_head(*this);
      for (uint64_t i = 0; i < list.count; ++i) {
        is_boolean(list.type) ? void(byte()) : skip(list.type, depth + 1);
      }
      return;
    }
    case ThriftType::map: {
      const uint64_t count = varint();
      if (count == 0) return;
      if (count > left()) corrupt("metadata is cut off in a map");
      const uint8_t types = byte();
      for (uint64_t i = 0; i < count; ++i) {
        skip(static_cast<ThriftType>(types >> 4), depth + 1);
        skip(static_cast<ThriftType>(types & 15), depth + 1);
      }
      return;
    }
    case ThriftType::structure: {
      ThriftStruct inner(*this, depth);
      while (inner.next()) {
      }
      return;
    }
    default:
      corrupt(fmt::format("metadata has a field of the unknown type {}", static_cast<int>(type)));
  }
}

bool ThriftStruct::next() {
  if (depth_ > kMaxDepth) corrupt("metadata is nested too deep");
  if (pending_) bytes_.skip(type_, depth_ + 1);
  pending_ = false;
  const uint8_t head = bytes_.byte();
  type_ = static_cast<ThriftType>(head & 15);
  if (type_ == ThriftType::stop) return false;
  const int distance = head >> 4;
  const int64_t id = distance != 0 ? id_ + distance : bytes_.integer();
  if (id < 0 || id > std::numeric_limits<int16_t>::max()) corrupt("metadata has an odd field");
  id_ = static_cast<int>(id);
  pending_ = true;
  return true;
}

void ThriftStruct::expect(ThriftType type) {
  if (!pending_ || type_ != type) {
    corrupt(fmt::format("metadata has a field {} of type {}, should be {}", id_,
                        static_cast<int>(type_), static_cast<int>(type)));
  }
  pending_ = false;
}

int64_t ThriftStruct::integer() {
  if (type_ == ThriftType::byte) {
    expect(ThriftType::byte);
    return static_cast<int8_t>(bytes_.byte());
  }
  if (type_ != ThriftType::int16 && type_ != ThriftType::int32) expect(ThriftType::int64);
  pending_ = false;
  return bytes_.integer();
}

int32_t ThriftStruct::int32() {
  const int64_t value = integer();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    corrupt(fmt::format("metadata has {} where 32 bits are expected", value));
  }
  return static_cast<int32_t>(value);
}

bool ThriftStruct::boolean() {
  if (!is_boolean(type_)) expect(ThriftType::yes);
  pending_ = false;
  return type_ == ThriftType::yes;
}

std::string_view ThriftStruct::text() {
  expect(ThriftType::binary);
  return element_text();
}

std::string_view ThriftStruct::element_text() { return as_text(bytes_.take(bytes_.varint())); }

ThriftStruct ThriftStruct::structure() {
  expect(ThriftType::structure);
  return ThriftStruct(bytes_, depth_ + 1);
}

uint64_t ThriftStruct::list_of(ThriftType type) {
  expect(ThriftType::list);
  const ListHead list = list_head(bytes_);
  if (list.type != type && list.count > 0) corrupt("metadata has a list of something else");
  return list.count;
}

}  // namespace stoker
