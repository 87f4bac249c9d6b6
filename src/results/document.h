// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace stoker {

// Documents that --json prints and Python gets. A member may be added under the same schema number;
// one that changes its meaning or goes away takes a new one.
inline constexpr int kJsonSchema = 1;

/// What every document begins with.
Json document_header(std::string_view command);

/// The text of a document as it is printed.
std::string to_text(const Json& document);

}  // namespace stoker
