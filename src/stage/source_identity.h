// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/index.h"
#include "stage/shard_copy.h"

namespace stoker {

/// The real path of a dataset, with ::INNER where it is a part of a file.
std::string whole_path(const DatasetPaths& paths);

/// "train-1f0c…": for people, and the hash for what it is.
std::string copy_name(const DatasetPaths& paths, uint64_t identity);

/// The same for the same shards of the same source.
uint64_t identity_of(const DatasetPaths& paths, const std::vector<ShardToStage>& shards);

/// Whether the samples do not lie in shards that can be copied: each in files of its own, or behind
/// a compression that is read from the beginning.
bool needs_packing(const DatasetPaths& paths);

}  // namespace stoker
