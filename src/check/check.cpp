// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/parallel.h"
#include "check/compare.h"
#include "check/describe.h"
#include "check/faults.h"
#include "check/verify.h"
#include "dataset/reader.h"
#include "format/member_name.h"
#include "index/build_index.h"
#include "index/duplicates.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

/// One of the datasets that are looked at: its own index, or one made for the occasion.
struct Subject {
  DatasetPaths paths;
  Source source;
  std::unique_ptr<ScratchDirectory> scratch;
  std::shared_ptr<const Index> index;

  Subject(const std::string& path, const std::string& list)
      : paths(DatasetPaths::of(path)), source(source_at(paths, list, nullptr)) {
    paths.refuse_unfinished();
  }

  IndexResult scan(const Detected& detected, Depth depth, const CheckOptions& options) {
    scratch = std::make_unique<ScratchDirectory>();
    IndexOptions scanning;
    scanning.depth = depth;
    scanning.jobs = options.jobs;
    scanning.progress = options.progress;
    scanning.earlier = paths.existing_index().value_or("");
    IndexResult result = build_index_in(source, detected, scratch->path(), scanning);
    index = std::make_shared<Index>(scratch->path());
    return result;
  }

  Reader reader() const {
    ReaderOptions reading;
    reading.roots = {source.root};
    reading.threads = 1;
    return {index, reading};
  }
};

/// Shards that lie there and that the index does not know.
void add_unknown_shards(const Index& index, const Layout& layout, Faults& faults) {
  std::set<std::string> known;
  for (uint32_t s = 0; s < index.manifest().segments.size(); ++s) {
    const Segment& segment = index.segment(s);
    for (uint32_t i = 0; i < segment.shard_count(); ++i) known.insert(segment.shard(i).path);
  }
  for (const Part& part : layout.parts) {
    if (part.shard.empty() || known.contains(part.shard)) continue;
    faults.add({part.shard, 0, "", "", "is not in the index: run stoker index"});
  }
  const FileNames& files = layout.files;
  if (files.files.size() == index.manifest().shards()) return;
  for (size_t i = 0; i < files.files.size(); ++i) {
    const std::string& directory = files.directories[files.files[i].directory];
    const std::string path =
        (directory.empty() ? "" : directory + "/") + std::string(files.name(i));
    const auto name = split_member_name(path);
    if (!name || index.find(name->key)) continue;
    faults.add({path, 0, "", "", "is not in the index: run stoker index"});
  }
}

/// Looks at the dataset with the help of its own index, where that can tell, or of a new scan.
void inspect(Subject& subject, const CheckOptions& options, unsigned jobs, CheckResult& result,
             Faults& faults) {
  const VerifyOptions verifying{subject.source.file_system, subject.source.root, jobs,
                                options.progress};
  const Detected detected = detect_format(subject.source);
  result.hidden = detected.layout.hidden;
  std::shared_ptr<const Index> own;
  if (const auto directory = subject.paths.existing_index(); directory && options.list.empty()) {
    own = std::make_shared<Index>(*directory);
    result.index_depth = own->manifest().depth;
    result.index_directory = *directory;
    add_unknown_shards(*own, detected.layout, faults);
  }
  if (own && own->manifest().depth == Depth::full && !options.quick) {
    faults.add(detected.layout.faults);
    subject.index = own;
    if (options.progress != nullptr) {
      options.progress->begin("verifying", own->size(), own->manifest().bytes());
    }
    result.verified_bytes = verify_contents(*own, verifying, faults);
    result.checksums_compared = true;
    const bool packed = !own->manifest().origin.empty();
    for (uint32_t s = 0; s < own->manifest().segments.size(); ++s) {
      const std::vector<Fault>& recorded = own->segment(s).faults();
      if (packed) {
        result.left_out += recorded.size();
      } else {
        faults.add(recorded);
      }
    }
    if (packed) {
      result.left_out += Json::parse(own->manifest().origin).at("left_out").size();
    }
  } else {
    if (own) verify_identity(*own, verifying, faults);
    const IndexResult scanned =
        subject.scan(detected, options.quick ? Depth::structure : Depth::full, options);
    faults.add(scanned.faults);
    if (own && own->manifest().depth == Depth::full) subject.index = own;  // it knows more
    if (!options.quick && options.progress != nullptr) {
      result.verified_bytes = options.progress->bytes;
    }
  }
  for (const DuplicateKey& twice : find_duplicates(*subject.index)) {
    faults.add(duplicate_fault(*subject.index, twice));
  }
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
  if (!checking.compare.empty()) {
    Subject other(checking.compare, "");
    if (const auto directory = other.paths.existing_index()) {
      other.index = std::make_shared<Index>(*directory);
    } else {
      const IndexResult scanned =
          other.scan(detect_format(other.source), Depth::structure, checking);
      for (Fault fault : scanned.faults) {
        fault.shard = checking.compare + "/" + fault.shard;
        faults.add(std::move(fault));
      }
    }
    result.comparison = compare_datasets(subject.reader(), other.reader(), checking.ignore_keys,
                                         jobs, checking.progress);
  }
  result.fault_count = faults.count();
  result.faults = faults.take();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace stoker
