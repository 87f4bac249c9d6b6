// SPDX-License-Identifier: Apache-2.0
#include "pack/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_set>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/permutation.h"
#include "base/text.h"
#include "dataset/segment_writer.h"
#include "dataset/splits.h"
#include "index/build_index.h"
#include "index/duplicates.h"
#include "os/output_file.h"
#include "pack/out_sample.h"
#include "pack/views.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

/// Whether a pattern speaks of `name`: of its whole path where it has a slash, else its last part.
bool matches(const std::string& pattern, std::string_view name) {
  if (pattern.find('/') == std::string::npos) name = name.substr(name.rfind('/') + 1);
  return glob_match(pattern, name);
}

/// Which samples are wanted, by their key and the names of their files.
class Filter {
 public:
  Filter(const Index& index, const PackOptions& options) : index_(index), options_(options) {}

  bool wants(uint64_t sample, const std::string& key) const {
    if (options_.include.empty() && options_.exclude.empty()) return true;
    const std::vector<std::string> names = names_of(sample, key);
    const auto any = [&](const std::vector<std::string>& patterns) {
      return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        return std::any_of(names.begin(), names.end(),
                           [&](const std::string& name) { return matches(pattern, name); });
      });
    };
    return (options_.include.empty() || any(options_.include)) && !any(options_.exclude);
  }

 private:
  std::vector<std::string> names_of(uint64_t sample, const std::string& key) const {
    std::vector<std::string> names{key};
    const Index::Place place = index_.place(sample);
    const Segment& segment = index_.segment(place.segment);
    for (uint32_t f = 0; f < segment.fields().size(); ++f) {
      const Located located = segment.locate(place.sample, f);
      if (!located.present) continue;
      const std::string& suffix = segment.fields()[f].suffixes.at(located.suffix);
      if (!suffix.empty()) names.push_back(file_name(key, suffix));
    }
    return names;
  }

  const Index& index_;
  const PackOptions& options_;
};

/// Which split a key belongs to: decided by the key alone, so it stays when data is added.
size_t split_of(std::string_view key, const PackOptions& options) {
  if (options.split.empty()) return 0;
  // A second mixing: the hash itself orders the index, and nothing else should follow from it.
  const double where = static_cast<double>(mix64(hash64(key) ^ 0x73706C6974) >> 11) * 0x1p-53;
  double bound = 0;
  for (size_t i = 0; i + 1 < options.split.size(); ++i) {
    bound += options.split[i].second;
    if (where < bound) return i;
  }
  return options.split.size() - 1;
}

/// What a shard's index is held in while the shard is written: memory stays small whatever the
/// size.
constexpr uint64_t kMaxShardSamples = uint64_t{1} << 18;

/// Cuts the stream of samples of one dataset into shards and writes its order.
class DatasetPlanner {
 public:
  DatasetPlanner(const std::string& path, uint64_t shard_size, const Access& access)
      : file_(path, access), shard_size_(shard_size) {}

  void add(uint64_t sample, uint64_t bytes) {
    PlannedShard& open = shards.back();
    const uint64_t count = open.last - open.first;
    if (count > 0 && (open.bytes + bytes + ShardWriter::kMaxShardEnd > shard_size_ ||
                      count >= kMaxShardSamples)) {
      close();
      shards.push_back({"", open_last_, open_last_, 0, 0});
    }
    shards.back().bytes += bytes;
    ++shards.back().last;
    order_.push_back(sample);
  }

  void finish() {
    close();
    file_.commit();
    if (shards.back().last == shards.back().first) shards.pop_back();
  }

  std::vector<PlannedShard> shards{PlannedShard{}};

 private:
  void close() {
    const Bytes bytes = std::as_bytes(std::span(order_));
    shards.back().order_crc = crc32c(bytes);
    open_last_ = shards.back().last;
    file_.write(bytes);
    order_.clear();
  }

  OutputFile file_;
  uint64_t shard_size_;
  std::vector<uint64_t> order_;
  uint64_t open_last_ = 0;
};

/// Goes through the samples in the order they are to be written and hands each to its dataset.
class Planner {
 public:
  Planner(const Reader& reader, const WriteFormat& write, const Conversion& conversion,
          const PackOptions& options)
      : reader_(reader),
        write_(write),
        options_(options),
        conversion_(conversion),
        filter_(reader.index(), options) {}

