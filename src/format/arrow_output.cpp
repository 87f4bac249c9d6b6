// SPDX-License-Identifier: Apache-2.0
#include "format/arrow_output.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "format/arrow_plan.h"
#include "format/arrow_schema.h"
#include "format/flat_builder.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

using Kind = ArrowOutColumn::Kind;

constexpr std::string_view kPathEnding = ".path";

bool is_real(DType dtype) {
  return dtype == DType::float16 || dtype == DType::float32 || dtype == DType::float64;
}

bool is_signed(DType dtype) {
  return dtype == DType::int8 || dtype == DType::int16 || dtype == DType::int32 ||
         dtype == DType::int64;
}

FlatBuilder field_table(std::string_view name, ArrowType type, FlatBuilder type_table,
                        std::vector<FlatBuilder> children = {}) {
  FlatBuilder field;
  field.child(0, FlatBuilder::text(name));
  field.number<uint8_t>(1, 1);  // may be null
  field.number(2, static_cast<uint8_t>(type));
  field.child(3, std::move(type_table));
  field.child(5, FlatBuilder::tables(std::move(children)));
  return field;
}

FlatBuilder number_field(std::string_view name, DType dtype) {
  FlatBuilder type;
  if (is_real(dtype)) {
    type.number(0, static_cast<int16_t>(size_of(dtype) / 4));  // HALF, SINGLE, DOUBLE
    return field_table(name, ArrowType::floating_point, std::move(type));
  }
  type.number(0, static_cast<int32_t>(8 * size_of(dtype)));
  type.number<uint8_t>(1, is_signed(dtype) ? 1 : 0);
  return field_table(name, ArrowType::integer, std::move(type));
}

/// Lists within lists, from dimension `i` of the shape on.
FlatBuilder elements_field(std::string_view name, DType dtype, const std::vector<int64_t>& shape,
                           size_t i) {
  if (i == shape.size()) return number_field(name, dtype);
  std::vector<FlatBuilder> children;
  children.push_back(elements_field("item", dtype, shape, i + 1));
  FlatBuilder type;
  if (shape[i] < 0) return field_table(name, ArrowType::list, std::move(type), std::move(children));
  type.number(0, static_cast<int32_t>(shape[i]));
  return field_table(name, ArrowType::fixed_size_list, std::move(type), std::move(children));
}

FlatBuilder key_value(std::string_view key, std::string_view value) {
  FlatBuilder pair;
  pair.child(0, FlatBuilder::text(key));
  pair.child(1, FlatBuilder::text(value));
  return pair;
}

/// Of a column.
void add_metadata(FlatBuilder& field, std::string_view key, std::string_view value) {
  std::vector<FlatBuilder> metadata;
  metadata.push_back(key_value(key, value));
  field.child(6, FlatBuilder::tables(std::move(metadata)));
}

FlatBuilder column_table(const ArrowOutColumn& column, const OutSchema& schema) {
  switch (column.kind) {
    case Kind::media: {
      std::vector<FlatBuilder> children;
      children.push_back(field_table("bytes", ArrowType::binary, {}));
      children.push_back(field_table("path", ArrowType::utf8, {}));
      FlatBuilder table = field_table(column.name, ArrowType::structure, {}, std::move(children));
      if (!column.path) add_metadata(table, kArrowPathKey, kArrowPathMade);
      return table;
    }
    case Kind::bits:
      return field_table(column.name, ArrowType::boolean, {});
    case Kind::elements: {
      const Field& field = schema.fields[column.field];
      return elements_field(column.name, field.dtype, field.shape.value(), 0);
    }
    default:
      break;
  }
  FlatBuilder table =
      field_table(column.name, column.text ? ArrowType::utf8 : ArrowType::binary, {});
  if (!column.encoding.empty()) add_metadata(table, kArrowEncodingKey, column.encoding);
  return table;
}

Json value_feature(std::string_view dtype) { return {{"dtype", dtype}, {"_type", "Value"}}; }

Json elements_feature(const Field& field, size_t i) {
  if (i == field.shape->size()) return value_feature(name_of(field.dtype));
  Json list;
  list["feature"] = elements_feature(field, i + 1);
  if ((*field.shape)[i] >= 0) list["length"] = (*field.shape)[i];
  list["_type"] = "Sequence";
  return list;
}

Json feature_of(const ArrowOutColumn& column, const OutSchema& schema) {
  const Field& field = schema.fields[column.field];
  if (column.kind == Kind::key) return value_feature("binary");
  if (column.kind == Kind::media) return {{"_type", "Image"}};
  if (column.kind == Kind::bytes) return value_feature(column.text ? "string" : "binary");
  const bool classes = field.name == kLabelField && !schema.classes.empty() &&
                       field.shape->empty() && field.dtype == DType::int64;
  if (!classes) return elements_feature(field, 0);
  Json names = Json::array();
  for (const std::string& name : schema.classes)
    names.push_back(is_utf8(name) ? name : name_to_json(name));
  return {{"names", std::move(names)}, {"_type", "ClassLabel"}};
}

}  // namespace

std::vector<ArrowOutColumn> arrow_columns(const OutSchema& schema) {
  const auto is_image = [](const Field& field) {
    return field.name == kImageField && field.type == FieldType::bytes;
  };
  const bool has_image = std::any_of(schema.fields.begin(), schema.fields.end(), is_image);
  const std::string path_name = std::string(kImageField).append(kPathEnding);
  const auto is_path = [&](const Field& field) {
    return has_image && field.name == path_name && field.type == FieldType::text;
  };
  std::vector<ArrowOutColumn> columns(1);
  columns[0].kind = Kind::key;
  columns[0].name = kKeyFeature;
  std::optional<uint32_t> path;
  for (uint32_t i = 0; i < schema.fields.size(); ++i) {
    const Field& field = schema.fields[i];
    if (is_path(field)) {
      path = i;
      continue;
    }
    ArrowOutColumn& column = columns.emplace_back();
    column.field = i;
    column.name = field.name;
    if (is_elements(field.encoding)) {
      column.kind = field.dtype == DType::bool8 ? Kind::bits : Kind::elements;
    } else {
      column.kind = is_image(field) ? Kind::media : Kind::bytes;
      column.text = field.type == FieldType::text;
      if (field.encoding != Encoding::raw) column.encoding = name_of(field.encoding);
    }
  }
  for (ArrowOutColumn& column : columns) {
    if (column.kind == Kind::media) column.path = path;
  }
  return columns;
}

FlatBuilder arrow_schema_table(const OutSchema& schema,
                               const std::vector<ArrowOutColumn>& columns) {
  std::vector<FlatBuilder> fields;
  fields.reserve(columns.size());
  for (const ArrowOutColumn& column : columns) fields.push_back(column_table(column, schema));
  std::vector<FlatBuilder> metadata;
  metadata.push_back(key_value(kHuggingFaceKey, "{\"info\": {\"features\": " +
                                                    hugging_face_features(schema, columns) + "}}"));
  FlatBuilder table;
  table.child(1, FlatBuilder::tables(std::move(fields)));
  table.child(2, FlatBuilder::tables(std::move(metadata)));
  return table;
}

std::string hugging_face_features(const OutSchema& schema,
                                  const std::vector<ArrowOutColumn>& columns) {
  Json features = Json::object();
  for (const ArrowOutColumn& column : columns) features[column.name] = feature_of(column, schema);
  return features.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker
