// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/check.h"
#include "dataset/index.h"

namespace stoker {

/// What a dataset is, from its index alone: counts, sizes, samples per class.
void describe(const Index& index, CheckResult& result);

}  // namespace stoker
