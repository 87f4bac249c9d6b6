// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "format/hdf5_heap.h"

namespace stoker {
namespace {

using namespace std::string_view_literals;
constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n"sv;
// Groups may name one object again and again, and each other.
constexpr size_t kMostObjects = 65'536;
// Of one object header; the attributes of an object may fill thousands of continuations.
constexpr size_t kMostRanges = 65'536;
constexpr size_t kMostMessages = 1 << 20;
constexpr uint64_t kMostKept = uint64_t{1} << 28;
// Beside the kind of a message that only says where it is to be found.
constexpr uint16_t kElsewhere = 0x100;
constexpr const char* kSeveralFiles =
    "the file is one of several that HDF5's family or multi driver wrote; h5repack makes one file "
    "of them";

}  // namespace

/// An object header while it is read.
struct Hdf5File::Header {
  bool is_new = false;
  bool has_order = false;  // each message carries its creation order
  size_t messages = 0;
  uint64_t kept_bytes = 0;
  std::vector<Range> ranges;  // those still to be read are behind `next`
  size_t next = 0;
  std::set<uint64_t> known;  // their addresses: a range that leads to itself is read once
  Hdf5Messages kept;
};

const Hdf5Message* find_message(const Hdf5Messages& messages, uint16_t kind) {
  const auto found = std::find_if(messages.begin(), messages.end(),
                                  [&](const Hdf5Message& m) { return m.kind == kind; });
  return found == messages.end() ? nullptr : &*found;
}

std::optional<uint64_t> Hdf5File::find_superblock(ReadableFile& file) {
  std::array<std::byte, 8> begin{};
  const uint64_t size = file.info().size;
  for (uint64_t offset = 0; offset < size && offset < uint64_t{1} << 40;
       offset = offset == 0 ? 512 : 2 * offset) {
    if (file.read_at(offset, begin) < begin.size()) break;
    if (as_text(begin) == kSignature) return offset;
  }
  return std::nullopt;
}

Hdf5File::Hdf5File(ReadableFile& file) : bytes_(file) {
  const std::optional<uint64_t> offset = find_superblock(file);
  if (!offset) throw Hdf5Error(ErrorKind::corrupt, 0, "no HDF5 signature");
  read_superblock(*offset);
}

void Hdf5File::set_sizes(Hdf5Cursor& cursor) {
  const unsigned offset_size = cursor.u8(), length_size = cursor.u8();
  const auto known = [](unsigned size) { return size == 2 || size == 4 || size == 8; };
  if (!known(offset_size) || !known(length_size)) {
    cursor.fail(fmt::format("offsets of {} bytes and lengths of {}", offset_size, length_size));
  }
  bytes_.set_sizes(offset_size, length_size);
}

void Hdf5File::read_superblock(uint64_t offset) {
  constexpr uint64_t kLargest = 128;
  const std::vector<std::byte> begin =
      bytes_.read(offset, std::min(kLargest, bytes_.size() - offset), "superblock");
  Hdf5Cursor cursor(begin, offset, "superblock");
  cursor.skip(kSignature.size());
  const uint8_t version = cursor.version(0, 3);
  if (version < 2) {
    read_old_superblock(cursor, version);
  } else {
    read_new_superblock(cursor, version);
  }
}

void Hdf5File::read_old_superblock(Hdf5Cursor& cursor, uint8_t version) {
  const uint64_t offset = cursor.offset() - kSignature.size() - 1;
  cursor.skip(4);
  set_sizes(cursor);
  cursor.skip(1 + 2 + 2 + 4);
  if (version == 1) cursor.skip(4);
  Hdf5Cursor rest(cursor.bytes(cursor.left()), cursor.offset(), "superblock", bytes_.offset_size(),
                  bytes_.length_size());
  const uint64_t base = rest.address();
  rest.address();  // free space
  const uint64_t end = rest.address();
  const uint64_t driver = rest.address();
  rest.address();  // name of the root group
  root_ = rest.address();
  if (driver != kNowhere) throw Hdf5Error(ErrorKind::unsupported, offset, kSeveralFiles);
  compare_end(offset, base, end);
}

void Hdf5File::read_new_superblock(Hdf5Cursor& cursor, uint8_t version) {
  const uint64_t offset = cursor.offset() - kSignature.size() - 1;
  set_sizes(cursor);
  const uint8_t flags = cursor.u8();
  Hdf5Cursor rest(cursor.bytes(cursor.left()), cursor.offset(), "superblock", bytes_.offset_size(),
                  bytes_.length_size());
  const uint64_t base = rest.address();
  const uint64_t extension = rest.address();
  const uint64_t end = rest.address();
  root_ = rest.address();
  const uint64_t length = kSignature.size() + 4 + rest.passed() + 4;
  rest.skip(4);
  check_hdf5_checksum({cursor.all().first(length), offset, "superblock"});
  bytes_.set_base(offset);
  if (extension != kNowhere) read_extension(extension);
  constexpr uint8_t kWriting = 1, kSwmr = 4;
  if (version == 3 && (flags & kSwmr) != 0) {
    notes_.push_back({offset,
                      "is marked as being written (SWMR): what follows are the samples it has "
                      "now; if nobody writes it any more, h5clear -s removes the mark"});
  } else if (version == 3 && (flags & kWriting) != 0) {
    notes_.push_back({offset,
                      "was not closed by its writer: it is being written, or the writer was "
                      "killed; samples may be missing or incomplete"});
  }
  compare_end(offset, base, end);
}

void Hdf5File::read_extension(uint64_t address) {
  try {
    const Hdf5Messages messages = own_messages(address);
    if (const Hdf5Message* const table = find_message(messages, Hdf5Message::shared_table)) {
      read_shared_table(*table);
    }
    if (find_message(messages, Hdf5Message::driver) != nullptr) {
      throw Hdf5Error(ErrorKind::unsupported, bytes_.offset_of(address, 0, "superblock extension"),
                      kSeveralFiles);
    }
  } catch (const Hdf5Error& error) {
    // Without it nothing of the rest is lost but messages that are shared, which are then missed.
    if (error.kind() == ErrorKind::unsupported) throw;
  }
}

void Hdf5File::read_shared_table(const Hdf5Message& message) {
  Hdf5Cursor where = cursor(message, "table of shared messages");
  where.version(0, 0);
  const uint64_t address = where.address();
  const unsigned count = where.u8();
  const uint64_t entry = 1 + 1 + 2 + 4 + 2 + 2 + 2 + uint64_t{2} * bytes_.offset_size();
  const std::vector<std::byte> table =
      bytes_.read(address, 4 + count * entry + 4, "table of shared messages");
  Hdf5Cursor cursor = bytes_.cursor(table, address, "table of shared messages");
  cursor.expect("SMTB");
  check_hdf5_checksum(cursor);
  for (unsigned i = 0; i < count; ++i) {
    cursor.version(0, 0);
    cursor.skip(1);
    const uint16_t kinds = cursor.u16();
    cursor.skip(4 + 2 + 2 + 2);
    cursor.address();  // of the index, which only a writer needs
    shared_heaps_.emplace_back(kinds, cursor.address());
  }
}

void Hdf5File::compare_end(uint64_t offset, uint64_t base, uint64_t stated_end) {
  if (base == kNowhere || base > bytes_.size()) {
    throw Hdf5Error(ErrorKind::corrupt, offset, "superblock: its base is not in the file");
  }
  bytes_.set_base(offset);
  if (stated_end == kNowhere) return;
  // The end counts from the beginning of the file. A user block that somebody put in front moves
  // everything, whatever the superblock says.
  const uint64_t end = stated_end - base + offset;
  if (stated_end < base || end == bytes_.size()) return;
  if (end > bytes_.size()) {
    notes_.push_back(
        {bytes_.size(),
         fmt::format("truncated, or not closed by its writer: the superblock speaks of {} bytes, "
                     "the file has {}",
                     end, bytes_.size())});
  } else {
    notes_.push_back({end, fmt::format("{} bytes after the end that the superblock states: the "
                                       "file was not closed by its writer, or something was "
                                       "appended",
                                       bytes_.size() - end)});
  }
}

Hdf5Messages Hdf5File::messages(uint64_t address) {
  if (++objects_ > kMostObjects) {
    throw Error(ErrorKind::unsupported, "more groups and datasets than can be looked at");
  }
  Hdf5Messages all = own_messages(address);
  for (Hdf5Message& message : all) {
    if (message.kind >= kElsewhere) message = shared(message);
  }
  return all;
}

Hdf5Messages Hdf5File::own_messages(uint64_t address) {
  constexpr uint64_t kShortest = 16;
  Header header;
  const std::vector<std::byte> begin = bytes_.read(address, kShortest, "object header");
  header.is_new = as_text(begin).starts_with("OHDR");
  if (header.is_new) {
    read_new_header(address, header);
  } else {
    read_old_header(address, header);
  }
  while (header.next < header.ranges.size()) {
    const Range range = header.ranges[header.next++];
    const std::vector<std::byte> block =
        bytes_.read(range.address, range.length, "object header continuation");
    Hdf5Cursor cursor = bytes_.cursor(block, range.address, "object header continuation");
    if (header.is_new) {
      cursor.expect("OCHK");
      check_hdf5_checksum(cursor);
      const Bytes body = cursor.bytes(cursor.left() - 4);
      take_messages(bytes_.cursor(body, range.address + 4, "object header continuation"),
                    range.address + 4, header);
    } else {
      take_messages(cursor, range.address, header);
    }
  }
  return std::move(header.kept);
}

void Hdf5File::read_old_header(uint64_t address, Header& header) {
  const std::vector<std::byte> prefix = bytes_.read(address, 16, "object header");
  Hdf5Cursor cursor = bytes_.cursor(prefix, address, "object header");
  cursor.version(1, 1);
  cursor.skip(1 + 2 + 4);
  const uint32_t length = cursor.u32();
  const std::vector<std::byte> block = bytes_.read(address + 16, length, "object header");
  take_messages(bytes_.cursor(block, address + 16, "object header"), address + 16, header);
}

void Hdf5File::read_new_header(uint64_t address, Header& header) {
  constexpr uint64_t kLongestPrefix = 4 + 1 + 1 + 16 + 4 + 8;
  const uint64_t there = bytes_.size() - bytes_.offset_of(address, 0, "object header");
  const std::vector<std::byte> prefix =
      bytes_.read(address, std::min(kLongestPrefix, there), "object header");
  Hdf5Cursor cursor = bytes_.cursor(prefix, address, "object header");
  cursor.expect("OHDR");
  cursor.version(2, 2);
  const uint8_t flags = cursor.u8();
  header.has_order = (flags & 4) != 0;
  if ((flags & 0x20) != 0) cursor.skip(16);
  if ((flags & 0x10) != 0) cursor.skip(4);
  const uint64_t length = cursor.number(1U << (flags & 3U));
  const uint64_t begin = cursor.passed();
  if (length > Hdf5Bytes::kLargestStructure) cursor.fail("a length that cannot be right");
  const std::vector<std::byte> block = bytes_.read(address, begin + length + 4, "object header");
  check_hdf5_checksum(bytes_.cursor(block, address, "object header"));
  take_messages(
      bytes_.cursor(Bytes(block).subspan(begin, length), address + begin, "object header"),
      address + begin, header);
}

void Hdf5File::take_messages(Hdf5Cursor cursor, uint64_t address, Header& header) {
  const uint64_t head = header.is_new ? (header.has_order ? 6 : 4) : 8;
  while (cursor.left() >= head) {  // what is less is a gap
    if (++header.messages > kMostMessages) cursor.fail("too many messages");
    Hdf5Message message;
    message.kind = header.is_new ? cursor.u8() : cursor.u16();
    const uint16_t length = cursor.u16();
    const uint8_t flags = cursor.u8();
    if (!header.is_new) cursor.skip(3);
    if (header.has_order) cursor.skip(2);
    message.address = address + cursor.passed();
    const Bytes body = cursor.bytes(length);
    switch (message.kind) {
      case Hdf5Message::space:
      case Hdf5Message::link_info:
      case Hdf5Message::type:
      case Hdf5Message::old_fill:
      case Hdf5Message::fill:
      case Hdf5Message::link:
      case Hdf5Message::external:
      case Hdf5Message::layout:
      case Hdf5Message::filters:
      case Hdf5Message::continuation:
      case Hdf5Message::symbol_table:
      case Hdf5Message::shared_table:
      case Hdf5Message::driver:
        message.bytes.assign(body.begin(), body.end());
        keep(std::move(message), flags, header);
        break;
      default:
        break;
    }
  }
}

void Hdf5File::keep(Hdf5Message message, uint8_t flags, Header& header) {
  Hdf5Cursor cursor = this->cursor(message, "object header");
  if (message.kind == Hdf5Message::continuation) {
    const uint64_t address = cursor.address();
    const uint64_t length = cursor.length();
    if (header.known.size() >= kMostRanges) cursor.fail("too many continuations");
    if (!header.known.insert(address).second) cursor.fail("a continuation that was read before");
    header.ranges.push_back({address, length});
    return;
  }
  header.kept_bytes += message.bytes.size() + sizeof(Hdf5Message);
  if (header.kept_bytes > kMostKept) cursor.fail("too many messages");
  constexpr uint8_t kShared = 2;
  if ((flags & kShared) != 0) message.kind |= kElsewhere;
  header.kept.push_back(std::move(message));
}

Hdf5Message Hdf5File::shared(const Hdf5Message& message) {
  Hdf5Cursor cursor = this->cursor(message, "shared message");
  const uint8_t version = cursor.version(1, 3);
  const uint8_t where = cursor.u8();
  const auto wanted = static_cast<uint16_t>(message.kind & 0xFF);
  if (version == 3 && where == 1) {  // in the heap that the file's table names for its kind
    for (const auto& [kinds, heap] : shared_heaps_) {
      if ((kinds >> wanted & 1) == 0 || heap == kNowhere) continue;
      Hdf5FractalHeap::Object object = Hdf5FractalHeap(bytes_, heap).object(cursor);
      return {wanted, object.address, std::move(object.bytes)};
    }
    cursor.fail("the file has no table of them");
  }
  if (version == 3 && where != 2) cursor.fail("is in an unknown place");
  if (version == 1) cursor.skip(6);
  const uint64_t address = cursor.address();
  // The message of another object, which must not lead on to a third.
  const Hdf5Messages others = own_messages(address);
  const Hdf5Message* const found = find_message(others, wanted);
  if (found == nullptr) cursor.fail("the object it points at has no such message");
  return *found;
}

}  // namespace stoker