  void run(std::vector<std::unique_ptr<DatasetPlanner>>& datasets, Plan& plan);
  uint64_t taken() const { return taken_; }

 private:
  void add_chunk(const std::vector<uint64_t>& chunk,
                 std::vector<std::unique_ptr<DatasetPlanner>>& datasets, Plan& plan);
  std::optional<Fault> in_part(uint64_t sample, const std::string& key) const;

  const Reader& reader_;
  const WriteFormat& write_;
  const PackOptions& options_;
  const Conversion& conversion_;
  Filter filter_;
  std::unordered_set<uint64_t> named_;  // as left out already
  /// Shards and fields of which more samples are damaged than faults name.
  std::set<std::pair<std::string, uint32_t>> unsure_;
  uint64_t taken_ = 0;
};

/// Whether the shard `path` is one of those that the segment describes.
bool has_shard(const Segment& segment, const std::string& path) {
  for (uint32_t i = 0; i < segment.shard_count(); ++i) {
    if (segment.shard(i).path == path) return true;
  }
  return false;
}

/// Whether a shard has bytes of the sample; of files that are samples themselves the key tells.
bool lies_in(const Index& index, uint64_t sample, const std::string& shard) {
  const Index::Place place = index.place(sample);
  const Segment& segment = index.segment(place.segment);
  if (segment.shard_count() == 0) return true;
  bool elsewhere = true;  // nothing says in which shard of the segment it lies
  for (uint32_t f = 0; f < segment.fields().size(); ++f) {
    Extent extent = segment.locate(place.sample, f).extent;
    if (extent.container == Container::pieces && extent.length > 0) {
      extent = segment.piece(extent.offset);
    }
    uint32_t number = extent.number;
    if (extent.container == Container::block) number = segment.block(number).shard;
    if (extent.container != Container::block && extent.container != Container::shard) continue;
    if (segment.shard(number).path == shard) return true;
    elsewhere = false;
  }
  return elsewhere && has_shard(segment, shard);
}

void Planner::run(std::vector<std::unique_ptr<DatasetPlanner>>& datasets, Plan& plan) {
  const Index& index = reader_.index();
  // A sample of which the scan could not take in everything is not packed in part.
  for (const Fault& fault : plan.left_out) {
    if (fault.sample.empty()) {
      const std::optional<uint32_t> field = index.schema().find(fault.field);
      if (field) unsure_.emplace(fault.shard, *field);
      continue;
    }
    const std::optional<uint64_t> sample = index.find(fault.sample);
    if (sample && lies_in(index, *sample, fault.shard)) named_.insert(*sample);
  }
  for (const DuplicateKey& twice : find_duplicates(index)) {
    named_.insert(twice.sample);
    plan.left_out.push_back(duplicate_fault(index, twice));
  }
  const uint64_t size = index.size();
  const Permutation shuffled(size, options_.shuffle.value_or(0));
  std::vector<uint64_t> chunk;
  if (options_.progress != nullptr) options_.progress->begin("planning", size, 0);
  for (uint64_t i = 0; i < size; ++i) {
    chunk.push_back(options_.shuffle ? shuffled(i) : i);
    if (chunk.size() < 256 && i + 1 < size) continue;
    add_chunk(chunk, datasets, plan);
    if (options_.progress != nullptr) {
      options_.progress->samples += chunk.size();
      options_.progress->check_stop();
    }
    chunk.clear();
  }
}

/// Why a sample may be there in part only: it lacks a field that could not be read throughout.
std::optional<Fault> Planner::in_part(uint64_t sample, const std::string& key) const {
  const Index& index = reader_.index();
  for (const auto& [shard, field] : unsure_) {
    const Index::Place place = index.place(sample);
    const Segment& segment = index.segment(place.segment);
    const std::optional<uint32_t> local = index.local_field(place.segment, field);
    if (local && segment.locate(place.sample, *local).present) continue;
    if (!has_shard(segment, shard)) continue;
    return Fault{shard, {}, key, index.schema().fields[field].name, "could not be read"};
  }
  return std::nullopt;
}

