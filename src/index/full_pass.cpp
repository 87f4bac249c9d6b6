// SPDX-License-Identifier: Apache-2.0
#include "index/full_pass.h"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/transient.h"
#include "dataset/inflating_file.h"
#include "dataset/npy.h"
#include "dataset/value.h"
#include "index/digest.h"
#include "index/field_digest.h"

namespace stoker {
namespace {

// No number needs more, and hardly an .npy header: a longer one is read again.
constexpr size_t kBeginning = 256;
constexpr size_t kLongHeader = 16384;
constexpr uint32_t kStated = ~0U;

/// What a region is the bytes of: a field of a sample, or something the file states.
struct Owner {
  uint64_t sample = 0;
  uint32_t field = kStated;
  const StatedChecksum* stated = nullptr;
};

bool needs_beginning(const Field& field) {
  return field.encoding == Encoding::decimal || field.encoding == Encoding::npy ||
         (field.type == FieldType::number && field.encoding != Encoding::none);
}

class FullPass {
 public:
  FullPass(SegmentWriter& segment, const Source& source, unsigned threads, Progress* progress)
      : segment_(segment), source_(source), threads_(threads), progress_(progress) {}

  void shard(uint32_t number, std::span<const StatedChecksum> stated);
  void elsewhere();
  void own_files();

 private:
  void fault(const std::string& shard, uint64_t offset, const Owner& owner, std::string cause,
             int os_error = 0);
  /// `file` is where the field lies at `offset`; null where it cannot be read further.
  void take_value(uint64_t sample, uint32_t field, Bytes beginning, const std::string& shard,
                  uint64_t offset, ReadableFile* file);
  std::vector<std::pair<DigestRegion, Owner>> regions_of(uint32_t shard,
                                                         std::span<const StatedChecksum> stated);
  void compare_stated(const Shard& shard, std::span<const std::pair<DigestRegion, Owner>> all,
                      size_t i);
  void compare_crc32(const Shard& shard, ReadableFile& file,
                     std::span<const std::pair<DigestRegion, Owner>> all,
                     const StatedChecksum& stated);
  void damaged(const Shard& shard, std::span<const std::pair<DigestRegion, Owner>> all,
               const StatedChecksum& stated, uint32_t crc);
  void own_file(uint64_t sample, uint32_t field);
  bool lies_in(uint32_t shard, const Extent& extent) const;

