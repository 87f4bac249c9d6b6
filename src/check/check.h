// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dataset/scan.h"
#include "dataset/schema.h"
#include "index/row_indexes.h"

namespace stoker {

struct CheckOptions {
  bool quick = false;        // structure alone: sizes, headers, names; no payload
  std::string compare;       // path of another dataset; empty: none
  bool ignore_keys = false;  // compare the multisets of contents
  unsigned jobs = 0;
  std::string list;
  Progress* progress = nullptr;
};

struct ClassCount {
  std::string name;  // of the class, or its number
  uint64_t samples = 0;
};

/// Smallest, median and largest size of a field's stored bytes.
struct FieldSizes {
  uint64_t total = 0, smallest = 0, median = 0, largest = 0;
};

struct Comparison {
  bool equal = false;
  uint64_t compared = 0;
  uint64_t only_here = 0, only_there = 0, different = 0;
  std::vector<std::string> examples;  // the first few differences, in words; else why not equal
};

struct CheckResult {
  std::string path, format;
  uint64_t samples = 0, shards = 0, bytes = 0;
  std::optional<Depth> index_depth;  // of the index that was there; nothing: none
  std::string index_directory;
  Schema schema;
  std::vector<FieldSizes> field_sizes;  // as schema.fields
  std::vector<ClassCount> classes;      // in the order of the labels
  std::vector<Fault> faults;
  uint64_t fault_count = 0;  // faults beyond the first thousand are only counted
  uint64_t hidden = 0;
  uint64_t unlisted = 0;            // files left alone: a list does not name them, or no shards
  std::vector<std::string> unused;  // what the shards hold and is not read; see Layout
  uint64_t left_out = 0;            // by `pack`, when it wrote the dataset
  RowIndexSummary row_index;        // of the index that was there
  uint64_t verified_bytes = 0;      // read and found right
  bool checksums_compared = false;
  std::optional<Comparison> comparison;
  double seconds = 0;

  bool good() const { return fault_count == 0 && (!comparison || comparison->equal); }
};

CheckResult check(const std::string& path, const CheckOptions& options);

}  // namespace stoker
