// SPDX-License-Identifier: Apache-2.0
#include "dataset/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace stoker {
namespace {

// In the order of the enumerations. The names stand in files: they never change.
constexpr std::array<std::string_view, 5> kTypes = {"bytes", "text", "number", "array", "list"};
constexpr std::array<std::string_view, 10> kEncodings = {
    "raw",       "none",       "decimal",  "npy",          "tf_int64s",
    "tf_floats", "tf_strings", "elements", "elements_big", "padded"};
constexpr std::array<std::string_view, 13> kDTypes = {
    "unknown", "bool",   "int8",   "int16",   "int32",   "int64",  "uint8",
    "uint16",  "uint32", "uint64", "float16", "float32", "float64"};
constexpr std::array<size_t, 13> kDTypeSizes = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};
constexpr std::array<std::string_view, 2> kDepths = {"structure", "full"};

static_assert(kTypes.size() == static_cast<size_t>(FieldType::list) + 1);
static_assert(kEncodings.size() == static_cast<size_t>(Encoding::padded) + 1);
static_assert(kDTypes.size() == static_cast<size_t>(DType::float64) + 1);

// NumPy's own limit is 32, later 64.
constexpr size_t kMaxDimensions = 64;

template <typename Enum, size_t kSize>
std::string_view name_in(const std::array<std::string_view, kSize>& names, Enum value) {
  const auto number = static_cast<size_t>(value);
  return number < kSize ? names[number] : "?";
}

using Shape = std::optional<std::vector<int64_t>>;

// A number is an array of one element, or one without dimensions, once it joins arrays.
Shape shape_among_arrays(const Field& field) {
  if (field.type != FieldType::number) return field.shape;
  const bool packed =
      field.encoding == Encoding::tf_int64s || field.encoding == Encoding::tf_floats;
  return packed ? std::vector<int64_t>{1} : std::vector<int64_t>{};
}

Shape merge_shapes(const Shape& a, const Shape& b) {
  if (!a || !b || a->size() != b->size()) return std::nullopt;
  std::vector<int64_t> merged = *a;
  for (size_t i = 0; i < merged.size(); ++i) {
    if (merged[i] != (*b)[i]) merged[i] = -1;
  }
  return merged;
}

std::optional<FieldType> merge_types(FieldType a, FieldType b) {
  if (a == b) return a;
  const auto numeric = [](FieldType t) { return t == FieldType::number || t == FieldType::array; };
  if (numeric(a) && numeric(b)) return FieldType::array;
  return std::nullopt;
}

/// Reads members of one JSON object; whatever is wrong is an Error that names the member.
class Members {
 public:
  Members(const Json& json, std::string_view where) : json_(json), where_(where) {
    if (!json.is_object()) fail("a field is not an object");
  }

  [[noreturn]] void fail(std::string_view cause) const {
    throw Error(ErrorKind::corrupt, fmt::format("{}: {}", where_, cause));
  }

  const Json* find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

  std::string text(const char* name) const {
    const Json* json = find(name);
    if (json == nullptr || !json->is_string()) fail(fmt::format("a field has no \"{}\"", name));
    return json->get<std::string>();
  }

  template <typename Enum, size_t kSize>
  Enum one_of(const char* name, const std::array<std::string_view, kSize>& names) const {
    const std::string word = text(name);
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) fail(fmt::format("unknown {} '{}'", name, printable(word)));
    return static_cast<Enum>(found - names.begin());
  }

  /// Null where the member is missing; otherwise an array.
  const Json* array(const char* name) const {
    const Json* json = find(name);
    if (json != nullptr && !json->is_array()) fail(fmt::format("\"{}\" is not an array", name));
    return json;
  }

 private:
  const Json& json_;
  std::string_view where_;
};

