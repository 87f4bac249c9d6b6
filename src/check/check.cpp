// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <span>

#include "base/error.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/text.h"
#include "check/compare.h"
#include "check/describe.h"
#include "check/faults.h"
#include "check/verify.h"
#include "dataset/reader.h"
#include "format/folder_walk.h"
#include "index/build_index.h"
#include "index/duplicates.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

/// One of the datasets that are looked at.
struct Subject {
  DatasetPaths paths;
  Source source;
  std::shared_ptr<const Index> own;  // the index that was there, unless a list was given
  Detected detected;                 // what lies there
  std::unique_ptr<ScratchDirectory> scratch;
  std::shared_ptr<const Index> index;  // its own, or one made for the occasion
  uint64_t lacking = 0;                // faults that stand for data which `index` does not take in

  Subject(const std::string& path, const std::string& list)
      : paths(DatasetPaths::of(path)), source(source_at(paths, list, nullptr)) {
    paths.refuse_unfinished();
    if (const auto directory = paths.existing_index(); directory && list.empty()) {
      own = std::make_shared<Index>(*directory);
    }
  }

  void detect() {
    try {
      detected = detect_format(source);
    } catch (const Error& error) {
      // `pack --split` may leave a part without samples, and so without shards.
      const bool none = packed() && own->manifest().segments.empty();
      const Format* format = none ? find_format(own->manifest().format) : nullptr;
      if (error.kind() != ErrorKind::not_found || format == nullptr) throw;
      detected = {format, {}};
    }
  }

  bool has_full_index() const { return own && own->manifest().depth == Depth::full; }
  bool packed() const { return own && !own->manifest().origin.empty(); }
  bool listed() const { return own && own->manifest().listed; }

  IndexResult scan(const Detected& samples, Depth depth, const CheckOptions& options) {
    scratch = std::make_unique<ScratchDirectory>();
    IndexOptions scanning;
    scanning.depth = depth;
    scanning.jobs = options.jobs;
    scanning.progress = options.progress;
    scanning.earlier = paths.existing_index().value_or("");
    IndexResult result = build_index_in(source, samples, scratch->path(), scanning);
    index = std::make_shared<Index>(scratch->path());
    return result;
  }

  Reader reader() const {
    ReaderOptions reading;
    reading.roots = {source.root};
    reading.threads = 1;
    reading.fetch_inline = true;  // the bytes count, not what an index says about them
    return {index, reading};
  }
};

/// Names the shards and files that lie there and that the dataset's own index does not know, less
/// those which `named` speaks of already. Returns how many the list that it was made with left out.
uint64_t add_unknown(const Subject& subject, std::span<const Known> known_files,
                     std::span<const Fault> named, Faults& faults) {
  std::set<std::string> known = known_shards(*subject.own);
  for (const Fault& fault : named) known.insert(fault.shard);
  const std::string cause =
      fmt::format("is not in the index: run stoker index{}", subject.listed() ? " --list" : "");
  const auto unknown = [&](std::string path) {
    if (!known.contains(path)) faults.add({std::move(path), {}, "", "", cause});
  };
  for (const Part& part : subject.detected.layout.parts) {
    if (!part.shard.empty()) unknown(part.shard);
  }
  uint64_t unlisted = 0;
  const FileNames& files = subject.detected.layout.files;
  for (size_t i = 0; i < files.files.size(); ++i) {
    if (known_files[i] == Known::yes) continue;
    if (known_files[i] == Known::no && subject.listed()) {
      ++unlisted;
      continue;
    }
    unknown(join_path(files.directories[files.files[i].directory], files.name(i)));
  }
  return unlisted;
}

std::vector<Fault> recorded_faults(const Index& index) {
  std::vector<Fault> recorded;
  for (uint32_t s = 0; s < index.manifest().segments.size(); ++s) {
    const std::vector<Fault>& some = index.segment(s).faults();
    recorded.insert(recorded.end(), some.begin(), some.end());
  }
  return recorded;
}

