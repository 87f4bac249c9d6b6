// SPDX-License-Identifier: Apache-2.0
#include "check/verify.h"

#include <fmt/format.h>

#include <atomic>

#include "base/error.h"
#include "base/parallel.h"
#include "dataset/inflating_file.h"
#include "index/digest.h"

namespace stoker {
namespace {

struct Owner {
  uint64_t sample = 0;
  uint32_t field = 0;
};

std::string path_of(const Segment& segment, uint64_t sample, uint32_t field,
                    const Located& located) {
  return file_name(segment.key(sample), segment.fields()[field].suffixes.at(located.suffix));
}

class Verifier {
 public:
  Verifier(const VerifyOptions& options, Faults& faults) : options_(options), faults_(faults) {}

  void contents(const Segment& segment, unsigned threads) {
    for (uint32_t i = 0; i < segment.shard_count(); ++i) shard(segment, i, threads);
    files(segment, threads,
          [&](uint64_t s, uint32_t f, const Located& l) { file(segment, s, f, l); });
  }

  void identity(const Segment& segment) {
    for (uint32_t i = 0; i < segment.shard_count(); ++i) {
      const Shard shard = segment.shard(i);
      if (shard.begin != 0) continue;
      const int64_t modified = segment.depth() == Depth::structure ? shard.modified_ns : 0;
      (void)unchanged(shard.path, shard.size, modified, "", "");
    }
    files(segment, 1, [&](uint64_t sample, uint32_t field, const Located& located) {
      const int64_t modified =
          segment.depth() == Depth::structure ? static_cast<int64_t>(located.extent.offset) : 0;
      (void)unchanged(path_of(segment, sample, field, located), located.extent.length, modified,
                      segment.key(sample), segment.fields()[field].name);
    });
  }

  std::atomic<uint64_t> bytes{0};

 private:
  /// Whether the file is still the one that was indexed; a fault where it is not.
  bool unchanged(const std::string& path, uint64_t size, int64_t modified_ns,
                 const std::string& sample, const std::string& field, bool report = true) {
    std::string cause;
    try {
      const auto info = options_.file_system->info(options_.root + "/" + path, true);
      if (!info) {
        cause = "is missing: it was there when the index was made";
      } else if (info->size != size) {
        cause = fmt::format("has changed since it was indexed: {} bytes then, {} now", size,
                            info->size);
      } else if (modified_ns != 0 && info->modified_ns != modified_ns) {
        cause = "was modified after it was indexed: run stoker index";
      }
    } catch (const Error& error) {
      cause = error.what();
    }
    if (cause.empty()) return true;
    if (report) faults_.add({path, {}, sample, field, cause});
    return false;
  }

  void shard(const Segment& segment, uint32_t number, unsigned threads);
  void file(const Segment& segment, uint64_t sample, uint32_t field, const Located& located);
  void compare(const Segment& segment, const Shard& shard, const Region& region, const Owner& owner,
               bool& named);

  template <typename Visit>
  void files(const Segment& segment, unsigned threads, const Visit& visit) {
    if (segment.shard_count() > 0) return;  // a segment describes one or the other
    constexpr uint64_t kChunk = 64;
    parallel_for((segment.samples() + kChunk - 1) / kChunk, threads, [&](size_t chunk) {
      const uint64_t end = std::min(segment.samples(), (chunk + 1) * kChunk);
      for (uint64_t sample = chunk * kChunk; sample < end; ++sample) {
        for (uint32_t field = 0; field < segment.fields().size(); ++field) {
          const Located located = segment.locate(sample, field);
          if (located.extent.container == Container::file) visit(sample, field, located);
        }
        if (options_.progress != nullptr) ++options_.progress->samples;
      }
    });
  }

