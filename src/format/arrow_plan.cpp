// SPDX-License-Identifier: Apache-2.0
#include "format/arrow_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

constexpr std::string_view kExtensionName = "ARROW:extension:name";
constexpr std::string_view kExtensionMetadata = "ARROW:extension:metadata";

bool is_list(const ArrowField& field) {
  return field.type == ArrowType::list || field.type == ArrowType::large_list ||
         field.type == ArrowType::fixed_size_list;
}

bool is_media(const ArrowField& field) {
  return field.type == ArrowType::structure && field.children.size() == 2 &&
         field.children[0].name == "bytes" && field.children[0].is_bytes() &&
         field.children[1].name == "path" && field.children[1].is_text();
}

/// Dimensions of arrow.fixed_shape_tensor, whose storage is a flat list; none where it is not one
/// or says something odd.
std::vector<int64_t> tensor_shape(const ArrowField& field, std::string& cause) {
  if (field.metadata_of(kExtensionName) != "arrow.fixed_shape_tensor") return {};
  const std::string_view text = field.metadata_of(kExtensionMetadata);
  const Json json = parse_json_or_discard(text);
  const auto refuse = [&](const char* why) {
    cause = fmt::format("its tensors have {}", why);
    return std::vector<int64_t>();
  };
  if (!json.is_object() || !json.contains("shape") || !json["shape"].is_array()) {
    return refuse("no shape");
  }
  if (json["shape"].size() > kMostDimensions) return refuse("too many dimensions");
  std::vector<int64_t> shape;
  uint64_t elements = 1;
  for (const Json& dimension : json["shape"]) {
    if (!dimension.is_number_unsigned()) return refuse("no shape");
    const auto size = dimension.get<uint64_t>();
    if (size > std::numeric_limits<uint32_t>::max() ||
        __builtin_mul_overflow(elements, size, &elements)) {
      return refuse("a shape that is too large");
    }
    shape.push_back(static_cast<int64_t>(size));
  }
  if (elements != field.width) return refuse("another shape than elements");
  if (const auto order = json.find("permutation"); order != json.end() && order->is_array()) {
    for (size_t i = 0; i < order->size(); ++i) {
      if ((*order)[i] != i) return refuse("their dimensions in another order");
    }
  }
  return shape;
}

class Planner {
 public:
  explicit Planner(std::vector<RefusedColumn>& refused) : refused_(refused) {}

  ArrowPlan column(const ArrowField& field, const std::string& name) {
    ArrowPlan plan;
    plan.field = &field;
    plan.name = name;
    if (const std::string cause = decide(field, plan); !cause.empty()) {
      refuse(name, cause);
      return skipped(field);
    }
    const bool is_field = plan.use != ArrowUse::structure && plan.use != ArrowUse::skip;
    if (is_field && !names_.insert(plan.name).second) {
      refuse(name, "another column has this name");
      return skipped(field);
    }
    return plan;
  }

 private:
  static ArrowPlan skipped(const ArrowField& field) {
    ArrowPlan plan;
    plan.field = &field;
    return plan;
  }

  void refuse(const std::string& name, std::string cause) {
    refused_.push_back({name, std::move(cause)});
  }

  /// Why the column cannot be read; empty where it can.
  std::string decide(const ArrowField& field, ArrowPlan& plan) {
    const std::string_view type = name_of(field.type);
    if (field.type == ArrowType::null) return {};
    if (field.dictionary && !field.is_bytes() && !field.is_number()) {
      return fmt::format("a dictionary of {} is not read", type);
    }
    if (field.is_number()) {
      plan.use = ArrowUse::number;
      return {};
    }
    if (field.is_bytes()) {
      plan.use = ArrowUse::bytes;
      const std::string_view encoding = field.metadata_of(kArrowEncodingKey);
      for (const Encoding each : {Encoding::npy, Encoding::tf_strings}) {
        if (encoding == name_of(each)) plan.encoding = each;
      }
      plan.image = plan.name == kImageField;
      return {};
    }
    if (field.type == ArrowType::structure) {
      plan.use = ArrowUse::structure;
      structure(field, plan);
      return {};
    }
    if (is_list(field)) return list(field, plan);
    return fmt::format("the type {} is not read", type);
  }

  void structure(const ArrowField& field, ArrowPlan& plan) {
    const bool media = is_media(field);
    for (const ArrowField& child : field.children) {
      const bool self = media && child.name == "bytes";
      const std::string name = self ? plan.name : fmt::format("{}.{}", plan.name, child.name);
      plan.children.push_back(column(child, name));
    }
    // The path says what kind of image it is, where it is not null.
    if (media && plan.children[0].image) plan.children[1].look = true;
    if (media) plan.children[1].made = field.metadata_of(kArrowPathKey) == kArrowPathMade;
  }

  static std::string list(const ArrowField& field, ArrowPlan& plan) {
    std::string cause;
    plan.shape = tensor_shape(field, cause);
    if (!cause.empty()) return cause;
    const ArrowField* inner = &field.children[0];
    if (inner->is_bytes() && !inner->dictionary) {
      plan.use = ArrowUse::strings;
      return {};
    }
    while (is_list(*inner) && !inner->dictionary) inner = &inner->children[0];
    if (inner->is_number() && !inner->dictionary) {
      plan.use = ArrowUse::array;
      return {};
    }
    return fmt::format("lists of {}{} are not read", inner->dictionary ? "dictionary-encoded " : "",
                       name_of(inner->type));
  }

  std::vector<RefusedColumn>& refused_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<int64_t> shape_by_type(const ArrowField& field) {
  std::string cause;
  std::vector<int64_t> shape = tensor_shape(field, cause);
  if (!shape.empty()) return shape;
  const ArrowField* level = &field;
  for (; is_list(*level) && !level->dictionary; level = &level->children[0]) {
    shape.push_back(level->type == ArrowType::fixed_size_list ? int64_t{level->width} : -1);
  }
  return level->is_number() && !level->dictionary ? shape : std::vector<int64_t>();
}

std::vector<ArrowPlan> plan_arrow_columns(const ArrowSchema& schema, const ColumnNames& names,
                                          std::vector<RefusedColumn>& refused) {
  std::vector<ArrowPlan> plans;
  Planner planner(refused);
  bool has_key = false;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const ArrowField& field = schema.fields[i];
    if (field.name == kKeyFeature && field.is_bytes() && !has_key) {
      ArrowPlan& key = plans.emplace_back();
      key.field = &field;
      key.use = ArrowUse::key;
      key.look = has_key = true;
      continue;
    }
    plans.push_back(planner.column(field, names.fields[i]));
    plans.back().stated = names.shapes[i];
  }
  return plans;
}

}  // namespace stoker
