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
  /// `format` is for messages.
  Conversion(const Index& source, std::string_view format, const WriteFormat& write,
             std::string compress);

  /// What is written; fields that the format cannot store are not in it.
  const OutSchema& out() const { return out_; }
  /// Numbers, in the source, of the fields that are written.
  std::span<const uint32_t> wanted() const { return wanted_; }
  /// What the format cannot store: `lossy: field "mask" (array) → not in npy: its shape varies`.
  const std::vector<std::string>& lossy() const { return lossy_; }

  /// As a field of the source is written.
  const Field& target(uint32_t field) const { return out_.fields[numbers_[field]]; }
  /// Whether the stored bytes go over as they are.
  bool copies(uint32_t field) const { return copies_[field]; }

  /// The fields of one sample as they will be written, from its items in a batch; where a field is
  /// converted, its length is the most that it can become.
  void fields_of(const Index& index, std::span<const Item> items,
                 std::vector<OutField>& fields) const;

 private:
  void add(uint32_t number, const WriteFormat& write, std::string_view format);

  const Index& source_;
  OutSchema out_;
  std::vector<uint32_t> wanted_;
  std::vector<uint32_t> numbers_;  // by field of the source: of OutSchema::fields
  std::vector<bool> copies_;
  std::vector<std::string> lossy_;
};

}  // namespace stoker
