// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "stage/stage.h"

namespace stoker {

/// The copy of a dataset that cannot be seen from this node, where a job before has brought it to
/// the place: the newest that is complete. Nothing where the dataset is there, no place was named,
/// or there is no copy. Throws Error(io) where files of the copy have been deleted since.
std::optional<StageResult> copy_of_unseen(const std::string& dataset, const StageOptions& options);

}  // namespace stoker
