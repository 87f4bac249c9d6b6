// SPDX-License-Identifier: Apache-2.0
// Fixed and extensible arrays: how files of HDF5 1.10 and later note where chunks lie.
#include <fmt/format.h>

#include <bit>

#include "format/hdf5_chunks.h"

namespace stoker {
namespace {

/// What both kinds have: elements in blocks, and large blocks in pages.
class ArrayWalk {
 public:
  ArrayWalk(Hdf5Bytes& bytes, const Hdf5Element& element) : bytes_(bytes), element_(element) {}

 protected:
  /// `count` elements of a block or page, the first of which has `number`.
  void emit(Hdf5Cursor& from, uint64_t number, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t at = from.offset();
      element_(number + i, {from.bytes(element_size_), at, "chunk address", bytes_.offset_size(),
                            bytes_.length_size()});
    }
  }

  void page(uint64_t address, uint64_t number, uint64_t count) {
    const std::vector<std::byte> read =
        bytes_.read(address, count * element_size_ + 4, "page of chunk addresses");
    Hdf5Cursor cursor = bytes_.cursor(read, address, "page of chunk addresses");
    check_hdf5_checksum(cursor);
    emit(cursor, number, count);
  }

  /// Which pages of a block were written: bits, the first of them at `first`.
  struct Written {
    Bytes bits;
    uint64_t first = 0;

    bool has(uint64_t page) const {
      const uint64_t bit = first + page;
      return (std::to_integer<unsigned>(bits[bit / 8]) << (bit % 8) & 0x80U) != 0;
    }
  };

  /// Pages that were never written are left out.
  void pages(uint64_t address, uint64_t number, uint64_t count, const Written& written) {
    const uint64_t each = page_elements_ * element_size_ + 4;
    for (uint64_t p = 0; p * page_elements_ < count; ++p) {
      if (!written.has(p)) continue;
      const uint64_t first = p * page_elements_;
      page(address + p * each, number + first, std::min(page_elements_, count - first));
    }
  }

  /// Begins a block of the array whose header lies at `header`: signature, version, and so on.
  void begin(Hdf5Cursor& cursor, std::string_view signature, uint64_t header) {
    cursor.expect(signature);
    cursor.version(0, 0);
    cursor.skip(1);
    if (cursor.address() != header) cursor.fail("belongs to another array");
  }

  Hdf5Bytes& bytes_;
  const Hdf5Element& element_;
  uint64_t element_size_ = 0;
  uint64_t page_elements_ = 0;
};

class FixedArray : ArrayWalk {
 public:
  using ArrayWalk::ArrayWalk;

  void walk(uint64_t address) {
    const uint64_t length = 4 + 4 + bytes_.length_size() + bytes_.offset_size() + 4;
    const std::vector<std::byte> header = bytes_.read(address, length, "fixed array");
    Hdf5Cursor cursor = bytes_.cursor(header, address, "fixed array");
    cursor.expect("FAHD");
    check_hdf5_checksum(cursor);
    cursor.version(0, 0);
    cursor.skip(1);
    element_size_ = cursor.u8();
    const unsigned page_bits = cursor.u8();
    const uint64_t count = cursor.length();
    const uint64_t block = cursor.address();
    if (element_size_ == 0 || page_bits > 32 || count > bytes_.size() * 8) {
      cursor.fail("sizes that cannot be right");
    }
    page_elements_ = uint64_t{1} << page_bits;
    if (block != kNowhere) read_block(block, address, count);
  }

 private:
  void read_block(uint64_t address, uint64_t header, uint64_t count) {
    const bool paged = count > page_elements_;
    const uint64_t page_count = (count + page_elements_ - 1) / page_elements_;
    const uint64_t head = 4 + 2 + bytes_.offset_size();
    const uint64_t length = head + (paged ? (page_count + 7) / 8 : count * element_size_) + 4;
    const std::vector<std::byte> block = bytes_.read(address, length, "fixed array block");
    Hdf5Cursor cursor = bytes_.cursor(block, address, "fixed array block");
    check_hdf5_checksum(cursor);
    begin(cursor, "FADB", header);
    if (paged) {
      pages(address + length, 0, count, {cursor.bytes((page_count + 7) / 8), 0});
    } else {
      emit(cursor, 0, count);
    }
  }
};

class ExtensibleArray : ArrayWalk {
 public:
  using ArrayWalk::ArrayWalk;

  void walk(uint64_t address) {
    header_ = address;
    const uint64_t length = 4 + 8 + uint64_t{6} * bytes_.length_size() + bytes_.offset_size() + 4;
    const std::vector<std::byte> header = bytes_.read(address, length, "extensible array");
    Hdf5Cursor cursor = bytes_.cursor(header, address, "extensible array");
    cursor.expect("EAHD");
    check_hdf5_checksum(cursor);
    cursor.version(0, 0);
    cursor.skip(1);
    element_size_ = cursor.u8();
    count_bits_ = cursor.u8();
    index_elements_ = cursor.u8();
    block_elements_ = cursor.u8();
    block_pointers_ = cursor.u8();
    const unsigned page_bits = cursor.u8();
    for (int i = 0; i < 6; ++i) cursor.length();  // statistics
    const uint64_t index = cursor.address();
    if (element_size_ == 0 || count_bits_ == 0 || count_bits_ > 64 || page_bits > 32 ||
        !std::has_single_bit(block_elements_) || !std::has_single_bit(block_pointers_) ||
        static_cast<unsigned>(std::countr_zero(block_elements_)) > count_bits_) {
      cursor.fail("sizes that cannot be right");
    }
    page_elements_ = uint64_t{1} << page_bits;
    if (index != kNowhere) read_index(index);
  }

