// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace stoker {

inline constexpr size_t kTarBlock = 512;

/// The header of a member as POSIX.1 lays it out. Numbers are octal text; v7 archives end behind
/// linkname, GNU's use the place of prefix for other things.
struct TarHeader {
  char name[100];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char mtime[12];
  char checksum[8];
  char type;
  char linkname[100];
  char magic[6];
  char version[2];
  char uname[32];
  char gname[32];
  char devmajor[8];
  char devminor[8];
  char prefix[155];
  char padding[12];
};
static_assert(sizeof(TarHeader) == kTarBlock && alignof(TarHeader) == 1);

/// Of 512 bytes that are at least one block.
inline const TarHeader& as_tar_header(Bytes block) {
  return *reinterpret_cast<const TarHeader*>(block.data());
}

inline bool looks_like_ustar(const TarHeader& header) {
  return std::string_view(header.magic, 5) == "ustar";
}

/// A field of text: up to its first NUL or its end.
template <size_t kSize>
std::string_view tar_text(const char (&field)[kSize]) {
  const void* end = std::memchr(field, 0, kSize);
  return {field,
          end == nullptr ? kSize : static_cast<size_t>(static_cast<const char*>(end) - field)};
}

/// A number: octal digits, or GNU's base 256 where the first bit is set. What exceeds 64 bits
/// becomes 2^64-1; nothing where it is no number.
std::optional<uint64_t> tar_number(const char* field, size_t size);

/// What the bytes of a header add up to.
struct TarSum {
  bool zero = false;  // every byte is
  bool right = false;
  bool is_number = false;  // what the header states
  uint64_t stated = 0, computed = 0;
};
TarSum sum_of(const TarHeader& header);

/// Sum of the 512 bytes, the checksum field included as it is.
uint32_t plain_sum(const std::byte* block);

}  // namespace stoker
