// SPDX-License-Identifier: Apache-2.0
#include "image/jpeg_samples.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

// Behind <cstdio>, which it does not include itself.
#include <jpeglib.h>

namespace stoker {
namespace {

uint8_t shade(double value) { return static_cast<uint8_t>(std::min(std::max(value, 0.0), 255.0)); }

}  // namespace

std::vector<std::byte> write_jpeg(const JpegSample& sample) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = sample.size.width;
  info.image_height = sample.size.height;
  info.input_components = sample.gray ? 1 : 3;
  info.in_color_space = sample.gray ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (sample.rgb) jpeg_set_colorspace(&info, JCS_RGB);
  jpeg_set_quality(&info, sample.quality, TRUE);
  info.dct_method = JDCT_ISLOW;
  info.optimize_coding = sample.optimize ? TRUE : FALSE;
  info.arith_code = sample.arithmetic ? TRUE : FALSE;
  info.restart_interval = sample.restart;
  for (int i = 0; i < info.num_components; ++i) {
    info.comp_info[i].h_samp_factor = sample.sampling[i][0];
    info.comp_info[i].v_samp_factor = sample.sampling[i][1];
  }
  if (sample.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::mt19937 random(sample.seed);
  std::vector<uint8_t> row(size_t{sample.size.width} * 3);
  const double wave = 3 + sample.seed % 17;
  for (uint32_t y = 0; y < sample.size.height; ++y) {
    for (size_t i = 0; i < row.size(); ++i) {
      const auto x = static_cast<double>(i / 3);
      const double channel = static_cast<double>(i % 3) + 1;
      const double smooth = 120 + 90 * std::sin(x / wave + channel) * std::cos(y / wave * channel);
      const bool is_edge = (i / 3 / 11 + y / 13) % 5 == 0;
      row[i] = shade(smooth + (is_edge ? 80 : 0) + random() % (is_edge ? 64 : 8));
    }
    JSAMPROW rows[1] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* first = reinterpret_cast<const std::byte*>(bytes);
  std::vector<std::byte> made(first, first + size);
  std::free(bytes);  // NOLINT: libjpeg has allocated it so
  return made;
}

}  // namespace stoker
