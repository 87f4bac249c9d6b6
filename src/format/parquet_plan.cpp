// SPDX-License-Identifier: Apache-2.0
#include "format/parquet_plan.h"

#include <fmt/format.h>

#include <set>

#include "format/tf_example.h"

namespace stoker {
namespace {

using Repetition = ParquetNode::Repetition;

bool is_bytes(const ParquetNode& node) {
  return node.dtype == DType::unknown && !node.unreadable &&
         (node.type == ParquetType::byte_array || node.type == ParquetType::fixed_byte_array);
}

bool is_media(const ParquetNode& node) {
  return !node.type && node.children.size() == 2 && node.children[0].name == "bytes" &&
         is_bytes(node.children[0]) && node.children[1].name == "path" && node.children[1].text;
}

class Planner {
 public:
  Planner(std::vector<ParquetPlan>& plans, std::vector<RefusedColumn>& refused, uint64_t metadata)
      : plans_(plans), refused_(refused), names_left_(kNamesFactor * metadata) {}

  void column(const ParquetNode& node, const std::string& name, unsigned definition) {
    if (name.size() > names_left_) {
      throw Error(ErrorKind::corrupt, "names of columns that are longer than the metadata");
    }
    names_left_ -= name.size();
    ParquetPlan plan;
    plan.name = name;
    plan.most_definition = definition;
    if (node.repetition == Repetition::repeated) {
      plan.most_repetition = 1;
      plan.element_definition = plan.most_definition = definition + 1;
      return node.type ? leaf(node, plan) : refuse(name, "lists of structs are not read");
    }
    if (node.repetition == Repetition::optional) ++plan.most_definition;
    if (node.type) return leaf(node, plan);
    if (node.map) return refuse(name, "maps are not read");
    if (node.list) return list(node, plan);
    structure(node, plan);
  }

  void key(const ParquetNode& node) {
    ParquetPlan& plan = plans_.emplace_back();
    plan.node = &node;
    plan.use = ParquetUse::key;
    plan.most_definition = node.repetition == Repetition::optional ? 1 : 0;
  }

 private:
  void refuse(const std::string& name, const char* cause) { refused_.push_back({name, cause}); }

  void structure(const ParquetNode& node, const ParquetPlan& around) {
    const bool media = is_media(node);
    const size_t first = plans_.size();
    for (const ParquetNode& child : node.children) {
      const bool self = media && child.name == "bytes";
      column(child, self ? around.name : fmt::format("{}.{}", around.name, child.name),
             around.most_definition);
    }
    if (media && plans_.size() == first + 2) plans_[first].path_follows = plans_[first].image;
  }

  /// `plan` says how deep the group lies. Writers call what is repeated by several names.
  void list(const ParquetNode& group, ParquetPlan& plan) {
    const ParquetNode* node = &group;
    for (;;) {
      if (node->children.size() != 1 || node->children[0].repetition != Repetition::repeated) {
        return refuse(plan.name, "a list whose schema is odd");
      }
      const ParquetNode& repeated = node->children[0];
      ++plan.most_definition;
      ++plan.most_repetition;
      if (plan.element_definition == 0) plan.element_definition = plan.most_definition;
      if (repeated.type) return leaf(repeated, plan);
      if (repeated.children.size() != 1) return refuse(plan.name, "lists of structs are not read");
      const ParquetNode& element = repeated.children[0];
      if (element.repetition == Repetition::repeated) {
        return refuse(plan.name, "a list whose schema is odd");
      }
      if (element.repetition == Repetition::optional) ++plan.most_definition;
      if (element.type) return leaf(element, plan);
      if (!element.list) return refuse(plan.name, "lists of structs are not read");
      node = &element;
    }
  }

  void leaf(const ParquetNode& node, ParquetPlan& plan) {
    plan.node = &node;
    if (node.unreadable) return refuse(plan.name, "decimals and intervals are not read");
    const bool list = plan.most_repetition > 0;
    if (list && *node.type == ParquetType::int96) {
      return refuse(plan.name, "lists of INT96 are not read");
    }
    if (node.dtype != DType::unknown) {
      plan.use = list ? ParquetUse::array : ParquetUse::number;
    } else {
      if (plan.most_repetition > 1)
        return refuse(plan.name, "lists of lists of bytes are not read");
      plan.use = list ? ParquetUse::strings : ParquetUse::bytes;
      plan.image = !list && plan.name == kImageField;
    }
    if (!names_.insert(plan.name).second) return refuse(plan.name, "another column has this name");
    plans_.push_back(plan);
  }

  std::vector<ParquetPlan>& plans_;
  std::vector<RefusedColumn>& refused_;
  std::set<std::string> names_;
  uint64_t names_left_;
};

}  // namespace

std::vector<ParquetPlan> plan_parquet_columns(const ParquetFile& file, const ColumnNames& names,
                                              std::vector<RefusedColumn>& refused) {
  std::vector<ParquetPlan> plans;
  Planner planner(plans, refused, file.footer.size());
  bool has_key = false;
  for (size_t i = 0; i < file.root.children.size(); ++i) {
    const ParquetNode& node = file.root.children[i];
    if (node.name == kKeyFeature && is_bytes(node) && !has_key &&
        node.repetition != Repetition::repeated) {
      planner.key(node);
      has_key = true;
    } else {
      const size_t first = plans.size();
      planner.column(node, names.fields[i], 0);
      const bool one = plans.size() == first + 1 && plans[first].use == ParquetUse::array;
      if (one) plans[first].stated = names.shapes[i];
    }
  }
  return plans;
}

}  // namespace stoker
