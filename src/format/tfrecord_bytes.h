// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/crc32c.h"
#include "dataset/protobuf.h"
#include "dataset/tf_list.h"

namespace stoker {

// Examples and records byte by byte, for tests.

inline std::string message_field(uint32_t number, const std::string& payload) {
  std::string out;
  append_varint(out, wire_tag(number, WireType::bytes));
  append_varint(out, payload.size());
  return out + payload;
}

inline std::string bytes_feature(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += message_field(1, value);
  return message_field(1, list);
}

inline std::string floats_feature(const std::vector<float>& values) {
  return message_field(2, write_float_list(std::as_bytes(std::span(values))));
}

inline std::string int64s_feature(const std::vector<int64_t>& values) {
  return message_field(3, write_int64_list(std::as_bytes(std::span(values))));
}

inline std::string map_entry(const std::string& name, const std::string& feature) {
  return message_field(1, message_field(1, name) + message_field(2, feature));
}

inline std::string example(const std::vector<std::pair<std::string, std::string>>& features) {
  std::string entries;
  for (const auto& [name, feature] : features) entries += map_entry(name, feature);
  return message_field(1, entries);
}

template <typename T>
std::string little_endian(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string record_head(uint64_t length) {
  const std::string head = little_endian(length);
  return head + little_endian(crc32c_mask(crc32c(as_bytes(head))));
}

inline std::string record(const std::string& data) {
  return record_head(data.size()) + data + little_endian(crc32c_mask(crc32c(as_bytes(data))));
}

}  // namespace stoker
