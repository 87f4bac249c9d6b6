// SPDX-License-Identifier: Apache-2.0
#include "image/mix.h"

#include <cstring>
#include <vector>

#include "base/error.h"
#include "image/mix_kernels.h"

namespace stoker {
namespace {

/// Where the bytes of a region lie in a picture, as runs.
struct RegionRows {
  size_t count = 0;  // runs of bytes, each `length` long
  size_t length = 0;
  size_t rows = 0;  // of the region, in each plane
  size_t stride = 0, plane = 0, first = 0;

  RegionRows(const FinishedPicture& picture, const Region& region) {
    const bool planes = picture.layout == PixelLayout::nchw;
    const size_t pixel = size_of(picture.type) * (planes ? 1 : 3);
    rows = region.height;
    count = rows * (planes ? 3 : 1);
    length = region.width * pixel;
    stride = picture.size.width * pixel;
    plane = picture.size.pixels() * pixel;
    first = region.top * stride + region.left * pixel;
  }
  size_t offset(size_t i) const { return first + i / rows * plane + i % rows * stride; }
};

}  // namespace

void mix_up(const PictureBatch& batch, double lambda, size_t begin, size_t end) {
  const PixelType type = batch.first.type;
  if (type == PixelType::uint8) {
    throw Error(ErrorKind::usage, "uint8 cannot be mixed: float32, float16 or bfloat16 can");
  }
  if (batch.rows == 0 || begin >= end) return;
  const auto share = static_cast<float>(lambda);
  const auto rest = static_cast<float>(1.0 - lambda);
  const auto row = [&](uint64_t i) { return batch.picture(i).data + begin * size_of(type); };
  const auto mix = [&](uint64_t i, const std::byte* before) {
    mix_numbers(type, row(i), before, end - begin, share, rest);
  };
  const std::byte* const last_row = row(batch.rows - 1);
  const std::vector<std::byte> last(last_row, last_row + (end - begin) * size_of(type));
  for (uint64_t i = batch.rows - 1; i > 0; --i) mix(i, row(i - 1));
  mix(0, last.data());
}

void mix_up(const PictureBatch& batch, double lambda) {
  mix_up(batch, lambda, 0, batch.first.size.pixels() * 3);
}

void cut_mix(const PictureBatch& batch, const Region& region) {
  if (!region.fits(batch.first.size)) {
    throw Error(ErrorKind::usage, "the region is not in the picture");
  }
  if (batch.rows == 0 || region.size().pixels() == 0) return;
  const RegionRows runs(batch.first, region);
  std::vector<std::byte> last(runs.count * runs.length);
  const auto at = [&](uint64_t row, size_t i) { return batch.picture(row).data + runs.offset(i); };
  for (size_t i = 0; i < runs.count; ++i) {
    std::memcpy(last.data() + i * runs.length, at(batch.rows - 1, i), runs.length);
  }
  for (uint64_t row = batch.rows - 1; row > 0; --row) {
    for (size_t i = 0; i < runs.count; ++i) std::memcpy(at(row, i), at(row - 1, i), runs.length);
  }
  for (size_t i = 0; i < runs.count; ++i) {
    std::memcpy(at(0, i), last.data() + i * runs.length, runs.length);
  }
}

}  // namespace stoker