/// Makes the dataset's own index the one that is looked at, and names what it lacks: what could not
/// be taken in when it was made, and what has come since. Returns how many files a list left out.
uint64_t trust_own_index(Subject& subject, unsigned jobs, Faults& faults) {
  subject.index = subject.own;
  const Layout& layout = subject.detected.layout;
  if (!subject.listed()) faults.add(layout.faults);  // else of files that are no samples
  // What `pack` recorded lies in its source, not here.
  std::vector<Fault> recorded;
  if (!subject.packed()) recorded = recorded_faults(*subject.own);
  faults.add(recorded);
  const uint64_t unlisted =
      add_unknown(subject, known_files(*subject.own, layout.files, jobs), recorded, faults);
  subject.lacking = faults.count();
  return unlisted;
}

uint64_t left_out_by_pack(const Index& index) {
  return recorded_faults(index).size() + parse_json(index.manifest().origin).at("left_out").size();
}

VerifyOptions verifying(const Subject& subject, unsigned jobs, Progress* progress) {
  return {subject.source.file_system, subject.source.root, jobs, progress};
}

/// What a scan finds wrong with one shard, stated checksums included. Not that it would leave out
/// what lies beside: the index knows these samples, and their checksums have been compared.
std::vector<Fault> scan_shard(const Subject& subject, const std::string& shard,
                              const CheckOptions& options) {
  Detected alone{subject.detected.format, {}};
  alone.layout.fields = subject.detected.layout.fields;
  for (const Part& part : subject.detected.layout.parts) {
    if (part.shard == shard) alone.layout.parts = {part};
  }
  if (alone.layout.parts.empty()) return {};
  IndexOptions scanning;
  scanning.verify_stated = true;
  scanning.jobs = options.jobs;
  scanning.progress = options.progress;
  const ScratchDirectory scratch;
  try {
    std::vector<Fault> faults =
        build_index_in(subject.source, alone, scratch.path(), scanning).faults;
    std::erase_if(faults, [](const Fault& fault) { return fault.cause.starts_with("left out: "); });
    return faults;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    return {{shard, {}, "", "", error.what()}};
  }
}

/// Bytes between samples have changed: names what a scan of these shards finds wrong that was not
/// there when they were indexed, or the change alone where it finds nothing.
void name_changes(const Subject& subject, std::span<const Fault> changes,
                  const CheckOptions& options, Faults& faults) {
  if (changes.empty()) return;
  const std::vector<Fault> recorded = recorded_faults(*subject.own);
  for (size_t i = 0; i < changes.size();) {
    const std::string& shard = changes[i].shard;
    std::vector<Fault> found = scan_shard(subject, shard, options);
    std::erase_if(found, [&](const Fault& fault) {
      return std::find(recorded.begin(), recorded.end(), fault) != recorded.end();
    });
    faults.add(found);
    for (; i < changes.size() && changes[i].shard == shard; ++i) {
      if (found.empty()) faults.add(changes[i]);
    }
  }
}

/// Compares every byte with the checksums of the dataset's own index.
void verify_all(Subject& subject, const CheckOptions& options, unsigned jobs, CheckResult& result,
                Faults& faults) {
  result.unlisted += trust_own_index(subject, jobs, faults);
  options.progress->begin("verifying", subject.own->size(), subject.own->manifest().bytes());
  const Verified verified =
      verify_contents(*subject.own, verifying(subject, jobs, options.progress), faults);
  result.verified_bytes = verified.bytes;
  result.checksums_compared = true;
  if (subject.packed()) result.left_out = left_out_by_pack(*subject.own);
  name_changes(subject, verified.between, options, faults);
}

/// The files that an index made with a list speaks of, and others of their samples.
Detected known_samples(const Detected& detected, std::span<const Known> known) {
  Detected kept = detected;
  kept.layout.faults.clear();  // of files that are no samples
  kept.layout.parts.clear();
  FileNames& files = kept.layout.files;
  files.files.clear();
  for (const Part& part : detected.layout.parts) {  // of whole samples
    Part& left = kept.layout.parts.emplace_back(part);
    left.first = files.files.size();
    for (size_t i = part.first; i < part.last; ++i) {
      if (known[i] != Known::no) files.files.push_back(detected.layout.files.files[i]);
    }
    left.last = files.files.size();
    if (left.first == left.last) kept.layout.parts.pop_back();
  }
  return kept;
}

