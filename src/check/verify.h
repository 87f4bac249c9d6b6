// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/progress.h"
#include "check/faults.h"
#include "dataset/index.h"
#include "os/file_system.h"

namespace stoker {

struct VerifyOptions {
  FileSystem* file_system = nullptr;
  std::string root;
  unsigned jobs = 1;
  Progress* progress = nullptr;
};

/// Reads every byte that an index of full depth describes and compares all checksums; returns how
/// many bytes were read.
uint64_t verify_contents(const Index& index, const VerifyOptions& options, Faults& faults);

/// Compares what is there with the shards that an index describes: size, and time of modification
/// where it was recorded and there are no checksums. Reads no data.
void verify_identity(const Index& index, const VerifyOptions& options, Faults& faults);

}  // namespace stoker
