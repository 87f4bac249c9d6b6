// SPDX-License-Identifier: Apache-2.0
#include "check/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
#include "dataset/reader.h"
#include "dataset/truncation.h"
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

/// Sums of what an index says could overflow.
bool is_within(const Extent& extent, const Shard& shard) {
  return extent.offset >= shard.begin && extent.offset <= shard.end &&
         extent.length <= shard.end - extent.offset;
}

/// Finds what reading the shards front to back does not: fields in blocks, in pieces, or outside of
/// the part of a shard that the segment covers.
class Loose {
 public:
  explicit Loose(const Segment& segment) : segment_(segment) {
    for (uint32_t i = 0; i < segment.shard_count(); ++i) shards_.push_back(segment.shard(i));
  }

  bool is_loose(const Extent& extent) const {
    if (extent.container != Container::shard) {
      return extent.container == Container::block || extent.container == Container::pieces;
    }
    return !is_within(extent, shards_.at(extent.number));
  }

  /// Samples that have such fields.
  std::vector<uint64_t> samples() const {
    std::vector<uint64_t> found;
    if (shards_.empty()) return found;
    for (uint64_t sample = 0; sample < segment_.samples(); ++sample) {
      bool loose = false;
      for (uint32_t field = 0; field < segment_.fields().size() && !loose; ++field) {
        loose = is_loose(segment_.locate(sample, field).extent);
      }
      if (loose) found.push_back(sample);
    }
    return found;
  }

 private:
  const Segment& segment_;
  std::vector<Shard> shards_;
};

