// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/format.h"

namespace stoker {

// What arrow_writer.cpp writes: which columns the fields of a dataset become.

/// One column.
struct ArrowOutColumn {
  enum class Kind : uint8_t {
    key,       // binary
    bytes,     // binary or utf8
    media,     // struct of `bytes` and `path`
    elements,  // a number, a fixed_size_list, or a list: by the field's shape
    bits,      // a bool
  };
  Kind kind = {};
  std::string name;
  uint32_t field = 0;            // of OutSchema::fields
  bool text = false;             // of bytes
  std::string encoding;          // of bytes that are something else: "npy", "tf_strings"
  std::optional<uint32_t> path;  // of media: the field that is its path, where there is one
};

std::vector<ArrowOutColumn> arrow_columns(const OutSchema& schema);

/// The FlatBuffers table `Schema`, built.
class FlatBuilder;
FlatBuilder arrow_schema_table(const OutSchema& schema, const std::vector<ArrowOutColumn>& columns);

/// What `datasets` says about the columns: an object for "features".
std::string hugging_face_features(const OutSchema& schema,
                                  const std::vector<ArrowOutColumn>& columns);

}  // namespace stoker
