// SPDX-License-Identifier: Apache-2.0
// Decodes and resizes photos by our own code alone: it needs no library, so that it can be compiled
// for any CPU. Reads lines from stdin,
//
//   PHOTO ROW_INDEX|- TOP LEFT HEIGHT WIDTH TO_HEIGHT TO_WIDTH FILTER FLIP
//
// and writes the pixels to stdout, three bytes each, one image behind the other; to stderr, which
// vectors it has.

#include <hwy/highway.h>

#include <cstddef>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "image/baseline_decoder.h"
#include "image/resample.h"

namespace stoker {
namespace {

struct Job {
  std::string photo, index;
  Region region;
  Size size;
  std::string filter;
  bool flip = false;
};

std::istream& operator>>(std::istream& in, Job& job) {
  Region& region = job.region;
  return in >> job.photo >> job.index >> region.top >> region.left >> region.height >>
         region.width >> job.size.height >> job.size.width >> job.filter >> job.flip;
}

std::vector<char> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("not there");
  return {std::istreambuf_iterator<char>(file), {}};
}

class Rows final : public PixelRows {
 public:
  explicit Rows(Size size) { buffer_.resize(size); }
  uint8_t* next() override { return buffer_.row(row_++); }
  PixelView view() const { return buffer_.view(); }

 private:
  PixelBuffer buffer_;
  size_t row_ = 0;
};

class Worker {
 public:
  /// What ImageDecoder does where nothing is left to libjpeg-turbo.
  std::vector<uint8_t> run(const Job& job) {
    const std::vector<char> photo = read(job.photo);
    const Bytes bytes = std::as_bytes(std::span(photo));
    const DecodePath path = decoder_.open(bytes);
    if (path != DecodePath::from_start) throw std::runtime_error(std::string(name_of(path)));
    std::vector<char> file;
    std::optional<RowIndexView> index;
    if (job.index != "-") {
      file = read(job.index);
      index = RowIndexView::open(std::as_bytes(std::span(file)));
      if (!index || !decoder_.fits(*index, crc32c(bytes))) {
        throw std::runtime_error("the row index is not the photo's");
      }
    }
    const auto decode = [&](const Region& part, PixelRows& rows) {
      if (!decoder_.decode(part, index ? &*index : nullptr, rows)) {
        throw std::runtime_error("left to libjpeg-turbo");
      }
    };

    const size_t stride = size_t{job.size.width} * 3;
    std::vector<uint8_t> pixels(job.size.pixels() * 3);
    const bool resizes = job.size != job.region.size();
    Region part = job.region;
    if (resizes) {
      part = resampler_.plan({job.region.size(),
                              job.size,
                              {0, 0, job.size.height, job.size.width},
                              find_resample(job.filter).value()});
      part.top += job.region.top;
      part.left += job.region.left;
      if (PixelRows* const rows = resampler_.take_rows(job.flip)) {
        decode(part, *rows);
        resampler_.finish(pixels.data(), stride);
        return pixels;
      }
    }
    Rows rows(part.size());
    decode(part, rows);
    if (resizes) {
      resampler_.run(rows.view(), job.flip, pixels.data(), stride);
    } else {
      for (uint32_t y = 0; y < part.height; ++y) {
        pack_row(rows.view().row(y), part.width, job.flip, pixels.data() + y * stride);
      }
    }
    return pixels;
  }

 private:
  BaselineDecoder decoder_;
  Resampler resampler_;
};

int run() {
  std::cerr << hwy::TargetName(HWY_SUPPORTED_TARGETS) << "\n";
  Worker worker;
  Job job;
  while (std::cin >> job) {
    try {
      const std::vector<uint8_t> pixels = worker.run(job);
      std::cout.write(reinterpret_cast<const char*>(pixels.data()),
                      static_cast<std::streamsize>(pixels.size()));
    } catch (const std::exception& error) {
      std::cerr << job.photo << " " << job.index << ": " << error.what() << "\n";
      return 1;
    }
  }
  return std::cin.eof() && std::cout.flush() ? 0 : 1;
}

}  // namespace
}  // namespace stoker

int main() { return stoker::run(); }
