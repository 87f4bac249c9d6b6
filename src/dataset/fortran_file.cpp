// SPDX-License-Identifier: Apache-2.0
#include "dataset/fortran_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "base/text.h"
#include "dataset/npy.h"

namespace stoker {
namespace {

class FortranFile final : public ReadableFile {
 public:
  FortranFile(std::unique_ptr<ReadableFile> file, const std::string& path)
      : file_(std::move(file)), path_(path) {
    begin_.resize(kLongestNpyHeader);
    begin_.resize(file_->read_at(0, begin_));
    try {
      header_ = parse_npy_header(begin_);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", printable(path), error.what()));
    }
    if (!header_.fortran_order || header_.shape.empty()) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: is not in Fortran order any more", printable(path)));
    }
    element_ = size_of(header_.dtype);
    rows_ = static_cast<uint64_t>(header_.shape.front());
    row_ = rows_ == 0 ? 0 : header_.data_size / rows_;
    begin_.resize(header_.size);
  }

  size_t read_at(uint64_t offset, MutableBytes into) override {
    const std::lock_guard lock(mutex_);
    size_t done = 0;
    while (done < into.size()) {
      const size_t count = read_some(offset + done, into.subspan(done));
      if (count == 0) break;
      done += count;
    }
    return done;
  }
  size_t read_at(uint64_t offset, std::span<const MutableBytes> into) override {
    size_t done = 0;
    for (const MutableBytes piece : into) {
      const size_t count = read_at(offset + done, piece);
      done += count;
      if (count < piece.size()) break;
    }
    return done;
  }
  FileInfo info() override { return file_->info(); }

 private:
  size_t read_some(uint64_t offset, MutableBytes into) {
    if (offset < begin_.size()) {
      const size_t count = std::min<uint64_t>(into.size(), begin_.size() - offset);
      std::memcpy(into.data(), begin_.data() + offset, count);
      return count;
    }
    const uint64_t at = offset - begin_.size();
    if (row_ == 0 || at >= header_.data_size) return 0;
    const uint64_t row = at / row_;
    if (row < first_ || row >= first_ + count_) gather(row);
    const uint64_t within = at - first_ * row_;
    const uint64_t kept = count_ * row_;
    if (within >= kept) return 0;  // the file is cut off
    const size_t count = std::min<uint64_t>(into.size(), kept - within);
    std::memcpy(into.data(), gathered_.data() + within, count);
    return count;
  }

  /// Brings the elements of some rows together, from `row` on.
  void gather(uint64_t row) {
    constexpr uint64_t kGathered = 32 << 20;
    first_ = row;
    count_ = std::min(rows_ - row, std::max<uint64_t>(kGathered / row_, 1));
    const uint64_t wanted = count_ * element_;
    // No more memory than the file has bytes.
    if (count_ * row_ > file_->info().size) {
      count_ = 0;
      return;
    }
    gathered_.resize(count_ * row_);
    column_.resize(wanted);
    const std::vector<int64_t> inner(header_.shape.begin() + 1, header_.shape.end());
    std::vector<int64_t> index(inner.size());
    for (uint64_t column = 0; column < row_ / element_; ++column) {
      const uint64_t from = header_.size + (column * rows_ + row) * element_;
      if (file_->read_at(from, column_) != wanted) {
        count_ = 0;
        return;
      }
      uint64_t place = 0;  // of this column among a row's elements in C order
      for (size_t i = 0; i < inner.size(); ++i) {
        place = place * static_cast<uint64_t>(inner[i]) + static_cast<uint64_t>(index[i]);
      }
      scatter(place);
      for (size_t i = 0; i < inner.size() && ++index[i] == inner[i]; ++i) index[i] = 0;
    }
  }

  void scatter(uint64_t place) {
    std::byte* to = gathered_.data() + place * element_;
    const std::byte* from = column_.data();
    for (uint64_t i = 0; i < count_; ++i, to += row_, from += element_) {
      std::memcpy(to, from, element_);
    }
  }

  std::unique_ptr<ReadableFile> file_;
  std::string path_;
  std::mutex mutex_;
  std::vector<std::byte> begin_;  // the header, which is as long in either order
  NpyHeader header_;
  uint64_t element_ = 0, rows_ = 0, row_ = 0;  // bytes of an element; rows; bytes of a row
  uint64_t first_ = 0, count_ = 0;             // rows that are gathered
  std::vector<std::byte> gathered_, column_;
};

}  // namespace

std::unique_ptr<ReadableFile> as_c_order(std::unique_ptr<ReadableFile> file,
                                         const std::string& path) {
  return std::make_unique<FortranFile>(std::move(file), path);
}

}  // namespace stoker