std::vector<int64_t> shape_from_json(const Members& members, const Json& json) {
  if (json.size() > kMaxDimensions) members.fail("\"shape\" has too many dimensions");
  std::vector<int64_t> shape;
  for (const Json& dimension : json) {
    // Unsigned first: a number above 2^63 would otherwise turn negative.
    const bool fits = dimension.is_number_unsigned()
                          ? checked<uint64_t>(dimension) <= std::numeric_limits<int64_t>::max()
                          : dimension.is_number_integer() && checked<int64_t>(dimension) >= -1;
    if (!fits) members.fail("\"shape\" holds something that is no dimension");
    shape.push_back(checked<int64_t>(dimension));
  }
  return shape;
}

}  // namespace

std::optional<uint32_t> Schema::find(std::string_view name) const {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

std::string_view name_of(FieldType type) { return name_in(kTypes, type); }
std::string_view name_of(Encoding encoding) { return name_in(kEncodings, encoding); }
std::string_view name_of(DType dtype) { return name_in(kDTypes, dtype); }
std::string_view name_of(Depth depth) { return name_in(kDepths, depth); }

size_t size_of(DType dtype) {
  const auto number = static_cast<size_t>(dtype);
  return number < kDTypeSizes.size() ? kDTypeSizes[number] : 0;
}

std::optional<uint64_t> size_of_elements(DType dtype, std::span<const int64_t> shape) {
  uint64_t size = size_of(dtype);
  bool empty = false;  // a dimension of 0 does not excuse the others
  for (const int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(size, static_cast<uint64_t>(dimension), &size)) {
      return std::nullopt;
    }
    if (size > INT64_MAX) return std::nullopt;
  }
  return empty ? 0 : size;
}

bool merge_field(Field& field, const Field& more) {
  const std::optional<FieldType> type = merge_types(field.type, more.type);
  if (!type || field.encoding != more.encoding) return false;
  if (*type == FieldType::array) {
    field.shape = merge_shapes(shape_among_arrays(field), shape_among_arrays(more));
  }
  field.type = *type;
  if (field.dtype != more.dtype) field.dtype = DType::unknown;
  for (const std::string& suffix : more.suffixes) {
    if (std::find(field.suffixes.begin(), field.suffixes.end(), suffix) == field.suffixes.end()) {
      field.suffixes.push_back(suffix);
    }
  }
  field.present += more.present;
  return true;
}

Json to_json(const Field& field) {
  Json json;
  json["name"] = name_to_json(field.name);
  json["type"] = name_of(field.type);
  json["encoding"] = name_of(field.encoding);
  if (field.dtype != DType::unknown) json["dtype"] = name_of(field.dtype);
  if (field.shape) json["shape"] = *field.shape;
  if (!field.suffixes.empty()) {
    Json suffixes = Json::array();
    for (const std::string& suffix : field.suffixes) suffixes.push_back(name_to_json(suffix));
    json["suffixes"] = std::move(suffixes);
  }
  json["present"] = field.present;
  return json;
}

Field field_from_json(const Json& json, std::string_view where) {
  const Members members(json, where);
  Field field;
  field.name = name_from_json(members.text("name"));
  field.type = members.one_of<FieldType>("type", kTypes);
  field.encoding = members.one_of<Encoding>("encoding", kEncodings);
  if (members.find("dtype") != nullptr) field.dtype = members.one_of<DType>("dtype", kDTypes);
  if (const Json* shape = members.array("shape")) field.shape = shape_from_json(members, *shape);
  if (const Json* suffixes = members.array("suffixes")) {
    for (const Json& suffix : *suffixes) {
      if (!suffix.is_string()) members.fail("\"suffixes\" holds something that is no text");
      field.suffixes.push_back(name_from_json(suffix.get<std::string>()));
    }
  }
  const Json* present = members.find("present");
  if (present == nullptr || !present->is_number_unsigned()) {
    members.fail("a field has no \"present\"");
  }
  field.present = checked<uint64_t>(*present);
  return field;
}

std::string name_to_json(std::string_view name) {
  static const std::string kNotAscii = [] {
    std::string bytes;
    for (int byte = 0x80; byte < 0x100; ++byte) bytes.push_back(static_cast<char>(byte));
    return bytes;
  }();
  return percent_escape(name, is_utf8(name) ? std::string_view() : kNotAscii);
}

std::string name_from_json(std::string_view text) { return percent_unescape(text); }

}  // namespace stoker
