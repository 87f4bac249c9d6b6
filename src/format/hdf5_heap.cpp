// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "format/hdf5_btree.h"

namespace stoker {

Hdf5LocalHeap::Hdf5LocalHeap(Hdf5Bytes& bytes, uint64_t address) {
  const uint64_t length = 8 + uint64_t{2} * bytes.length_size() + bytes.offset_size();
  const std::vector<std::byte> header = bytes.read(address, length, "local heap");
  Hdf5Cursor cursor = bytes.cursor(header, address, "local heap");
  cursor.expect("HEAP");
  cursor.version(0, 0);
  cursor.skip(3);
  const uint64_t size = cursor.length();
  cursor.length();  // free list
  const uint64_t data = cursor.address();
  data_ = bytes.read(data, size, "local heap");
  offset_ = bytes.offset_of(data, size, "local heap");
}

std::string Hdf5LocalHeap::text(uint64_t at) const {
  Hdf5Cursor cursor(data_, offset_, "local heap");
  cursor.skip(at);
  return std::string(cursor.text());
}

Hdf5FractalHeap::Hdf5FractalHeap(Hdf5Bytes& bytes, uint64_t address) : bytes_(bytes) {
  const uint64_t length = 4 + 1 + 2 + 2 + 1 + 4 + uint64_t{12} * bytes.length_size() +
                          uint64_t{3} * bytes.offset_size() + 2 + 2 + 2 + 2 + 4;
  const std::vector<std::byte> header = bytes.read(address, length, "fractal heap");
  Hdf5Cursor cursor = bytes.cursor(header, address, "fractal heap");
  cursor.expect("FRHP");
  cursor.version(0, 0);
  cursor.skip(2);
  const uint16_t filter_length = cursor.u16();
  if (filter_length != 0) {
    throw Hdf5Error(ErrorKind::unsupported, cursor.offset(), "a group whose links are compressed");
  }
  check_hdf5_checksum(cursor);
  cursor.skip(1);
  largest_object_ = cursor.u32();
  cursor.length(), cursor.address();            // huge objects
  cursor.length(), cursor.address();            // free space
  for (int i = 0; i < 8; ++i) cursor.length();  // statistics
  width_ = cursor.u16();
  first_size_ = cursor.length();
  largest_direct_ = cursor.length();
  heap_bits_ = cursor.u16();
  cursor.skip(2);
  root_ = cursor.address();
  root_rows_ = cursor.u16();
  const bool powers = std::has_single_bit(width_) && std::has_single_bit(first_size_) &&
                      std::has_single_bit(largest_direct_);
  if (!powers || largest_direct_ < first_size_ || heap_bits_ > 64 || heap_bits_ == 0 ||
      largest_direct_ > Hdf5Bytes::kLargestStructure || root_rows_ > 64) {
    cursor.fail("sizes that cannot be right");
  }
  direct_rows_ =
      static_cast<unsigned>(std::countr_zero(largest_direct_) - std::countr_zero(first_size_) + 2);
}

uint64_t Hdf5FractalHeap::row_size(unsigned row) const {
  return row == 0 ? first_size_ : first_size_ << (row - 1);
}

uint64_t Hdf5FractalHeap::row_begin(unsigned row) const {
  return row == 0 ? 0 : (width_ * first_size_) << (row - 1);
}

unsigned Hdf5FractalHeap::row_of(uint64_t heap_offset) const {
  const uint64_t first_row = width_ * first_size_;
  return heap_offset < first_row ? 0
                                 : static_cast<unsigned>(std::bit_width(heap_offset / first_row));
}

uint64_t Hdf5FractalHeap::child_of(uint64_t block, unsigned rows, unsigned row, uint64_t column) {
  const uint64_t head = 4 + 1 + bytes_.offset_size() + (heap_bits_ + 7) / 8;
  auto known = indirect_.find(block);
  if (known == indirect_.end()) {
    const uint64_t length = head + rows * width_ * bytes_.offset_size() + 4;
    std::vector<std::byte> read = bytes_.read(block, length, "fractal heap block");
    Hdf5Cursor cursor = bytes_.cursor(read, block, "fractal heap block");
    cursor.expect("FHIB");
    check_hdf5_checksum(cursor);
    known = indirect_.emplace(block, std::move(read)).first;
  }
  Hdf5Cursor cursor = bytes_.cursor(known->second, block, "fractal heap block");
  cursor.skip(head + (row * width_ + column) * bytes_.offset_size());
  return cursor.address();
}

uint64_t Hdf5FractalHeap::find_block(uint64_t& heap_offset, uint64_t& block_size) {
  const auto missing = [&] {
    throw Hdf5Error(ErrorKind::corrupt, bytes_.offset_of(0, 0, "file"),
                    fmt::format("fractal heap: it has no block at {}", heap_offset));
  };
  if (root_ == kNowhere) missing();
  if (root_rows_ == 0) {
    block_size = first_size_;
    return root_;
  }
  uint64_t block = root_;
  unsigned rows = root_rows_;
  for (;;) {
    const unsigned row = row_of(heap_offset);
    if (row >= rows) missing();
    const uint64_t column = (heap_offset - row_begin(row)) / row_size(row);
    heap_offset -= row_begin(row) + column * row_size(row);
    block = child_of(block, rows, row, column);
    if (block == kNowhere) missing();
    if (row < direct_rows_) {
      block_size = row_size(row);
      return block;
    }
    // An indirect block of the size of this row's blocks; smaller with every step.
    const auto fewer = static_cast<unsigned>(std::countr_zero(row_size(row)) -
                                             std::countr_zero(first_size_ * width_) + 1);
    if (fewer >= rows) missing();
    rows = fewer;
  }
}

Hdf5FractalHeap::Object Hdf5FractalHeap::object(Hdf5Cursor id) {
  const uint8_t kind = id.u8();
  constexpr uint8_t kManaged = 0, kTiny = 2;
  if (kind >> 6 != 0) id.fail("a heap id of unknown version");
  if ((kind >> 4 & 3) == kTiny) {
    const Bytes bytes = id.bytes((kind & 15U) + 1U);
    return {0, {bytes.begin(), bytes.end()}};
  }
  if ((kind >> 4 & 3) != kManaged) {
    throw Hdf5Error(ErrorKind::unsupported, id.offset(), "a link whose name is very long");
  }
  const auto direct_bits = static_cast<unsigned>(std::countr_zero(largest_direct_));
  uint64_t at = id.number((heap_bits_ + 7) / 8);
  const uint64_t length =
      id.number(std::min((direct_bits + 7) / 8, hdf5_bytes_for(largest_object_)));
  uint64_t block_size = 0;
  const uint64_t block = find_block(at, block_size);
  if (at > block_size || length > block_size - at) id.fail("an object that leaves its block");
  const std::vector<std::byte> head = bytes_.read(block, 4, "fractal heap block");
  bytes_.cursor(head, block, "fractal heap block").expect("FHDB");
  return {block + at, bytes_.read(block + at, length, "fractal heap object")};
}

Hdf5GlobalHeap::Object Hdf5GlobalHeap::find(uint64_t collection, uint32_t index) {
  const Collection& there = this->collection(collection);
  if (index >= there.objects.size() || there.objects[index].offset == 0) {
    throw Hdf5Error(ErrorKind::corrupt, bytes_.offset_of(collection, 0, "global heap"),
                    fmt::format("global heap: it has no object {}", index));
  }
  return there.objects[index];
}

const Hdf5GlobalHeap::Collection& Hdf5GlobalHeap::collection(uint64_t address) {
  const auto known = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Collection& each) { return each.address == address; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
  } else {
    kept_.push_front(read(address));
    if (kept_.size() > kKept) kept_.pop_back();
  }
  return kept_.front();
}

