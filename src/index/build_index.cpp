// SPDX-License-Identifier: Apache-2.0
#include "index/build_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/text.h"
#include "base/transient.h"
#include "dataset/index_trust.h"
#include "dataset/recorded_faults.h"
#include "dataset/splits.h"
#include "index/segment_builder.h"
#include "os/directory_lock.h"
#include "os/output_file.h"
#include "os/readers.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

/// Read permission for whoever may read the data, whatever the umask says.
uint32_t mode_like(FileSystem& file_system, const std::string& root) {
  const std::optional<FileInfo> info = file_system.info(root, true);
  return info ? info->mode & 0044U : 0;
}

uint32_t directory_mode(uint32_t file_mode) { return file_mode | (file_mode & 0044U) >> 2; }

/// What the segments have in common: schema and depth. Throws where two of them disagree.
void merge_segments(const std::string& directory, Manifest& manifest, std::vector<Fault>& faults) {
  Schema& schema = manifest.schema;
  manifest.depth = Depth::full;
  for (const SegmentEntry& entry : manifest.segments) {
    const Segment segment((fs::path(directory) / entry.file).string());
    manifest.depth = std::min(manifest.depth, segment.depth());
    faults.insert(faults.end(), segment.faults().begin(), segment.faults().end());
    for (const Field& field : segment.fields()) {
      const std::optional<uint32_t> known = schema.find(field.name);
      if (!known) {
        schema.fields.push_back(field);
      } else if (!merge_field(schema.fields[*known], field)) {
        const Field& other = schema.fields[*known];
        throw Error(
            ErrorKind::unsupported,
            fmt::format("field {} is {} ({}) in {} but {} ({}) before: these are two "
                        "datasets, index them apart",
                        printable(field.name), name_of(field.type), name_of(field.encoding),
                        printable(entry.file), name_of(other.type), name_of(other.encoding)));
      }
    }
  }
}

/// What an earlier manifest knew and a scan cannot find: class names, which `pack` writes there,
/// and that it was `pack`, where nothing has changed since.
void keep_earlier(const std::string& earlier_index, bool all_reused, Manifest& manifest) {
  try {
    const Manifest earlier = Manifest::read((fs::path(earlier_index) / kManifestName).string());
    if (manifest.schema.classes.empty() && manifest.schema.find(kLabelField)) {
      manifest.schema.classes = earlier.schema.classes;
    }
    if (all_reused) manifest.origin = earlier.origin;
  } catch (const Error&) {
    return;  // none there, or damaged
  }
}

/// Segments and temporary files that no manifest speaks of any more.
void remove_stale(const std::string& directory, const Manifest& manifest) {
  std::set<std::string> wanted;
  for (const SegmentEntry& segment : manifest.segments) {
    wanted.insert(segment.file);
    wanted.insert(row_index_path(segment.file));
  }
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name.ends_with(".seg") || name.ends_with(".rows");
    const bool stale = (ours && !wanted.contains(name)) || name.ends_with(".stoker-tmp");
    std::error_code ignored;
    if (stale) fs::remove(entry.path(), ignored);
  }
}

/// What came out of one part.
struct BuiltPart {
  std::vector<SegmentEntry> entries;
  uint64_t reused = 0;
  uint64_t hidden = 0;
};

BuiltPart build_part(const Source& source, const Detected& detected, size_t number,
                     const std::string& directory, const std::set<std::string>& there,
                     const IndexOptions& options, const RowIndexWork* rows, unsigned threads,
                     uint32_t mode) {
  const Part& part = detected.layout.parts[number];
  const std::string name =
      part.shard.empty() ? fmt::format("files-{:06}", number) : segment_name(part.shard);
  if (auto known = reusable_segments(source, part, directory, there, name, options.depth, mode)) {
    const uint64_t count = known->size();
    for (const SegmentEntry& entry : *known) {
      if (rows != nullptr) make_row_indexes(*rows, entry, {entry.samples, entry.bytes});
    }
    return {std::move(*known), count, 0};
  }
  SegmentBuilder builder(source, directory, name, there, options, threads, mode, rows);
  builder.takes_empty_rows = detected.layout.table;
  try {
    detected.format->scan(source, detected.layout, part, builder);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    Fault fault{part.shard, {}, "", "", error.what()};
    fault.transient = is_transient(error.os_error());
    builder.fault(std::move(fault));
  }
  builder.finish();
  return {std::move(builder.entries), builder.reused, builder.hidden_names};
}

