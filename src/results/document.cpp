// SPDX-License-Identifier: Apache-2.0
#include "results/document.h"

#include <utility>

#include "base/json.h"

namespace stoker {

Json document_header(std::string_view command) {
  Json about = {{"version", STOKER_VERSION}, {"schema", kJsonSchema}};
  if (!command.empty()) about["command"] = command;
  return {{"stoker", std::move(about)}};
}

std::string to_text(const Json& document) {
  // Messages may quote what the system said in a locale of its own.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stoker
