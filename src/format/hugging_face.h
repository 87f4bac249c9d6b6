// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"

namespace stoker {

// What Hugging Face's `datasets` says about the columns of the Arrow and Parquet files that it
// writes: JSON under the key "huggingface" of the schema's metadata, and in dataset_info.json.

inline constexpr std::string_view kHuggingFaceKey = "huggingface";

/// One column as `datasets` sees it.
struct HuggingFaceFeature {
  std::string name;
  std::string type;                  // "Image", "ClassLabel", "Value", "Array2D", …
  std::vector<std::string> classes;  // of a ClassLabel
  std::vector<int64_t> shape = {};   // of an Array2D … Array5D or lists of lists; -1: varies
};

/// The features of {"info": {"features": …}} or {"features": …}; none where it is something else.
std::vector<HuggingFaceFeature> parse_hugging_face(std::string_view json);

/// What becomes of a table's columns.
struct ColumnNames {
  std::vector<std::string> fields;   // name of the field that each column is
  std::vector<std::string> classes;  // that `label` counts
  /// Of each column: dimensions that its arrays have in every row, or are said to have; -1: it
  /// varies. Empty where nobody says.
  std::vector<std::vector<int64_t>> shapes;
};

/// A column keeps its name, except that the first Image is `image` and the first ClassLabel `label`
/// where no column is called so.
ColumnNames name_columns(std::span<const std::string_view> columns,
                         std::span<const HuggingFaceFeature> features);

/// The classes that `label` counts, by the first shard whose schema can be read.
std::vector<std::string> first_classes(
    const Source& source, const Layout& layout,
    const std::function<std::vector<std::string>(ReadableFile& file)>& classes_of);

}  // namespace stoker
