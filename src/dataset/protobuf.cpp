// SPDX-License-Identifier: Apache-2.0
#include "dataset/protobuf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace stoker {
namespace {

constexpr size_t kMaxVarint = 10;

[[noreturn]] void fail(const std::string& cause) { throw Error(ErrorKind::corrupt, cause); }

}  // namespace

std::optional<uint64_t> take_varint(Bytes& from) {
  uint64_t value = 0;
  const size_t most = std::min(from.size(), kMaxVarint);
  for (size_t i = 0; i < most; ++i) {
    const auto byte = std::to_integer<uint64_t>(from[i]);
    if (i == kMaxVarint - 1 && byte > 1) return std::nullopt;  // beyond 64 bits
    value |= (byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      from = from.subspan(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

WireHead read_wire_head(Bytes from) {
  Bytes rest = from;
  const std::optional<uint64_t> tag = take_varint(rest);
  if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) fail("a protobuf field has no valid tag");
  WireHead head;
  head.number = static_cast<uint32_t>(*tag >> 3);
  switch (*tag & 7) {
    case 0:
      head.type = WireType::varint;
      break;
    case 1:
      head.type = WireType::fixed64;
      break;
    case 2:
      head.type = WireType::bytes;
      break;
    case 5:
      head.type = WireType::fixed32;
      break;
    default:
      fail(fmt::format("protobuf field {} has wire type {}, which is not used", head.number,
                       *tag & 7));
  }
  if (head.type == WireType::fixed64) head.payload = 8;
  if (head.type == WireType::fixed32) head.payload = 4;
  if (head.type == WireType::varint || head.type == WireType::bytes) {
    const std::optional<uint64_t> value = take_varint(rest);
    if (!value) fail(fmt::format("protobuf field {} is cut off or too long", head.number));
    (head.type == WireType::varint ? head.value : head.payload) = *value;
  }
  head.size = from.size() - rest.size();
  return head;
}

bool WireReader::next(WireField& field) {
  if (rest_.empty()) return false;
  const WireHead head = read_wire_head(rest_);
  rest_ = rest_.subspan(head.size);
  if (head.payload > rest_.size()) {
    fail(fmt::format("protobuf field {} has {} bytes, but only {} are left", head.number,
                     head.payload, rest_.size()));
  }
  field = {head.number, head.type, head.value, rest_.first(head.payload)};
  rest_ = rest_.subspan(head.payload);
  return true;
}

std::byte* put_varint(std::byte* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<std::byte>(value | 0x80);
  *to++ = static_cast<std::byte>(value);
  return to;
}

void append_varint(std::string& to, uint64_t value) {
  std::array<std::byte, kMaxVarint> bytes;
  const std::byte* end = put_varint(bytes.data(), value);
  to += as_text(Bytes(bytes.data(), static_cast<size_t>(end - bytes.data())));
}

}  // namespace stoker