 private:
  /// Data blocks of super block `number`, and the elements of each.
  static uint64_t blocks_of(unsigned number) { return uint64_t{1} << (number / 2); }
  uint64_t elements_of(unsigned number) const { return block_elements_ << ((number + 1) / 2); }
  uint64_t offset_bytes() const { return (count_bits_ + 7) / 8; }

  void read_index(uint64_t address) {
    const auto supers = 1 + count_bits_ - static_cast<unsigned>(std::countr_zero(block_elements_));
    const auto direct = 2 * static_cast<unsigned>(std::countr_zero(block_pointers_));
    const uint64_t blocks = 2 * (block_pointers_ - 1);
    const uint64_t super_pointers = supers > direct ? supers - direct : 0;
    const uint64_t length = 4 + 2 + bytes_.offset_size() + index_elements_ * element_size_ +
                            (blocks + super_pointers) * bytes_.offset_size() + 4;
    const std::vector<std::byte> index = bytes_.read(address, length, "extensible array index");
    Hdf5Cursor cursor = bytes_.cursor(index, address, "extensible array index");
    check_hdf5_checksum(cursor);
    begin(cursor, "EAIB", header_);
    emit(cursor, 0, index_elements_);
    uint64_t number = index_elements_;
    for (unsigned super = 0; super < direct; ++super) {
      for (uint64_t i = 0; i < blocks_of(super); ++i) {
        const uint64_t block = cursor.address();
        if (block != kNowhere) read_block(block, number, elements_of(super), {});
        number += elements_of(super);
      }
    }
    for (uint64_t i = 0; i < super_pointers; ++i) {
      const auto super = static_cast<unsigned>(direct + i);
      const uint64_t block = cursor.address();
      if (block != kNowhere) read_super(block, super, number);
      number += blocks_of(super) * elements_of(super);
    }
  }

  void read_super(uint64_t address, unsigned super, uint64_t number) {
    const uint64_t blocks = blocks_of(super);
    const uint64_t elements = elements_of(super);
    const bool paged = elements > page_elements_;
    const uint64_t bitmap = paged ? (elements / page_elements_ + 7) / 8 : 0;
    const uint64_t head = 4 + 2 + bytes_.offset_size() + offset_bytes();
    // Each block has its address in here: the file must have so many bytes.
    if (blocks > bytes_.size()) {
      throw Hdf5Error(ErrorKind::corrupt, address, "extensible array: more blocks than bytes");
    }
    const uint64_t length = head + blocks * bitmap + blocks * bytes_.offset_size() + 4;
    const std::vector<std::byte> read =
        bytes_.read(address, length, "extensible array super block");
    Hdf5Cursor cursor = bytes_.cursor(read, address, "extensible array super block");
    check_hdf5_checksum(cursor);
    begin(cursor, "EASB", header_);
    cursor.skip(offset_bytes());
    const Bytes written = cursor.bytes(blocks * bitmap);
    for (uint64_t i = 0; i < blocks; ++i) {
      const uint64_t block = cursor.address();
      if (block == kNowhere) continue;
      // There is room for whole bytes of every block, but the library fills it bit by bit.
      const uint64_t first = paged ? i * (elements / page_elements_) : 0;
      read_block(block, number + i * elements, elements, {written, first});
    }
  }

  void read_block(uint64_t address, uint64_t number, uint64_t count, const Written& written) {
    const bool paged = count > page_elements_;
    const uint64_t head = 4 + 2 + bytes_.offset_size() + offset_bytes();
    if (count > bytes_.size()) {
      throw Hdf5Error(ErrorKind::corrupt, address, "extensible array: more chunks than bytes");
    }
    const uint64_t length = head + (paged ? 0 : count * element_size_) + 4;
    const std::vector<std::byte> block = bytes_.read(address, length, "extensible array block");
    Hdf5Cursor cursor = bytes_.cursor(block, address, "extensible array block");
    check_hdf5_checksum(cursor);
    begin(cursor, "EADB", header_);
    cursor.skip(offset_bytes());
    if (!paged) return emit(cursor, number, count);
    if (written.bits.size() * 8 < written.first + count / page_elements_) {
      cursor.fail("pages where there are none");
    }
    pages(address + length, number, count, written);
  }

  uint64_t header_ = 0;
  unsigned count_bits_ = 0;
  uint64_t index_elements_ = 0, block_elements_ = 0, block_pointers_ = 0;
};

}  // namespace

void walk_fixed_array(Hdf5Bytes& bytes, uint64_t header, const Hdf5Element& element) {
  FixedArray(bytes, element).walk(header);
}

void walk_extensible_array(Hdf5Bytes& bytes, uint64_t header, const Hdf5Element& element) {
  ExtensibleArray(bytes, element).walk(header);
}

}  // namespace stoker
