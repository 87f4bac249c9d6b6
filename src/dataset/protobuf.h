// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"

namespace stoker {

// The wire format of Protocol Buffers, as far as tf.train.Example needs it. A message is a run of
// fields: a varint that holds number and type, then the value. Nothing here recurses: who reads
// a message within a message says so, level by level.

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// What stands in front of a field's bytes.
struct WireHead {
  uint32_t number = 0;
  WireType type = WireType::varint;
  uint64_t value = 0;    // of a varint; it has no payload
  size_t size = 0;       // of the head itself
  uint64_t payload = 0;  // bytes that follow it; not compared with what is there
};

/// A head is never longer than this: two varints.
inline constexpr size_t kMaxWireHead = 20;

/// Reads the head that `from` begins with. Throws Error(corrupt) with the cause alone.
WireHead read_wire_head(Bytes from);

/// Takes a varint off the front; nothing, and `from` unchanged, where there is none.
std::optional<uint64_t> take_varint(Bytes& from);

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::varint;
  uint64_t value = 0;  // of a varint
  Bytes payload;       // of all others

  bool is(uint32_t n, WireType t) const { return number == n && type == t; }
};

/// Walks through the fields of one message that lies in memory.
class WireReader {
 public:
  explicit WireReader(Bytes message) : rest_(message) {}
  /// False at the end. Throws Error(corrupt) with the cause alone.
  bool next(WireField& field);

 private:
  Bytes rest_;
};

constexpr size_t varint_size(uint64_t value) {
  size_t size = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++size;
  }
  return size;
}

/// Stores a varint and returns the place behind it.
std::byte* put_varint(std::byte* to, uint64_t value);
void append_varint(std::string& to, uint64_t value);

constexpr uint32_t wire_tag(uint32_t number, WireType type) {
  return number << 3 | static_cast<uint32_t>(type);
}

}  // namespace stoker
