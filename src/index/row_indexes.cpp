// SPDX-License-Identifier: Apache-2.0
#include "index/row_indexes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <memory>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "dataset/index.h"
#include "dataset/reader.h"
#include "image/row_index.h"
#include "os/readers.h"

namespace stoker {
namespace {

// Row indexes wait in memory until all before them are written: so many photos per thread.
constexpr uint64_t kPhotosAtOnce = 128;

// Ways that a decoder can take stand in the files by their numbers.
static_assert(kDecodePaths <= RowIndexFacts::kWays);

/// What one thread needs, kept from photo to photo.
struct Maker {
  explicit Maker(uint32_t every) : indexer(every) {}

  RowIndexer indexer;
  std::vector<std::byte> photo;
};

/// What came out of one sample.
struct Made {
  std::optional<DecodePath> path;  // nothing: it has no photo
  uint64_t photo_bytes = 0;
  std::vector<std::byte> row_index;
};

class RowsOfSegment {
 public:
  RowsOfSegment(const RowIndexWork& work, const SegmentEntry& entry, const Segment& segment,
                uint32_t field)
      : work_(work),
        field_(field),
        index_(std::make_shared<Index>(work.directory, alone(entry, segment))),
        reader_(index_, reading(work)),
        writer_(row_index_path(work.directory + "/" + entry.file), entry.header_crc, entry.samples,
                like(work.directory + "/" + entry.file)) {
    facts_.field = field;
    facts_.every = work.every;
  }

  void run(const NotYetCounted& before) {
    const uint64_t samples = index_->size();
    NotYetCounted counted;
    for (uint64_t first = 0; first < samples;) {
      const unsigned threads = work_.threads->now();
      while (makers_.size() < threads) makers_.push_back(std::make_unique<Maker>(work_.every));
      std::vector<Made> made(std::min(samples - first, kPhotosAtOnce * threads));
      std::atomic<size_t> next{0};
      parallel_for(threads, threads, [&](size_t thread) {
        for (size_t i = next++; i < made.size(); i = next++) {
          if (work_.progress != nullptr) work_.progress->check_stop();
          made[i] = make(*makers_[thread], first + i);
        }
      });
      for (const Made& one : made) add(one);
      first += made.size();
      if (work_.progress == nullptr) continue;
      const NotYetCounted now{
          before.samples * first / samples,
          static_cast<uint64_t>(static_cast<double>(before.bytes) * static_cast<double>(first) /
                                static_cast<double>(samples))};
      work_.progress->samples += now.samples - counted.samples;
      work_.progress->bytes += now.bytes - counted.bytes;
      counted = now;
    }
    writer_.commit(facts_);
  }

 private:
  static Manifest alone(const SegmentEntry& entry, const Segment& segment) {
    Manifest manifest;
    manifest.depth = segment.depth();
    manifest.schema.fields = segment.fields();
    manifest.segments = {entry};
    return manifest;
  }

  /// For those who may read the segment.
  static Access like(const std::string& segment) {
    Readers readers;
    readers.add(segment);
    return readers.like(S_IRGRP | S_IROTH);
  }

  static ReaderOptions reading(const RowIndexWork& work) {
    ReaderOptions options;
    options.roots = work.roots;
    options.threads = 1;
    options.file_system = work.file_system;
    return options;
  }

  Made make(Maker& maker, uint64_t sample) const {
    Made made;
    Batch batch = reader_.locate({&sample, 1}, {&field_, 1});
    if (batch.items.empty()) return made;
    Item& photo = batch.items.front();
    made.photo_bytes = photo.length;
    if (maker.photo.size() < photo.length) maker.photo.resize(photo.length);
    photo.data = maker.photo.data();
    // Whatever the cause, the index names it already; the rest of the photos can be had.
    if (!reader_.fetch(batch).empty()) {
      made.path = DecodePath::damaged;
      return made;
    }
    made.path = maker.indexer.make({photo.data, photo.length}, photo.crc);
    const Bytes bytes = maker.indexer.bytes();
    if (made.path == DecodePath::indexed) made.row_index.assign(bytes.begin(), bytes.end());
    return made;
  }

