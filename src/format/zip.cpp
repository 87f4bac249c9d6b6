// SPDX-License-Identifier: Apache-2.0
#include "format/zip.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"

namespace stoker {
namespace {

constexpr uint32_t kEndMagic = 0x06054B50;
constexpr uint32_t kEntryMagic = 0x02014B50;
constexpr uint32_t kLocalMagic = 0x04034B50;
constexpr uint32_t kEnd64Magic = 0x06064B50;
constexpr uint32_t kLocator64Magic = 0x07064B50;
constexpr size_t kEndSize = 22, kEntrySize = 46, kLocalSize = 30, kEnd64Size = 56,
                 kLocatorSize = 20;
// "See the zip64 field."
constexpr uint32_t kElsewhere = 0xFFFFFFFF;

[[noreturn]] void corrupt(uint64_t offset, std::string_view cause) {
  throw Error(ErrorKind::corrupt, fmt::format("offset {}: zip: {}", offset, cause));
}

std::vector<std::byte> read(ReadableFile& file, uint64_t offset, uint64_t size) {
  std::vector<std::byte> bytes(size);
  if (file.read_at(offset, bytes) != size) corrupt(offset, "is cut off");
  return bytes;
}

struct Directory {
  uint64_t offset = 0, size = 0;
};

/// Where the directory lies, from the end of the archive.
Directory find_directory(ReadableFile& file, uint64_t size) {
  constexpr uint64_t kLongestComment = 65535;
  if (size < kEndSize) corrupt(size, "is cut off");
  const uint64_t begin = size - std::min(size, kEndSize + kLongestComment);
  const std::vector<std::byte> tail = read(file, begin, size - begin);
  size_t at = tail.size() - kEndSize + 1;
  do {
    if (at-- == 0) corrupt(size, "has no end: the archive is cut off");
  } while (load<uint32_t>(&tail[at]) != kEndMagic);
  Directory found{load<uint32_t>(&tail[at + 16]), load<uint32_t>(&tail[at + 12])};
  const bool large = found.offset == kElsewhere || found.size == kElsewhere ||
                     load<uint16_t>(&tail[at + 10]) == 0xFFFF;
  const uint64_t end_at = begin + at;
  if (large && end_at >= kLocatorSize) {
    const std::vector<std::byte> locator = read(file, end_at - kLocatorSize, kLocatorSize);
    if (load<uint32_t>(locator.data()) == kLocator64Magic) {
      const auto end64 = load<uint64_t>(&locator[8]);
      if (end64 > size || size - end64 < kEnd64Size) corrupt(end_at, "its end makes no sense");
      const std::vector<std::byte> end = read(file, end64, kEnd64Size);
      if (load<uint32_t>(end.data()) != kEnd64Magic) corrupt(end64, "its end makes no sense");
      found = {load<uint64_t>(&end[48]), load<uint64_t>(&end[40])};
    }
  }
  if (found.offset > end_at || found.size > end_at - found.offset) {
    corrupt(end_at, "its directory lies outside of the file");
  }
  constexpr uint64_t kLargest = 64 << 20;
  if (found.size > kLargest) corrupt(found.offset, "has more members than this program reads");
  return found;
}

/// Takes sizes and offset from the zip64 field, where the entry has none.
void take_large(Bytes extra, bool want_length, bool want_stored, bool want_offset,
                uint64_t& stored_length, uint64_t& offset) {
  while (extra.size() >= 4) {
    const auto id = load<uint16_t>(extra.data());
    const auto length = load<uint16_t>(extra.data() + 2);
    if (length > extra.size() - 4) return;
    Bytes body = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
    if (id != 1) continue;
    const auto next = [&](bool wanted, uint64_t& value) {
      if (!wanted || body.size() < 8) return;
      value = load<uint64_t>(body.data());
      body = body.subspan(8);
    };
    uint64_t ignored = 0;
    next(want_length, ignored);
    next(want_stored, stored_length);
    next(want_offset, offset);
  }
}

}  // namespace

std::vector<ZipMember> read_zip_directory(ReadableFile& file, uint64_t size) {
  const Directory directory = find_directory(file, size);
  const std::vector<std::byte> bytes = read(file, directory.offset, directory.size);
  std::vector<ZipMember> members;
  for (Bytes rest = bytes; !rest.empty();) {
    const uint64_t at = directory.offset + (bytes.size() - rest.size());
    if (rest.size() < kEntrySize || load<uint32_t>(rest.data()) != kEntryMagic) {
      corrupt(at, "the directory is damaged");
    }
    const auto flags = load<uint16_t>(&rest[8]);
    const auto method = load<uint16_t>(&rest[10]);
    const size_t name = load<uint16_t>(&rest[28]);
    const size_t extra = load<uint16_t>(&rest[30]);
    const size_t comment = load<uint16_t>(&rest[32]);
    if (name + extra + comment > rest.size() - kEntrySize) corrupt(at, "the directory is damaged");
    ZipMember member;
    member.name = as_text(rest.subspan(kEntrySize, name));
    member.stored = method == 0 && (flags & 1) == 0;
    member.crc = load<uint32_t>(&rest[16]);
    member.length = load<uint32_t>(&rest[20]);
    uint64_t local = load<uint32_t>(&rest[42]);
    take_large(rest.subspan(kEntrySize + name, extra), load<uint32_t>(&rest[24]) == kElsewhere,
               member.length == kElsewhere, local == kElsewhere, member.length, local);
    rest = rest.subspan(kEntrySize + name + extra + comment);

    if (local > directory.offset || directory.offset - local < kLocalSize) {
      corrupt(at, "a member lies outside of the file");
    }
    const std::vector<std::byte> head = read(file, local, kLocalSize);
    if (load<uint32_t>(head.data()) != kLocalMagic) corrupt(local, "a member has no header");
    member.offset = local + kLocalSize + load<uint16_t>(&head[26]) + load<uint16_t>(&head[28]);
    if (member.offset > directory.offset || member.length > directory.offset - member.offset) {
      corrupt(local, "a member lies outside of the file");
    }
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace stoker
