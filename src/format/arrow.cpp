// SPDX-License-Identifier: Apache-2.0
#include "format/arrow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "format/arrow_columns.h"
#include "format/arrow_ipc.h"
#include "format/arrow_plan.h"
#include "format/arrow_values.h"
#include "format/columnar.h"
#include "format/member_name.h"
#include "format/shard_directory.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

/// Lists within a list whose length the schema does not say.
bool has_open_inner(const ArrowField& field) {
  const ArrowField& child = field.children[0];
  if (child.children.empty()) return false;
  return child.type != ArrowType::fixed_size_list || has_open_inner(child);
}

/// Whether nothing says yet how long the inner lists of a column are.
bool lacks_dimensions(const ArrowPlan& plan) {
  if (plan.use == ArrowUse::array) return plan.inner.empty() && has_open_inner(*plan.field);
  return std::any_of(plan.children.begin(), plan.children.end(), lacks_dimensions);
}

class ArrowScan {
 public:
  ArrowScan(const Source& source, const Part& part, OpenedShard& shard, ScanSink& sink)
      : source_(source),
        shard_(part.shard),
        stem_(shard_stem(part.shard, {".arrow", ".arrows", ".feather", ".ipc"})),
        file_(*shard.file),
        number_(shard.number),
        sink_(sink) {}

  void run() {
    try {
      ArrowMessages messages(
          file_, [this](uint64_t offset, std::string cause) { fault(offset, std::move(cause)); });
      plan(messages.schema());
      while (const auto batch = messages.next()) take_batch(*batch);
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      fault(0, error.what());
    }
  }

 private:
  /// One field of a batch, and how much was wrong with it.
  struct Leaf {
    ArrowLeaf values;
    ArrowLeaf* path = nullptr;  // of an image
    uint64_t faults = 0;
  };

  void fault(uint64_t offset, std::string cause, std::string field = {}) {
    sink_.fault({shard_, offset, {}, std::move(field), std::move(cause)});
  }

  void plan(const ArrowSchema& schema) {
    std::string_view json = schema.metadata_of(kHuggingFaceKey);
    const std::string beside = json.empty() ? read_dataset_info(source_) : std::string();
    if (json.empty()) json = beside;
    std::vector<std::string_view> columns;
    for (const ArrowField& field : schema.fields) columns.push_back(field.name);
    std::vector<RefusedColumn> refused;
    plans_ = plan_arrow_columns(schema, name_columns(columns, parse_hugging_face(json)), refused);
    for (const RefusedColumn& each : refused) {
      sink_.fault({shard_, {}, {}, each.column, fmt::format("left out: {}", each.cause)});
    }
    for (const ArrowPlan& plan : plans_) find_dictionaries(plan);
  }

  void find_dictionaries(const ArrowPlan& plan) {
    if (plan.use != ArrowUse::skip && plan.field->dictionary) {
      ArrowPlan& wanted =
          dictionary_plans_.try_emplace(*plan.field->dictionary, plan).first->second;
      wanted.look = wanted.look || plan.look;
      wanted.image = wanted.image || plan.image;
    }
    for (const ArrowPlan& child : plan.children) find_dictionaries(child);
  }

  void take_batch(const ArrowBatch& batch) {
    try {
      if (batch.dictionary) {
        take_dictionary(batch);
      } else {
        take_rows(batch);
      }
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      fault(batch.begin, error.what());
      if (!batch.dictionary) rows_ += std::min(batch.rows, kRowsForNothing);
    }
  }

  void take_dictionary(const ArrowBatch& batch) {
    const auto plan = dictionary_plans_.find(*batch.dictionary);
    if (plan == dictionary_plans_.end()) return;
    ArrowDictionary& dictionary = dictionaries_[*batch.dictionary];
    if (!batch.delta) dictionary = {};
    ArrowBody body(file_, batch, number_, sink_);
    dictionary.parts.push_back(body.dictionary(plan->second));
    dictionary.rows += batch.rows;
  }

