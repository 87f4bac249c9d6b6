// SPDX-License-Identifier: Apache-2.0
#include "check/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>
#include <tuple>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/parallel.h"
#include "dataset/inflating_file.h"
#include "format/folder_walk.h"
#include "index/digest.h"

namespace stoker {
namespace {

/// Where a field of a sample lies in a shard.
struct Owned {
  uint64_t offset = 0, length = 0;
  uint64_t sample = 0;
  uint32_t field = 0;
};

/// The fields that lie in a shard in the order of the bytes; what contains others comes first.
std::vector<Owned> fields_in(const Segment& segment, uint32_t shard) {
  std::vector<Owned> found;
  for (uint64_t sample = 0; sample < segment.samples(); ++sample) {
    for (uint32_t field = 0; field < segment.fields().size(); ++field) {
      const Extent extent = segment.locate(sample, field).extent;
      if (extent.container != Container::shard || extent.number != shard) continue;
      found.push_back({extent.offset, extent.length, sample, field});
    }
  }
  // Formats emit samples in the order of the bytes, but fields in the order of the schema.
  std::sort(found.begin(), found.end(), [](const Owned& a, const Owned& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.length > b.length;
  });
  return found;
}

std::string path_of(const Segment& segment, uint64_t sample, uint32_t field,
                    const Located& located) {
  return file_name(segment.key(sample), segment.fields()[field].suffixes.at(located.suffix));
}

bool has_suffix(const Segment& segment, uint64_t sample, std::string_view suffix) {
  for (uint32_t field = 0; field < segment.fields().size(); ++field) {
    const Located located = segment.locate(sample, field);
    if (located.extent.container == Container::file &&
        segment.fields()[field].suffixes.at(located.suffix) == suffix) {
      return true;
    }
  }
  return false;
}

void mark_files(const Segment& segment, uint64_t sample, const FileNames& files,
                std::vector<Known>& known) {
  const std::string key = segment.key(sample);
  const size_t slash = key.rfind('/');
  const std::string_view stem = std::string_view(key).substr(slash + 1);  // npos + 1 is 0
  const std::string_view directory =
      slash == key.npos ? "" : std::string_view(key).substr(0, slash);
  const std::optional<size_t> first = find_place(files, directory, stem);
  if (!first) return;
  for (size_t file = *first; file < files.files.size(); ++file) {
    const std::string_view name = files.name(file);
    if (files.directories[files.files[file].directory] != directory || stem_of(name) != stem) break;
    const std::string_view suffix = name.substr(std::min(name.size(), stem.size() + 1));
    known[file] = has_suffix(segment, sample, suffix) ? Known::yes : Known::by_sample;
  }
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
  std::vector<Fault> between;  // see Verified; in any order

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

  void changed_between(const Shard& shard) {
    Fault fault{shard.path, shard.begin, "", "", ""};
    fault.cause =
        fmt::format("bytes between the samples have changed, from here to offset {}", shard.end);
    const std::lock_guard lock(mutex_);
    between.push_back(std::move(fault));
  }

  void shard(const Segment& segment, uint32_t number, unsigned threads);
  void file(const Segment& segment, uint64_t sample, uint32_t field, const Located& located);
  uint32_t compare_fields(const Segment& segment, const Shard& shard, std::span<const Owned> owners,
                          std::span<const Region> regions);

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
  std::mutex mutex_;
};

/// Names the fields whose bytes have changed; returns by what that alters the checksum of
/// the whole shard.
uint32_t Verifier::compare_fields(const Segment& segment, const Shard& shard,
                                  std::span<const Owned> owners, std::span<const Region> regions) {
  uint32_t change = 0;
  uint64_t covered = shard.begin;
  for (size_t i = 0; i < owners.size(); ++i) {
    const Owned& owner = owners[i];
    const uint32_t is = regions[i].crc;
    const uint32_t expected = segment.locate(owner.sample, owner.field).extent.crc;
    const bool contained = owner.offset < covered;
    covered = std::max(covered, owner.offset + owner.length);
    if (is == expected) continue;
    faults_.add({shard.path, owner.offset, segment.key(owner.sample),
                 segment.fields()[owner.field].name,
                 fmt::format("checksum is {:08x}, should be {:08x}", is, expected)});
    // An index gives data that was damaged already the inverse of its checksum.
    if (contained || is == ~expected) continue;
    change ^= crc32c_combine(is ^ expected, 0, shard.end - covered);
  }
  return change;
}

void Verifier::shard(const Segment& segment, uint32_t number, unsigned threads) {
  const Shard shard = segment.shard(number);
  // A large shard has several segments: the first one reports.
  if (!unchanged(shard.path, shard.size, 0, "", "", shard.begin == 0)) return;
  const std::vector<Owned> owners = fields_in(segment, number);
  std::vector<Region> regions;
  regions.reserve(owners.size());
  for (const Owned& owner : owners) regions.push_back({owner.offset, owner.length, 0, {}});
  try {
    const auto file = inflate(options_.file_system->open(options_.root + "/" + shard.path),
                              shard.path, shard.compression);
    const Digest digest =
        digest_parallel(*file, shard.begin, shard.end, regions, threads, options_.progress);
    bytes += digest.end - shard.begin;
    const uint32_t change = compare_fields(segment, shard, owners, regions);
    if (digest.crc != (shard.crc ^ change)) changed_between(shard);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    faults_.add({shard.path, {}, "", "", error.what()});
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
    const std::string cause =
        fmt::format("checksum is {:08x}, should be {:08x}", digest.crc, located.extent.crc);
    faults_.add({path, {}, key, name, cause});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    faults_.add({path, {}, key, name, error.what()});
  }
}

}  // namespace

Verified verify_contents(const Index& index, const VerifyOptions& options, Faults& faults) {
  Verifier verifier(options, faults);
  const size_t segments = index.manifest().segments.size();
  const auto inner = static_cast<unsigned>(options.jobs / std::max<size_t>(1, segments));
  parallel_for(segments, options.jobs, [&](size_t i) {
    const Segment& segment = index.segment(static_cast<uint32_t>(i));
    segment.verify_all();
    verifier.contents(segment, std::max(1U, inner));
  });
  std::sort(verifier.between.begin(), verifier.between.end(), [](const Fault& a, const Fault& b) {
    return std::tie(a.shard, a.offset) < std::tie(b.shard, b.offset);
  });
  return {verifier.bytes, std::move(verifier.between)};
}

void verify_identity(const Index& index, const VerifyOptions& options, Faults& faults) {
  Verifier verifier(options, faults);
  parallel_for(index.manifest().segments.size(), options.jobs, [&](size_t i) {
    const Segment& segment = index.segment(static_cast<uint32_t>(i));
    segment.verify_all();
    verifier.identity(segment);
  });
}

std::vector<Known> known_files(const Index& index, const FileNames& files, unsigned jobs) {
  std::vector<Known> known(files.files.size(), Known::no);
  if (known.empty()) return known;
  parallel_for(index.manifest().segments.size(), jobs, [&](size_t i) {
    const Segment& segment = index.segment(static_cast<uint32_t>(i));
    if (segment.shard_count() > 0) return;
    for (uint64_t sample = 0; sample < segment.samples(); ++sample) {
      mark_files(segment, sample, files, known);
    }
  });
  return known;
}

std::set<std::string> known_shards(const Index& index) {
  std::set<std::string> known;
  for (uint32_t s = 0; s < index.manifest().segments.size(); ++s) {
    const Segment& segment = index.segment(s);
    for (uint32_t i = 0; i < segment.shard_count(); ++i) known.insert(segment.shard(i).path);
  }
  return known;
}

}  // namespace stoker
