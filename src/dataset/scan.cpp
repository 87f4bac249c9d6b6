// SPDX-License-Identifier: Apache-2.0
#include "dataset/scan.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace stoker {

std::string Fault::message() const {
  std::string text = shard.empty() ? "" : printable(shard) + ": ";
  if (!shard.empty() && offset) text += fmt::format("offset {}: ", *offset);
  if (!sample.empty()) text += fmt::format("sample '{}'", printable(sample));
  if (!field.empty())
    text += fmt::format("{}field {}", sample.empty() ? "" : ", ", printable(field));
  if (!sample.empty() || !field.empty()) text += ": ";
  return text + cause;
}

Json to_json(const Fault& fault) {
  return {{"shard", name_to_json(fault.shard)},
          {"offset", fault.offset ? Json(*fault.offset) : Json(nullptr)},
          {"sample", name_to_json(fault.sample)},
          {"field", name_to_json(fault.field)},
          {"cause", name_to_json(fault.cause)}};
}

Fault fault_from_json(const Json& json) {
  const auto name = [&](const char* member) {
    return name_from_json(json.at(member).get<std::string>());
  };
  const Json& offset = json.at("offset");
  return {name("shard"), offset.is_null() ? std::nullopt : std::optional(checked<uint64_t>(offset)),
          name("sample"), name("field"), name("cause")};
}

}  // namespace stoker
