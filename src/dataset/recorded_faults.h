// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dataset/index.h"
#include "dataset/scan.h"

namespace stoker {

/// What was wrong with a dataset when its index was made: shards and samples that are not there,
/// are cut off, or could not be understood; fields that were left out; damaged samples. Not what
/// `pack` could not read, which is missing from its source, not from what it wrote.
std::vector<Fault> recorded_faults(const Index& index);

/// Whether samples, or a field of one, are missing because of it. Not for a field of the whole
/// dataset that is not read by design, nor for a sample that is in the index: that one fails when
/// it is read.
bool loses_data(const Fault& fault);

}  // namespace stoker