void Planner::add_chunk(const std::vector<uint64_t>& chunk,
                        std::vector<std::unique_ptr<DatasetPlanner>>& datasets, Plan& plan) {
  const Batch batch = reader_.locate(chunk, conversion_.wanted());
  std::vector<OutField> fields;
  size_t item = 0;
  for (uint32_t row = 0; row < chunk.size(); ++row) {
    const size_t first = item;
    while (item < batch.items.size() && batch.items[item].row == row) ++item;
    if (named_.contains(chunk[row])) continue;
    const std::string key = reader_.index().key(chunk[row]);
    if (const std::optional<Fault> partial = in_part(chunk[row], key)) {
      plan.left_out.push_back(*partial);
      continue;
    }
    if ((options_.limit && taken_ >= *options_.limit) || !filter_.wants(chunk[row], key)) {
      ++plan.filtered;
      continue;
    }
    conversion_.fields_of(reader_.index(), std::span(batch.items).subspan(first, item - first),
                          fields);
    if (fields.empty() && !write_.empty_samples) {
      plan.left_out.push_back({"", {}, key, "", "has no field that could be stored"});
      continue;
    }
    try {
      datasets[split_of(key, options_)]->add(chunk[row], write_.size_of_sample(key, fields));
      ++taken_;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      plan.left_out.push_back({"", {}, key, "", error.what()});
    }
  }
}

Error nothing_to_pack(const Plan& plan) {
  if (plan.filtered > 0) {
    return {ErrorKind::usage,
            fmt::format("no sample is left to pack: --include, --exclude and --limit keep out all "
                        "{}",
                        plan.filtered)};
  }
  if (plan.left_out.empty()) return {ErrorKind::not_found, "no sample to pack in the source"};
  return {ErrorKind::corrupt,
          "no sample of the source can be read: " + plan.left_out.front().message()};
}

/// Whether only their contents tell what arrays consist of.
bool lacks_types(const Schema& schema) {
  return std::any_of(schema.fields.begin(), schema.fields.end(), [](const Field& field) {
    const bool stored = field.encoding != Encoding::none && !is_elements(field.encoding);
    const bool numeric = field.type == FieldType::number || field.type == FieldType::array;
    return stored && numeric &&
           (field.encoding == Encoding::decimal || field.dtype == DType::unknown ||
            (field.type == FieldType::array && !field.shape));
  });
}

/// Segments of a full index that the source has: those of shards that are as they were need no
/// scan, and what is then read is compared with their checksums. Others are made anew.
void take_over_segments(const std::string& source_index, const std::string& directory) {
  try {
    const Manifest manifest = Manifest::read(source_index + "/" + kManifestName);
    if (manifest.depth != Depth::full || manifest.faults != 0) return;
    make_directories(directory);
    for (const SegmentEntry& segment : manifest.segments) {
      const fs::path from = fs::path(source_index) / segment.file;
      if (!fs::is_regular_file(fs::symlink_status(from))) return;  // a link may lead anywhere
      fs::copy_file(from, fs::path(directory) / segment.file, fs::copy_options::skip_existing);
    }
  } catch (const std::exception&) {  // none there, or damaged: the source is scanned
  }
}

void refuse_loss(const Conversion& conversion, const PackOptions& options) {
  if (conversion.lossy().empty()) return;
  const bool all = conversion.wanted().empty();
  if (options.lossy && !all) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("{}\nnothing was written: {}", fmt::join(conversion.lossy(), "\n"),
                          all ? "choose another format"
                              : "choose another format, or add --lossy to leave that out"));
}

}  // namespace

Conversion conversion_of(const Index& source, const WriteFormat& write,
                         const PackOptions& options) {
  return {source, options.to, write, options.compress};
}

uint64_t fingerprint_of(const Index& source, bool with_times) {
  uint64_t print = source.size();
  for (uint32_t s = 0; s < source.manifest().segments.size(); ++s) {
    const Segment& segment = source.segment(s);
    for (uint32_t i = 0; i < segment.shard_count() && with_times; ++i) {
      print = mix64(print ^ static_cast<uint64_t>(segment.shard(i).modified_ns));
    }
    for (uint64_t i = 0; i < segment.samples(); ++i) {
      print = mix64(print ^ hash64(segment.key(i)));
      for (uint32_t f = 0; f < segment.fields().size(); ++f) {
        const Located located = segment.locate(i, f);
        const Extent& extent = located.extent;
        if (!located.present) continue;
        print = mix64(print ^ (extent.length + f));
        print = mix64(print ^ hash64(segment.fields()[f].suffixes[located.suffix]));
        if (extent.container == Container::absent) print = mix64(print ^ located.scalar);
        if (extent.container == Container::here) {
          std::string bytes(extent.length, '\0');
          segment.read_here(extent.offset, std::as_writable_bytes(std::span(bytes)));
          print = mix64(print ^ hash64(bytes));
        }
        // The offset of a whole file is its time of modification.
        if (with_times || extent.container != Container::file) {
          print = mix64(print ^ extent.offset);
        }
      }
    }
  }
  return print;
}

