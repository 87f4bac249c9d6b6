// SPDX-License-Identifier: Apache-2.0
#include "format/arrow_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dataset/tf_list.h"
#include "dataset/value.h"
#include "format/columnar.h"
#include "format/member_name.h"

namespace stoker {
namespace {

constexpr uint64_t kViewSize = 16;
constexpr int32_t kLongestInView = 12;

/// Entry i of a column's offsets.
int64_t offset_at(const ArrowColumn& column, uint64_t i) {
  const ArrowType type = column.field->type;
  const bool large = type == ArrowType::large_binary || type == ArrowType::large_utf8 ||
                     type == ArrowType::large_list;
  return large ? load<int64_t>(&column.entries[i * sizeof(int64_t)])
               : load<int32_t>(&column.entries[i * sizeof(int32_t)]);
}

struct Interval {
  uint64_t begin = 0, end = 0;
};

/// What lies between the offsets of a row. An offset that is wrong spoils both rows beside it, and
/// shows where offsets run backwards: then the rows next to it are not believed either.
Interval interval_at(const ArrowColumn& column, uint64_t row, uint64_t most) {
  const int64_t begin = offset_at(column, row), end = offset_at(column, row + 1);
  const bool wrong = begin < 0 || begin > end || static_cast<uint64_t>(end) > most ||
                     (row > 0 && offset_at(column, row - 1) > begin) ||
                     (row + 2 <= column.rows && offset_at(column, row + 2) < end);
  if (wrong) {
    corrupt(fmt::format("its offsets {} to {}, or those beside them, cannot be right", begin, end));
  }
  return {static_cast<uint64_t>(begin), static_cast<uint64_t>(end)};
}

bool is_view(ArrowType type) {
  return type == ArrowType::binary_view || type == ArrowType::utf8_view;
}

void require_valid(const ArrowColumn& column, const Interval& range) {
  if (column.validity.empty()) return;
  for (uint64_t i = range.begin; i < range.end; ++i) {
    if (!column.valid(i)) corrupt("a list with nulls in it, which no array has");
  }
}

/// Rows share out what there is: where they have more in all, they overlap, and a small file would
/// make much of little.
void take(uint64_t& taken, uint64_t length, uint64_t all) {
  taken += length;
  if (taken > all) corrupt("rows overlap");
}

std::string bits_to_bytes(Bytes bits, const Interval& range) {
  std::string bytes;
  for (uint64_t i = range.begin; i < range.end; ++i) {
    bytes.push_back(static_cast<char>((bits[i / 8] >> (i % 8)) & std::byte{1}));
  }
  return bytes;
}

bool backed(const ArrowColumn& column, uint64_t rows) {
  const auto enough = [rows](uint64_t bytes) { return bytes >= (rows + 7) / 8; };
  if (enough(column.validity.size()) || enough(column.entries.size())) return true;
  if (enough(column.data.length)) return true;
  return std::any_of(column.children.begin(), column.children.end(),
                     [&](const ArrowColumn& child) { return backed(child, rows); });
}

}  // namespace

bool ArrowLeaf::backs(uint64_t rows) const { return backed(column_, rows); }

bool ArrowLeaf::present(uint64_t row) const {
  return column_.valid(row) &&
         std::all_of(around_.begin(), around_.end(),
                     [&](const ArrowColumn* each) { return each->valid(row); });
}

ArrowLeaf::Place ArrowLeaf::resolve(uint64_t row) const {
  if (!column_.field->dictionary) return {&column_, row};
  Array index;
  index.dtype = column_.field->index;
  const size_t size = size_of(index.dtype);
  index.data = Bytes(column_.entries).subspan(row * size, size);
  const Value value = only_element(index);
  const auto* const number = std::get_if<int64_t>(&value);
  if (dictionary_ == nullptr) corrupt("its dictionary is missing");
  if (number == nullptr || *number < 0 || static_cast<uint64_t>(*number) >= dictionary_->rows) {
    corrupt(fmt::format("an index that is not among the {} values of its dictionary",
                        dictionary_->rows));
  }
  auto at = static_cast<uint64_t>(*number);
  for (const ArrowColumn& part : dictionary_->parts) {
    if (at < part.rows) return {&part, at};
    at -= part.rows;
  }
  corrupt("its dictionary is incomplete");
}

ArrowLeaf::BytesAt ArrowLeaf::view_at(const Place& place) {
  const ArrowColumn& column = *place.column;
  const std::byte* const view = &column.entries[place.row * kViewSize];
  const auto length = load<int32_t>(view);
  if (length < 0) corrupt(fmt::format("a value of {} bytes", length));
  const auto size = static_cast<uint64_t>(length);
  constexpr size_t kHead = sizeof(int32_t);
  if (length <= kLongestInView) {
    return {column.data.extent(place.row * kViewSize + kHead, size), view + kHead};
  }
  const auto buffer = load<uint32_t>(view + 8);
  const uint64_t offset = load<uint32_t>(view + 12);
  if (buffer >= column.views.size() || offset > column.views[buffer].length ||
      size > column.views[buffer].length - offset) {
    corrupt(fmt::format("a view of {} bytes at {} of buffer {}", size, offset, buffer));
  }
  const std::vector<std::byte>& bytes = column.views_looked_at[buffer];
  return {column.views[buffer].extent(offset, size), bytes.empty() ? nullptr : &bytes[offset]};
}

ArrowLeaf::BytesAt ArrowLeaf::bytes_at(const Place& place) const {
  const ArrowColumn& column = *place.column;
  const ArrowField& field = *column.field;
  if (is_view(field.type)) return view_at(place);
  Interval range{place.row * field.width, (place.row + 1) * field.width};
  if (field.type != ArrowType::fixed_size_binary) {
    range = interval_at(column, place.row, column.data.length);
  }
  return {column.data.extent(range.begin, range.end - range.begin),
          column.looked_at.empty() ? nullptr : column.looked_at.data() + range.begin};
}

void ArrowLeaf::find_number(const Place& place, FoundField& found) const {
  const ArrowColumn& column = *place.column;
  Array element;
  element.dtype = column.field->dtype;
  std::byte bit{};
  if (element.dtype == DType::bool8) {
    bit = (column.entries[place.row / 8] >> (place.row % 8)) & std::byte{1};
    element.data = {&bit, 1};
  } else {
    const size_t size = size_of(element.dtype);
    element.data = Bytes(column.entries).subspan(place.row * size, size);
  }
  found.type = FieldType::number;
  found.dtype = element.dtype;
  found.encoding = Encoding::none;
  const Value value = only_element(element);
  if (const auto* integer = std::get_if<int64_t>(&value)) found.integer = *integer;
  if (const auto* real = std::get_if<double>(&value)) found.real = *real;
  if (element.dtype == DType::uint64) {
    found.encoding = Encoding::elements;
    found.shape.emplace();
    found.extent = column.data.extent(place.row * sizeof(uint64_t), sizeof(uint64_t));
  }
}

void ArrowLeaf::find_array(uint64_t row, FoundField& found) {
  const ArrowColumn* level = &column_;
  Interval range{row, row + 1};
  std::vector<int64_t> shape;
  bool unknown = false;  // how long inner lists would be
  uint64_t outer = 0;    // how many there are
  while (!level->children.empty()) {
    const ArrowColumn& child = level->children[0];
    const bool first = level == &column_;
    if (!first) require_valid(*level, range);
    if (level->field->type == ArrowType::fixed_size_list) {
      shape.push_back(level->field->width);
      range = {range.begin * level->field->width, range.end * level->field->width};
    } else if (first) {
      range = interval_at(*level, row, child.rows);
      take(elements_taken_, range.end - range.begin, child.rows);
      outer = range.end - range.begin;
      shape.push_back(-1);
    } else {
      const size_t dimension = shape.size() - 1;
      if (range.begin == range.end) {
        unknown = dimension >= plan_.inner.size();
        shape.push_back(unknown ? 0 : plan_.inner[dimension]);
        range = {};
      } else {
        const Interval one = interval_at(*level, range.begin, child.rows);
        const uint64_t length = one.end - one.begin;
        for (uint64_t i = range.begin + 1; i < range.end; ++i) {
          const Interval next = interval_at(*level, i, child.rows);
          if (next.end - next.begin != length) corrupt("inner lists differ in length: no array");
        }
        if (length == 0) corrupt("inner lists are empty: no array");
        shape.push_back(static_cast<int64_t>(length));
        range = {one.begin, one.begin + length * (range.end - range.begin)};
      }
    }
    if (range.end > child.rows) corrupt("a list reaches beyond its elements");
    level = &child;
  }
  require_valid(*level, range);
  if (unknown) {
    shape = shape_of_nothing(plan_.stated, std::move(shape));
  } else {
    const std::vector<int64_t> inner(shape.begin() + 1, shape.end());
    if (plan_.inner.empty()) plan_.inner = inner;
    if (plan_.inner != inner) corrupt("inner lists are not as long as in earlier rows: no array");
  }
  found.type = FieldType::array;
  found.encoding = Encoding::elements;
  found.dtype = level->field->dtype;
  // What is said holds where the row is so: others leave the first dimension open.
  if (shape[0] < 0 && is_of_shape(plan_.stated, outer, std::span(shape).subspan(1))) {
    shape = plan_.stated;
  }
  found.shape = plan_.shape.empty() ? std::move(shape) : plan_.shape;
  if (found.dtype == DType::bool8) {
    scratch_ = bits_to_bytes(level->looked_at, range);
    found.extent.container = Container::here;
    found.inline_bytes = scratch_;
    return;
  }
  const size_t size = size_of(found.dtype);
  found.extent = level->data.extent(range.begin * size, (range.end - range.begin) * size);
}

void ArrowLeaf::find_strings(uint64_t row, FoundField& found) {
  const ArrowColumn& child = column_.children[0];
  Interval range{row * column_.field->width, (row + 1) * column_.field->width};
  if (column_.field->type != ArrowType::fixed_size_list) {
    range = interval_at(column_, row, child.rows);
    take(elements_taken_, range.end - range.begin, child.rows);
  }
  if (range.end > child.rows) corrupt("a list reaches beyond its elements");
  require_valid(child, range);
  std::vector<Bytes> values;
  for (uint64_t i = range.begin; i < range.end; ++i) {
    const BytesAt at = bytes_at({&child, i});
    if (!is_view(child.field->type)) take(bytes_taken_, at.extent.length, child.data.length);
    values.emplace_back(at.looked_at, at.extent.length);
  }
  scratch_ = write_bytes_list(values);
  found.type = FieldType::list;
  found.encoding = Encoding::tf_strings;
  found.suffix = kListSuffix;
  found.extent.container = Container::here;
  found.inline_bytes = scratch_;
}

bool ArrowLeaf::find(uint64_t row, FoundField& found) {
  if (!present(row)) return false;
  found.name = plan_.name;
  if (plan_.use == ArrowUse::array) {
    find_array(row, found);
    return true;
  }
  if (plan_.use == ArrowUse::strings) {
    find_strings(row, found);
    return true;
  }
  const Place place = resolve(row);
  if (!place.column->valid(place.row)) return false;
  if (plan_.use == ArrowUse::number) {
    find_number(place, found);
    return true;
  }
  found.extent = bytes_at(place).extent;
  if (!column_.field->dictionary && !is_view(column_.field->type)) {
    take(bytes_taken_, found.extent.length, column_.data.length);
  }
  if (plan_.encoding != Encoding::raw) {
    found.type = plan_.encoding == Encoding::npy ? FieldType::array : FieldType::list;
    found.encoding = plan_.encoding;
  } else if (column_.field->is_text()) {
    found.type = FieldType::text;
  }
  return true;
}

std::optional<std::string_view> ArrowLeaf::text(uint64_t row) {
  if (!present(row)) return std::nullopt;
  const Place place = resolve(row);
  if (!place.column->valid(place.row)) return std::nullopt;
  const BytesAt at = bytes_at(place);
  if (at.extent.length == 0) return std::string_view();
  if (at.looked_at == nullptr) return std::nullopt;
  return as_text({at.looked_at, at.extent.length});
}

}  // namespace stoker
