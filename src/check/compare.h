// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/check.h"
#include "dataset/reader.h"

namespace stoker {

/// Reads every byte of both and compares sample by sample: matched by key, in any order, same
/// field names, equal values. Of several samples with one key only the first has a counterpart.
/// With `ignore_keys` the contents are compared as multisets. Holds a few MiB of each per thread,
/// or one sample where that is larger.
/// REQUIRES: both readers fetch what is held inline, so that the bytes are compared.
Comparison compare_datasets(const Reader& here, const Reader& there, bool ignore_keys,
                            unsigned jobs, Progress* progress);

}  // namespace stoker
