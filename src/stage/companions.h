// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dataset/index.h"
#include "stage/patience.h"
#include "stage/shard_copy.h"
#include "stage/staged_copy.h"

namespace stoker {

/// Small files next to the shards by which other programs know the dataset, relative to its root:
/// dataset_info.json and state.json of Hugging Face, _metadata of Parquet, lists of classes.
std::vector<std::string> companions_of(const DatasetPaths& paths,
                                       const std::vector<ShardToStage>& shards);

/// Brings them into a copy, where they are missing or differ. What cannot be read is left out, and
/// `notify` is told.
void copy_companions(const DatasetPaths& paths, const std::vector<ShardToStage>& shards,
                     const StagedCopy& copy, const std::string& mark, const Notify& notify);

}  // namespace stoker
