// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "format/member_name.h"

namespace stoker {
namespace {

[[noreturn]] void unsupported(const std::string& cause) {
  throw Error(ErrorKind::unsupported, cause);
}

// Numbers in rows that are larger are left where they are: the scan would read everything.
constexpr uint64_t kSmallRow = 256;

bool is_real(DType dtype) {
  return dtype == DType::float16 || dtype == DType::float32 || dtype == DType::float64;
}

template <typename To>
To as(uint64_t bits) {
  To value;
  std::memcpy(&value, &bits, sizeof(To));
  return value;
}

int64_t to_integer(uint64_t bits, DType dtype) {
  switch (dtype) {
    case DType::int8:
      return as<int8_t>(bits);
    case DType::int16:
      return as<int16_t>(bits);
    case DType::int32:
      return as<int32_t>(bits);
    default:
      return static_cast<int64_t>(bits);
  }
}

double to_real(uint64_t bits, DType dtype) {
  if (dtype == DType::float32) return as<float>(bits);
  return as<double>(bits);
}

/// The element of an array type of one element, where that has no elements of its own: PyTables
/// stores a column of text so.
const Hdf5Type& without_array_of_one(const Hdf5Type& type) {
  const Hdf5Type* element = &type;
  while (element->kind == Hdf5Class::array) element = element->base.data();
  const bool whole = element->kind == Hdf5Class::text || element->kind == Hdf5Class::opaque ||
                     element->kind == Hdf5Class::variable;
  return whole && element->size == type.size ? *element : type;
}

}  // namespace

Hdf5Column::Hdf5Column(std::string name, Hdf5Rows& rows, Hdf5GlobalHeap& heap, const Hdf5Type& type,
                       uint64_t offset)
    : name_(std::move(name)),
      rows_(rows),
      heap_(heap),
      type_(without_array_of_one(type)),
      offset_(offset) {
  const bool single = rows.dataset().row_elements == 1 && rows.pieces() <= 1;
  switch (type_.kind) {
    case Hdf5Class::integer:
    case Hdf5Class::bits:
    case Hdf5Class::real:
    case Hdf5Class::enumeration:
    case Hdf5Class::array:
      set_elements(type_);
      return;
    case Hdf5Class::text:
      if (!single) unsupported("several texts in one sample are not read");
      shape_.type = FieldType::text;
      if (type_.padding == Hdf5Type::Padding::nul)
        shape_.encoding = Encoding::padded;
      else
        kind_ = Kind::trimmed;
      return;
    case Hdf5Class::opaque:
      if (!single) unsupported("several opaque values in one sample are not read");
      return;
    case Hdf5Class::variable:
      if (!single) unsupported("several values of variable length in one sample are not read");
      set_variable(type_);
      return;
    default:
      unsupported(fmt::format("values of the class {} are not read", name_of(type_.kind)));
  }
}

void Hdf5Column::set_elements(const Hdf5Type& type) {
  const Hdf5Dataset& dataset = rows_.dataset();
  std::vector<int64_t> shape;
  for (size_t i = 1; i < dataset.space.dims.size(); ++i) {
    shape.push_back(static_cast<int64_t>(dataset.space.dims[i]));
  }
  const Hdf5Type* element = &type;
  for (; element->kind == Hdf5Class::array; element = element->base.data()) {
    for (const uint64_t dim : element->shape) shape.push_back(static_cast<int64_t>(dim));
  }
  if (element->kind == Hdf5Class::text) unsupported("several texts in one sample are not read");
  if (element->dtype == DType::unknown) {
    unsupported(
        fmt::format("elements of the class {} with {} bytes, for which NumPy has no dtype, "
                    "are not read",
                    name_of(element->kind), element->size));
  }
  shape_.dtype = element->dtype;
  shape_.type = shape.empty() ? FieldType::number : FieldType::array;
  shape_.encoding =
      element->big_endian && element->size > 1 ? Encoding::elements_big : Encoding::elements;
  // A number that int64 or double has in full, where reading all of them costs next to nothing.
  const bool number = shape.empty() && element->dtype != DType::uint64 &&
                      element->dtype != DType::float16 && dataset.row_bytes <= kSmallRow;
  shape_.shape = std::move(shape);
  if (!number) return;
  kind_ = Kind::number;
  shape_.encoding = Encoding::none;
  shape_.shape.reset();
}

void Hdf5Column::set_variable(const Hdf5Type& type) {
  kind_ = Kind::variable;
  const Hdf5Type& base = type.base.front();
  element_bytes_ = base.size;
  const uint64_t reference = 4 + 4 + 8;
  if (type.size > reference || type.size < 4 + 4 + 2) unsupported("references of a strange size");
  if (type.variable_text) {
    shape_.type = FieldType::text;
  } else if (base.dtype == DType::uint8 || base.kind == Hdf5Class::opaque) {
    shape_.type = FieldType::bytes;
  } else if (base.dtype != DType::unknown) {
    shape_.type = FieldType::array;
    shape_.dtype = base.dtype;
    shape_.shape = std::vector<int64_t>{-1};
    shape_.encoding =
        base.big_endian && base.size > 1 ? Encoding::elements_big : Encoding::elements;
  } else {
    unsupported(fmt::format("sequences of variable length of the class {}", name_of(base.kind)));
  }
}

uint64_t Hdf5Column::pieces() const {
  const bool whole = type_.size == rows_.dataset().type.size;
  return whole ? rows_.pieces() : rows_.dataset().row_elements;
}

void Hdf5Column::find(uint64_t row, Hdf5File& file, FoundField& field) {
  field = shape_;
  field.name = name_;
  switch (kind_) {
    case Kind::plain:
      return find_plain(row, field);
    case Kind::number:
      return find_number(row, field);
    case Kind::trimmed:
      return find_trimmed(row, field);
    case Kind::variable:
      return find_variable(row, file, field);
  }
}

void Hdf5Column::find_plain(uint64_t row, FoundField& field) {
  const Hdf5Dataset& dataset = rows_.dataset();
  if (view_) {
    const uint64_t length = dataset.row_elements * type_.size;
    field.extent = {Container::shard, *view_, row * length, length, 0};
    return;
  }
  extents_.clear();
  if (type_.size == dataset.type.size) {
    rows_.locate(row, 0, dataset.row_bytes, extents_);
  } else {
    for (uint64_t i = 0; i < dataset.row_elements; ++i) {
      rows_.locate(row, i * dataset.type.size + offset_, type_.size, extents_);
    }
  }
  if (extents_.size() == 1) {
    field.extent = extents_.front();
    return;
  }
  field.extent = {extents_.empty() ? Container::shard : Container::pieces, rows_.shard(), 0, 0, 0};
  for (const Extent& extent : extents_) field.extent.length += extent.length;
  field.pieces = extents_;
}

void Hdf5Column::find_number(uint64_t row, FoundField& field) {
  const Bytes bytes = rows_.read(row, offset_, type_.size);
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t from = type_.big_endian ? i : bytes.size() - 1 - i;
    bits = bits << 8 | std::to_integer<uint64_t>(bytes[from]);
  }
  if (is_real(field.dtype))
    field.real = to_real(bits, field.dtype);
  else
    field.integer = to_integer(bits, field.dtype);
}

