// SPDX-License-Identifier: Apache-2.0
#include "format/parquet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "format/columnar.h"
#include "format/hugging_face.h"
#include "format/member_name.h"
#include "format/parquet_arrow.h"
#include "format/parquet_column.h"
#include "format/parquet_metadata.h"
#include "format/parquet_plan.h"
#include "format/shard_directory.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

// Of a list's values: runs of equal ones take next to nothing.
constexpr uint64_t kValuesPerByte = 4096;

class ParquetScan {
 public:
  ParquetScan(const Part& part, OpenedShard& shard, ScanSink& sink)
      : shard_(part.shard),
        stem_(shard_stem(part.shard, {".parquet"})),
        file_(*shard.file),
        number_(shard.number),
        sink_(sink) {}

  void run() {
    try {
      const ParquetFile file = read_parquet_footer(file_);
      plan(file);
      for (ParquetPlan& plan : plans_) {
        if (plan.most_repetition > 1) learn_dimensions(file, plan);
      }
      uint64_t rows = 0;
      for (const ParquetRowGroup& group : file.groups) {
        take_group(group);
        rows += group.rows;
      }
      if (rows != file.rows) {
        fault({}, {},
              fmt::format("its row groups have {} rows, the footer states {}", rows, file.rows));
      }
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      fault({}, {}, error.what());
    }
  }

 private:
  struct Column {
    ParquetColumn values;
    uint64_t faults = 0;
  };

  void fault(std::optional<uint64_t> offset, std::string field, std::string cause) {
    sink_.fault({shard_, offset, {}, std::move(field), std::move(cause)});
  }

  void plan(const ParquetFile& file) {
    std::vector<std::string_view> columns;
    for (const ParquetNode& node : file.root.children) columns.push_back(node.name);
    const auto features = parse_hugging_face(file.metadata_of(kHuggingFaceKey));
    ColumnNames names = name_columns(columns, features);
    add_arrow_shapes(file, columns, names);
    std::vector<RefusedColumn> refused;
    plans_ = plan_parquet_columns(file, names, refused);
    for (const RefusedColumn& each : refused) {
      fault({}, each.column, fmt::format("left out: {}", each.cause));
    }
  }

  /// Why a column of a row group cannot be read; empty where it can.
  static std::string refusal(const ParquetRowGroup& group, const ParquetPlan& plan) {
    const ParquetChunk& chunk = group.chunks[plan.node->leaf];
    if (!chunk.refusal.empty()) return chunk.refusal;
    if (chunk.type != *plan.node->type)
      return "its values are of another type than the schema says";
    if (plan.most_repetition == 0 && chunk.values != group.rows) {
      return fmt::format("it has {} values for {} rows", chunk.values, group.rows);
    }
    const uint64_t bytes = chunk.end - chunk.begin;
    if (chunk.values > std::max(group.rows, kRowsForNothing + kValuesPerByte * bytes)) {
      return fmt::format("{} bytes claim {} values", bytes, chunk.values);
    }
    return refusal_of(chunk.codec);
  }

  /// An empty list does not say how long those inside it would be: the first that is not does.
  void learn_dimensions(const ParquetFile& file, ParquetPlan& plan) {
    SilentSink silent;
    for (const ParquetRowGroup& group : file.groups) {
      const ParquetChunk& chunk = group.chunks[plan.node->leaf];
      if (!refusal(group, plan).empty()) continue;
      ParquetColumn column(file_, plan, chunk, number_, silent);
      for (uint64_t row = 0; row < chunk.values; ++row) {
        try {
          FoundField found;
          column.next(found);
        } catch (const Error& error) {
          if (!is_damage(error)) throw;
        }
        if (!plan.inner.empty()) return;
      }
    }
  }

