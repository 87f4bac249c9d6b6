// SPDX-License-Identifier: Apache-2.0
#include "fetched.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <variant>

#include "convert.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

nb::object new_bytes(uint64_t size) {
  if (size > static_cast<uint64_t>(PY_SSIZE_T_MAX)) throw std::bad_alloc();
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (bytes == nullptr) throw nb::python_error();
  return nb::steal(bytes);
}

// The byte in front of an array's memory says how far that is from what malloc gave.
// aligned_alloc() would cut its blocks so that they hardly serve again.
constexpr size_t kAlignment = 64;

ArrayMemory array_memory(uint64_t size) {
  if (size > static_cast<uint64_t>(PTRDIFF_MAX) - kAlignment) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(std::malloc(size + kAlignment));
  if (begin == nullptr) throw std::bad_alloc();
  const size_t ahead = kAlignment - reinterpret_cast<uintptr_t>(begin) % kAlignment;
  begin[ahead - 1] = static_cast<std::byte>(ahead);
  return ArrayMemory(begin + ahead);
}

nb::bytes copied(Bytes bytes) { return nb::bytes(bytes.data(), bytes.size()); }

nb::dlpack::dtype numpy_dtype(DType dtype) {
  switch (dtype) {
    case DType::bool8:
      return nb::dtype<bool>();
    case DType::int8:
      return nb::dtype<int8_t>();
    case DType::int16:
      return nb::dtype<int16_t>();
    case DType::int32:
      return nb::dtype<int32_t>();
    case DType::int64:
      return nb::dtype<int64_t>();
    case DType::uint8:
      return nb::dtype<uint8_t>();
    case DType::uint16:
      return nb::dtype<uint16_t>();
    case DType::uint32:
      return nb::dtype<uint32_t>();
    case DType::uint64:
      return nb::dtype<uint64_t>();
    case DType::float16:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case DType::float32:
      return nb::dtype<float>();
    case DType::float64:
      return nb::dtype<double>();
    case DType::unknown:
      break;
  }
  throw Error(ErrorKind::unsupported, "an array of unknown element type");
}

}  // namespace

void free_array_memory(void* memory) noexcept {
  auto* const begin = static_cast<std::byte*>(memory);
  std::free(begin - static_cast<size_t>(begin[-1]));
}

Fetched::Fetched(const Reader& reader, const std::vector<nb::object>& names, Batch batch)
    : reader_(reader), names_(names), batch_(std::move(batch)) {
  try {
    allocate();
  } catch (const std::bad_alloc&) {
    raise_no_memory();
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_MemoryError)) throw;
    raise_no_memory();
  }
}

void Fetched::raise_no_memory() const {
  PyErr_SetObject(PyExc_MemoryError, to_str(reader_.no_memory(batch_).what()).ptr());
  throw nb::python_error();
}

void Fetched::allocate() {
  const std::vector<Field>& fields = reader_.index().schema().fields;
  const size_t count = batch_.items.size();
  bytes_.resize(count);
  buffers_.resize(count);
  uint64_t scratch_size = 0;
  for (size_t i = 0; i < count; ++i) {
    Item& item = batch_.items[i];
    while (row_begins_.size() <= item.row) row_begins_.push_back(i);
    const FieldType type = fields[item.field].type;
    if (type == FieldType::bytes) {
      bytes_[i] = new_bytes(item.length);
      item.data = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes_[i].ptr()));
    } else if (type == FieldType::array) {
      buffers_[i] = array_memory(item.length);
      item.data = buffers_[i].get();
    } else {
      scratch_size += item.length;
    }
  }
  row_begins_.resize(rows() + 1, count);
  scratch_ = std::make_unique_for_overwrite<std::byte[]>(scratch_size);
  std::byte* next = scratch_.get();
  for (Item& item : batch_.items) {
    if (item.data == nullptr) item.data = std::exchange(next, next + item.length);
  }
}

void Fetched::fetch() { failures_ = reader_.fetch(batch_); }

nb::dict Fetched::take(size_t row) {
  const size_t begin = row_begins_[row], end = row_begins_[row + 1];
  for (const ReadFailure& failure : failures_) {
    if (failure.item >= begin && failure.item < end) throw_failure(failure);
  }
  nb::dict sample;
  for (size_t i = begin; i < end; ++i) {
    const nb::object& name = names_[batch_.items[i].field];
    const nb::object value = take_value(i);
    if (PyDict_SetItem(sample.ptr(), name.ptr(), value.ptr()) != 0) throw nb::python_error();
  }
  return sample;
}

nb::object Fetched::take_value(size_t number) {
  const Item& item = batch_.items[number];
  Value value = reader_.decode(batch_, item);
  if (const auto* bytes = std::get_if<Bytes>(&value)) {
    if (bytes->data() == item.data && bytes->size() == item.length && bytes_[number].is_valid()) {
      return std::move(bytes_[number]);
    }
    return copied(*bytes);
  }
  if (const auto* text = std::get_if<std::string_view>(&value)) return to_str(*text);
  if (const auto* integer = std::get_if<int64_t>(&value)) return nb::int_(*integer);
  if (const auto* real = std::get_if<double>(&value)) return nb::float_(*real);
  if (auto* elements = std::get_if<Array>(&value)) {
    return array(std::move(*elements), std::move(buffers_[number]));
  }
  if (const auto* list = std::get_if<std::vector<Bytes>>(&value)) {
    nb::list values;
    for (const Bytes bytes : *list) values.append(copied(bytes));
    return values;
  }
  return nb::none();
}

// The array keeps its memory alive and is the only one to use it, so it may be written to.
nb::object Fetched::array(Array&& array, ArrayMemory buffer) {
  const nb::dlpack::dtype dtype = numpy_dtype(array.dtype);
  const std::byte* begin = array.data.data();
  const bool aligned = reinterpret_cast<uintptr_t>(begin) % size_of(array.dtype) == 0;
  const bool in_buffer = buffer && array.owned.empty();
  std::byte* data = nullptr;
  if (in_buffer && aligned) {
    data = buffer.get() + (begin - buffer.get());
  } else {
    ArrayMemory own = array_memory(array.data.size());
    std::copy_n(begin, array.data.size(), own.get());
    buffer = std::move(own);
    data = buffer.get();
  }
  const std::vector<size_t> shape(array.shape.begin(), array.shape.end());
  const nb::capsule owner(buffer.get(), free_array_memory);
  (void)buffer.release();
  return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, dtype));
}

}  // namespace stoker::python
