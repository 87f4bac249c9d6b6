// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace stoker {
namespace {

/// Counts brackets outside strings. Of a text that is not JSON the answer means nothing, and the
/// parser, which does not recurse, refuses it anyway.
bool nested_too_deeply(std::string_view text) {
  int levels = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++levels > kMostJsonLevels) return true;
    } else if (c == ']' || c == '}') {
      --levels;
    }
  }
  return false;
}

}  // namespace

Json parse_json(std::string_view text) {
  if (nested_too_deeply(text)) throw NestedTooDeep();
  return Json::parse(text);
}

Json parse_json_or_discard(std::string_view text) {
  return nested_too_deeply(text) ? Json(Json::value_t::discarded)
                                 : Json::parse(text, nullptr, false);
}

}  // namespace stoker
