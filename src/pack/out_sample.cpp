// SPDX-License-Identifier: Apache-2.0
#include "pack/out_sample.h"

namespace stoker {
namespace {

/// More bytes than a converted field can take.
uint64_t converted_bound(uint64_t stored_length, Encoding from, Encoding to) {
  constexpr uint64_t kNumber = 32;
  constexpr uint64_t kNpyHeader = 256;
  // A varint of one byte becomes an int64; floats keep their size.
  const uint64_t growth = from == Encoding::tf_int64s ? 8 : 1;
  return (to == Encoding::npy ? kNpyHeader : kNumber) + stored_length * growth;
}

}  // namespace

Conversion::Conversion(const Schema& schema, const WriteFormat& write) : schema_(schema) {
  for (const Field& field : schema.fields) {
    targets_.push_back(write.encoding(field));
    copies_.push_back(targets_.back() == field.encoding && field.encoding != Encoding::none);
  }
}

void Conversion::fields_of(const Index& index, std::span<const Item> items,
                           std::vector<OutField>& fields) const {
  fields.clear();
  for (const Item& item : items) {
    const Field& field = schema_.fields[item.field];
    const uint32_t local = index.local_field(item.segment, item.field).value();
    OutField out;
    out.name = field.name;
    out.suffix = index.segment(item.segment).fields()[local].suffixes.at(item.located.suffix);
    out.encoding = target(item.field);
    out.type = field.type;
    out.length = copies(item.field) ? item.length
                                    : converted_bound(item.length, field.encoding, out.encoding);
    fields.push_back(out);
  }
}

}  // namespace stoker
