// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <nanobind/nanobind.h>

#include <cerrno>

#include "base/error.h"
#include "convert.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

nb::object exception_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return nb::borrow(PyExc_ValueError);
    case ErrorKind::not_found:
      return nb::borrow(PyExc_FileNotFoundError);
    case ErrorKind::permission:
      return nb::borrow(PyExc_PermissionError);
    case ErrorKind::io:
      return nb::borrow(PyExc_OSError);
    case ErrorKind::interrupted:
      return nb::borrow(PyExc_KeyboardInterrupt);
    // Written in Python; only looked up here, so that this module can be imported by itself.
    case ErrorKind::corrupt:
      return nb::module_::import_("stoker._errors").attr("CorruptError");
    case ErrorKind::unsupported:
      return nb::module_::import_("stoker._errors").attr("UnsupportedError");
  }
  return nb::borrow(PyExc_RuntimeError);
}

void raise(const Error& error) {
  const nb::object type = error.os_error() == ENOMEM ? nb::object(nb::borrow(PyExc_MemoryError))
                                                     : exception_of(error.kind());
  const nb::str message = to_str(error.what());
  const bool is_os_error = PyObject_IsSubclass(type.ptr(), PyExc_OSError) == 1;
  if (is_os_error && error.os_error() != 0) {
    PyErr_SetObject(type.ptr(), nb::make_tuple(error.os_error(), message).ptr());
  } else {
    PyErr_SetObject(type.ptr(), message.ptr());
  }
}

}  // namespace

void register_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

}  // namespace stoker::python