Hdf5GlobalHeap::Collection Hdf5GlobalHeap::read(uint64_t address) {
  // Headers, of the collection and of its objects, end at a multiple of 8 whatever the lengths
  // take.
  const uint64_t head = round_up(uint64_t{8} + bytes_.length_size(), 8);
  const std::vector<std::byte> begin = bytes_.read(address, head, "global heap");
  Hdf5Cursor cursor = bytes_.cursor(begin, address, "global heap");
  cursor.expect("GCOL");
  cursor.version(1, 1);
  cursor.skip(3);
  const uint64_t size = cursor.length();
  const uint64_t offset = bytes_.offset_of(address, size, "global heap");
  Collection collection{address, {}};
  const uint64_t object_head = head;
  uint64_t at = head;
  while (at + object_head <= size) {
    const std::vector<std::byte> object =
        bytes_.read(address + at, object_head, "global heap object");
    Hdf5Cursor fields = bytes_.cursor(object, address + at, "global heap object");
    const uint16_t index = fields.u16();
    fields.skip(6);
    const uint64_t length = fields.length();
    if (index == 0) break;  // free space up to the end
    // Rows in any order read collections several times, but not without end.
    if (++objects_ > 65'536 + bytes_.size() * 32) fields.fail("collections are read too often");
    if (length > size - at - object_head) fields.fail("is larger than its collection");
    if (collection.objects.size() <= index) collection.objects.resize(index + 1);
    collection.objects[index] = {offset + at + object_head, length};
    at += object_head + round_up(length, 8);
  }
  return collection;
}

}  // namespace stoker
