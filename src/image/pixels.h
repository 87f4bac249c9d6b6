// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace stoker {

struct Size {
  uint32_t height = 0;
  uint32_t width = 0;

  uint64_t pixels() const { return uint64_t{height} * width; }
  bool operator==(const Size&) const = default;
};

/// A rectangle of an image. torchvision's order: top, left, height, width.
struct Region {
  uint32_t top = 0, left = 0, height = 0, width = 0;

  Size size() const { return {height, width}; }
  bool fits(Size image) const {
    return uint64_t{top} + height <= image.height && uint64_t{left} + width <= image.width;
  }
  bool operator==(const Region&) const = default;
};

/// A picture that is changed in place: pixels of three bytes, red, green, blue, without gaps.
struct Picture {
  uint8_t* data = nullptr;
  Size size;

  size_t pixels() const { return size.pixels(); }
  size_t bytes() const { return size.pixels() * 3; }
  size_t stride() const { return size_t{size.width} * 3; }  // bytes from row to row
  uint8_t* row(size_t y) const { return data + y * stride(); }
};

/// Pixels of four bytes each, of which the last says nothing: red, green, blue, any. Behind the
/// last row kSlack more bytes can be read.
struct PixelView {
  static constexpr size_t kSlack = 256;

  const uint8_t* data = nullptr;
  size_t stride = 0;  // bytes from row to row
  Size size;

  const uint8_t* row(size_t y) const { return data + y * stride; }
  PixelView part(const Region& region) const {
    return {data + region.top * stride + size_t{region.left} * 4, stride, region.size()};
  }
};

/// Memory for such pixels that is kept from image to image. Not cleared.
class PixelBuffer {
 public:
  /// Room for an image of this size; what it held is lost.
  void resize(Size size) {
    size_ = size;
    const size_t needed = size.pixels() * 4 + PixelView::kSlack;
    if (needed <= capacity_) return;
    bytes_ = std::make_unique_for_overwrite<uint8_t[]>(needed);
    capacity_ = needed;
  }
  uint8_t* row(size_t y) { return bytes_.get() + y * size_.width * 4; }
  PixelView view() const { return {bytes_.get(), size_t{size_.width} * 4, size_}; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t capacity_ = 0;
  Size size_;
};

/// Takes an image row by row.
class PixelRows {
 public:
  virtual ~PixelRows() = default;
  /// Where the next row of pixels goes, with PixelView::kSlack bytes behind it that may be written
  /// as well; the row before is done then.
  virtual uint8_t* next() = 0;
};

/// Those of a buffer.
class BufferRows final : public PixelRows {
 public:
  BufferRows(PixelBuffer& buffer, Size size) : buffer_(buffer) { buffer.resize(size); }
  uint8_t* next() override { return buffer_.row(count_++); }
  size_t count() const { return count_; }

 private:
  PixelBuffer& buffer_;
  size_t count_ = 0;
};

}  // namespace stoker
