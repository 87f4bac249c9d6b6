// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

stoker::Json stoker::parse_json(std::string_view text) { return Json::parse(text); }

stoker::Json stoker::parse_json_or_discard(std::string_view text) {
  return Json::parse(text, nullptr, false);
}
