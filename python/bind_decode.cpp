// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "base/crc32c.h"
#include "base/error.h"
#include "bind.h"
#include "image/decode.h"
#include "image/row_index.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

using Crop = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;
using OutputSize = std::tuple<uint32_t, uint32_t>;

/// The bytes of anything that has a buffer, for as long as this lives.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Bytes bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

nb::object decode(nb::handle data, const std::optional<Crop>& crop,
                  const std::optional<OutputSize>& size, const std::string& resample, bool flip,
                  bool like_pillow, nb::handle row_index) {
  DecodeOptions options;
  if (crop) {
    options.crop =
        Region{std::get<0>(*crop), std::get<1>(*crop), std::get<2>(*crop), std::get<3>(*crop)};
  }
  if (size) options.size = Size{std::get<0>(*size), std::get<1>(*size)};
  const std::optional<Resample> filter = find_resample(resample);
  if (!filter) {
    throw Error(ErrorKind::usage,
                fmt::format("resample '{}': should be one of nearest, box, bilinear, bicubic, "
                            "lanczos",
                            resample));
  }
  options.resample = *filter;
  options.flip = flip;
  options.like_pillow = like_pillow;
  const Buffer buffer(data);
  std::optional<Buffer> rows;
  if (!row_index.is_none()) options.row_index = rows.emplace(row_index).bytes();
  Size output;
  std::unique_ptr<uint8_t[]> pixels;
  {
    const nb::gil_scoped_release released;
    thread_local ImageDecoder decoder;
    decoder.open(buffer.bytes());
    output = decoder.output_size(options);
    pixels = std::make_unique_for_overwrite<uint8_t[]>(output.pixels() * 3);
    decoder.decode(options, pixels.get(), size_t{output.width} * 3);
  }
  uint8_t* bytes = pixels.release();
  const nb::capsule owner(bytes, [](void* memory) noexcept {
    std::unique_ptr<uint8_t[]>(static_cast<uint8_t*>(memory)).reset();
  });
  return nb::cast(nb::ndarray<nb::numpy, uint8_t>(bytes, {output.height, output.width, 3}, owner));
}

nb::object row_index(nb::handle data, uint32_t every) {
  const Buffer buffer(data);
  RowIndexer indexer(every);
  {
    const nb::gil_scoped_release released;
    indexer.make(buffer.bytes(), crc32c(buffer.bytes()));
  }
  const Bytes made = indexer.bytes();
  if (made.empty()) return nb::none();
  return nb::bytes(made.data(), made.size());
}

}  // namespace

void bind_decode(nb::module_& module) {
  module.def("decode", &decode, nb::arg("data"), nb::arg("crop").none(), nb::arg("size").none(),
             nb::arg("resample"), nb::arg("flip"), nb::arg("like_pillow"),
             nb::arg("row_index").none(),
             nb::sig("def decode(data: bytes | bytearray | memoryview, crop: tuple[int, int, int, "
                     "int] | None, size: tuple[int, int] | None, resample: str, flip: bool, "
                     "like_pillow: bool, row_index: bytes | bytearray | memoryview | None) -> "
                     "typing.Any"));
  module.def("row_index", &row_index, nb::arg("data"), nb::arg("every"),
             nb::sig("def row_index(data: bytes | bytearray | memoryview, every: int) -> "
                     "bytes | None"));
}

}  // namespace stoker::python
