// SPDX-License-Identifier: Apache-2.0
#include "load/row_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "dataset/npy.h"
#include "load/image_field.h"

namespace stoker {
namespace {

bool has_shape(const std::vector<int64_t>& shape, const std::vector<uint64_t>& wanted) {
  return std::equal(shape.begin(), shape.end(), wanted.begin(), wanted.end(),
                    [](int64_t a, uint64_t b) { return static_cast<uint64_t>(a) == b; });
}

[[noreturn]] void other_shape() {
  throw Error(ErrorKind::corrupt, "is no array of the type and shape that the index says");
}

void set_bytes(RowValue& value, FieldType type, Bytes bytes) {
  value.present = true;
  value.type = type;
  value.bytes.assign(bytes.begin(), bytes.end());
}

/// What `value` points into is copied.
RowValue keep(const Value& value) {
  RowValue kept;
  if (const auto* bytes = std::get_if<Bytes>(&value)) set_bytes(kept, FieldType::bytes, *bytes);
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    set_bytes(kept, FieldType::text, as_bytes(*text));
  }
  if (const auto* array = std::get_if<Array>(&value)) {
    set_bytes(kept, FieldType::array, array->data);
    kept.dtype = array->dtype;
    kept.shape = array->shape;
  }
  const auto number = [&](DType dtype, const void* from) {
    set_bytes(kept, FieldType::array, {static_cast<const std::byte*>(from), 8});
    kept.dtype = dtype;
  };
  if (const auto* integer = std::get_if<int64_t>(&value)) number(DType::int64, integer);
  if (const auto* real = std::get_if<double>(&value)) number(DType::float64, real);
  if (const auto* list = std::get_if<std::vector<Bytes>>(&value)) {
    kept.present = true;
    kept.type = FieldType::list;
    for (const Bytes bytes : *list) {
      kept.bytes.insert(kept.bytes.end(), bytes.begin(), bytes.end());
      kept.ends.push_back(kept.bytes.size());
    }
  }
  return kept;
}

/// CRC-32C of what was fetched, where it was compared with the index: now, or when it came into the
/// cache.
std::optional<uint32_t> crc_of(const Item& item, const Reader& reader) {
  if (reader.index().segment(item.segment).depth() != Depth::full) return std::nullopt;
  return item.located.extent.crc;
}

void fill_number(const ColumnPlan& plan, const Value& value, std::byte* to) {
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  if (plan.element == "int64" && integer != nullptr) return store(to, *integer);
  if (plan.element == "float64" && integer != nullptr) {
    return store(to, static_cast<double>(*integer));
  }
  if (plan.element == "float64" && real != nullptr) return store(to, *real);
  throw Error(ErrorKind::corrupt, plan.element == "int64" ? "is no whole number" : "is no number");
}

}  // namespace

RowMaker::RowMaker(const Sources& sources, const std::vector<ColumnPlan>& columns,
                   const PictureRecipe* recipe, uint64_t seed, uint64_t epoch)
    : sources_(sources), columns_(columns), recipe_(recipe), seed_(seed), epoch_(epoch) {}

void RowMaker::make(const FetchedRow& fetched, const Draw& draw, LoadedBatch& batch, uint64_t row) {
  batch.samples[row] = draw.sample;
  const std::span<const Item> items =
      fetched.from ? fetched.from->items(fetched.row) : std::span<const Item>();
  for (size_t number = 0; number < columns_.size(); ++number) {
    const ColumnPlan& plan = columns_[number];
    const std::optional<uint32_t> field =
        fetched.from ? sources_.field_in(fetched.from->source, plan.field) : std::nullopt;
    const auto item = std::find_if(items.begin(), items.end(),
                                   [&](const Item& each) { return each.field == field; });
    if (item != items.end()) {
      fill(*fetched.from, *item, draw, batch.columns[number], plan, row);
    } else if (plan.kind != ColumnPlan::Kind::values) {
      Fault fault;
      fault.sample = sources_.key(draw.sample);
      fault.cause = fmt::format("has no field '{}'", printable(plan.name));
      throw SampleError(ErrorKind::corrupt, std::move(fault), 0);
    } else {
      batch.columns[number].values[row] = {};  // not what a bad sample has left there
    }
  }
}

void RowMaker::fill(const FetchedSamples& from, const Item& item, const Draw& draw,
                    BatchColumn& column, const ColumnPlan& plan, uint64_t row) {
  if (item.failed) {
    const ReadFailure& failure = from.failure(item);
    throw SampleError(failure.kind, failure.fault, failure.os_error);
  }
  const Reader& reader = sources_.reader(from.source);
  try {
    switch (plan.kind) {
      case ColumnPlan::Kind::pictures: {
        SampleRandom random(seed_, epoch_, draw.identity);
        EncodedPhoto photo{
            {item.data, item.length}, from.row_index(item), crc_of(item, reader), std::nullopt};
        const Value value = plan.raw ? reader.decode(item) : Value();
        if (const auto* array = std::get_if<Array>(&value)) photo.raw = raw_image_of(*array);
        const std::string damage = pictures_.make(*recipe_, photo, random, column.row(row));
        if (!damage.empty()) damaged_.push_back(reader.fault(from.batch, item, damage));
        return;
      }
      case ColumnPlan::Kind::numbers:
        return fill_number(plan, reader.decode(item), column.row(row));
      case ColumnPlan::Kind::arrays:
        return fill_array(plan, item, reader, column.row(row));
      case ColumnPlan::Kind::values:
        column.values[row] = keep(reader.decode(item));
        return;
    }
  } catch (const Error& error) {
    throw SampleError(error.kind(), reader.fault(from.batch, item, error.what()), 0);
  }
}

void RowMaker::fill_array(const ColumnPlan& plan, const Item& item, const Reader& reader,
                          std::byte* to) {
  if (item.head != 0) return check_header(plan, item);
  const Value value = reader.decode(item);
  const auto* array = std::get_if<Array>(&value);
  if (array == nullptr || name_of(array->dtype) != plan.element ||
      !has_shape(array->shape, plan.shape)) {
    other_shape();
  }
  if (array->data.data() == to) return;  // read straight to its place
  std::memcpy(to, array->data.data(), array->data.size());
}

/// The elements lie in the batch already; the header in front of them must say what was expected.
void RowMaker::check_header(const ColumnPlan& plan, const Item& item) {
  const Bytes head(item.head_data, item.head);
  if (header_of_ == &plan && head.size() == header_.size() &&
      std::memcmp(head.data(), header_.data(), head.size()) == 0) {
    return;
  }
  const NpyHeader header = parse_npy_header(head);
  if (header.big_endian || header.fortran_order || name_of(header.dtype) != plan.element ||
      !has_shape(header.shape, plan.shape) || header.size != head.size()) {
    reorder(plan, item);
    return;
  }
  header_.assign(head.begin(), head.end());
  header_of_ = &plan;
}

/// Elements that have another order than a batch has.
void RowMaker::reorder(const ColumnPlan& plan, const Item& item) {
  std::vector<std::byte> whole(item.head_data, item.head_data + item.head);
  whole.insert(whole.end(), item.data, item.data + plan.row_bytes);
  const Array array = parse_npy(whole);
  if (name_of(array.dtype) != plan.element || !has_shape(array.shape, plan.shape)) other_shape();
  std::memcpy(item.data, array.data.data(), array.data.size());
}

}  // namespace stoker
