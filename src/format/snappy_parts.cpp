// SPDX-License-Identifier: Apache-2.0
#include "format/snappy_parts.h"

#include <algorithm>
#include <cstddef>

namespace stoker {
namespace {

/// What a byte begins: bytes that follow, or a copy of earlier ones.
struct Element {
  bool copy = false;
  uint64_t head = 1;  // bytes up to the next element, of literals without the bytes themselves
  uint64_t length = 0;
  uint64_t distance = 0;
};

/// `stream` has at least five bytes, zeros behind its end.
Element element_of(const std::byte* stream) {
  const auto tag = static_cast<unsigned>(stream[0]);
  const uint32_t next = load<uint32_t>(stream + 1);
  Element element;
  element.length = 1 + (tag >> 2);
  switch (tag & 3) {
    case 0:
      if (element.length > 60) {  // it stands in the 1 to 4 bytes behind
        const auto size = static_cast<unsigned>(element.length - 60);
        const uint64_t mask = (uint64_t{1} << 8 * size) - 1;
        element.length = 1 + (next & mask);
        element.head += size;
      }
      return element;
    case 1:
      element.length = 4 + (tag >> 2 & 7);
      element.distance = (tag >> 5) << 8 | (next & 0xFF);
      element.head = 2;
      break;
    case 2:
      element.distance = next & 0xFFFF;
      element.head = 3;
      break;
    default:
      element.distance = next;
      element.head = 5;
      break;
  }
  element.copy = true;
  return element;
}

}  // namespace

std::vector<uint64_t> cut_snappy(Bytes stream, uint64_t decoded_length) {
  size_t at = 0;
  while (at < stream.size() && (stream[at] & std::byte{0x80}) != std::byte{}) ++at;
  ++at;  // behind the length
  std::vector<uint64_t> cuts = {at};
  uint64_t made = 0, part_end = kSnappyPart;
  while (at < stream.size()) {
    if (made == part_end) {
      cuts.push_back(at);
      part_end += kSnappyPart;
    }
    std::byte last[5] = {};
    const bool near_end = stream.size() - at < sizeof(last);
    if (near_end) std::copy(stream.begin() + static_cast<ptrdiff_t>(at), stream.end(), last);
    const Element element = element_of(near_end ? last : stream.data() + at);
    const uint64_t begin = part_end - kSnappyPart;
    if (element.length > part_end - made) return {};
    if (element.copy && (element.distance == 0 || element.distance > made - begin)) return {};
    at += element.head + (element.copy ? 0 : element.length);
    made += element.length;
  }
  if (at != stream.size() || made != decoded_length) return {};
  cuts.push_back(at);
  return cuts;
}

}  // namespace stoker