/// Makes the directory of an index and sees that it can be written; false where it cannot.
bool prepare_directory(const std::string& directory, uint32_t add_mode) {
  try {
    make_directories(directory, directory_mode(add_mode));
    std::string probe = directory + "/.probe-XXXXXX";  // another one for each process
    const int descriptor = ::mkostemp(probe.data(), O_CLOEXEC);
    if (descriptor < 0) throw system_error(directory, "cannot be written", errno);
    ::unlink(probe.c_str());
    ::close(descriptor);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::permission) return false;
    throw;
  }
}

}  // namespace

Source source_at(const DatasetPaths& paths, const std::string& list, FileSystem* file_system) {
  Source source{paths.root, paths.file, list, file_system, paths.inner};
  if (file_system == nullptr) {
    source.own_file_system = file_system_beneath(paths.root);
    source.file_system = source.own_file_system.get();
  }
  source.split = paths.split;
  if (paths.split.empty() || paths.split == kAllSplits) return source;
  for (const Split& split : find_splits(*source.file_system, source.root)) {
    if (split.name == paths.split) continue;
    source.of_other_splits.insert(split.files.begin(), split.files.end());
  }
  return source;
}

Readers readers_of(const std::string& directory, const Manifest& manifest) {
  Readers readers;
  for (const SegmentEntry& entry : manifest.segments) readers.add(directory + "/" + entry.file);
  return readers;
}

IndexResult build_index_in(const Source& source, const Detected& detected,
                           const std::string& directory, const IndexOptions& options) {
  const std::vector<Part>& parts = detected.layout.parts;
  const uint32_t add_mode = mode_like(*source.file_system, source.root);
  make_directories(directory, directory_mode(add_mode));
  const unsigned jobs = options.jobs != 0 ? options.jobs : usable_cores();
  if (options.progress != nullptr) {
    uint64_t bytes = 0;
    for (const Part& part : parts) {
      if (part.shard.empty()) continue;
      const auto info = source.file_system->info(source.root + "/" + part.shard, true);
      if (info) bytes += info->size;
    }
    options.progress->begin(options.depth == Depth::full ? "reading" : "scanning",
                            detected.layout.files.files.size(),
                            options.depth == Depth::full ? bytes : 0);
  }

  const std::set<std::string> there = names_in(directory);
  std::vector<BuiltPart> built(parts.size());
  // Threads that have no part of their own help within one.
  const auto inner = static_cast<unsigned>(jobs / std::max<size_t>(1, parts.size()));
  ThreadShares shares(jobs, parts.size());
  const RowIndexWork rows{directory, {source.root},    options.row_index.value_or(0),
                          &shares,   options.progress, source.file_system};
  const bool with_rows = options.depth == Depth::full && options.row_index;
  parallel_for(parts.size(), jobs, [&](size_t i) {
    built[i] = build_part(source, detected, i, directory, there, options,
                          with_rows ? &rows : nullptr, std::max(1U, inner), add_mode);
    shares.leave();
  });

  IndexResult result;
  result.directory = directory;
  result.format = detected.format->name;
  result.faults = detected.layout.faults;
  result.hidden = detected.layout.hidden;
  result.unlisted = detected.layout.unlisted;
  result.unused = detected.layout.unused;
  Manifest manifest;
  manifest.unused = detected.layout.unused;
  manifest.format = detected.format->name;
  manifest.listed = !source.list.empty();
  for (const BuiltPart& part : built) {
    result.segments_reused += part.reused;
    result.hidden += part.hidden;
    manifest.segments.insert(manifest.segments.end(), part.entries.begin(), part.entries.end());
  }
  constexpr size_t kMostNamed = 1000;
  const std::vector<Fault>& missing = detected.layout.faults;
  manifest.missing.assign(missing.begin(), missing.begin() + static_cast<ptrdiff_t>(std::min(
                                                                 missing.size(), kMostNamed)));
  manifest.schema.classes = detected.layout.classes;
  merge_segments(directory, manifest, result.faults);
  keep_earlier(options.earlier.empty() ? directory : options.earlier,
               result.segments_reused == manifest.segments.size(), manifest);
  manifest.faults = result.faults.size();
  const Access access = readers_of(directory, manifest).like(add_mode);
  manifest.write((fs::path(directory) / kManifestName).string(), access);
  set_access(directory, access);
  remove_stale(directory, manifest);
  result.depth = manifest.depth;
  result.samples = manifest.samples();
  result.shards = manifest.shards();
  result.bytes = manifest.bytes();
  result.row_index = row_index_summary(directory, manifest.segments);
  return result;
}