  void take_group(const ParquetRowGroup& group) {
    const uint64_t backed = std::min(group.rows, kRowsPerByte * group.bytes);
    if (group.bytes == 0 || group.rows - backed > rows_for_nothing_) {
      if (group.rows == 0) return;
      return fault({}, {},
                   fmt::format("a row group of {} bytes claims {} rows", group.bytes, group.rows));
    }
    rows_for_nothing_ -= group.rows - backed;
    std::vector<std::unique_ptr<Column>> columns;
    for (ParquetPlan& plan : plans_) {
      const ParquetChunk& chunk = group.chunks[plan.node->leaf];
      const std::string refusal = this->refusal(group, plan);
      if (!refusal.empty()) {
        fault(chunk.begin, plan.name, fmt::format("left out: {}", refusal));
        continue;
      }
      columns.push_back(std::make_unique<Column>(Column{{file_, plan, chunk, number_, sink_}}));
    }
    if (columns.empty() && group.rows > 0) {
      return fault({}, {},
                   fmt::format("nothing in a row group of {} rows can be read", group.rows));
    }
    for (uint64_t row = 0; row < group.rows; ++row) {
      const bool lost = std::all_of(columns.begin(), columns.end(),
                                    [](const auto& column) { return column->values.broken(); });
      if (lost) {
        fault({}, {},
              fmt::format("nothing of the last {} rows of a row group can be read",
                          group.rows - row));
        rows_ += group.rows - row;
        break;
      }
      take_row(columns);
    }
    for (const auto& column : columns) {
      if (column->faults <= kMostNamed) continue;
      fault(column->values.offset(), column->values.plan().name,
            fmt::format("{} rows of this row group in all have something wrong", column->faults));
    }
  }

  void take_row(std::vector<std::unique_ptr<Column>>& columns) {
    std::string key = fmt::format("{}-{:08}", stem_, rows_++);
    fields_.clear();
    bool has_key = true;
    for (const auto& column : columns) {
      FoundField found;
      const bool there = take_value(*column, key, found);
      const ParquetPlan& plan = column->values.plan();
      if (plan.use == ParquetUse::key) {
        has_key = there && take_key(column->values, key);
      } else if (there) {
        fields_.push_back(std::move(found));
        if (plan.image) fields_.back().suffix = image_suffix_of(column->values.bytes());
      }
      // The column before this one was an image, if its plan says so.
      if (there && image_ != nullptr && image_->path_follows) set_suffix(column->values.bytes());
      image_ = there && plan.image ? &plan : nullptr;
    }
    image_ = nullptr;
    if (has_key) sink_.sample(key, fields_);
  }

  /// False where the row has none, or, with a fault, where it cannot be read.
  bool take_value(Column& column, const std::string& key, FoundField& found) {
    try {
      return column.values.next(found);
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      if (++column.faults <= kMostNamed) {
        sink_.fault({shard_, column.values.offset(), key, column.values.plan().name, error.what()});
      }
      return false;
    }
  }

  bool take_key(const ParquetColumn& column, std::string& key) {
    const std::string_view text = column.bytes();
    if (!text.empty() && text.size() <= kMaxKey) {
      key = text;
      return true;
    }
    sink_.fault({shard_, column.offset(), key, std::string(kKeyFeature),
                 text.empty() ? "its key is empty"
                              : fmt::format("key of {} bytes is too long", text.size()),
                 1});
    return false;
  }

  /// The path that stands beside an image says what it is.
  void set_suffix(std::string_view path) {
    const std::string_view ending = path.substr(path.rfind('.') + 1);
    if (ending.size() == path.size() || !is_image_suffix(ending) || fields_.size() < 2) return;
    suffix_ = ending;
    fields_[fields_.size() - 2].suffix = suffix_;
  }

  const std::string& shard_;
  std::string stem_;
  ReadableFile& file_;
  uint32_t number_;
  ScanSink& sink_;
  std::vector<ParquetPlan> plans_;
  std::vector<FoundField> fields_;
  const ParquetPlan* image_ = nullptr;
  std::string suffix_;
  uint64_t rows_ = 0;
  uint64_t rows_for_nothing_ = kRowsForNothing;  // that may still come
};

}  // namespace

void scan_parquet(const Source& source, const Layout&, const Part& part, ScanSink& sink) {
  OpenedShard shard = open_shard(source, part, sink);
  ParquetScan(part, shard, sink).run();
}

}  // namespace stoker