void Hdf5Column::find_trimmed(uint64_t row, FoundField& field) {
  extents_.clear();
  rows_.locate(row, offset_, type_.size, extents_);
  field.extent = extents_.front();
  const std::string_view text = as_text(rows_.read(row, offset_, type_.size));
  // A C string ends at its first NUL, one of Fortran with its last letter.
  const bool terminated = type_.padding == Hdf5Type::Padding::terminated;
  const size_t end = terminated ? text.find('\0') : text.find_last_not_of(' ') + 1;
  field.extent.length = std::min(end, text.size());
}

void Hdf5Column::find_variable(uint64_t row, Hdf5File& file, FoundField& field) {
  const Bytes bytes = rows_.read(row, offset_, type_.size);
  Hdf5Cursor reference(bytes, 0, "reference to variable-length data", file.bytes().offset_size());
  const uint64_t count = reference.u32();
  const uint64_t collection = reference.address();
  const uint32_t index = reference.u32();
  field.extent = {Container::shard, rows_.shard(), 0, 0, 0};
  if (count == 0 || collection == 0 || collection == kNowhere) return;
  const Hdf5GlobalHeap::Object object = heap_.find(collection, index);
  if (count > object.length / element_bytes_) {
    throw Hdf5Error(
        ErrorKind::corrupt, object.offset,
        fmt::format("a value of {} elements in {} bytes of the global heap", count, object.length));
  }
  field.extent.offset = object.offset;
  field.extent.length = count * element_bytes_;
  if (name_ != kImageField || field.type != FieldType::bytes) return;
  std::array<std::byte, 16> begin{};
  const size_t size = file.bytes().peek(object.offset, begin);
  field.suffix = image_suffix_of(as_text(Bytes(begin).first(std::min(size, field.extent.length))));
}

bool Hdf5Column::is_text() const {
  return (shape_.type == FieldType::text || shape_.type == FieldType::bytes) &&
         kind_ != Kind::number;
}

std::string Hdf5Column::value(uint64_t row, Hdf5File& file, size_t most) {
  FoundField field;
  find(row, file, field);
  if (field.extent.length > most) {
    throw Hdf5Error(ErrorKind::corrupt, field.extent.offset,
                    fmt::format("a key of {} bytes is too long", field.extent.length));
  }
  if (kind_ != Kind::variable) {
    std::string_view text = as_text(rows_.read(row, offset_, field.extent.length));
    if (kind_ == Kind::plain) text = text.substr(0, text.find_last_not_of('\0') + 1);
    return std::string(text);
  }
  std::string text(field.extent.length, '\0');
  text.resize(file.bytes().peek(field.extent.offset, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace stoker
