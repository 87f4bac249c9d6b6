// SPDX-License-Identifier: Apache-2.0
#include "format/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
#include "format/npy_arrays.h"

namespace stoker {
namespace {

/// The keys that pack has written, read some at a time.
class Keys {
 public:
  Keys(std::unique_ptr<ReadableFile> file, const RowArray& array)
      : file_(std::move(file)), array_(array) {}

  std::string_view key(uint64_t row) {
    constexpr uint64_t kRows = 4096;
    if (row < first_ || row >= first_ + count_) {
      first_ = row;
      count_ = std::min(kRows, array_.rows - row);
      bytes_.resize(count_ * array_.length);
      bytes_.resize(file_->read_at(array_.offset + row * array_.stride,
                                   std::as_writable_bytes(std::span(bytes_))));
      bytes_.resize(count_ * array_.length);
    }
    const std::string_view padded =
        std::string_view(bytes_).substr((row - first_) * array_.length, array_.length);
    return padded.substr(0, padded.find_last_not_of('\0') + 1);
  }

 private:
  std::unique_ptr<ReadableFile> file_;
  RowArray array_;
  std::string bytes_;
  uint64_t first_ = 0, count_ = 0;
};

class NpyScan {
 public:
  NpyScan(const Source& source, bool several, ScanSink& sink)
      : source_(source), several_(several), sink_(sink) {}

  void add(const std::string& path) {
    std::optional<ArrayFile> file;
    try {
      file = read_array_file(source_, path);
      if (!file) throw Error(ErrorKind::corrupt, "is no longer a file of arrays");
    } catch (const Error& error) {
      if (error.os_error() != 0) throw;
      broken_ = true;
      return sink_.fault({path, {}, "", "", error.what()});
    }
    for (Fault& fault : file->faults) sink_.fault(std::move(fault));
    const auto number = sink_.shard(
        {path, file->info.size, file->info.modified_ns, 0, file->info.size, 0, file->compression});
    for (StatedChecksum checksum : file->stated) {
      checksum.shard = number;
      sink_.stated(checksum);
    }
    group_ = file->group;
    const uint64_t size = size_of(*file);
    check_size(*file, size);
    for (RowArray& array : file->arrays) {
      add(*file, number, std::move(array), std::min(size, file->expected_size));
    }
  }

  void emit() {
    if (broken_) return;  // samples without some of their fields would be others
    if (fields_.empty()) return;
    if (rows_ == std::numeric_limits<uint64_t>::max()) {
      return sink_.fault({shard_path_, {}, "", "", "its rows have no bytes"});
    }
    std::string key;
    for (uint64_t row = 0; row < rows_; ++row) {
      for (size_t i = 0; i < fields_.size(); ++i) {
        fields_[i].extent.offset = arrays_[i].offset + row * arrays_[i].stride;
      }
      if (keys_) {
        key = keys_->key(row);
      } else if (several_) {
        key = fmt::format("{}/{}", group_, row);
      } else {
        key = fmt::format_int(row).str();
      }
      sink_.sample(key, fields_);
    }
  }

 private:
  /// Bytes of the file, of a compressed one those that come out, if not more than expected: what
  /// its header claims is no reason to believe that they are there.
  uint64_t size_of(const ArrayFile& file) {
    if (file.compression != Compression::gzip && file.compression != Compression::zstd) {
      return file.info.size;
    }
    uint64_t size = 0;
    try {
      const auto bytes = inflate(source_.file_system->open(source_.root + "/" + file.path),
                                 file.path, file.compression);
      std::vector<std::byte> buffer(256 << 10);
      for (size_t got = buffer.size(); got == buffer.size() && size <= file.expected_size;) {
        got = bytes->read_at(size, buffer);
        size += got;
      }
    } catch (const Error& error) {
      if (error.os_error() != 0) throw;
      sink_.fault({file.path, {}, "", "", error.what()});
    }
    return size;
  }

  void check_size(const ArrayFile& file, uint64_t is) {
    if (is == file.expected_size) return;
    sink_.fault(
        {file.path, std::min(is, file.expected_size), "", "",
         is < file.expected_size
             ? fmt::format("the file is cut off: {} bytes are missing", file.expected_size - is)
             : fmt::format("{} bytes behind the last row", is - file.expected_size)});
  }

  /// How many rows of an array are there.
  static uint64_t rows_there(const RowArray& array, uint64_t end) {
    if (array.stride == 0) return std::numeric_limits<uint64_t>::max();
    if (end < array.offset + array.length) return 0;
    return std::min(array.rows, (end - array.offset - array.length) / array.stride + 1);
  }

  void add(const ArrayFile& file, uint32_t number, RowArray array, uint64_t end) {
    const uint64_t there = rows_there(array, end);
    rows_ = std::min(rows_, array.rows == 0 ? 0 : there);
    if (claimed_.value_or(array.rows) != array.rows) {
      broken_ = true;
      return sink_.fault({file.path, array.offset, "", array.field,
                          fmt::format("has {} rows, other arrays {}", array.rows, *claimed_)});
    }
    claimed_ = array.rows;
    if (array.field == kNpyKeys && array.dtype == DType::unknown) {
      array.rows = std::min(array.rows, there);
      keys_.emplace(inflate(source_.file_system->open(source_.root + "/" + file.path), file.path,
                            file.compression),
                    array);
      return;
    }
    arrays_.push_back(std::move(array));
    FoundField& field = fields_.emplace_back();
    const RowArray& kept = arrays_.back();
    names_.push_back(std::make_unique<std::string>(kept.field));
    field.name = *names_.back();
    field.extent = {Container::shard, number, 0, kept.length, 0};
    shard_path_ = file.path;
    if (kept.dtype == DType::unknown) {
      field.encoding = Encoding::padded;
      return;
    }
    field.type = kept.shape.empty() ? FieldType::number : FieldType::array;
    field.encoding = kept.big_endian ? Encoding::elements_big : Encoding::elements;
    field.dtype = kept.dtype;
    field.shape = kept.shape;
  }

  const Source& source_;
  bool several_;
  ScanSink& sink_;
  std::string group_, shard_path_;
  bool broken_ = false;
  std::vector<RowArray> arrays_;  // as fields_
  std::vector<FoundField> fields_;
  std::vector<std::unique_ptr<std::string>> names_;
  std::optional<Keys> keys_;
  std::optional<uint64_t> claimed_;
  uint64_t rows_ = std::numeric_limits<uint64_t>::max();
};

}  // namespace

void scan_npy(const Source& source, const Layout& layout, const Part& part, ScanSink& sink) {
  NpyScan scan(source, layout.parts.size() > 1, sink);
  scan.add(part.shard);
  for (const std::string& path : part.beside) scan.add(path);
  scan.emit();
}

}  // namespace stoker
