// SPDX-License-Identifier: Apache-2.0

// Random reads through the index beside bare pread of the same ranges, `check` and `index --full`
// beside a plain loop of pread and CRC, interleaved in one process.
//
//   stoker_bench DATASET [reads] [rounds]        DATASET has an index of full depth; 0 reads: only
//                                                the latter, also where blocks must be decoded

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "base/parallel.h"
#include "base/units.h"
#include "check/check.h"
#include "dataset/reader.h"
#include "index/build_index.h"

namespace {

using namespace stoker;

constexpr size_t kBatch = 32;

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Range {
  int descriptor;
  uint64_t offset, length;
};

/// What locate() says, turned into bare ranges once, before anything is timed.
std::vector<Range> ranges_of(const OpenedDataset& dataset, const std::vector<uint64_t>& samples,
                             uint32_t field) {
  std::map<std::string, int> descriptors;
  std::vector<Range> ranges;
  for (const uint64_t sample : samples) {
    const Index::Place place = dataset.index->place(sample);
    const Segment& segment = dataset.index->segment(place.segment);
    const Extent extent =
        segment.locate(place.sample, dataset.index->local_field(place.segment, field).value())
            .extent;
    const std::string path = dataset.paths.root + "/" + segment.shard(extent.number).path;
    const auto [known, is_new] = descriptors.emplace(path, -1);
    if (is_new) known->second = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ranges.push_back({known->second, extent.offset, extent.length});
  }
  return ranges;
}

void read_bare(const std::vector<Range>& ranges, std::vector<std::byte>& memory) {
  for (size_t i = 0; i < ranges.size(); i += kBatch) {
    uint64_t at = 0;
    for (size_t k = i; k < std::min(ranges.size(), i + kBatch); ++k) {
      if (::pread(ranges[k].descriptor, memory.data() + at, ranges[k].length,
                  static_cast<off_t>(ranges[k].offset)) != static_cast<ssize_t>(ranges[k].length)) {
        throw std::runtime_error("short read");
      }
      at += ranges[k].length;
    }
  }
}

void read_indexed(const Reader& reader, const std::vector<uint64_t>& samples, uint32_t field,
                  std::vector<std::byte>& memory) {
  for (size_t i = 0; i < samples.size(); i += kBatch) {
    Batch batch = reader.locate(std::span(samples).subspan(i, std::min(kBatch, samples.size() - i)),
                                {&field, 1});
    uint64_t at = 0;
    for (Item& item : batch.items) {
      item.data = memory.data() + at;
      at += item.length;
    }
    for (const ReadFailure& failure : reader.fetch(batch)) throw_failure(failure);
  }
}

void print_ratio(const char* what, const std::vector<double>& ours,
                 const std::vector<double>& theirs, uint64_t bytes) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(theirs[i] / ours[i]);
  std::sort(ratios.begin(), ratios.end());
  fmt::print("{:42} {:>12} ours, {:>12} theirs: {:.2f}x  ({:.2f} to {:.2f} over {} rounds)\n", what,
             format_rate(static_cast<double>(bytes) / median(ours)),
             format_rate(static_cast<double>(bytes) / median(theirs)), median(ratios),
             ratios.front(), ratios.back(), ratios.size());
}

void bench_reads(const OpenedDataset& dataset, uint64_t count, int rounds) {
  const uint32_t field = dataset.index->schema().find("image").value_or(0);
  std::mt19937_64 random(1);
  std::vector<uint64_t> samples(count);
  for (uint64_t& sample : samples) sample = random() % dataset.index->size();
  const std::vector<Range> ranges = ranges_of(dataset, samples, field);
  uint64_t bytes = 0;
  uint64_t largest = 0;
  for (const Range& range : ranges) {
    bytes += range.length;
    largest = std::max(largest, range.length);
  }
  std::vector<std::byte> memory(kBatch * largest);
  ReaderOptions options;
  options.roots = {dataset.paths.root};
  options.threads = 1;
  const Reader checked(dataset.index, options);
  options.verify = false;
  const Reader unchecked(dataset.index, options);
  read_bare(ranges, memory);  // warm
  std::vector<double> bare, bare_again, with, without;
  for (int i = 0; i < rounds; ++i) {
    bare.push_back(seconds([&] { read_bare(ranges, memory); }));
    with.push_back(seconds([&] { read_indexed(checked, samples, field, memory); }));
    bare_again.push_back(seconds([&] { read_bare(ranges, memory); }));
    without.push_back(seconds([&] { read_indexed(unchecked, samples, field, memory); }));
  }
  fmt::print("{} random reads of {} on average, batches of {}, one thread\n", count,
             format_bytes(bytes / count), kBatch);
  print_ratio("indexed with checksum / bare pread", with, bare, bytes);
  print_ratio("indexed without checksum / bare pread", without, bare_again, bytes);
}

