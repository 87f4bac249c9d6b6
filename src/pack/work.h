// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"
#include "dataset/index.h"
#include "format/format.h"
#include "pack/destination.h"
#include "pack/pack.h"

namespace stoker {

/// What is to be packed, where to, and how.
struct Work {
  const Format* format;
  DatasetPaths paths;
  Destination destination;
  Source source;
  std::string name;
  Json wanted;
};

/// Throws Error(usage) where that cannot be.
Work work_of(const std::string& source_path, const std::string& destination_path,
             const PackOptions& options);

}  // namespace stoker
