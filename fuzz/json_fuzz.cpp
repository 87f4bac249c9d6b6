// SPDX-License-Identifier: Apache-2.0

// Hostile JSON: what is parsed can be copied, compared, printed and parsed again, and has no more
// levels than parse_json() allows.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"

namespace {

using stoker::Json;

int levels_of(const Json& json) {
  if (!json.is_structured()) return 0;
  int deepest = 0;
  for (const Json& child : json) deepest = std::max(deepest, levels_of(child));
  return 1 + deepest;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Json json = stoker::parse_json_or_discard(text);
  bool thrown = false;
  try {
    stoker::parse_json(text);
  } catch (const Json::exception&) {
    thrown = true;
  }
  if (json.is_discarded() != thrown) std::abort();
  if (json.is_discarded()) return 0;
  if (levels_of(json) > stoker::kMostJsonLevels) std::abort();
  const Json copy = json;
  if (stoker::parse_json(copy.dump()).dump() != json.dump()) std::abort();
  return 0;
}