/// The plainest thing that reads and sums every byte: shards cut into pieces for the threads.
uint64_t plain_loop(const OpenedDataset& dataset, unsigned threads) {
  struct Piece {
    std::string path;
    uint64_t begin, end;
  };
  constexpr uint64_t kPiece = 64 << 20;
  std::vector<Piece> pieces;
  uint64_t total = 0;
  for (uint32_t s = 0; s < dataset.index->manifest().segments.size(); ++s) {
    const Segment& segment = dataset.index->segment(s);
    for (uint32_t number = 0; number < segment.shard_count(); ++number) {
      const Shard shard = segment.shard(number);
      for (uint64_t at = shard.begin; at < shard.end; at += kPiece) {
        pieces.push_back(
            {dataset.paths.root + "/" + shard.path, at, std::min(shard.end, at + kPiece)});
      }
      total += shard.end - shard.begin;
    }
  }
  parallel_for(pieces.size(), threads, [&](size_t i) {
    const int descriptor = ::open(pieces[i].path.c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<std::byte> buffer(256 << 10);
    uint32_t crc = 0;
    for (uint64_t at = pieces[i].begin; at < pieces[i].end;) {
      const ssize_t got =
          ::pread(descriptor, buffer.data(), std::min<uint64_t>(buffer.size(), pieces[i].end - at),
                  static_cast<off_t>(at));
      if (got <= 0) throw std::runtime_error("short read");
      crc = crc32c(Bytes(buffer).first(static_cast<size_t>(got)), crc);
      at += static_cast<uint64_t>(got);
    }
    ::close(descriptor);
  });
  return total;
}

/// An index of full depth, into a directory of its own.
void index_anew(const OpenedDataset& dataset) {
  std::string directory = std::filesystem::temp_directory_path() / "stoker-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) throw std::runtime_error("no temporary directory");
  const Source source = source_at(dataset.paths, "", nullptr);
  IndexOptions options;
  options.depth = Depth::full;
  const IndexResult result =
      build_index_in(source, detect_format(source), directory + "/index", options);
  if (result.samples != dataset.index->size()) throw std::runtime_error("not all was indexed");
  std::filesystem::remove_all(directory);
}

void bench_check(const OpenedDataset& dataset, int rounds) {
  std::vector<double> checks, loops, indexes, loops_again;
  const unsigned threads = usable_cores();
  uint64_t bytes = plain_loop(dataset, threads);  // warm
  for (int i = 0; i < rounds; ++i) {
    loops.push_back(seconds([&] { plain_loop(dataset, threads); }));
    checks.push_back(seconds([&] {
      if (!check(dataset.paths.path, {}).good()) throw std::runtime_error("check found faults");
    }));
    loops_again.push_back(seconds([&] { plain_loop(dataset, threads); }));
    indexes.push_back(seconds([&] { index_anew(dataset); }));
  }
  fmt::print("check and index of {} on {} threads\n", format_bytes(bytes), threads);
  print_ratio("check / loop of pread + CRC", checks, loops, bytes);
  print_ratio("index --full / loop of pread + CRC", indexes, loops_again, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: stoker_bench DATASET [reads] [rounds]\n");
    return 2;
  }
  try {
    const OpenedDataset dataset = open_dataset(argv[1], {});
    const uint64_t reads = argc > 2 ? std::stoull(argv[2]) : 10000;
    const int rounds = argc > 3 ? std::stoi(argv[3]) : 9;
    if (reads > 0) bench_reads(dataset, reads, rounds);
    bench_check(dataset, rounds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "stoker_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