/// The fields that lie in a shard in the order of the bytes; what contains others comes first.
std::vector<Owned> fields_in(const Segment& segment, uint32_t shard) {
  const Shard covered = segment.shard(shard);
  std::vector<Owned> found;
  for (uint64_t sample = 0; sample < segment.samples(); ++sample) {
    for (uint32_t field = 0; field < segment.fields().size(); ++field) {
      const Extent extent = segment.locate(sample, field).extent;
      if (extent.container != Container::shard || extent.number != shard) continue;
      if (!is_within(extent, covered)) continue;
      found.push_back({extent.offset, extent.length, sample, field});
    }
  }
  // Formats emit samples in the order of the bytes, but fields in the order of the schema.
  std::sort(found.begin(), found.end(), [](const Owned& a, const Owned& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.length > b.length;
  });
  return found;
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
  Verifier(const VerifyOptions& options, Faults& faults)
      : options_(options), files_(options.file_system->beneath(options.root)), faults_(faults) {}

  void contents(const Index& index, uint32_t number, unsigned threads) {
    const Segment& segment = index.segment(number);
    const bool good = elsewhere(index, number, threads);
    for (uint32_t i = 0; i < segment.shard_count(); ++i) shard(segment, i, threads, good);
    files(segment, threads,
          [&](uint64_t s, uint32_t f, const Located& l) { file(segment, s, f, l); });
  }

  void identity(const Segment& segment) {
    for (uint32_t i = 0; i < segment.shard_count(); ++i) {
      const Shard shard = segment.shard(i);
      if (!begins(shard)) continue;
      const int64_t modified = segment.depth() == Depth::structure ? shard.modified_ns : 0;
      (void)unchanged(segment, i, modified, true);
    }
    files(segment, 1, [&](uint64_t sample, uint32_t field, const Located& located) {
      const int64_t modified =
          segment.depth() == Depth::structure ? static_cast<int64_t>(located.extent.offset) : 0;
      (void)unchanged(segment.file_path(sample, field, located), located.extent.length, modified,
                      segment.key(sample), segment.fields()[field].name);
    });
  }

  std::atomic<uint64_t> bytes{0};
  std::vector<Fault> between;  // see Verified; in any order

 private:
  /// What has happened to a file since it was indexed; empty where nothing has. `truncated` says
  /// what has become of one that is shorter now.
  template <typename Truncated>
  std::string change(const std::string& path, uint64_t size, int64_t modified_ns,
                     Truncated truncated) {
    try {
      const auto info = options_.file_system->info(options_.root + "/" + path, true);
      if (!info) return "is missing: it was there when the index was made";
      if (info->size < size) return truncated(info->size);
      if (info->size != size) {
        return fmt::format("has changed since it was indexed: {} bytes then, {} now", size,
                           info->size);
      }
      if (modified_ns != 0 && info->modified_ns != modified_ns) {
        return "was modified after it was indexed: run stoker index";
      }
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  /// Whether a shard is still the one that was indexed; a fault where it is not.
  bool unchanged(const Segment& segment, uint32_t number, int64_t modified_ns, bool report) {
    const Shard shard = segment.shard(number);
    std::string cause = change(shard.path, shard.size, modified_ns, [&](uint64_t size) {
      return truncation_in_words(segment, number, size);
    });
    const bool same = cause.empty();
    if (!same && report) faults_.add({shard.path, {}, "", "", std::move(cause)});
    return same;
  }
  /// The same for a small file.
  bool unchanged(const std::string& path, uint64_t size, int64_t modified_ns,
                 const std::string& sample, const std::string& field) {
    std::string cause = change(path, size, modified_ns, [&](uint64_t now) {
      return fmt::format("has changed since it was indexed: {} bytes then, {} now", size, now);
    });
    if (cause.empty()) return true;
    faults_.add({path, {}, sample, field, std::move(cause)});
    return false;
  }

  void changed_between(const Shard& shard) {
    Fault fault{shard.path, shard.begin, "", "", ""};
    fault.cause =
        fmt::format("bytes between the samples have changed, from here to offset {}", shard.end);
    const std::lock_guard lock(mutex_);
    between.push_back(std::move(fault));
  }

  bool elsewhere(const Index& index, uint32_t number, unsigned threads);
  void shard(const Segment& segment, uint32_t number, unsigned threads, bool rest_is_good);
  void file(const Segment& segment, uint64_t sample, uint32_t field, const Located& located);
  uint32_t compare_fields(const Segment& segment, const Shard& shard, std::span<const Owned> owners,
                          std::span<const DigestRegion> regions);

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
  std::unique_ptr<FilesBeneath> files_;
  Faults& faults_;
  std::mutex mutex_;
};

/// Names the fields whose bytes have changed; returns by what that alters the checksum of
/// the whole shard.
uint32_t Verifier::compare_fields(const Segment& segment, const Shard& shard,
                                  std::span<const Owned> owners,
                                  std::span<const DigestRegion> regions) {
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

/// Compares the fields that lie in blocks, in pieces or scattered; false where one has changed.
bool Verifier::elsewhere(const Index& index, uint32_t number, unsigned threads) {
  constexpr size_t kSamples = 256;
  const Loose loose(index.segment(number));
  const std::vector<uint64_t> all = loose.samples();
  ReaderOptions reading;
  reading.roots = {options_.root};
  reading.threads = threads;
  reading.fetch_inline = true;
  reading.file_system = options_.file_system;
  const Reader reader(std::shared_ptr<const Index>(std::shared_ptr<void>(), &index), reading);
  bool good = true;
  for (size_t first = 0; first < all.size(); first += kSamples) {
    std::vector<uint64_t> samples;
    for (size_t i = first; i < std::min(all.size(), first + kSamples); ++i) {
      samples.push_back(index.first_sample(number) + all[i]);
    }
    Batch batch = reader.locate(samples);
    std::erase_if(batch.items,
                  [&](const Item& item) { return !loose.is_loose(item.located.extent); });
    uint64_t total = 0;
    for (const Item& item : batch.items) total += item.length;
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(total);
    std::byte* next = memory.get();
    for (Item& item : batch.items) item.data = std::exchange(next, next + item.length);
    for (const ReadFailure& failure : reader.fetch(batch)) {
      faults_.add(failure.fault);
      good = false;
    }
    bytes += total;
    if (options_.progress != nullptr) options_.progress->check_stop();
  }
  return good;
}

void Verifier::shard(const Segment& segment, uint32_t number, unsigned threads, bool rest_is_good) {
  const Shard shard = segment.shard(number);
  // A large shard has several segments: the first one reports.
  if (!unchanged(segment, number, 0, begins(shard))) return;
  const std::vector<Owned> owners = fields_in(segment, number);
  std::vector<DigestRegion> regions;
  regions.reserve(owners.size());
  for (const Owned& owner : owners) regions.push_back({owner.offset, owner.length, 0, {}});
  try {
    const auto file = inflate(files_->open(shard.path, Links::trusted), shard.path,
                              shard.compression, segment.view(number));
    const Digest digest =
        digest_parallel(*file, shard.begin, shard.end, regions, threads, options_.progress);
    bytes += digest.end - shard.begin;
    const uint32_t change = compare_fields(segment, shard, owners, regions);
    if (digest.crc != (shard.crc ^ change) && rest_is_good) changed_between(shard);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    faults_.add({shard.path, {}, "", "", error.what()});
  }
  if (options_.progress != nullptr) options_.progress->samples += segment.samples();
}

void Verifier::file(const Segment& segment, uint64_t sample, uint32_t field,
                    const Located& located) {
  const std::string path = segment.file_path(sample, field, located);
  const std::string key = segment.key(sample);
  const std::string& name = segment.fields()[field].name;
  const uint64_t length = located.extent.length;
  if (!unchanged(path, length, 0, key, name)) return;
  try {
    const auto file = files_->open(path, Links::inside);
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
    verifier.contents(index, static_cast<uint32_t>(i), std::max(1U, inner));
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

void verify_row_indexes(const Index& index, const VerifyOptions& options, bool contents,
                        Faults& faults) {
  parallel_for(index.manifest().segments.size(), options.jobs, [&](size_t i) {
    const SegmentEntry& entry = index.manifest().segments[i];
    const std::string path = row_index_path(index.directory() + "/" + entry.file);
    if (!std::filesystem::exists(path)) return;
    try {
      const RowIndexFile file(path, entry.header_crc, entry.samples);
      if (contents) file.verify_all();
    } catch (const Error& error) {
      const std::string root = options.root + "/";
      Fault fault;
      fault.shard = path.starts_with(root) ? path.substr(root.size()) : path;
      fault.cause = error.what();
      const std::string prefix = printable(path) + ": ";
      if (fault.cause.starts_with(prefix)) fault.cause.erase(0, prefix.size());
      faults.add(std::move(fault));
    }
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
