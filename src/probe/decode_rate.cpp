// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "image/decode.h"
#include "os/file_system.h"
#include "os/output_file.h"
#include "probe/measurements.h"
#include "probe/stopwatch.h"

namespace stoker {
namespace {

constexpr uint32_t kSide = 224;
constexpr unsigned kGenerated = 8;
constexpr size_t kMostPhotos = 500;
constexpr uint64_t kMostBytes = 64 << 20;

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// A part of a photo as RandomResizedCrop would take one: 8 to 100 % of its area, 3:4 to 4:3.
Region random_region(Size photo, std::mt19937& random) {
  std::uniform_real_distribution<double> share(0.08, 1.0),
      logarithm(std::log(0.75), -std::log(0.75));
  const double area = static_cast<double>(photo.pixels()) * share(random);
  const double ratio = std::exp(logarithm(random));
  const auto side = [](double wanted, uint32_t most) {
    return std::clamp(static_cast<uint32_t>(std::lround(wanted)), 1U, most);
  };
  Region region;
  region.width = side(std::sqrt(area * ratio), photo.width);
  region.height = side(std::sqrt(area / ratio), photo.height);
  region.left = std::uniform_int_distribution<uint32_t>(0, photo.width - region.width)(random);
  region.top = std::uniform_int_distribution<uint32_t>(0, photo.height - region.height)(random);
  return region;
}

/// Returns false for what is no photo that we can decode.
bool decodes(ImageDecoder& decoder, const std::string& photo, std::vector<uint8_t>& out) {
  try {
    decoder.open(bytes_of(photo));
    DecodeOptions options;
    options.size = Size{kSide, kSide};
    decoder.decode(options, out.data(), kSide * 3);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::string> photos_in(const std::string& folder, Progress& progress) {
  if (const auto info = real_file_system().info(folder, true);
      !info || info->kind != FileKind::directory) {
    throw Error(info ? ErrorKind::usage : ErrorKind::not_found,
                printable(folder) + (info ? ": should be a folder of photos" : ": no such folder"));
  }
  std::vector<std::string> photos;
  ImageDecoder decoder;
  std::vector<uint8_t> out(size_t{kSide} * kSide * 3);
  uint64_t bytes = 0;
  for (const auto& [path, size] : existing_files(folder, progress)) {
    if (photos.size() == kMostPhotos || bytes >= kMostBytes) break;
    progress.check_stop();
    constexpr uint64_t kLargest = 32 << 20;
    if (size > kLargest) continue;
    std::string photo;
    try {
      photo = read_file(path, kLargest);
    } catch (const Error&) {
      continue;
    }
    if (!decodes(decoder, photo, out)) continue;
    bytes += photo.size();
    photos.push_back(std::move(photo));
  }
  if (photos.empty()) {
    throw Error(ErrorKind::not_found, printable(folder) + ": no photo in it that can be decoded");
  }
  return photos;
}

std::string description(const std::vector<std::string>& photos, const std::string& folder) {
  uint64_t bytes = 0;
  for (const std::string& photo : photos) bytes += photo.size();
  const std::string size = format_bytes(bytes / photos.size());
  if (!folder.empty()) return fmt::format("{} of {}, {} each", photos.size(), folder, size);
  return fmt::format("{} generated ones, 500x375, {} each; real ones differ (--photos DIR)",
                     photos.size(), size);
}

}  // namespace

void measure_decode(Machine& machine, const std::string& folder, double seconds,
                    Progress& progress) {
  const std::vector<std::string> photos =
      folder.empty() ? generated_photos(kGenerated) : photos_in(folder, progress);
  machine.photos = description(photos, folder);
  std::vector<unsigned> counts = {1};
  if (machine.cores > 1) counts.push_back(machine.cores);
  for (const unsigned threads : counts) {
    std::vector<std::unique_ptr<ImageDecoder>> decoders;
    for (unsigned i = 0; i < threads; ++i) decoders.push_back(std::make_unique<ImageDecoder>());
    const Trial trial{.threads = threads, .seconds = seconds / static_cast<double>(counts.size())};
    Rate rate =
        time_trial(trial, progress, [&](unsigned thread, unsigned repeat, const Slot& slot) {
          std::mt19937 random(repeat * 1000 + thread);
          std::vector<uint8_t> out(size_t{kSide} * kSide * 3);
          uint64_t done = 0;
          while (slot.more(done)) {
            ImageDecoder& decoder = *decoders[thread];
            const ImageInfo info =
                decoder.open(bytes_of(photos[(done + thread * 7) % photos.size()]));
            DecodeOptions options;
            options.crop = random_region(info.size, random);
            options.size = Size{kSide, kSide};
            decoder.decode(options, out.data(), kSide * 3);
            ++done;
          }
          return done;
        });
    rate.what = "decode";
    rate.unit = "photos";
    rate.how = "random parts of a photo, resized to 224x224";
    if (rate.repeats > 0) machine.decode.push_back(rate);
  }
}

}  // namespace stoker
