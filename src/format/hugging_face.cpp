// SPDX-License-Identifier: Apache-2.0
#include "format/hugging_face.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "dataset/schema.h"

namespace stoker {
namespace {

const Json* member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

std::vector<std::string> texts_of(const Json* list) {
  std::vector<std::string> texts;
  if (list == nullptr || !list->is_array()) return texts;
  for (const Json& each : *list) {
    if (!each.is_string()) return {};
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

/// The column that should be called `wanted`: the first of this type, unless one is already.
void rename_first(std::string_view type, std::string_view wanted,
                  std::span<const HuggingFaceFeature> features, std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return;
  std::set<std::string_view> of_type;
  for (const HuggingFaceFeature& each : features) {
    if (each.type == type) of_type.insert(each.name);
  }
  const auto first = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& name) { return of_type.contains(name); });
  if (first != names.end()) *first = wanted;
}

}  // namespace

std::vector<HuggingFaceFeature> parse_hugging_face(std::string_view json) {
  std::vector<HuggingFaceFeature> features;
  const Json document = Json::parse(json.begin(), json.end(), nullptr, false);
  if (document.is_discarded()) return features;
  const Json* info = member(document, "info");
  const Json* columns = member(info != nullptr ? *info : document, "features");
  if (columns == nullptr || !columns->is_object()) return features;
  for (const auto& [name, feature] : columns->items()) {
    const Json* type = member(feature, "_type");
    if (type == nullptr || !type->is_string()) continue;
    features.push_back({name, type->get<std::string>(), texts_of(member(feature, "names"))});
  }
  return features;
}

ColumnNames name_columns(std::span<const std::string_view> columns,
                         std::span<const HuggingFaceFeature> features) {
  ColumnNames names;
  names.fields.assign(columns.begin(), columns.end());
  rename_first("Image", kImageField, features, names.fields);
  rename_first("ClassLabel", kLabelField, features, names.fields);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (names.fields[i] != kLabelField) continue;
    const auto feature =
        std::find_if(features.begin(), features.end(),
                     [&](const HuggingFaceFeature& each) { return each.name == columns[i]; });
    if (feature != features.end()) names.classes = feature->classes;
    break;
  }
  return names;
}

}  // namespace stoker
