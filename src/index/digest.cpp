// SPDX-License-Identifier: Apache-2.0
#include "index/digest.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/parallel.h"

namespace stoker {
namespace {

// Large enough to amortise the system call, small enough to stay in the second-level cache
// between being read and being summed.
constexpr size_t kChunk = 256 << 10;

/// Bytes between two neighbouring boundaries of regions.
struct Slice {
  uint64_t begin = 0, end = 0;
  uint32_t crc = 0;
};

std::vector<Slice> slices_between(uint64_t begin, uint64_t end,
                                  std::span<const DigestRegion> regions) {
  std::vector<uint64_t> cuts{begin, end};
  cuts.reserve(2 + 2 * regions.size());
  for (const DigestRegion& region : regions) {
    cuts.push_back(region.offset);
    cuts.push_back(region.offset + region.length);
  }
  if (!std::is_sorted(cuts.begin() + 2, cuts.end())) std::sort(cuts.begin() + 2, cuts.end());
  std::inplace_merge(cuts.begin(), cuts.begin() + 2, cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Slice> slices;
  slices.reserve(cuts.size());
  for (size_t i = 1; i < cuts.size(); ++i) slices.push_back({cuts[i - 1], cuts[i], 0});
  return slices;
}

/// Copies what of `chunk` (which lies at `offset`) belongs to the beginnings of regions.
void copy_beginnings(std::span<DigestRegion> regions, uint64_t offset, Bytes chunk) {
  for (DigestRegion& region : regions) {
    const uint64_t end = region.offset + region.beginning.size();
    const uint64_t from = std::max(region.offset, offset);
    const uint64_t to = std::min(end, offset + chunk.size());
    if (from >= to) continue;
    std::memcpy(region.beginning.data() + (from - region.offset), chunk.data() + (from - offset),
                to - from);
  }
}

uint32_t combine(std::span<const Slice> slices) {
  uint32_t crc = 0;
  for (const Slice& slice : slices) {
    crc = crc32c_combine(crc, slice.crc, slice.end - slice.begin);
  }
  return crc;
}

}  // namespace

Digest digest_range(ReadableFile& file, uint64_t begin, uint64_t end,
                    std::span<DigestRegion> regions, Progress* progress) {
  std::vector<Slice> slices = slices_between(begin, end, regions);
  std::vector<std::byte> buffer(std::min<uint64_t>(kChunk, end - begin));
  size_t slice = 0;
  size_t first_region = 0;
  size_t last_region = 0;
  uint64_t at = begin;
  while (at < end) {
    const size_t wanted = std::min<uint64_t>(buffer.size(), end - at);
    const size_t got = file.read_at(at, MutableBytes(buffer).first(wanted));
    const Bytes chunk = Bytes(buffer).first(got);
    for (uint64_t done = 0; done < got;) {
      const uint64_t count = std::min(slices[slice].end - (at + done), got - done);
      slices[slice].crc = crc32c(chunk.subspan(done, count), slices[slice].crc);
      done += count;
      if (at + done == slices[slice].end) ++slice;
    }
    while (last_region < regions.size() && regions[last_region].offset < at + got) ++last_region;
    copy_beginnings(regions.subspan(first_region, last_region - first_region), at, chunk);
    while (first_region < last_region &&
           regions[first_region].offset + regions[first_region].beginning.size() <= at + got) {
      ++first_region;
    }
    at += got;
    if (progress != nullptr) {
      progress->bytes += got;
      progress->check_stop();
    }
    if (got < wanted) break;
  }
  for (DigestRegion& region : regions) {
    const auto from = std::lower_bound(slices.begin(), slices.end(), region.offset,
                                       [](const Slice& s, uint64_t o) { return s.begin < o; });
    auto to = from;
    while (to != slices.end() && to->end <= region.offset + region.length) ++to;
    if (to - from == 1) {
      region.crc = from->crc;
    } else {
      region.crc = combine({from, to});
    }
  }
  return {combine(slices), at};
}

Digest digest_parallel(ReadableFile& file, uint64_t begin, uint64_t end,
                       std::span<DigestRegion> regions, unsigned threads, Progress* progress) {
  constexpr uint64_t kStretch = 32 << 20;
  if (threads <= 1 || end - begin < 2 * kStretch) {
    return digest_range(file, begin, end, regions, progress);
  }
  struct Stretch {
    uint64_t begin = 0, end = 0;
    size_t first = 0, last = 0;  // regions
    Digest digest;
  };
  std::vector<Stretch> stretches{{begin, end, 0, 0, {}}};
  uint64_t covered = begin;  // no region before this one reaches further
  for (size_t i = 0; i < regions.size(); ++i) {
    Stretch& open = stretches.back();
    const uint64_t offset = regions[i].offset;
    if (offset >= covered && offset - open.begin >= kStretch) {
      open.end = offset;
      open.last = i;
      stretches.push_back({offset, end, i, 0, {}});
    }
    covered = std::max(covered, offset + regions[i].length);
  }
  stretches.back().last = regions.size();
  parallel_for(stretches.size(), threads, [&](size_t i) {
    Stretch& s = stretches[i];
    s.digest =
        digest_range(file, s.begin, s.end, regions.subspan(s.first, s.last - s.first), progress);
  });
  Digest whole{0, begin};
  for (const Stretch& s : stretches) {
    whole.crc = crc32c_combine(whole.crc, s.digest.crc, s.digest.end - s.begin);
    whole.end = s.digest.end;
    if (s.digest.end < s.end) break;  // the file ends here
  }
  return whole;
}

}  // namespace stoker
