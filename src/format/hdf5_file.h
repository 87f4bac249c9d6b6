// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/hdf5_bytes.h"

namespace stoker {

/// Something that is not as it should be, and yet does not keep the file from being read.
struct Hdf5Note {
  uint64_t offset = 0;
  std::string cause;
};

/// One message of an object header, of those kinds that matter here.
struct Hdf5Message {
  enum Kind : uint16_t {
    space = 0x01,
    link_info = 0x02,
    type = 0x03,
    old_fill = 0x04,
    fill = 0x05,
    link = 0x06,
    external = 0x07,
    layout = 0x08,
    filters = 0x0B,
    shared_table = 0x0F,
    continuation = 0x10,
    symbol_table = 0x11,
    driver = 0x14,
  };
  uint16_t kind = 0;
  uint64_t address = 0;
  std::vector<std::byte> bytes;
};

using Hdf5Messages = std::vector<Hdf5Message>;
/// Null where there is none.
const Hdf5Message* find_message(const Hdf5Messages& messages, uint16_t kind);

/// An HDF5 file: its superblock, and the headers of its objects. Parsed here, without the library:
/// what an address, a length or a count says is believed only once the file has the bytes for it.
class Hdf5File {
 public:
  /// Throws Hdf5Error where the superblock cannot be used.
  explicit Hdf5File(ReadableFile& file);

  /// Offset of the superblock, which lies behind a user block; nothing where there is none.
  static std::optional<uint64_t> find_superblock(ReadableFile& file);

  Hdf5Bytes& bytes() { return bytes_; }
  uint64_t root() const { return root_; }
  /// Written at this moment, by a process that was killed, or cut off.
  const std::vector<Hdf5Note>& notes() const { return notes_; }

  /// The messages of an object, with those it shares with others in place.
  Hdf5Messages messages(uint64_t address);
  Hdf5Cursor cursor(const Hdf5Message& message, std::string_view what) const {
    return bytes_.cursor(message.bytes, message.address, what);
  }

 private:
  /// A range of an object header that holds messages.
  struct Range {
    uint64_t address = 0, length = 0;
  };
  struct Header;

  /// Without those that lie in other objects.
  Hdf5Messages own_messages(uint64_t address);
  void read_superblock(uint64_t offset);
  void read_old_superblock(Hdf5Cursor& cursor, uint8_t version);
  void read_new_superblock(Hdf5Cursor& cursor, uint8_t version);
  void read_extension(uint64_t address);
  void read_shared_table(const Hdf5Message& message);
  void set_sizes(Hdf5Cursor& cursor);
  void compare_end(uint64_t offset, uint64_t base, uint64_t stated_end);
  void read_old_header(uint64_t address, Header& header);
  void read_new_header(uint64_t address, Header& header);
  void take_messages(Hdf5Cursor cursor, uint64_t address, Header& header);
  void keep(Hdf5Message message, uint8_t flags, Header& header);
  Hdf5Message shared(const Hdf5Message& message);

  Hdf5Bytes bytes_;
  uint64_t root_ = kNowhere;
  /// Heaps of messages that several objects share: which kinds, a bit each, and the heap's address.
  std::vector<std::pair<uint16_t, uint64_t>> shared_heaps_;
  std::vector<Hdf5Note> notes_;
  size_t objects_ = 0;  // whose headers were read
};

}  // namespace stoker