  const VerifyOptions& options_;
  Faults& faults_;
};

void Verifier::compare(const Segment& segment, const Shard& shard, const Region& region,
                       const Owner& owner, bool& named) {
  const uint32_t expected = segment.locate(owner.sample, owner.field).extent.crc;
  if (region.crc == expected) return;
  named = true;
  faults_.add({shard.path, region.offset, segment.key(owner.sample),
               segment.fields()[owner.field].name,
               fmt::format("checksum is {:08x}, should be {:08x}", region.crc, expected)});
}

void Verifier::shard(const Segment& segment, uint32_t number, unsigned threads) {
  const Shard shard = segment.shard(number);
  // A large shard has several segments: the first one reports.
  if (!unchanged(shard.path, shard.size, 0, "", "", shard.begin == 0)) return;
  std::vector<Region> regions;
  std::vector<Owner> owners;
  for (uint64_t sample = 0; sample < segment.samples(); ++sample) {
    for (uint32_t field = 0; field < segment.fields().size(); ++field) {
      const Extent extent = segment.locate(sample, field).extent;
      if (extent.container != Container::shard || extent.number != number) continue;
      regions.push_back({extent.offset, extent.length, 0, {}});
      owners.push_back({sample, field});
    }
  }
  // Formats emit samples in the order of the bytes, but fields in the order of the schema.
  std::vector<size_t> order(regions.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return regions[a].offset < regions[b].offset; });
  std::vector<Region> sorted(regions.size());
  for (size_t i = 0; i < order.size(); ++i) sorted[i] = regions[order[i]];
  bool named = false;
  try {
    const auto file = inflate(options_.file_system->open(options_.root + "/" + shard.path),
                              shard.path, shard.compression);
    const Digest digest =
        digest_parallel(*file, shard.begin, shard.end, sorted, threads, options_.progress);
    bytes += digest.end - shard.begin;
    for (size_t i = 0; i < order.size(); ++i) {
      compare(segment, shard, sorted[i], owners[order[i]], named);
    }
    if (digest.crc != shard.crc && !named) {
      faults_.add({shard.path, shard.begin, "", "",
                   fmt::format("bytes between the samples have changed, from here to offset {}: "
                               "checksum is {:08x}, should be {:08x}",
                               shard.end, digest.crc, shard.crc)});
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    faults_.add({shard.path, 0, "", "", error.what()});
  }
  if (options_.progress != nullptr) options_.progress->samples += segment.samples();
}

void Verifier::file(const Segment& segment, uint64_t sample, uint32_t field,
                    const Located& located) {
  const std::string path = path_of(segment, sample, field, located);
  const std::string key = segment.key(sample);
  const std::string& name = segment.fields()[field].name;
  const uint64_t length = located.extent.length;
  if (!unchanged(path, length, 0, key, name)) return;
  try {
    const auto file = options_.file_system->open(options_.root + "/" + path);
    const Digest digest = digest_range(*file, 0, length, {}, options_.progress);
    bytes += digest.end;
    if (digest.end == length && digest.crc == located.extent.crc) return;
    faults_.add(
        {path, 0, key, name,
         fmt::format("checksum is {:08x}, should be {:08x}", digest.crc, located.extent.crc)});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    faults_.add({path, 0, key, name, error.what()});
  }
}

}  // namespace

uint64_t verify_contents(const Index& index, const VerifyOptions& options, Faults& faults) {
  Verifier verifier(options, faults);
  const size_t segments = index.manifest().segments.size();
  const auto inner = static_cast<unsigned>(options.jobs / std::max<size_t>(1, segments));
  parallel_for(segments, options.jobs, [&](size_t i) {
    const Segment& segment = index.segment(static_cast<uint32_t>(i));
    segment.verify_all();
    verifier.contents(segment, std::max(1U, inner));
  });
  return verifier.bytes;
}

void verify_identity(const Index& index, const VerifyOptions& options, Faults& faults) {
  Verifier verifier(options, faults);
  parallel_for(index.manifest().segments.size(), options.jobs, [&](size_t i) {
    const Segment& segment = index.segment(static_cast<uint32_t>(i));
    segment.verify_all();
    verifier.identity(segment);
  });
}

}  // namespace stoker
