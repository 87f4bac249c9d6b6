// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dataset/index.h"
#include "index/build_index.h"
#include "stage/shard_copy.h"

namespace stoker {

/// Whether the index at `directory` is the one at hand, byte for byte. Nothing of it is parsed: it
/// may be somebody else's.
bool is_same_index(const Index& index, const std::string& directory);

/// The checksum of a file, which may be somebody else's: links and what is no regular file are not
/// read. Throws Error where it cannot be read.
uint32_t checksum_of(const std::string& path, uint64_t expected_size, Progress* progress);

/// The checksum of all bytes of a shard by its ranges.
uint32_t checksum_of(const ShardToStage& shard);

struct FileToVerify {
  std::string path;
  uint64_t size = 0;
  uint32_t crc = 0;
};
/// Reads all of the files, and returns the numbers of those that differ or cannot be read.
std::vector<size_t> differing_files(const std::vector<FileToVerify>& files, unsigned jobs,
                                    Progress* progress);

/// How the copy in `directory` differs from the source, by the source's index that is open here:
/// its own says what its owner wants it to. Empty where it does not; all of it is read.
std::string difference_from(const OpenedDataset& source, const std::vector<ShardToStage>& shards,
                            const std::string& directory, unsigned jobs, Progress* progress);

/// Shards of the dataset in `directory` that are not what its own index has checksums of; the index
/// where that cannot be read.
std::vector<std::string> damaged_shards(const std::string& directory, unsigned jobs,
                                        Progress* progress);

}  // namespace stoker
