// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "format/hugging_face.h"
#include "format/parquet_metadata.h"

namespace stoker {

/// Arrow's writers keep the schema that a table had: lists that were of fixed size, which Parquet
/// does not know. Fills shapes of columns that have none.
void add_arrow_shapes(const ParquetFile& file, std::span<const std::string_view> columns,
                      ColumnNames& names);

}  // namespace stoker