  void take_rows(const ArrowBatch& batch) {
    if (batch.rows > most_rows(batch)) {
      throw Error(ErrorKind::corrupt, fmt::format("a batch of {} bytes claims {} rows",
                                                  batch.end - batch.begin, batch.rows));
    }
    ArrowBody body(file_, batch, number_, sink_);
    std::vector<ArrowColumn> columns(plans_.size());
    for (size_t i = 0; i < plans_.size(); ++i) {
      try {
        columns[i] = body.column(plans_[i], batch.rows);
      } catch (const Error& error) {
        if (!is_damage(error)) throw;
        fault(batch.begin, error.what(), plans_[i].name);
      }
    }
    std::vector<std::unique_ptr<Leaf>> leaves;
    key_ = nullptr;
    for (size_t i = 0; i < plans_.size(); ++i) add_leaves(plans_[i], columns[i], {}, leaves);
    const bool backed = std::any_of(leaves.begin(), leaves.end(), [&](const auto& leaf) {
      return leaf->values.backs(batch.rows);
    });
    if (!backed && batch.rows > 0) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("nothing in the {} rows of a batch can be read", batch.rows));
    }
    for (const auto& leaf : leaves) learn_dimensions(*leaf, batch.rows);
    look_ahead();
    for (uint64_t row = 0; row < batch.rows; ++row) take_row(row, leaves, batch);
    for (const auto& leaf : leaves) {
      if (leaf->faults <= kMostNamed) continue;
      fault(batch.begin,
            fmt::format("{} rows of this batch in all have something wrong", leaf->faults),
            leaf->values.plan().name);
    }
  }

  void add_leaves(ArrowPlan& plan, const ArrowColumn& column,
                  const std::vector<const ArrowColumn*>& around,
                  std::vector<std::unique_ptr<Leaf>>& leaves) {
    if (column.field == nullptr) return;  // left out
    if (plan.use == ArrowUse::structure) {
      std::vector<const ArrowColumn*> inside = around;
      inside.push_back(&column);
      const size_t first = leaves.size();
      for (size_t i = 0; i < plan.children.size(); ++i) {
        add_leaves(plan.children[i], column.children[i], inside, leaves);
      }
      if (leaves.size() == first + 2 && leaves[first]->values.plan().image) {
        leaves[first]->path = &leaves[first + 1]->values;
      }
      return;
    }
    const ArrowDictionary* dictionary = nullptr;
    if (plan.field->dictionary) {
      const auto known = dictionaries_.find(*plan.field->dictionary);
      if (known != dictionaries_.end()) dictionary = &known->second;
    }
    leaves.push_back(std::make_unique<Leaf>(Leaf{{plan, column, around, dictionary}}));
    if (plan.use == ArrowUse::key) key_ = &leaves.back()->values;
  }

  /// An empty list does not say how long those inside it would be: the first that is not does.
  static void learn_dimensions(const Leaf& leaf, uint64_t rows) {
    const ArrowPlan& plan = leaf.values.plan();
    if (plan.use != ArrowUse::array || plan.field->children[0].children.empty()) return;
    ArrowLeaf values = leaf.values;
    for (uint64_t row = 0; row < rows && plan.inner.empty(); ++row) {
      try {
        FoundField found;
        values.find(row, found);
      } catch (const Error& error) {
        if (!is_damage(error)) throw;
      }
    }
  }

  /// The same in the other batches, once: a dataset may begin with thousands of empty lists.
  void look_ahead() {
    if (looked_ahead_ || std::none_of(plans_.begin(), plans_.end(), lacks_dimensions)) return;
    looked_ahead_ = true;
    SilentSink silent;
    ArrowMessages messages(file_, [](uint64_t, const std::string&) {});
    while (const auto batch = messages.next()) {
      if (batch->dictionary || batch->rows > most_rows(*batch)) continue;
      ArrowBody body(file_, *batch, number_, silent);
      bool lacking = false;
      for (ArrowPlan& plan : plans_) {
        try {
          lacks_dimensions(plan) ? learn_from(body, plan, batch->rows) : body.skip(*plan.field);
        } catch (const Error& error) {
          if (!is_damage(error)) throw;
        }
        lacking = lacking || lacks_dimensions(plan);
      }
      if (!lacking) return;
    }
  }

  void learn_from(ArrowBody& body, ArrowPlan& plan, uint64_t rows) {
    const ArrowColumn column = body.column(plan, rows);
    std::vector<std::unique_ptr<Leaf>> leaves;
    add_leaves(plan, column, {}, leaves);
    for (const auto& leaf : leaves) learn_dimensions(*leaf, rows);
  }

  static uint64_t most_rows(const ArrowBatch& batch) {
    return kRowsForNothing + kRowsPerByte * (batch.end - batch.begin);
  }

  void take_row(uint64_t row, std::vector<std::unique_ptr<Leaf>>& leaves, const ArrowBatch& batch) {
    std::string key = fmt::format("{}-{:08}", stem_, rows_++);
    if (key_ != nullptr && !take_key(row, batch, key)) return;
    fields_.clear();
    for (const auto& leaf : leaves) {
      const ArrowPlan& plan = leaf->values.plan();
      if (plan.use == ArrowUse::key || plan.made) continue;
      FoundField found;
      try {
        if (!leaf->values.find(row, found)) continue;
        if (plan.image) found.suffix = suffix_of(*leaf, row, found.extent);
      } catch (const Error& error) {
        if (!is_damage(error)) throw;
        if (++leaf->faults <= kMostNamed) {
          sink_.fault({shard_, batch.begin, key, plan.name, error.what()});
        }
        continue;
      }
      fields_.push_back(std::move(found));
    }
    sink_.sample(key, fields_);
  }

  /// False, and a fault, where the row has no key that can be one.
  bool take_key(uint64_t row, const ArrowBatch& batch, std::string& key) {
    std::string cause = "its key is null or empty";
    try {
      const auto text = key_->text(row);
      if (text && !text->empty() && text->size() <= kMaxKey) {
        key = *text;
        return true;
      }
      if (text && !text->empty()) cause = fmt::format("key of {} bytes is too long", text->size());
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      cause = error.what();
    }
    sink_.fault({shard_, batch.begin, key, std::string(kKeyFeature), std::move(cause), 1});
    return false;
  }

  /// What kind of image it is: by its path, or by how it begins.
  std::string_view suffix_of(Leaf& leaf, uint64_t row, const Extent& extent) {
    if (leaf.path != nullptr) {
      const std::string_view path = leaf.path->text(row).value_or(std::string_view());
      const std::string_view ending = path.substr(path.rfind('.') + 1);
      if (ending.size() < path.size() && is_image_suffix(ending)) {
        suffix_ = ending;
        return suffix_;
      }
    }
    if (extent.container == Container::block) {
      return image_suffix_of(leaf.values.text(row).value_or(std::string_view()));
    }
    std::array<std::byte, kImageMagic> begin;
    const MutableBytes into =
        MutableBytes(begin).first(std::min<uint64_t>(extent.length, kImageMagic));
    return image_suffix_of(as_text(Bytes(begin).first(file_.read_at(extent.offset, into))));
  }

  const Source& source_;
  const std::string& shard_;
  std::string stem_;
  ReadableFile& file_;
  uint32_t number_;
  ScanSink& sink_;
  std::vector<ArrowPlan> plans_;
  std::map<int64_t, ArrowPlan> dictionary_plans_;
  ArrowDictionaries dictionaries_;
  ArrowLeaf* key_ = nullptr;
  uint64_t rows_ = 0;
  bool looked_ahead_ = false;
  std::vector<FoundField> fields_;
  std::string suffix_;
};

}  // namespace

void scan_arrow(const Source& source, const Layout&, const Part& part, ScanSink& sink) {
  OpenedShard shard = open_shard(source, part, sink);
  ArrowScan(source, part, shard, sink).run();
}

}  // namespace stoker
