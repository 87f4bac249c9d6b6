// SPDX-License-Identifier: Apache-2.0

// The Loader on arrays beside bare pread and CRC of the same ranges in the same order, and beside
// reading the shards from front to back, interleaved in one process; one thread each.
// bench/arrays.py makes the data and calls it on one core.
//
//   array_bench DATASET FIELD sequential|shuffled [rounds]     DATASET has an index of full depth

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "index/build_index.h"
#include "load/loader.h"

namespace {

using namespace stoker;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Range {
  int descriptor;
  uint64_t offset, length;
  uint32_t crc;
};

/// The ranges of an epoch in its order, found before anything is timed.
std::vector<Range> ranges_of(const OpenedDataset& dataset, uint32_t field, const Order& order) {
  std::map<std::string, int> descriptors;
  std::vector<Range> ranges;
  const EpochOrder epoch(order, 0);
  for (uint64_t i = 0; i < epoch.size(); ++i) {
    const Index::Place place = dataset.index->place(epoch(i).sample);
    const Segment& segment = dataset.index->segment(place.segment);
    const Extent extent =
        segment.locate(place.sample, dataset.index->local_field(place.segment, field).value())
            .extent;
    const std::string path = dataset.paths.root + "/" + segment.shard(extent.number).path;
    if (!descriptors.contains(path)) descriptors[path] = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ranges.push_back({descriptors[path], extent.offset, extent.length, extent.crc});
  }
  return ranges;
}

double bare(const std::vector<Range>& ranges, uint64_t batch) {
  std::vector<std::byte> memory;
  uint64_t longest = 0;
  for (const Range& range : ranges) longest = std::max(longest, range.length);
  memory.resize(longest * batch);
  uint64_t wrong = 0;
  const Clock::time_point begin = Clock::now();
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    std::byte* to = memory.data() + (i % batch) * longest;
    if (::pread(range.descriptor, to, range.length, static_cast<off_t>(range.offset)) < 0) ++wrong;
    wrong += crc32c({to, range.length}) != range.crc;
  }
  const double seconds = since(begin);
  if (wrong != 0) fmt::print(stderr, "{} ranges differ\n", wrong);
  return static_cast<double>(ranges.size()) / seconds;
}

/// The shards from front to back in pieces of 1 MiB, without a checksum: nothing that reads all of
/// them with read(2) is quicker. Samples a second, as if every byte were wanted.
double floor_of(const std::vector<Range>& ranges) {
  std::vector<std::byte> memory(1 << 20);
  std::set<int> descriptors;
  for (const Range& range : ranges) descriptors.insert(range.descriptor);
  const Clock::time_point begin = Clock::now();
  for (const int descriptor : descriptors) {
    for (off_t at = 0;;) {
      const ssize_t got = ::pread(descriptor, memory.data(), memory.size(), at);
      if (got <= 0) break;
      at += got;
    }
  }
  return static_cast<double>(ranges.size()) / since(begin);
}

double loaded(Loader& loader) {
  const Clock::time_point begin = Clock::now();
  loader.start(0, 0);
  std::shared_ptr<LoadedBatch> batch;
  uint64_t rows = 0;
  for (;;) {
    const Loader::Next next = loader.next(batch, std::chrono::milliseconds(1000));
    if (next == Loader::Next::end) break;
    if (next == Loader::Next::batch) rows += batch->rows;
  }
  return static_cast<double>(rows) / since(begin);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "array_bench DATASET FIELD sequential|shuffled [rounds]\n");
    return 2;
  }
  const OpenedDataset dataset = open_dataset(argv[1], {});
  const std::optional<uint32_t> field = dataset.index->schema().find(argv[2]);
  if (!field) return 2;
  LoaderOptions options;
  options.fields = {argv[2]};
  options.threads = 1;
  if (std::string_view(argv[3]) == "sequential") {
    options.order.kind = OrderOptions::Kind::sequential;
  }
  Loader loader({{dataset.index, {dataset.paths.root}}}, options);
  const std::vector<Range> ranges = ranges_of(dataset, *field, loader.order());
  loaded(loader);
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> ratios;
  std::vector<double> floors;
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 7;
  for (int i = 0; i < rounds; ++i) {
    theirs.push_back(bare(ranges, options.batch_size));
    floors.push_back(floor_of(ranges));
    ours.push_back(loaded(loader));
    ratios.push_back(ours.back() / theirs.back());
  }
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  fmt::print(
      "{:10} {:>7} samples of {:>7} bytes: Loader {:>9.0f}/s, pread + CRC {:>9.0f}/s, ratio {:.2f} "
      "({:.2f} to {:.2f}); reading the whole shard {:>9.0f}/s\n",
      argv[3], ranges.size(), ranges[0].length, median(ours), median(theirs), median(ratios),
      *least, *most, median(floors));
}
