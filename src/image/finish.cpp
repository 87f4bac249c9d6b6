// SPDX-License-Identifier: Apache-2.0
#include "image/finish.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "image/half.h"

namespace stoker {
namespace {

constexpr std::array kNames = {"uint8", "float32", "float16", "bfloat16"};

float finished(int value, int channel, const FinishOptions& options) {
  auto number = static_cast<float>(value);
  if (options.scale) number *= static_cast<float>(1.0 / 255);
  if (options.normalize) {
    number -= options.normalize->mean[channel];
    number /= options.normalize->deviation[channel];
  }
  return number;
}

template <typename T>
using Tables = std::array<std::array<T, 256>, 3>;

template <typename T>
void look_up(const Tables<T>& tables, const Picture& picture, PixelLayout layout, T* out) {
  const size_t pixels = picture.pixels();
  const uint8_t* from = picture.data;
  if (layout == PixelLayout::nhwc) {
    for (size_t i = 0; i < pixels; ++i, from += 3, out += 3) {
      out[0] = tables[0][from[0]];
      out[1] = tables[1][from[1]];
      out[2] = tables[2][from[2]];
    }
    return;
  }
  for (size_t i = 0; i < pixels; ++i, from += 3) {
    out[i] = tables[0][from[0]];
    out[pixels + i] = tables[1][from[1]];
    out[2 * pixels + i] = tables[2][from[2]];
  }
}

void copy_bytes(const Picture& picture, PixelLayout layout, uint8_t* out) {
  const size_t pixels = picture.pixels();
  if (layout == PixelLayout::nhwc) {
    std::memcpy(out, picture.data, picture.bytes());
    return;
  }
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t channel = 0; channel < 3; ++channel) {
      out[channel * pixels + i] = picture.data[3 * i + channel];
    }
  }
}

/// Calls write(place, channel) for each number of a region.
template <typename T, typename Write>
void for_region(const FinishedPicture& picture, const Region& region, Write write) {
  auto* const numbers = reinterpret_cast<T*>(picture.data);
  const bool planes = picture.layout == PixelLayout::nchw;
  const size_t step = planes ? 1 : 3;
  const size_t channel_step = planes ? picture.size.pixels() : 1;
  for (size_t y = region.top; y < size_t{region.top} + region.height; ++y) {
    T* at = numbers + (y * picture.size.width + region.left) * step;
    for (size_t x = 0; x < region.width; ++x, at += step) {
      for (size_t channel = 0; channel < 3; ++channel) write(at[channel * channel_step], channel);
    }
  }
}

/// Puts value(channel) at each number of a region.
template <typename Value>
void fill_region(const FinishedPicture& picture, const Region& region, Value value) {
  if (!region.fits(picture.size)) throw Error(ErrorKind::usage, "the region is not in the picture");
  switch (picture.type) {
    case PixelType::uint8:
      return for_region<uint8_t>(picture, region, [&](uint8_t& at, size_t channel) {
        at = static_cast<uint8_t>(static_cast<int32_t>(value(channel)));
      });
    case PixelType::float32:
      return for_region<float>(picture, region,
                               [&](float& at, size_t channel) { at = value(channel); });
    case PixelType::float16:
      return for_region<uint16_t>(
          picture, region, [&](uint16_t& at, size_t channel) { at = to_float16(value(channel)); });
    case PixelType::bfloat16:
      return for_region<uint16_t>(
          picture, region, [&](uint16_t& at, size_t channel) { at = to_bfloat16(value(channel)); });
  }
}

}  // namespace

std::optional<PixelType> find_pixel_type(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<PixelType>(found - kNames.begin());
}

size_t size_of(PixelType type) {
  return type == PixelType::uint8 ? 1 : type == PixelType::float32 ? 4 : 2;
}

Finisher::Finisher(const FinishOptions& options) : options_(options) {
  if (options.normalize) {
    if (options.type == PixelType::uint8) {
      throw Error(ErrorKind::usage, "uint8 cannot be normalized: float32, float16 or bfloat16 can");
    }
    for (const float deviation : options.normalize->deviation) {
      if (deviation == 0) throw Error(ErrorKind::usage, "std 0: should not be 0");
    }
  }
  for (int channel = 0; channel < 3; ++channel) {
    for (int value = 0; value < 256; ++value) {
      const float number = finished(value, channel, options);
      floats_[channel][value] = number;
      halves_[channel][value] =
          options.type == PixelType::float16 ? to_float16(number) : to_bfloat16(number);
    }
  }
}

FinishedPicture Finisher::run(const Picture& picture, std::byte* out) const {
  const PixelLayout layout = options_.layout;
  switch (options_.type) {
    case PixelType::uint8:
      copy_bytes(picture, layout, reinterpret_cast<uint8_t*>(out));
      break;
    case PixelType::float32:
      look_up(floats_, picture, layout, reinterpret_cast<float*>(out));
      break;
    case PixelType::float16:
    case PixelType::bfloat16:
      look_up(halves_, picture, layout, reinterpret_cast<uint16_t*>(out));
      break;
  }
  return {out, picture.size, options_.type, layout};
}

void erase(const FinishedPicture& picture, const Region& region,
           const std::array<float, 3>& value) {
  fill_region(picture, region, [&](size_t channel) { return value[channel]; });
}

void erase(const FinishedPicture& picture, const Region& region,
           const std::function<float()>& next) {
  fill_region(picture, region, [&](size_t) { return next(); });
}

}  // namespace stoker
