// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "check/check.h"
#include "index/build_index.h"
#include "load/load.h"
#include "pack/pack.h"
#include "results/machine.h"

namespace stoker {

// The documents that --json prints; docs/commands/ describes them member by member. A member may
// be added under the same schema number; one that changes its meaning or goes away takes a new one.
inline constexpr int kJsonSchema = 1;

/// What every document begins with.
Json document_header(std::string_view command);
Json pack_document(const PackResult& result);
Json index_document(const IndexResult& result, double seconds);
Json check_document(const CheckResult& result);
Json load_document(const LoadResult& result);
/// `profiles` are the files that keep it.
Json probe_document(const Machine& machine, const std::vector<std::string>& profiles);
/// `command` is empty where the command line named none that exists.
Json error_document(std::string_view command, ErrorKind kind, std::string_view message);

/// The text of a document as it is printed.
std::string to_text(const Json& document);

}  // namespace stoker
