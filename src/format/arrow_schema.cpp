// SPDX-License-Identifier: Apache-2.0
#include "format/arrow_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "format/columnar.h"

namespace stoker {
namespace {

constexpr unsigned kMaxDepth = 32;
// A table with a name and a type takes more: who has more fields than that repeats them.
constexpr size_t kFewestBytesOfField = 8;

constexpr std::array<std::string_view, 27> kTypeNames = {"nothing",
                                                         "null",
                                                         "int",
                                                         "float",
                                                         "binary",
                                                         "utf8",
                                                         "bool",
                                                         "decimal",
                                                         "date",
                                                         "time",
                                                         "timestamp",
                                                         "interval",
                                                         "list",
                                                         "struct",
                                                         "union",
                                                         "fixed_size_binary",
                                                         "fixed_size_list",
                                                         "map",
                                                         "duration",
                                                         "large_binary",
                                                         "large_utf8",
                                                         "large_list",
                                                         "run_end_encoded",
                                                         "binary_view",
                                                         "utf8_view",
                                                         "list_view",
                                                         "large_list_view"};

// Nobody has as many; without a bound a small file could repeat a large one for every column.
constexpr size_t kMostMetadata = 256;
constexpr size_t kMostColumns = 65'536;

std::string_view find_in(const FlatVector& pairs, std::string_view key) {
  for (size_t i = 0; i < std::min(pairs.size(), kMostMetadata); ++i) {
    const FlatTable pair = pairs.table(i);
    if (pair.text(0) == key) return pair.text(1);
  }
  return {};
}

DType integer_dtype(int32_t bits, bool is_signed) {
  switch (bits) {
    case 8:
      return is_signed ? DType::int8 : DType::uint8;
    case 16:
      return is_signed ? DType::int16 : DType::uint16;
    case 32:
      return is_signed ? DType::int32 : DType::uint32;
    case 64:
      return is_signed ? DType::int64 : DType::uint64;
    default:
      corrupt(fmt::format("integers of {} bits", bits));
  }
}

DType real_dtype(int16_t precision) {
  constexpr std::array kPrecisions = {DType::float16, DType::float32, DType::float64};
  if (precision < 0 || precision > 2) corrupt(fmt::format("floats of precision {}", precision));
  return kPrecisions[static_cast<size_t>(precision)];
}

uint32_t width_of(int32_t width) {
  if (width < 0) corrupt(fmt::format("a width of {}", width));
  return static_cast<uint32_t>(width);
}

/// Reads what the table of the type says beside its number.
void parse_type(const FlatTable& type, ArrowField& field) {
  constexpr int16_t kMilliseconds = 1;
  switch (field.type) {
    case ArrowType::integer:
      field.dtype = integer_dtype(type.number<int32_t>(0), type.number<uint8_t>(1) != 0);
      break;
    case ArrowType::floating_point:
      field.dtype = real_dtype(type.number<int16_t>(0));
      break;
    case ArrowType::boolean:
      field.dtype = DType::bool8;
      break;
    case ArrowType::date:
      field.dtype = type.number<int16_t>(0, kMilliseconds) == 0 ? DType::int32 : DType::int64;
      break;
    case ArrowType::time:
      field.dtype = integer_dtype(type.number<int32_t>(1, 32), true);
      break;
    case ArrowType::timestamp:
    case ArrowType::duration:
      field.dtype = DType::int64;
      break;
    case ArrowType::fixed_size_binary:
    case ArrowType::fixed_size_list:
      field.width = width_of(type.number<int32_t>(0));
      break;
    case ArrowType::sum:
      field.dense_union = type.number<int16_t>(0) == 1;
      break;
    default:
      break;
  }
}

class SchemaParser {
 public:
  explicit SchemaParser(size_t metadata_size)
      : fields_left_(std::min(metadata_size / kFewestBytesOfField, kMostColumns)),
        names_left_(kNamesFactor * metadata_size) {}

  /// `around` is how long the names of the columns around it are.
  ArrowField field(const FlatTable& table, unsigned depth, uint64_t around) {
    if (depth > kMaxDepth) corrupt("columns are nested too deep");
    if (fields_left_ == 0) corrupt("more columns than the metadata has room for");
    --fields_left_;
    ArrowField field;
    field.name = table.text(0);
    around += field.name.size();
    if (around > names_left_) corrupt("names of columns that are longer than the metadata");
    names_left_ -= around;
    const auto type = table.number<uint8_t>(2);
    if (type == 0 || type >= kTypeNames.size()) {
      corrupt(fmt::format("column {} is of the unknown type {}", printable(field.name), type));
    }
    field.type = static_cast<ArrowType>(type);
    parse_type(table.table(3), field);
    if (const FlatTable dictionary = table.table(4); dictionary.there()) {
      field.dictionary = dictionary.number<int64_t>(0);
      const FlatTable index = dictionary.table(1);
      field.index = index.there()
                        ? integer_dtype(index.number<int32_t>(0), index.number<uint8_t>(1) != 0)
                        : DType::int32;
    }
    field.metadata = table.tables(6);
    const FlatVector children = table.tables(5);
    for (size_t i = 0; i < children.size(); ++i) {
      field.children.push_back(this->field(children.table(i), depth + 1, around));
    }
    require_children(field);
    return field;
  }

 private:
  static void require_children(const ArrowField& field) {
    const bool one = field.type == ArrowType::list || field.type == ArrowType::large_list ||
                     field.type == ArrowType::fixed_size_list || field.type == ArrowType::map ||
                     field.type == ArrowType::list_view || field.type == ArrowType::large_list_view;
    if (one && field.children.size() != 1) {
      corrupt(fmt::format("column {} is a list of {} things", printable(field.name),
                          field.children.size()));
    }
    if (field.type == ArrowType::run_end_encoded && field.children.size() != 2) {
      corrupt(fmt::format("column {} has runs without values", printable(field.name)));
    }
  }

  size_t fields_left_;
  uint64_t names_left_;
};

}  // namespace

std::string_view name_of(ArrowType type) {
  const auto number = static_cast<size_t>(type);
  return number < kTypeNames.size() ? kTypeNames[number] : "?";
}

std::string_view ArrowField::metadata_of(std::string_view key) const {
  return find_in(metadata, key);
}

std::string_view ArrowSchema::metadata_of(std::string_view key) const {
  return find_in(metadata, key);
}

ArrowSchema parse_arrow_schema(const FlatTable& table) {
  if (!table.there()) corrupt("the schema is missing");
  ArrowSchema schema;
  schema.big_endian = table.number<int16_t>(0) != 0;
  schema.metadata = table.tables(2);
  SchemaParser parser(table.buffer_size());
  const FlatVector fields = table.tables(1);
  for (size_t i = 0; i < fields.size(); ++i)
    schema.fields.push_back(parser.field(fields.table(i), 0, 0));
  return schema;
}

}  // namespace stoker
