// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// What Hugging Face's `datasets` says about the columns of the Arrow and Parquet files that it
// writes: JSON under the key "huggingface" of the schema's metadata, and in dataset_info.json.

inline constexpr std::string_view kHuggingFaceKey = "huggingface";

/// One column as `datasets` sees it.
struct HuggingFaceFeature {
  std::string name;
  std::string type;                  // "Image", "ClassLabel", "Value", "Array2D", …
  std::vector<std::string> classes;  // of a ClassLabel
};

/// The features of {"info": {"features": …}} or {"features": …}; none where it is something else.
std::vector<HuggingFaceFeature> parse_hugging_face(std::string_view json);

/// What becomes of a table's columns.
struct ColumnNames {
  std::vector<std::string> fields;   // name of the field that each column is
  std::vector<std::string> classes;  // that `label` counts
};

/// A column keeps its name, except that the first Image is `image` and the first ClassLabel `label`
/// where no column is called so.
ColumnNames name_columns(std::span<const std::string_view> columns,
                         std::span<const HuggingFaceFeature> features);

}  // namespace stoker
