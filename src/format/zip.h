// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/file_system.h"

namespace stoker {

inline constexpr std::string_view kZipMagic = "PK\x03\x04";

/// A member of a zip archive.
struct ZipMember {
  std::string name;
  uint64_t offset = 0;  // of its bytes
  uint64_t length = 0;  // of them as they are stored
  uint32_t crc = 0;     // CRC-32 of them decoded
  bool stored = false;  // as they are, not compressed or encrypted
};

/// The members that the archive's directory lists, in its order; zip64 too. All lie inside of the
/// file. Throws Error(corrupt) with offset and cause.
std::vector<ZipMember> read_zip_directory(ReadableFile& file, uint64_t size);

}  // namespace stoker
