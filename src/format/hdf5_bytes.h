// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "os/file_system.h"

namespace stoker {

/// What is wrong in an HDF5 file, and at which offset of it.
class Hdf5Error : public Error {
 public:
  Hdf5Error(ErrorKind kind, uint64_t offset, const std::string& cause)
      : Error(kind, cause), offset_(offset) {}
  uint64_t offset() const { return offset_; }

 private:
  uint64_t offset_;
};

/// Takes a structure apart from front to back. Throws Hdf5Error(corrupt) where it ends too early.
class Hdf5Cursor {
 public:
  /// `offset` is where the bytes lie in the file; `what` names the structure, a literal.
  Hdf5Cursor(Bytes bytes, uint64_t offset, std::string_view what, unsigned offset_size = 8,
             unsigned length_size = 8)
      : bytes_(bytes),
        begin_(offset),
        what_(what),
        offset_size_(offset_size),
        length_size_(length_size) {}

  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  /// Little-endian, of 0 to 8 bytes.
  uint64_t number(unsigned size);
  /// An address; all ones, whatever its size, is kNowhere.
  uint64_t address();
  uint64_t length() { return number(length_size_); }

  Bytes bytes(uint64_t size);
  void skip(uint64_t size) { bytes(size); }
  /// Up to a NUL, which is passed over.
  std::string_view text();
  /// REQUIRES that the next bytes are `signature`.
  void expect(std::string_view signature);
  /// REQUIRES that the next byte is one of [first, last].
  uint8_t version(uint8_t first, uint8_t last);

  uint64_t left() const { return bytes_.size() - at_; }
  uint64_t passed() const { return at_; }
  uint64_t offset() const { return begin_ + at_; }
  Bytes all() const { return bytes_; }
  std::string_view what() const { return what_; }
  unsigned offset_size() const { return offset_size_; }
  unsigned length_size() const { return length_size_; }
  [[noreturn]] void fail(const std::string& cause) const;

 private:
  Bytes bytes_;
  size_t at_ = 0;
  uint64_t begin_;
  std::string_view what_;
  unsigned offset_size_, length_size_;
};

/// The address of what was never written.
inline constexpr uint64_t kNowhere = ~uint64_t{0};

/// The metadata of one HDF5 file, read piece by piece. Addresses count from the superblock's base,
/// offsets from the beginning of the file. Not safe to use from several threads.
class Hdf5Bytes {
 public:
  explicit Hdf5Bytes(ReadableFile& file) : file_(file), size_(file.info().size) {}

  void set_base(uint64_t base) { base_ = base; }
  void set_sizes(unsigned offset_size, unsigned length_size) {
    offset_size_ = offset_size;
    length_size_ = length_size;
  }
  unsigned offset_size() const { return offset_size_; }
  unsigned length_size() const { return length_size_; }
  uint64_t size() const { return size_; }
  ReadableFile& file() { return file_; }

  /// Where the bytes [address, address + length) lie in the file; throws Hdf5Error(corrupt)
  /// unless all of them are there.
  uint64_t offset_of(uint64_t address, uint64_t length, std::string_view what) const;
  /// The bytes of a structure; throws where it does not lie in the file or is larger than any that
  /// a library writes.
  std::vector<std::byte> read(uint64_t address, uint64_t length, std::string_view what);
  /// Fills `into` from `offset` of the file as far as that goes, and says how far.
  size_t peek(uint64_t offset, MutableBytes into);
  Hdf5Cursor cursor(Bytes bytes, uint64_t address, std::string_view what) const {
    return {bytes, base_ + address, what, offset_size_, length_size_};
  }

  static constexpr uint64_t kLargestStructure = uint64_t{1} << 28;

 private:
  /// Small structures lie together: neighbours come with one read.
  void read_paged(uint64_t offset, MutableBytes into);

  static constexpr uint64_t kPage = 4096;
  static constexpr size_t kPages = 64;
  struct Page {
    uint64_t number = ~uint64_t{0};
    std::vector<std::byte> bytes;
  };

  ReadableFile& file_;
  uint64_t size_;
  uint64_t base_ = 0;
  unsigned offset_size_ = 8, length_size_ = 8;
  std::array<Page, kPages> pages_;
};

/// Bob Jenkins's lookup3, by which HDF5 guards its newer structures.
uint32_t hdf5_checksum(Bytes bytes);
/// The last four bytes are the checksum of those before; throws Hdf5Error where they are not.
void check_hdf5_checksum(const Hdf5Cursor& structure);

}  // namespace stoker