/// Scans the dataset anew, and compares it with its own index where there is one.
void scan_anew(Subject& subject, const CheckOptions& options, unsigned jobs, CheckResult& result,
               Faults& faults) {
  const Detected& detected = subject.detected;
  std::vector<Known> known;
  if (subject.own) known = known_files(*subject.own, detected.layout.files, jobs);
  Detected of_list;
  if (subject.listed()) of_list = known_samples(detected, known);
  const IndexResult scanned = subject.scan(subject.listed() ? of_list : detected,
                                           options.quick ? Depth::structure : Depth::full, options);
  if (!options.quick) result.verified_bytes = options.progress->bytes;
  faults.add(scanned.faults);
  if (subject.own) result.unlisted += add_unknown(subject, known, scanned.faults, faults);
  subject.lacking = faults.count();
  if (!subject.own) return;
  verify_identity(*subject.own, verifying(subject, jobs, nullptr), faults);
  if (subject.has_full_index() || subject.listed()) subject.index = subject.own;  // it knows more
}

void detect_first(Subject& subject, const CheckOptions& options) {
  try {
    subject.detect();
  } catch (const Error& error) {
    if (options.list.empty() || options.compare.empty()) throw;
    throw Error(
        error.kind(),
        fmt::format("{} (the list is for {}, not for {}: name the dataset it belongs to "
                    "first, and the other with --compare)",
                    error.what(), printable(subject.paths.path), printable(options.compare)));
  }
}

/// Looks at the dataset with the help of its own index, where that can tell, or of a new scan.
void inspect(Subject& subject, const CheckOptions& options, unsigned jobs, CheckResult& result,
             Faults& faults) {
  detect_first(subject, options);
  result.hidden = subject.detected.layout.hidden;
  result.unlisted = subject.detected.layout.unlisted;
  result.unused = subject.detected.layout.unused;
  if (subject.own) {
    result.index_depth = subject.own->manifest().depth;
    result.index_directory = subject.own->directory();
  }
  if (subject.has_full_index() && !options.quick) {
    verify_all(subject, options, jobs, result, faults);
  } else {
    scan_anew(subject, options, jobs, result, faults);
  }
  for (const DuplicateKey& twice : find_duplicates(*subject.index)) {
    faults.add(duplicate_fault(*subject.index, twice));
  }
}

/// The same for the dataset that is compared with; its bytes are read by the comparison.
void inspect_other(Subject& other, const CheckOptions& options, unsigned jobs, Faults& faults) {
  other.detect();
  if (other.own) {
    trust_own_index(other, jobs, faults);
    verify_identity(*other.own, verifying(other, jobs, nullptr), faults);
  } else {
    faults.add(other.scan(other.detected, Depth::structure, options).faults);
    other.lacking = faults.count();
  }
}

Comparison compare(const Subject& subject, const CheckOptions& options, unsigned jobs,
                   Faults& faults) {
  Subject other(options.compare, "");
  Faults theirs;
  inspect_other(other, options, jobs, theirs);
  std::string directory = options.compare;
  if (!other.paths.file.empty()) directory = std::filesystem::path(directory).parent_path();
  faults.add(theirs, directory);
  Comparison result = compare_datasets(subject.reader(), other.reader(), options.ignore_keys, jobs,
                                       options.progress);
  const uint64_t lacking = subject.lacking + other.lacking;
  if (result.equal && lacking > 0) {
    result.equal = false;
    result.examples.push_back(fmt::format(
        "{}: what cannot be read, or is not in the index, was not compared",
        lacking == 1 ? "there is a fault" : fmt::format("there are {} faults", lacking)));
  }
  return result;
}

}  // namespace

CheckResult check(const std::string& path, const CheckOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Progress own_progress;
  CheckOptions checking = options;
  if (checking.progress == nullptr) checking.progress = &own_progress;
  const unsigned jobs = checking.jobs != 0 ? checking.jobs : usable_cores();
  CheckResult result;
  result.path = path;
  Faults faults;
  Subject subject(path, checking.list);
  inspect(subject, checking, jobs, result, faults);
  describe(*subject.index, result);
  if (subject.own) {
    verify_row_indexes(*subject.own, verifying(subject, jobs, nullptr), !checking.quick, faults);
    result.row_index =
        row_index_summary(subject.own->directory(), subject.own->manifest().segments);
  }
  if (!checking.compare.empty()) result.comparison = compare(subject, checking, jobs, faults);
  result.fault_count = faults.count();
  result.faults = faults.take();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace stoker
