// SPDX-License-Identifier: Apache-2.0
#include "image/baseline_decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/crc32c.h"
#include "base/error.h"
#include "image/decode.h"
#include "image/each_target.h"
#include "image/jpeg.h"
#include "image/jpeg_samples.h"
#include "image/row_index.h"

namespace stoker {
namespace {

using Photo = std::vector<std::byte>;

/// Without the fourth byte, which says nothing.
std::vector<uint8_t> colours(const PixelView& pixels) {
  std::vector<uint8_t> bytes;
  for (uint32_t y = 0; y < pixels.size.height; ++y) {
    for (size_t i = 0; i < size_t{pixels.size.width} * 4; ++i) {
      if (i % 4 != 3) bytes.push_back(pixels.row(y)[i]);
    }
  }
  return bytes;
}

std::vector<uint8_t> by_libjpeg(const Photo& photo, const Region& region) {
  JpegDecoder decoder;
  (void)decoder.open(photo);
  PixelBuffer buffer;
  return colours(decoder.decode(region, JpegDamage::anywhere, buffer));
}

/// Nothing where the decoder leaves the photo to libjpeg-turbo.
std::vector<uint8_t> by_us(const Photo& photo, const Region& region, Bytes index) {
  BaselineDecoder decoder;
  if (decoder.open(photo) != DecodePath::from_start) return {};
  const std::optional<RowIndexView> view = index.empty() ? std::nullopt : RowIndexView::open(index);
  if (view && !decoder.fits(*view, crc32c(photo))) return {};
  PixelBuffer buffer;
  BufferRows rows(buffer, region.size());
  if (!decoder.decode(region, view ? &*view : nullptr, rows)) return {};
  EXPECT_EQ(rows.count(), region.height);
  return colours(buffer.view());
}

Photo index_of(const Photo& photo, uint32_t every) {
  RowIndexer indexer(every);
  EXPECT_EQ(indexer.make(photo, crc32c(photo)), DecodePath::indexed);
  return {indexer.bytes().begin(), indexer.bytes().end()};
}

std::vector<Region> regions_of(Size size, std::mt19937& random) {
  std::vector<Region> regions = {{0, 0, size.height, size.width},
                                 {size.height - 1, size.width - 1, 1, 1}};
  for (int i = 0; i < 4; ++i) {
    const uint32_t top = random() % size.height;
    const uint32_t left = random() % size.width;
    regions.push_back({top, left, 1 + static_cast<uint32_t>(random() % (size.height - top)),
                       1 + static_cast<uint32_t>(random() % (size.width - left))});
  }
  return regions;
}

/// All regions, without an index and with some.
void expect_libjpegs_pixels(const JpegSample& sample, std::mt19937& random, int& compared) {
  const Photo photo = write_jpeg(sample);
  const Photo rows = index_of(photo, 0);
  const Photo fine = index_of(photo, 1 + random() % 5);
  for (const Region& region : regions_of(sample.size, random)) {
    const std::vector<uint8_t> expected = by_libjpeg(photo, region);
    const std::string where =
        fmt::format("quality {}, restart {}, region {} {} {} {}", sample.quality, sample.restart,
                    region.top, region.left, region.height, region.width);
    ASSERT_EQ(by_us(photo, region, {}), expected) << where;
    ASSERT_EQ(by_us(photo, region, rows), expected) << where;
    ASSERT_EQ(by_us(photo, region, fine), expected) << where;
    compared += 3;
  }
}

TEST(BaselineDecoder, PixelsAreLibjpegsForEverySamplingOnEveryTarget) {
  int compared = 0;
  with_each_target([&] {
    std::mt19937 random(11);
    for (const NamedSampling& named : kSamplings) {
      SCOPED_TRACE(named.name);
      for (const Size size : {Size{1, 1}, Size{3, 5}, Size{8, 8}, Size{17, 16}, Size{70, 131}}) {
        SCOPED_TRACE(fmt::format("{} x {}", size.width, size.height));
        JpegSample sample;
        sample.size = size;
        sample.sampling = named.sampling;
        sample.quality = 1 + static_cast<int>(random() % 100);
        sample.restart = random() % 3 == 0 ? 1 + random() % 9 : 0;
        sample.optimize = random() % 2 == 0;
        sample.rgb = random() % 5 == 0;
        sample.seed = random();
        expect_libjpegs_pixels(sample, random, compared);
      }
    }
  });
  EXPECT_GE(compared, 1800);
}

TEST(BaselineDecoder, PixelsAreLibjpegsForEveryQualityAndRestartInterval) {
  int compared = 0;
  std::mt19937 random(12);
  for (int quality = 1; quality <= 100; ++quality) {
    JpegSample sample;
    sample.size = {90, 111};
    sample.sampling = kSamplings[static_cast<size_t>(quality) % 4].sampling;
    sample.quality = quality;
    sample.gray = quality % 7 == 0;
    if (sample.gray) sample.sampling = kSamplings[0].sampling;
    sample.restart = static_cast<unsigned>(quality) % 20;
    sample.seed = static_cast<unsigned>(quality);
    expect_libjpegs_pixels(sample, random, compared);
  }
  EXPECT_EQ(compared, 1800);
}

TEST(BaselineDecoder, LeavesOthersToLibjpegAndSaysWhy) {
  JpegSample sample;
  sample.size = {40, 50};
  const auto path = [](const Photo& photo) { return BaselineDecoder().open(photo); };
  EXPECT_EQ(path(write_jpeg(sample)), DecodePath::from_start);
  sample.progressive = true;
  EXPECT_EQ(path(write_jpeg(sample)), DecodePath::progressive);
  sample.progressive = false;
  sample.arithmetic = true;
  EXPECT_EQ(path(write_jpeg(sample)), DecodePath::arithmetic);
  Photo twelve = write_jpeg({.size = {8, 8}});
  for (size_t i = 0; i + 4 < twelve.size(); ++i) {
    if (twelve[i] == std::byte{0xFF} && twelve[i + 1] == std::byte{0xC0}) {
      twelve[i + 4] = std::byte{12};
    }
  }
  EXPECT_EQ(path(twelve), DecodePath::unusual);
  ImageDecoder decoder;
  EXPECT_THROW((void)decoder.open(twelve), Error);
}

/// Wherever a photo is cut off or changed: an error, or the pixels that libjpeg-turbo gives.
TEST(BaselineDecoder, DamageGivesAnErrorOrLibjpegsPixels) {
  for (const unsigned restart : {0U, 2U}) {
    JpegSample sample;
    sample.size = {33, 47};
    sample.sampling = kSamplings[1].sampling;
    sample.restart = restart;
    const Photo photo = write_jpeg(sample);
    std::mt19937 random(13);
    int decoded = 0;
    int refused = 0;
    for (int round = 0; round < 3000; ++round) {
      Photo damaged = photo;
      if (round < static_cast<int>(photo.size())) damaged.resize(photo.size() - round);
      const bool is_cut = round > 0 && round < static_cast<int>(photo.size());
      if (is_cut && round % 2 == 0)
        damaged.insert(damaged.end(), {std::byte{0xFF}, std::byte{0xD9}});
      for (size_t n = is_cut ? 0 : 1 + random() % 3; n > 0; --n) {
        damaged[random() % damaged.size()] ^= static_cast<std::byte>(1 << random() % 8);
      }
      if (!is_jpeg(damaged)) continue;
      std::optional<std::vector<uint8_t>> expected;
      Size size;
      try {
        JpegDecoder libjpeg;
        size = libjpeg.open(damaged);
        if (size.pixels() > 1 << 20) continue;
        PixelBuffer buffer;
        expected =
            colours(libjpeg.decode({0, 0, size.height, size.width}, JpegDamage::anywhere, buffer));
      } catch (const Error&) {
      }
      std::optional<std::vector<uint8_t>> made;
      try {
        ImageDecoder decoder;
        const Size own = decoder.open(damaged).size;
        if (own.pixels() > 1 << 20) continue;
        made.emplace(own.pixels() * 3);
        decoder.decode({}, made->data(), size_t{own.width} * 3);
      } catch (const Error&) {
        made.reset();
      }
      ASSERT_EQ(made.has_value(), expected.has_value()) << round;
      if (made) {
        ASSERT_EQ(*made, *expected) << round;
      }
      ++(made ? decoded : refused);
    }
    EXPECT_GE(decoded, 300);
    EXPECT_GE(refused, 300);
  }
}

TEST(RowIndex, OfAnotherPhotoIsNotUsed) {
  JpegSample sample;
  sample.size = {64, 80};
  const Photo photo = write_jpeg(sample);
  sample.seed = 2;
  const Photo other = write_jpeg(sample);
  const std::vector<uint8_t> expected = by_libjpeg(photo, {0, 0, 64, 80});
  for (const uint32_t every : {0U, 2U}) {
    const Photo own = index_of(photo, every);
    std::vector<Photo> indexes = {own, index_of(other, every), {}};
    for (size_t i = 0; i < own.size(); ++i) {
      indexes.push_back(own);
      indexes.back()[i] ^= std::byte{0x10};
      indexes.emplace_back(own.begin(), own.begin() + static_cast<ptrdiff_t>(i));
    }
    int used = 0;
    for (const Photo& index : indexes) {
      ImageDecoder decoder;
      (void)decoder.open(photo);
      DecodeOptions options;
      options.row_index = index;
      std::vector<uint8_t> pixels(size_t{64} * 80 * 3);
      decoder.decode(options, pixels.data(), size_t{80} * 3);
      ASSERT_EQ(pixels, expected);
      if (decoder.path() == DecodePath::indexed) ++used;
    }
    EXPECT_EQ(used, 1) << "only its own, as it was written";
  }
}

TEST(RowIndex, IsSmallAndSaysWhereRowsBegin) {
  JpegSample sample;
  sample.size = {400, 500};
  sample.quality = 96;
  const Photo photo = write_jpeg(sample);
  const Photo rows = index_of(photo, 0);
  const Photo fine = index_of(photo, 8);
  EXPECT_LE(rows.size() * 1000, photo.size() * 5);
  EXPECT_LE(fine.size() * 100, photo.size() * 3);
  const RowIndexView view = RowIndexView::open(fine).value();
  EXPECT_EQ(view.header().rows, 50);
  EXPECT_EQ(view.header().mcus_per_row, 63);
  EXPECT_EQ(view.header().per_row(), 8U);
  uint64_t last = 0;
  for (uint32_t row = 0; row < 50; ++row) {
    EXPECT_EQ(view.at(row, 0).bit, RowIndexView::open(rows)->at(row, 0).bit);
    for (uint32_t entry = 0; entry < 8; ++entry) {
      const uint64_t bit = view.at(row, entry).bit;
      EXPECT_TRUE(bit > last || (row == 0 && entry == 0));
      last = bit;
    }
  }
  EXPECT_GT(view.at(50, 0).bit, last);
  // Half a percent is spent: the better the photo, the finer its index. Rows have one in any case.
  EXPECT_EQ(RowIndexView::open(rows)->header().every, 16);
  sample.quality = 2;
  const Photo poor = write_jpeg(sample);
  const Photo coarse = index_of(poor, 0);
  EXPECT_EQ(RowIndexView::open(coarse)->header().per_row(), 1U);
  EXPECT_GT(coarse.size() * 200, poor.size());
}

TEST(RowIndex, SaysWhyAPhotoHasNone) {
  const auto why = [](const Photo& photo) {
    RowIndexer indexer(0);
    const DecodePath path = indexer.make(photo, crc32c(photo));
    EXPECT_EQ(indexer.bytes().empty(), path != DecodePath::indexed);
    return path;
  };
  JpegSample sample;
  sample.size = {40, 50};
  const Photo photo = write_jpeg(sample);
  EXPECT_EQ(why(photo), DecodePath::indexed);
  EXPECT_EQ(why({}), DecodePath::other);
  EXPECT_EQ(why({std::byte{0x89}, std::byte{'P'}, std::byte{'N'}, std::byte{'G'}}),
            DecodePath::other);
  EXPECT_EQ(why({photo.begin(), photo.end() - 2}), DecodePath::damaged);
  Photo broken = photo;
  broken[photo.size() / 2] = std::byte{0xFF};
  broken[photo.size() / 2 + 1] = std::byte{0xD3};  // a restart marker where none should be
  EXPECT_EQ(why(broken), DecodePath::damaged);
  sample.progressive = true;
  EXPECT_EQ(why(write_jpeg(sample)), DecodePath::progressive);
}

}  // namespace
}  // namespace stoker