  SegmentWriter& segment_;
  const Source& source_;
  unsigned threads_;
  Progress* progress_;
};

void FullPass::fault(const std::string& shard, uint64_t offset, const Owner& owner,
                     std::string cause, int os_error) {
  Fault fault;
  fault.shard = shard;
  fault.offset = offset;
  if (owner.sample < segment_.samples()) {
    fault.sample = segment_.key(owner.sample);
    fault.samples = 0;  // reading it fails
  }
  fault.transient = is_transient(os_error);
  if (owner.field != kStated) fault.field = segment_.fields()[owner.field].name;
  fault.cause = std::move(cause);
  segment_.add_fault(std::move(fault));
}

void FullPass::take_value(uint64_t sample, uint32_t field, Bytes beginning,
                          const std::string& shard, uint64_t offset, ReadableFile* file) {
  const Field& described = segment_.fields()[field];
  const Extent& extent = segment_.extent(sample, field);
  try {
    if (described.encoding == Encoding::npy) {
      std::vector<std::byte> longer;
      constexpr size_t kNpyLength = 10;  // magic, version and the length of a short header
      if (file != nullptr && beginning.size() >= kNpyLength && beginning.size() < extent.length &&
          kNpyLength + load<uint16_t>(beginning.data() + 8) > beginning.size()) {
        longer.resize(std::min<uint64_t>(extent.length, kLongHeader));
        longer.resize(file->read_at(offset, longer));
        beginning = longer;
      }
      const NpyHeader header = parse_npy_header(beginning);
      if (header.data_size != extent.length - header.size) {
        throw Error(ErrorKind::corrupt, fmt::format("array of {} bytes where {} are left for it",
                                                    header.data_size, extent.length - header.size));
      }
      segment_.refine_array(field, header.dtype, header.shape);
      return;
    }
    if (extent.length > beginning.size()) {
      throw Error(ErrorKind::corrupt, fmt::format("{} bytes for a number", extent.length));
    }
    const Value value = decode_value(described, beginning);
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      segment_.set_integer(sample, field, *integer);
    }
    if (const auto* real = std::get_if<double>(&value)) segment_.set_real(sample, field, *real);
  } catch (const Error& error) {
    fault(shard, offset, {sample, field, nullptr}, error.what());
  }
}

/// Whether the part of the shard that this segment covers contains it.
bool FullPass::lies_in(uint32_t shard, const Extent& extent) const {
  const Shard& whole = segment_.shards()[shard];
  return extent.offset >= whole.begin && extent.offset + extent.length <= whole.end;
}

std::vector<std::pair<DigestRegion, Owner>> FullPass::regions_of(
    uint32_t shard, std::span<const StatedChecksum> stated) {
  std::vector<std::pair<DigestRegion, Owner>> all;
  for (const StatedChecksum& checksum : stated) {
    if (checksum.shard != shard || checksum.kind != ChecksumKind::crc32c) continue;
    all.push_back(
        {{checksum.offset, checksum.length, 0, {}}, {segment_.samples(), kStated, &checksum}});
  }
  for (uint64_t sample = 0; sample < segment_.samples(); ++sample) {
    for (uint32_t field = 0; field < segment_.fields().size(); ++field) {
      if (!segment_.has_extents(field)) continue;
      const Extent& extent = segment_.extent(sample, field);
      if (extent.container != Container::shard || extent.number != shard ||
          !lies_in(shard, extent)) {
        continue;
      }
      all.push_back({{extent.offset, extent.length, 0, {}}, {sample, field, nullptr}});
    }
  }
  // What contains others comes before them.
  const auto before = [](const auto& a, const auto& b) {
    return a.first.offset != b.first.offset ? a.first.offset < b.first.offset
                                            : a.first.length > b.first.length;
  };
  std::stable_sort(all.begin(), all.end(), before);
  return all;
}

/// What lies in there shall not be read as if it were right.
void FullPass::damaged(const Shard& shard, std::span<const std::pair<DigestRegion, Owner>> all,
                       const StatedChecksum& stated, uint32_t crc) {
  Owner named{segment_.samples(), kStated, &stated};
  for (const auto& [inner, whose] : all) {
    const bool inside =
        inner.offset >= stated.offset && inner.offset < stated.offset + stated.length;
    if (whose.stated != nullptr || !inside) continue;
    named.sample = whose.sample;
    segment_.extent(whose.sample, whose.field).crc = ~inner.crc;
  }
  fault(shard.path, stated.offset, named,
        fmt::format("checksum of the {} is {:08x}, the file states {:08x}: the data is damaged",
                    stated.what, crc, stated.crc));
}

void FullPass::compare_stated(const Shard& shard,
                              std::span<const std::pair<DigestRegion, Owner>> all, size_t i) {
  const auto& [region, owner] = all[i];
  if (region.crc == owner.stated->crc) return;
  size_t end = i + 1;
  while (end < all.size() && all[end].first.offset < region.offset + region.length) ++end;
  damaged(shard, all.subspan(i, end - i), *owner.stated, region.crc);
}

/// Reads the bytes once more, which are still in memory mostly: one kind of checksum does not make
/// the other.
void FullPass::compare_crc32(const Shard& shard, ReadableFile& file,
                             std::span<const std::pair<DigestRegion, Owner>> all,
                             const StatedChecksum& stated) {
  std::vector<std::byte> buffer(std::min<uint64_t>(stated.length, 256 << 10));
  uint32_t crc = 0;
  uint64_t done = 0;
  while (done < stated.length) {
    const MutableBytes wanted =
        MutableBytes(buffer).first(std::min<uint64_t>(buffer.size(), stated.length - done));
    const size_t got = file.read_at(stated.offset + done, wanted);
    crc = libdeflate_crc32(crc, buffer.data(), got);
    done += got;
    if (got < wanted.size()) break;  // said by others
    if (progress_ != nullptr) progress_->check_stop();
  }
  if (crc != stated.crc) damaged(shard, all, stated, crc);
}

void FullPass::shard(uint32_t number, std::span<const StatedChecksum> stated) {
  const std::string path = segment_.shards()[number].path;
  std::vector<std::pair<DigestRegion, Owner>> all = regions_of(number, stated);
  std::vector<std::byte> beginnings;
  uint64_t wanted = 0;
  const auto beginning_size = [&](const std::pair<DigestRegion, Owner>& one) -> uint64_t {
    const uint32_t field = one.second.field;
    if (field == kStated || !needs_beginning(segment_.fields()[field])) return 0;
    return std::min<uint64_t>(one.first.length, kBeginning);
  };
  for (const auto& one : all) wanted += beginning_size(one);
  beginnings.resize(wanted);
  std::vector<DigestRegion> regions;
  regions.reserve(all.size());
  uint64_t at = 0;
  for (const auto& one : all) {
    regions.push_back(one.first);
    const uint64_t size = beginning_size(one);
    regions.back().beginning = MutableBytes(beginnings).subspan(at, size);
    at += size;
  }

  Shard& shard = segment_.shards()[number];
  const auto file = inflate(source_.file_system->open(source_.root + "/" + path), path,
                            shard.compression, shard.view);
  const bool compressed = shard.compression != Compression::none;
  const Digest digest =
      digest_parallel(*file, shard.begin, shard.end, regions, compressed ? 1 : threads_, progress_);
  shard.crc = digest.crc;
  if (digest.end < shard.end && !compressed) {
    fault(path, digest.end, {segment_.samples(), kStated, nullptr},
          "the file became shorter while it was read");
  }
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].first = regions[i];
    const Owner& owner = all[i].second;
    if (owner.field == kStated) continue;
    segment_.extent(owner.sample, owner.field).crc = regions[i].crc;
    if (needs_beginning(segment_.fields()[owner.field])) {
      take_value(owner.sample, owner.field, regions[i].beginning, path, regions[i].offset,
                 file.get());
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].second.stated != nullptr) compare_stated(shard, all, i);
  }
  for (const StatedChecksum& checksum : stated) {
    if (checksum.shard == number && checksum.kind == ChecksumKind::crc32) {
      compare_crc32(shard, *file, all, checksum);
    }
  }
}

