// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

/// Takes over what a function of Python's C interface returned.
template <typename T = nb::object>
T checked(PyObject* result) {
  if (result == nullptr) throw nb::python_error();
  return nb::steal<T>(result);
}

std::string copy_of(const nb::object& bytes) {
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

}  // namespace

nb::str to_str(std::string_view bytes) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  return checked<nb::str>(PyUnicode_DecodeUTF8(bytes.data(), size, "surrogateescape"));
}

nb::list to_list(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(to_str(text));
  return list;
}

std::string to_bytes(nb::handle text) {
  if (PyBytes_Check(text.ptr())) return copy_of(nb::borrow(text));
  return copy_of(checked(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape")));
}

std::string to_path(nb::handle path) {
  if (path.is_none()) return {};
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &encoded) == 0) throw nb::python_error();
  return copy_of(nb::steal(encoded));
}

nb::str from_path(std::string_view path) {
  const auto size = static_cast<Py_ssize_t>(path.size());
  return checked<nb::str>(PyUnicode_DecodeFSDefaultAndSize(path.data(), size));
}

uint64_t to_size(std::string_view argument, std::string_view text) {
  const std::optional<uint64_t> size = parse_size(text);
  if (size && *size > 0) return *size;
  throw Error(ErrorKind::usage, fmt::format("{} '{}': should be a size such as 512M, 1G or 1.5GiB",
                                            argument, printable(text)));
}

nb::dict to_dict(const Field& field) {
  nb::dict dict;
  dict["name"] = to_str(field.name);
  dict["type"] = to_str(name_of(field.type));
  dict["dtype"] =
      field.dtype == DType::unknown ? nb::object(nb::none()) : to_str(name_of(field.dtype));
  nb::object shape = nb::none();
  if (field.shape) {
    nb::list dimensions;
    for (const int64_t dimension : *field.shape) dimensions.append(dimension);
    shape = nb::tuple(dimensions);
  }
  dict["shape"] = shape;
  dict["suffixes"] = nb::tuple(to_list(field.suffixes));
  dict["present"] = field.present;
  return dict;
}

nb::dict to_dict(const Schema& schema) {
  nb::dict dict;
  for (const Field& field : schema.fields) {
    nb::dict described = to_dict(field);
    described["classes"] =
        field.name == kLabelField ? nb::tuple(to_list(schema.classes)) : nb::tuple();
    dict[to_str(field.name)] = described;
  }
  return dict;
}

nb::list to_list(const std::vector<Fault>& faults) {
  nb::list list;
  for (const Fault& fault : faults) {
    nb::dict dict;
    dict["shard"] = from_path(fault.shard);
    dict["offset"] = fault.offset.value_or(0);
    dict["sample"] = to_str(fault.sample);
    dict["field"] = to_str(fault.field);
    dict["cause"] = to_str(fault.cause);
    dict["message"] = to_str(fault.message());
    dict["samples"] = fault.samples ? nb::object(nb::int_(*fault.samples)) : nb::none();
    list.append(dict);
  }
  return list;
}

}  // namespace stoker::python
