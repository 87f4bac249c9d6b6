// SPDX-License-Identifier: Apache-2.0
#include "pack/out_sample.h"

#include <fmt/format.h>

#include <optional>

#include "base/text.h"

namespace stoker {
namespace {

/// More bytes than a converted field can take; all that it takes, where its shape says so.
uint64_t converted_bound(uint64_t stored_length, Encoding from, const Field& to) {
  constexpr uint64_t kNumber = 32;
  constexpr uint64_t kNpyHeader = 256;
  if (is_elements(to.encoding) && to.shape) {
    if (const auto size = size_of_elements(to.dtype, *to.shape)) return *size;
  }
  // A varint of one byte becomes an int64; floats keep their size.
  const uint64_t growth = from == Encoding::tf_int64s ? 8 : 1;
  return (to.encoding == Encoding::npy ? kNpyHeader : kNumber) + stored_length * growth;
}

/// Whether stored bytes mean the same in the encoding that is written.
bool same_bytes(const Field& from, const Field& to) {
  if (from.encoding == Encoding::none || from.encoding != to.encoding) return false;
  return !is_elements(from.encoding) ||
         (from.dtype != DType::unknown && from.dtype == to.dtype && from.shape == to.shape);
}

/// The field with its first dimension, where the samples that have it all agree in that; a list
/// column of Arrow or Parquet leaves it open even then. The index knows: no data is read.
std::optional<Field> with_first_dimension(const Index& source, uint32_t number) {
  Field field = source.schema().fields[number];
  const bool open = is_elements(field.encoding) && field.shape && !field.shape->empty() &&
                    field.shape->front() == -1;
  if (!open) return std::nullopt;
  const auto rest = size_of_elements(field.dtype, std::span(*field.shape).subspan(1));
  if (!rest || *rest == 0) return std::nullopt;
  std::optional<uint64_t> length;
  for (uint32_t s = 0; s < source.manifest().segments.size(); ++s) {
    const std::optional<uint32_t> local = source.local_field(s, number);
    if (!local) continue;
    const Segment& segment = source.segment(s);
    for (uint64_t i = 0; i < segment.samples(); ++i) {
      const Located located = segment.locate(i, *local);
      if (!located.present) continue;
      if (length.value_or(located.extent.length) != located.extent.length) return std::nullopt;
      length = located.extent.length;
    }
  }
  if (!length || *length % *rest != 0) return std::nullopt;
  field.shape->front() = static_cast<int64_t>(*length / *rest);
  return field;
}

}  // namespace

Conversion::Conversion(const Index& source, std::string_view format, const WriteFormat& write,
                       std::string compress)
    : source_(source) {
  const Schema& schema = source.schema();
  out_.samples = source.size();
  out_.classes = schema.classes;
  out_.compress = std::move(compress);
  for (uint32_t number = 0; number < schema.fields.size(); ++number) add(number, write, format);
}

void Conversion::add(uint32_t number, const WriteFormat& write, std::string_view format) {
  const Field& field = source_.schema().fields[number];
  numbers_.push_back(static_cast<uint32_t>(out_.fields.size()));
  copies_.push_back(false);
  Storage storage = write.storage(field, out_.samples);
  if (!storage.refusal.empty()) {
    if (const auto closed = with_first_dimension(source_, number)) {
      storage = write.storage(*closed, out_.samples);
    }
  }
  if (!storage.refusal.empty()) {
    lossy_.push_back(fmt::format("lossy: field \"{}\" ({}) → not in {}: {}", printable(field.name),
                                 name_of(field.type), format, storage.refusal));
    return;
  }
  Field target = field;
  target.encoding = storage.encoding;
  if (storage.dtype != DType::unknown) target.dtype = storage.dtype;
  if (storage.shape) target.shape = std::move(storage.shape);
  copies_.back() = same_bytes(field, target);
  out_.fields.push_back(std::move(target));
  wanted_.push_back(number);
}

void Conversion::fields_of(const Index& index, std::span<const Item> items,
                           std::vector<OutField>& fields) const {
  fields.clear();
  for (const Item& item : items) {
    const Field& field = source_.schema().fields[item.field];
    const Field& as = target(item.field);
    const uint32_t local = index.local_field(item.segment, item.field).value();
    OutField out;
    out.name = field.name;
    out.suffix = index.segment(item.segment).fields()[local].suffixes.at(item.located.suffix);
    out.encoding = as.encoding;
    out.type = field.type;
    out.number = numbers_[item.field];
    out.length =
        copies(item.field) ? item.length : converted_bound(item.length, field.encoding, as);
    fields.push_back(out);
  }
}

}  // namespace stoker
