// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "image/pixels.h"

namespace stoker {

/// Pillow's filters, by Pillow's names.
enum class Resample : uint8_t { nearest, box, bilinear, bicubic, lanczos };

std::optional<Resample> find_resample(std::string_view name);

/// For every output pixel of a row or column: which input pixels it is the sum of, and how much of
/// each. Weights are Pillow's: 22 bits behind the point.
struct ResampleWeights {
  static constexpr int kBits = 22;

  struct Window {
    uint32_t first = 0;  // input pixel
    uint32_t count = 0;
  };
  std::vector<Window> windows;
  uint32_t stride = 0;          // weights per output pixel; those behind `count` are 0
  std::vector<int32_t> values;  // stride for each output pixel

  /// Fills it for `in` pixels that become `out`, of which `wanted` from `begin` on are computed.
  /// `filter` is not nearest.
  void set(uint32_t in, uint32_t out, uint32_t begin, uint32_t wanted, Resample filter);
  /// Counts input pixels from the first that is used; returns which one that was, and how many
  /// are used.
  Window make_relative();

 private:
  template <typename Weight>
  void fill(uint32_t in, uint32_t out, uint32_t begin, uint32_t wanted, double filter_support,
            Weight weight_of);
};

/// Weights in the order of the CPU's vectors, for making rows wider or narrower.
struct PackedWeights {
  std::vector<int32_t> words;
  uint32_t groups = 0;  // of four taps, for each output pixel
  bool flip = false;    // rows are mirrored
  /// Bytes of a pixel that is made. Three, where the CPU can permute bytes over a whole vector: the
  /// fourth says nothing, and costs as much as any other.
  uint32_t pixel_bytes = 4;
  // Where they are three: vectors of input pixels that 16 output bytes look at, and the first of
  // these pixels.
  uint32_t reach = 0;
  std::vector<uint32_t> first;
};

/// A resize of which perhaps only a part is wanted.
struct Resizing {
  Size from, to;
  Region window;  // of `to`
  Resample filter = Resample::bilinear;
};

/// Resizes images exactly as Pillow's Image.resize does. Keeps its memory from image to image; one
/// per thread.
class Resampler : private PixelRows {
 public:
  /// The part of the image that run() needs for this.
  Region plan(const Resizing& resizing);
  /// Takes that part, and writes pixels of three bytes to `out`, mirrored where `flip` says so.
  void run(const PixelView& part, bool flip, uint8_t* out, size_t out_stride);

  /// Whether the part can be given row by row, each of which is used while it is in the cache; null
  /// where all of it has to be there first. Instead of run(): all rows go to what this returns,
  /// then finish() does the rest.
  PixelRows* take_rows(bool flip);
  void finish(uint8_t* out, size_t out_stride);

 private:
  static constexpr uint32_t kStaged = 16;  // rows that are changed together

  uint8_t* next() override;
  void change_staged();
  bool height_first() const;
  void run_nearest(const PixelView& part, bool flip, uint8_t* out, size_t out_stride) const;
  PixelView change_width(const PixelView& image, bool flip);
  PixelView change_height(const PixelView& image);
  void write(const PixelView& image, size_t pixel_bytes, bool flip, uint8_t* out,
             size_t out_stride);

  Resizing resizing_;
  Size part_;  // that plan() has asked for
  ResampleWeights columns_, rows_;
  std::vector<uint32_t> nearest_columns_, nearest_rows_;
  PackedWeights packed_;
  PixelBuffer wider_, higher_;
  // Of take_rows().
  PixelBuffer stage_;
  uint32_t staged_ = 0, changed_ = 0;  // rows that wait, and that are in wider_
};

/// Copies a row of pixels of four bytes to pixels of three, mirrored where `flip` says so. Reads
/// up to PixelView::kSlack bytes behind the row.
void pack_row(const uint8_t* from, uint32_t width, bool flip, uint8_t* out);

}  // namespace stoker
