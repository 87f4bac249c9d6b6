// SPDX-License-Identifier: Apache-2.0

// What a core makes of JPEGs in memory: RandomResizedCrop(224) and flip, by our own decoder with
// the row index, with a finer one, and without any, beside libjpeg-turbo of which only the region
// is decoded; interleaved, one thread. All pixels are compared first. Then how fast row indexes are
// made, and what it takes libjpeg-turbo alone to decode the coefficients that they are compared
// with. Time is that of the thread on its core.
//
//   [STOKER_VECTORS=AVX2] jpeg_bench PHOTOS [rounds] [crops per photo]
//                                    [number of the contender that runs alone, for a profiler]

#include <fmt/format.h>
#include <hwy/highway.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numbers>
#include <random>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "image/decode.h"
#include "image/jpeg.h"
#include "image/row_index.h"

namespace {

using namespace stoker;

constexpr uint32_t kSide = 224;

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Photo {
  std::string name;
  std::vector<std::byte> bytes;
  uint32_t crc = 0;
  Size size;
  std::vector<std::byte> rows, fine;  // row indexes
};

struct Job {
  size_t photo;
  Region crop;
  bool flip;
};

/// As torchvision's RandomResizedCrop draws it.
Region random_crop(Size size, std::mt19937_64& random) {
  const auto uniform = [&](double from, double to) {
    return from + (to - from) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = static_cast<double>(size.pixels()) * uniform(0.08, 1.0);
    const double ratio = std::exp(uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const auto width = static_cast<uint32_t>(std::lround(std::sqrt(area * ratio)));
    const auto height = static_cast<uint32_t>(std::lround(std::sqrt(area / ratio)));
    if (width == 0 || height == 0 || width > size.width || height > size.height) continue;
    const auto top = static_cast<uint32_t>(random() % (size.height - height + 1));
    const auto left = static_cast<uint32_t>(random() % (size.width - width + 1));
    return {top, left, height, width};
  }
  const uint32_t side = std::min(size.height, size.width);
  return {(size.height - side) / 2, (size.width - side) / 2, side, side};
}

struct Contender {
  std::string name;
  std::function<void(const Job& job, uint8_t* out)> run;
  std::vector<double> seconds;  // of each round, for each job
};

void report(const std::string& name, std::vector<double> seconds, double beside) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  fmt::print("{:44} {:7.1f} us ({:.1f}-{:.1f})  {:6.0f} photos/s", name, median * 1e6,
             seconds.front() * 1e6, seconds.back() * 1e6, 1 / median);
  if (beside > 0) fmt::print("  {:.2f} x", beside / median);
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: jpeg_bench PHOTOS [rounds] [crops per photo]\n");
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const int crops = argc > 3 ? std::atoi(argv[3]) : 2;

  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Photo> photos;
  uint64_t bytes = 0;
  uint64_t row_bytes = 0;
  uint64_t fine_bytes = 0;
  constexpr uint32_t kEvery = 8;
  RowIndexer rows(0);
  RowIndexer fine(kEvery);
  std::array<size_t, kDecodePaths> ways{};
  ImageDecoder decoder;
  const int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    Photo photo;
    photo.name = path;
    photo.bytes.assign(as_bytes(text).begin(), as_bytes(text).end());
    photo.crc = crc32c(photo.bytes);
    ++ways[static_cast<size_t>(rows.make(photo.bytes, photo.crc))];
    if (rows.bytes().empty()) continue;
    (void)fine.make(photo.bytes, photo.crc);
    photo.rows.assign(rows.bytes().begin(), rows.bytes().end());
    photo.fine.assign(fine.bytes().begin(), fine.bytes().end());
    photo.size = decoder.open(photo.bytes).size;
    bytes += photo.bytes.size();
    row_bytes += photo.rows.size();
    fine_bytes += photo.fine.size();
    photos.push_back(std::move(photo));
  }
  if (photos.empty()) {
    fmt::print(stderr, "no photos that can have a row index in {}\n", argv[1]);
    return 1;
  }
  for (size_t way = 0; way < kDecodePaths; ++way) {
    if (ways[way] == 0) continue;
    fmt::print("{:44} {} of {} ({:.1f} %)\n", kDecodePathNames[way], ways[way], paths.size(),
               100.0 * static_cast<double>(ways[way]) / static_cast<double>(paths.size()));
  }
  const auto share = [&](uint64_t part) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(bytes);
  };
  fmt::print("row index {:.2f} % of the photos' bytes, every {} MCUs {:.2f} %; vectors: {}\n",
             share(row_bytes), kEvery, share(fine_bytes), hwy::TargetName(best));

  std::mt19937_64 random(123);
  std::vector<Job> jobs;
  for (size_t i = 0; i < photos.size(); ++i) {
    for (int n = 0; n < crops; ++n) {
      const Region crop = random_crop(photos[i].size, random);
      jobs.push_back({i, crop, (random() & 1) != 0});
    }
  }
  std::shuffle(jobs.begin(), jobs.end(), random);

  JpegDecoder libjpeg;
  Resampler resampler;
  PixelBuffer pixels;
  const auto with_libjpeg = [&](const Job& job, uint8_t* out) {
    (void)libjpeg.open(photos[job.photo].bytes);
    Region part =
        resampler.plan({job.crop.size(), {kSide, kSide}, {0, 0, kSide, kSide}, Resample::bilinear});
    part.top += job.crop.top;
    part.left += job.crop.left;
    resampler.run(libjpeg.decode(part, JpegDamage::on_the_way, pixels), job.flip, out, kSide * 3);
  };
  const auto with_ours = [&](const Job& job, Bytes index, uint8_t* out) {
    const Photo& photo = photos[job.photo];
    (void)decoder.open(photo.bytes);
    DecodeOptions options;
    options.crop = job.crop;
    options.size = Size{kSide, kSide};
    options.flip = job.flip;
    options.row_index = index;
    options.crc = photo.crc;
    decoder.decode(options, out, kSide * 3);
  };
  std::vector<Contender> contenders;
  contenders.push_back({"libjpeg-turbo, region", with_libjpeg, {}});
  contenders.push_back({"own decoder, no row index",
                        [&](const Job& job, uint8_t* out) { with_ours(job, {}, out); },
                        {}});
  contenders.push_back(
      {"own decoder, row index",
       [&](const Job& job, uint8_t* out) { with_ours(job, photos[job.photo].rows, out); },
       {}});
  contenders.push_back(
      {fmt::format("own decoder, row index every {} MCUs", kEvery),
       [&](const Job& job, uint8_t* out) { with_ours(job, photos[job.photo].fine, out); },
       {}});

  if (argc > 4) {
    std::vector<uint8_t> out(kSide * kSide * 3);
    const Contender& alone = contenders.at(std::strtoul(argv[4], nullptr, 10));
    for (int round = 0; round < rounds; ++round) {
      for (const Job& job : jobs) alone.run(job, out.data());
    }
    return 0;
  }

  std::vector<uint8_t> expected(kSide * kSide * 3);
  std::vector<uint8_t> made(expected.size());
  size_t wrong = 0;
  for (const Job& job : jobs) {
    with_libjpeg(job, expected.data());
    for (size_t i = 1; i < contenders.size(); ++i) {
      contenders[i].run(job, made.data());
      if (made != expected) {
        if (++wrong <= 5) {
          fmt::print("DIFFERS: {} of {} ({} {} {} {})\n", contenders[i].name,
                     photos[job.photo].name, job.crop.top, job.crop.left, job.crop.height,
                     job.crop.width);
        }
      }
    }
  }
  fmt::print("{} crops, {} of {} pictures differ from libjpeg-turbo's\n", jobs.size(), wrong,
             jobs.size() * (contenders.size() - 1));

  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      Contender& contender = contenders[(i + static_cast<size_t>(round)) % contenders.size()];
      const double begin = thread_seconds();
      for (const Job& job : jobs) contender.run(job, made.data());
      contender.seconds.push_back((thread_seconds() - begin) / static_cast<double>(jobs.size()));
    }
  }
  std::vector<double> first = contenders[0].seconds;
  std::sort(first.begin(), first.end());
  for (const Contender& contender : contenders) {
    report(contender.name, contender.seconds, first[first.size() / 2]);
  }

  std::vector<double> making;
  std::vector<double> reading;
  for (int round = 0; round < rounds; ++round) {
    double begin = thread_seconds();
    for (const Photo& photo : photos) (void)rows.make(photo.bytes, photo.crc);
    making.push_back((thread_seconds() - begin) / static_cast<double>(photos.size()));
    begin = thread_seconds();
    for (const Photo& photo : photos) {
      (void)libjpeg.open(photo.bytes);
      (void)libjpeg.read_coefficients();
    }
    reading.push_back((thread_seconds() - begin) / static_cast<double>(photos.size()));
  }
  report("row index made and compared", making, 0);
  report("of that, coefficients by libjpeg-turbo", reading, 0);
  return wrong == 0 ? 0 : 1;
}
