// SPDX-License-Identifier: Apache-2.0
#include "load/image_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr std::string_view kWhatIsAnImage =
    "images are encoded (JPEG, PNG, WebP, GIF, BMP) or arrays of uint8 of the shape (height, "
    "width), (height, width, 3) or (3, height, width)";

bool is_channels(int64_t count) { return count == 1 || count == 3; }

/// Dimensions that are not known may be any.
bool is_shape_of_image(const std::vector<int64_t>& shape) {
  if (shape.size() == 2) return true;
  const auto may_be_channels = [](int64_t count) { return count < 0 || is_channels(count); };
  return shape.size() == 3 && (may_be_channels(shape[2]) || may_be_channels(shape[0]));
}

/// As far as its type says.
bool may_be_image(const Field& field) {
  if (field.type != FieldType::array) return field.type == FieldType::bytes;
  const bool is_uint8 = field.dtype == DType::uint8 || field.dtype == DType::unknown;
  return is_uint8 && (!field.shape || is_shape_of_image(*field.shape));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(size < 0 ? "?" : fmt::format("{}", size));
  return fmt::format("{}", fmt::join(sizes, " x "));
}

std::string array_text(DType dtype, const std::vector<int64_t>& shape) {
  return fmt::format("{} of {}", name_of(dtype), shape.empty() ? "one element" : shape_text(shape));
}

std::string contents_of(const Field& field) {
  switch (field.type) {
    case FieldType::text:
      return "text";
    case FieldType::number:
      return "numbers";
    case FieldType::list:
      return "lists of byte strings";
    case FieldType::bytes:
      return "bytes";
    case FieldType::array:
      break;
  }
  if (field.dtype == DType::unknown || !field.shape) return "arrays";
  return "arrays of " + array_text(field.dtype, *field.shape);
}

}  // namespace

uint32_t find_image(const Sources& sources, const std::string& name, bool for_shell) {
  const std::vector<Field>& fields = sources.fields();
  const auto choice = [&](const Field& field) {
    const std::string shown = printable(field.name);
    return for_shell ? "--image " + shown : "image=\"" + shown + "\"";
  };
  const std::string_view without = for_shell ? "use --raw" : "leave out the transforms";
  const auto candidate = std::find_if(fields.begin(), fields.end(), may_be_image);
  const std::optional<uint32_t> image = sources.find(name);
  if (image && may_be_image(fields[*image])) return *image;
  if (image) {
    throw Error(
        ErrorKind::usage,
        fmt::format("field '{}' holds {}, not images ({}): {}{}", printable(name),
                    contents_of(fields[*image]), kWhatIsAnImage,
                    candidate == fields.end() ? "" : "choose " + choice(*candidate) + ", or ",
                    without));
  }
  std::vector<std::string> known;
  for (const Field& field : fields) known.push_back(printable(field.name));
  throw Error(
      ErrorKind::usage,
      fmt::format("the dataset has no field '{}' to decode, only: {}; {}", printable(name),
                  fmt::join(known, ", "),
                  candidate == fields.end() ? fmt::format("none of them holds images: {}", without)
                                            : "choose one: " + choice(*candidate)));
}

RawImage raw_image_of(const Array& array) {
  const std::vector<int64_t>& shape = array.shape;
  const bool fits = std::all_of(shape.begin(), shape.end(), [](int64_t size) {
    return size > 0 && size <= std::numeric_limits<int32_t>::max();
  });
  if (array.dtype != DType::uint8 || !fits || !is_shape_of_image(shape)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("is an array of {}, not an image: {}", array_text(array.dtype, shape),
                            kWhatIsAnImage));
  }
  const auto size = [&](size_t height, size_t width) {
    return Size{static_cast<uint32_t>(shape[height]), static_cast<uint32_t>(shape[width])};
  };
  if (shape.size() == 2 || is_channels(shape[2])) {
    return {array.data, size(0, 1), shape.size() == 3 ? static_cast<uint32_t>(shape[2]) : 1, false};
  }
  return {array.data, size(1, 2), static_cast<uint32_t>(shape[0]), true};
}

}  // namespace stoker
