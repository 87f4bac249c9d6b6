// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dataset/reader.h"
#include "format/format.h"

namespace stoker {

/// How the fields of a source become those of a format that is written.
class Conversion {
 public:
  Conversion(const Schema& schema, const WriteFormat& write);

  Encoding target(uint32_t field) const { return targets_[field]; }
  /// Whether the stored bytes go over as they are.
  bool copies(uint32_t field) const { return copies_[field]; }

  /// The fields of one sample as they will be written, from its items in a batch; where a field is
  /// converted, its length is the most that it can become.
  void fields_of(const Index& index, std::span<const Item> items,
                 std::vector<OutField>& fields) const;

 private:
  const Schema& schema_;
  std::vector<Encoding> targets_;
  std::vector<bool> copies_;
};

}  // namespace stoker
