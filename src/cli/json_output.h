// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "check/check.h"
#include "check/split_sizes.h"
#include "index/build_index.h"
#include "load/load.h"
#include "pack/pack.h"
#include "results/document.h"

namespace stoker {

// The documents that --json prints; docs/commands/ describes them member by member.

Json pack_document(const PackResult& result);
Json index_document(const IndexResult& result, double seconds);
Json check_document(const CheckResult& result);
/// Where several datasets are there, one per split: the error with a list of them.
Json splits_document(std::string_view message, const std::vector<SplitSize>& splits);
Json load_document(const LoadResult& result);
/// `command` is empty where the command line named none that exists.
Json error_document(std::string_view command, ErrorKind kind, std::string_view message);

}  // namespace stoker
