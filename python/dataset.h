// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataset/index.h"
#include "dataset/reader.h"
#include "fetched.h"

namespace stoker::python {

/// Sample numbers first, first + step, …: what a Python range is.
struct Range {
  uint64_t first = 0;
  int64_t step = 1;
  uint64_t count = 0;

  uint64_t operator[](uint64_t i) const { return first + i * static_cast<uint64_t>(step); }
  /// Those from number `begin` on, at most `most` of them.
  std::vector<uint64_t> part(uint64_t begin, uint64_t most) const;
};

/// What stoker.Dataset is made of: an index, and a reader of what it describes. Takes absolute
/// sample numbers; views, negative numbers and the rest are Python's business.
class Dataset {
 public:
  Dataset(std::shared_ptr<const Index> index, DatasetPaths paths, bool verify,
          std::optional<StagedRoot> staged);

  const Index& index() const { return *index_; }
  const std::shared_ptr<const Index>& shared_index() const { return index_; }
  const DatasetPaths& paths() const { return paths_; }
  /// A copy of its shards that is nearer.
  const std::optional<StagedRoot>& staged() const { return staged_; }
  const Reader& reader() const { return reader_; }

  std::vector<uint32_t> field_numbers(const std::vector<std::string>& names) const;
  /// Samples that are located and have memory, but are not fetched yet. REQUIRES: the GIL.
  std::unique_ptr<Fetched> prepare(Batch batch) const;
  nanobind::dict read(uint64_t sample) const;
  nanobind::list read_many(const std::vector<uint64_t>& samples,
                           const std::vector<std::string>& fields) const;

 private:
  std::shared_ptr<const Index> index_;
  DatasetPaths paths_;
  std::optional<StagedRoot> staged_;
  Reader reader_;
  std::vector<nanobind::object> names_;
};

}  // namespace stoker::python