  void add(const Made& made) {
    writer_.add(made.row_index);
    if (!made.path) return;
    ++facts_.photos[static_cast<size_t>(*made.path)];
    facts_.photo_bytes += made.photo_bytes;
  }

  const RowIndexWork& work_;
  const uint32_t field_;
  std::shared_ptr<const Index> index_;
  Reader reader_;
  RowIndexFileWriter writer_;
  RowIndexFacts facts_;
  std::vector<std::unique_ptr<Maker>> makers_;  // by thread
};

/// The file beside a segment; nothing where it is missing or damaged.
std::optional<RowIndexFile> open_file(const std::string& segment, const SegmentEntry& entry) {
  try {
    return std::optional<RowIndexFile>(std::in_place, row_index_path(segment), entry.header_crc,
                                       entry.samples);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_there(const std::string& segment, const SegmentEntry& entry, uint32_t every) {
  const std::optional<RowIndexFile> file = open_file(segment, entry);
  // Who asks for none in particular keeps what somebody has asked for.
  if (!file || (every != 0 && file->facts().every != every)) return false;
  try {
    file->verify_all();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::optional<uint32_t> parse_row_index(std::string_view text) {
  constexpr uint32_t kMost = 65535;  // more than a row of the widest photo has
  if (text == "none") return std::nullopt;
  if (text == "rows") return 0;
  uint32_t every = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, every);
  if (parsed.ec == std::errc() && parsed.ptr == end && every >= 1 && every <= kMost) return every;
  throw Error(ErrorKind::usage,
              fmt::format("row index '{}': should be rows, none or a number from 1 to {}",
                          printable(std::string(text)), kMost));
}

uint64_t RowIndexSummary::all() const {
  return std::accumulate(photos.begin(), photos.end(), uint64_t{0});
}

double RowIndexSummary::percent() const {
  if (photo_bytes == 0) return 0;
  return 100 * static_cast<double>(bytes) / static_cast<double>(photo_bytes);
}

void RowIndexSummary::add(const RowIndexSummary& other) {
  for (size_t i = 0; i < photos.size(); ++i) photos[i] += other.photos[i];
  bytes += other.bytes;
  photo_bytes += other.photo_bytes;
}

RowIndexSummary row_index_summary(const std::string& directory,
                                  std::span<const SegmentEntry> segments) {
  RowIndexSummary summary;
  for (const SegmentEntry& entry : segments) {
    const std::optional<RowIndexFile> file = open_file(directory + "/" + entry.file, entry);
    if (!file) continue;
    RowIndexSummary one{{}, file->bytes(), file->facts().photo_bytes};
    std::copy_n(file->facts().photos.begin(), one.photos.size(), one.photos.begin());
    summary.add(one);
  }
  return summary;
}

std::optional<uint32_t> photo_field(const std::vector<Field>& fields) {
  const auto found = std::find_if(fields.begin(), fields.end(), [](const Field& field) {
    return field.name == kImageField && field.type == FieldType::bytes;
  });
  if (found == fields.end()) return std::nullopt;
  return static_cast<uint32_t>(found - fields.begin());
}

void make_row_indexes(const RowIndexWork& work, const SegmentEntry& entry,
                      const NotYetCounted& before) {
  const std::string path = work.directory + "/" + entry.file;
  const Segment segment(path);
  const std::optional<uint32_t> field = photo_field(segment.fields());
  const bool wanted = field && segment.depth() == Depth::full;
  if (wanted && !is_there(path, entry, work.every)) {
    return RowsOfSegment(work, entry, segment, *field).run(before);
  }
  if (work.progress == nullptr) return;
  work.progress->samples += before.samples;
  work.progress->bytes += before.bytes;
}

}  // namespace stoker