Json options_of(const std::string& source_name, const std::string& inner,
                const PackOptions& options) {
  Json json{{"source", name_to_json(source_name)},
            {"to", options.to},
            {"shard_size", options.shard_size}};
  json["shuffle"] = options.shuffle ? Json(*options.shuffle) : Json();
  json["limit"] = options.limit ? Json(*options.limit) : Json();
  json["split"] = Json::object();
  for (const auto& [name, share] : options.split) json["split"][name] = share;
  const auto names = [](const std::vector<std::string>& patterns) {
    Json list = Json::array();
    for (const std::string& pattern : patterns) list.push_back(name_to_json(pattern));
    return list;
  };
  json["include"] = names(options.include);
  json["exclude"] = names(options.exclude);
  json["list"] = name_to_json(fs::path(options.list).filename().string());
  if (!inner.empty()) json["inner"] = name_to_json(inner);
  if (options.lossy) json["lossy"] = true;
  if (!options.compress.empty()) json["compress"] = options.compress;
  return json;
}

Plan make_plan(const Source& source, const Detected& detected, const WriteFormat& write,
               const std::string& source_name, const std::string& source_index,
               const std::string& directory, const PackOptions& options) {
  IndexOptions scan;
  scan.views = true;
  scan.earlier = source_index;
  scan.jobs = options.jobs;
  scan.progress = options.progress;
  scan.verify_stated = true;
  if (!source_index.empty()) take_over_segments(source_index, directory + "/source");
  IndexResult scanned = build_index_in(source, detected, directory + "/source", scan);
  if (write.typed && lacks_types(Index(directory + "/source").schema())) {
    scan.depth = Depth::full;
    scanned = build_index_in(source, detected, directory + "/source", scan);
  }

  Plan plan;
  plan.options = options_of(source_name, part_name(source.split, source.inner), options);
  plan.source_format = scanned.format;
  plan.hidden = scanned.hidden;
  plan.unlisted = scanned.unlisted;
  plan.unused = scanned.unused;
  plan.left_out = scanned.faults;

  const auto index = std::make_shared<Index>(directory + "/source");
  refuse_other_orders(*index, source.file.empty() ? source.root : source.root + "/" + source.file,
                      write, options);
  ReaderOptions reading;
  reading.fetch_inline = true;
  const Reader reader(index, reading);
  // The plan names samples of the source: it is for those who may read them.
  const Access access = readers_of(directory + "/source", index->manifest()).at_most();
  set_access(directory, access);
  std::vector<std::unique_ptr<DatasetPlanner>> planners;
  const size_t count = std::max<size_t>(1, options.split.size());
  for (size_t i = 0; i < count; ++i) {
    planners.push_back(std::make_unique<DatasetPlanner>(Plan::order_path(directory, i),
                                                        options.shard_size, access));
  }
  const Conversion conversion = conversion_of(*index, write, options);
  plan.lossy = conversion.lossy();
  refuse_loss(conversion, options);
  plan.endings = endings_of(write, conversion.out());
  Planner planner(reader, write, conversion, options);
  planner.run(planners, plan);
  if (planner.taken() == 0) throw nothing_to_pack(plan);
  plan.fingerprint = fingerprint_of(*index, false);

  for (size_t i = 0; i < count; ++i) {
    planners[i]->finish();
    PlannedDataset dataset;
    std::string name = source_name;
    if (!options.split.empty()) name = dataset.directory = options.split[i].first;
    dataset.shards = std::move(planners[i]->shards);
    for (size_t k = 0; k < dataset.shards.size(); ++k) {
      dataset.shards[k].name = write.shard_name(name, k, dataset.shards.size());
    }
    plan.datasets.push_back(std::move(dataset));
  }
  plan.write(directory, access);
  return plan;
}

}  // namespace stoker
