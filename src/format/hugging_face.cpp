// SPDX-License-Identifier: Apache-2.0
#include "format/hugging_face.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/json.h"
#include "dataset/schema.h"
#include "format/columnar.h"

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

/// Of a null or a length; -1 where it varies.
int64_t dimension_of(const Json* json) {
  constexpr uint64_t kLargest = std::numeric_limits<int32_t>::max();
  if (json == nullptr || !json->is_number_unsigned()) return -1;
  const auto size = json->get<uint64_t>();
  return size > 0 && size <= kLargest ? static_cast<int64_t>(size) : -1;
}

/// What {"shape": [4, 5], "_type": "Array2D"} or {"feature": …, "length": 4, "_type": "Sequence"}
/// say; nothing where it is no array of numbers.
std::vector<int64_t> shape_of(const Json& feature) {
  std::vector<int64_t> shape;
  if (const Json* dimensions = member(feature, "shape");
      dimensions != nullptr && dimensions->is_array()) {
    for (const Json& each : *dimensions) shape.push_back(dimension_of(&each));
    return shape.size() <= kMostDimensions ? shape : std::vector<int64_t>();
  }
  const Json* inner = &feature;
  for (const Json* next = member(*inner, "feature"); next != nullptr;
       next = member(*inner, "feature")) {
    shape.push_back(dimension_of(member(*inner, "length")));
    inner = next;
  }
  const Json* type = member(*inner, "_type");
  const bool numbers = type != nullptr && *type == "Value" && shape.size() <= kMostDimensions;
  return numbers ? shape : std::vector<int64_t>();
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
  const Json document = parse_json_or_discard(json);
  if (document.is_discarded()) return features;
  const Json* info = member(document, "info");
  const Json* columns = member(info != nullptr ? *info : document, "features");
  if (columns == nullptr || !columns->is_object()) return features;
  for (const auto& [name, feature] : columns->items()) {
    const Json* type = member(feature, "_type");
    if (type == nullptr || !type->is_string()) continue;
    features.push_back(
        {name, type->get<std::string>(), texts_of(member(feature, "names")), shape_of(feature)});
  }
  return features;
}

ColumnNames name_columns(std::span<const std::string_view> columns,
                         std::span<const HuggingFaceFeature> features) {
  ColumnNames names;
  names.fields.assign(columns.begin(), columns.end());
  rename_first("Image", kImageField, features, names.fields);
  rename_first("ClassLabel", kLabelField, features, names.fields);
  std::map<std::string_view, const HuggingFaceFeature*> by_name;
  for (const HuggingFaceFeature& feature : features) by_name.emplace(feature.name, &feature);
  for (const std::string_view column : columns) {
    const auto feature = by_name.find(column);
    names.shapes.push_back(feature == by_name.end() ? std::vector<int64_t>()
                                                    : feature->second->shape);
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    if (names.fields[i] != kLabelField) continue;
    const auto feature = by_name.find(columns[i]);
    if (feature != by_name.end()) names.classes = feature->second->classes;
    break;
  }
  return names;
}

std::vector<std::string> first_classes(
    const Source& source, const Layout& layout,
    const std::function<std::vector<std::string>(ReadableFile& file)>& classes_of) {
  for (const Part& part : layout.parts) {
    try {
      return classes_of(*source.file_system->open(source.root + "/" + part.shard));
    } catch (const Error&) {
      continue;  // the scan will say what is wrong with it
    }
  }
  return {};
}

}  // namespace stoker