void FullPass::own_file(uint64_t sample, uint32_t field) {
  Extent& extent = segment_.extent(sample, field);
  const std::string path = segment_.file_path(sample, field);
  const Owner owner{sample, field, nullptr};
  std::vector<std::byte> beginning(std::min<uint64_t>(extent.length, kBeginning));
  DigestRegion region{0, extent.length, 0, beginning};
  std::unique_ptr<ReadableFile> file;
  try {
    file = source_.file_system->open(source_.root + "/" + path);
    const Digest digest = digest_range(*file, 0, extent.length, {&region, 1}, progress_);
    if (digest.end != extent.length || file->info().size != extent.length) {
      throw Error(ErrorKind::corrupt, "the file changed while it was read");
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    extent.crc = ~extent.crc;
    return fault(path, 0, owner, error.what(), error.os_error());
  }
  extent.crc = region.crc;
  if (needs_beginning(segment_.fields()[field])) {
    take_value(sample, field, beginning, path, 0, file.get());
  }
}

/// What does not lie in the bytes that shard() has read: in blocks, in pieces, or scattered.
void FullPass::elsewhere() {
  std::vector<FieldPlace> places;
  for (uint64_t sample = 0; sample < segment_.samples(); ++sample) {
    for (uint32_t field = 0; field < segment_.fields().size(); ++field) {
      if (!segment_.has_extents(field)) continue;
      const Extent& extent = segment_.extent(sample, field);
      const bool scattered =
          extent.container == Container::shard && !lies_in(extent.number, extent);
      if (!scattered && extent.container != Container::block &&
          extent.container != Container::pieces) {
        continue;
      }
      const bool beginning = needs_beginning(segment_.fields()[field]);
      places.push_back({sample, field, beginning ? kBeginning : 0, 0, {}, {}, 0, 0, {}});
    }
  }
  digest_fields(segment_, source_, places, threads_, progress_);
  for (const FieldPlace& place : places) {
    const Owner owner{place.sample, place.field, nullptr};
    const std::string& path = segment_.shards()[place.shard].path;
    if (!place.cause.empty()) {
      fault(path, place.offset, owner, place.cause, place.os_error);
      continue;
    }
    segment_.extent(place.sample, place.field).crc = place.crc;
    if (needs_beginning(segment_.fields()[place.field])) {
      take_value(place.sample, place.field, place.beginning, path, place.offset, nullptr);
    }
  }
}

void FullPass::own_files() {
  for (uint64_t sample = 0; sample < segment_.samples(); ++sample) {
    for (uint32_t field = 0; field < segment_.fields().size(); ++field) {
      if (!segment_.has_extents(field)) continue;
      Extent& extent = segment_.extent(sample, field);
      if (extent.container == Container::file) own_file(sample, field);
      if (extent.container == Container::here) {
        extent.crc = crc32c(as_bytes(segment_.here_bytes(extent)));
      }
    }
    if (progress_ != nullptr) ++progress_->samples;
  }
}

}  // namespace

void complete_segment(SegmentWriter& segment, const Source& source,
                      std::span<const StatedChecksum> stated, unsigned threads,
                      Progress* progress) {
  FullPass pass(segment, source, threads, progress);
  for (uint32_t i = 0; i < segment.shards().size(); ++i) pass.shard(i, stated);
  pass.elsewhere();
  pass.own_files();
}

}  // namespace stoker