namespace {

IndexResult describe_index(const std::string& directory, bool in_cache) {
  const Manifest manifest = Manifest::read((fs::path(directory) / kManifestName).string());
  IndexResult result;
  result.directory = directory;
  result.format = manifest.format;
  result.depth = manifest.depth;
  result.samples = manifest.samples();
  result.shards = manifest.shards();
  result.bytes = manifest.bytes();
  result.unused = manifest.unused;
  result.in_cache = in_cache;
  return result;
}

}  // namespace

IndexResult build_index(const std::string& path, const IndexOptions& options) {
  const DatasetPaths paths = DatasetPaths::of(path);
  paths.refuse_unfinished();
  return build_index_at(paths, options);
}

IndexResult build_index_at(const DatasetPaths& paths, const IndexOptions& options) {
  const Source source = source_at(paths, options.list, options.file_system);
  const Detected detected = detect_format(source);
  for (const Part& part : detected.layout.parts) {
    if (part.compression == Compression::none) continue;
    const std::string_view why =
        part.compression == Compression::fortran
            ? "has an array in Fortran order, so the elements of a sample lie far apart"
            : "is compressed as a whole, so no sample can be read without all before it";
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: {}: run stoker pack {} DESTINATION", printable(part.shard), why,
                            printable(paths.path)));
  }
  const uint32_t add_mode = mode_like(*source.file_system, source.root);
  // torchvision takes every directory in a folder of classes for one, `.stoker` too: there it is
  // put beside the data only when asked to.
  const bool disturbs = !detected.layout.classes.empty() && detected.layout.list.empty() &&
                        options.where == IndexWhere::automatic;
  bool in_cache = options.where == IndexWhere::cache || disturbs;
  if (!in_cache && (!is_trusted_index(paths.root, paths.beside, IndexUse::write) ||
                    !prepare_directory(paths.beside, add_mode))) {
    if (options.where == IndexWhere::beside) {
      throw Error(ErrorKind::permission,
                  fmt::format("{}: cannot be written: use --where cache", printable(paths.beside)));
    }
    in_cache = true;
  }
  const std::string directory = in_cache ? paths.cache : paths.beside;
  if (in_cache) make_own_cache(directory);
  make_directories(directory, directory_mode(add_mode));
  const DirectoryLock lock(directory, DirectoryLock::Wait::yes);
  if (options.unless_present && fs::exists(fs::path(directory) / kManifestName)) {
    return describe_index(directory, in_cache);  // another process made it meanwhile
  }
  IndexResult result = build_index_in(source, detected, directory, options);
  result.in_cache = in_cache;
  return result;
}

namespace {

bool can_be_read(const std::string& path) {
  try {
    std::byte first{};
    (void)real_file_system().open(path)->read_at(0, {&first, 1});
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Whether an index was made when nothing could be read, or when reading failed for a moment that
/// is over. One with checksums is not replaced by one without, nor that of somebody else.
bool worth_another_try(const std::string& root, const std::string& directory) {
  const Index index(directory);
  if (index.manifest().faults == 0) return false;
  if (index.size() == 0) return true;
  if (index.manifest().depth == Depth::full || ::access(directory.c_str(), W_OK) != 0) return false;
  const std::vector<Fault> faults = recorded_faults(index);
  return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) {
    return fault.transient && !fault.shard.empty() && can_be_read(root + "/" + fault.shard);
  });
}

}  // namespace

OpenedDataset open_dataset(const std::string& path, const IndexOptions& options) {
  OpenedDataset opened;
  opened.paths = DatasetPaths::of(path);
  opened.paths.refuse_unfinished();
  // Which samples there are depends on the list: its index is another one, and disturbs none.
  if (!options.list.empty()) opened.paths.use_list(options.list);
  std::optional<std::string> directory = opened.paths.existing_index();
  const bool again = directory && worth_another_try(opened.paths.root, *directory);
  if (!directory || again) {
    IndexOptions building = options;
    building.unless_present = !again;
    if (!options.list.empty()) building.where = IndexWhere::cache;
    opened.result = build_index_at(opened.paths, building);
    opened.built = true;
    directory = opened.result.directory;
  }
  opened.index = std::make_shared<Index>(*directory);
  if (!opened.built && options.list.empty()) {
    opened.paths.refuse_merged(opened.index->manifest());
  }
  if (opened.index->size() > 0 || opened.index->manifest().faults == 0) return opened;
  const std::vector<Fault> faults = recorded_faults(*opened.index);
  throw Error(ErrorKind::corrupt, fmt::format("{}: not one sample could be read{}", printable(path),
                                              faults.empty() ? "" : ": " + faults[0].message()));
}

}  // namespace stoker
