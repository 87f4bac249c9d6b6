// SPDX-License-Identifier: Apache-2.0
#include "dataset/scan.h"

#include <fmt/format.h>

#include <algorithm>

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

uint64_t count_transient(std::span<const Fault> faults) {
  return static_cast<uint64_t>(std::count_if(faults.begin(), faults.end(),
                                             [](const Fault& fault) { return fault.transient; }));
}

Json to_json(const Fault& fault) {
  Json json = {{"shard", name_to_json(fault.shard)},
               {"offset", fault.offset ? Json(*fault.offset) : Json(nullptr)},
               {"sample", name_to_json(fault.sample)},
               {"field", name_to_json(fault.field)},
               {"cause", name_to_json(fault.cause)}};
  if (fault.samples) json["samples"] = *fault.samples;
  if (fault.transient) json["transient"] = true;
  return json;
}

Fault fault_from_json(const Json& json) {
  const auto name = [&](const char* member) {
    return name_from_json(json.at(member).get<std::string>());
  };
  const Json& offset = json.at("offset");
  Fault fault{name("shard"),
              offset.is_null() ? std::nullopt : std::optional(checked<uint64_t>(offset)),
              name("sample"), name("field"), name("cause")};
  if (json.contains("samples")) fault.samples = checked<uint64_t>(json.at("samples"));
  if (json.contains("transient")) fault.transient = json.at("transient").get<bool>();
  return fault;
}

}  // namespace stoker
