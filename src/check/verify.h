// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/progress.h"
#include "check/faults.h"
#include "dataset/index.h"
#include "format/format.h"
#include "os/file_system.h"

namespace stoker {

struct VerifyOptions {
  FileSystem* file_system = nullptr;
  std::string root;
  unsigned jobs = 1;
  Progress* progress = nullptr;
};

struct Verified {
  uint64_t bytes = 0;  // that were read
  /// A fault per stretch of a shard in which other bytes than those of samples have changed; what
  /// they mean, only the format can tell. In the order of the shards.
  std::vector<Fault> between;
};

/// Reads every byte that an index of full depth describes and compares all checksums. Faults of
/// samples and files go to `faults`.
Verified verify_contents(const Index& index, const VerifyOptions& options, Faults& faults);

/// Compares what is there with the shards that an index describes: size, and time of modification
/// where it was recorded and there are no checksums. Reads no data.
void verify_identity(const Index& index, const VerifyOptions& options, Faults& faults);

/// Looks whether the files with row indexes belong to their segments and are whole; with `contents`
/// reads all of them.
void verify_row_indexes(const Index& index, const VerifyOptions& options, bool contents,
                        Faults& faults);

/// How an index knows a file.
enum class Known : uint8_t {
  no,
  by_sample,  // other files of its sample are in the index
  yes,
};

/// By file that lies in a folder, in the order of a FolderTree. Takes a byte per file.
std::vector<Known> known_files(const Index& index, const FileNames& files, unsigned jobs);

/// Paths of the shards that an index describes.
std::set<std::string> known_shards(const Index& index);

}  // namespace stoker
