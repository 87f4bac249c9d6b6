// SPDX-License-Identifier: Apache-2.0
#include "format/member_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/inner_path.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 10> kImageSuffixes = {"jpg", "jpeg", "png", "webp", "ppm",
                                                             "bmp", "pgm",  "tif", "tiff", "gif"};

struct Ending {
  std::string_view ending;
  FieldType type;
  Encoding encoding;
};
/// "X.ENDING" is the field X of this type.
constexpr std::array<Ending, 5> kTypedEndings = {{
    {"cls", FieldType::number, Encoding::decimal},
    {"txt", FieldType::text, Encoding::raw},
    {"json", FieldType::text, Encoding::raw},
    {"npy", FieldType::array, Encoding::npy},
    {kListSuffix, FieldType::list, Encoding::tf_strings},
}};
/// Suffixes that name and type a field by themselves.
constexpr std::array<Ending, 6> kTypedSuffixes = {{
    {"txt", FieldType::text, Encoding::raw},
    {"text", FieldType::text, Encoding::raw},
    {"transcript", FieldType::text, Encoding::raw},
    {"json", FieldType::text, Encoding::raw},
    {"jsn", FieldType::text, Encoding::raw},
    {"npy", FieldType::array, Encoding::npy},
}};

// A name of no bytes has no escaped form of its own; a lone '%' is free, since escape_name() never
// leaves a '%' without two digits.
constexpr std::string_view kEmptyName = "%";

std::string escape_name(std::string_view name) {
  return name.empty() ? std::string(kEmptyName) : percent_escape(name, "/");
}

std::string unescape_name(std::string_view escaped) {
  return escaped == kEmptyName ? std::string() : percent_unescape(escaped);
}

/// FieldOfSuffix before its name is unescaped: costs no allocation.
struct Reading {
  std::string_view name;
  FieldType type = FieldType::bytes;
  Encoding encoding = Encoding::raw;
  bool image = false;
};

char lower_case(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

/// webdataset takes ".JSON" for ".json" as well.
bool is_in_any_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return lower_case(a) == b; });
}

Reading read_suffix(std::string_view suffix) {
  const size_t dot = suffix.rfind('.');
  if (dot == std::string_view::npos) {
    if (is_image_suffix(suffix)) return {kImageField, FieldType::bytes, Encoding::raw, true};
    if (is_in_any_case(suffix, "cls")) return {kLabelField, FieldType::number, Encoding::decimal};
    for (const Ending& typed : kTypedSuffixes) {
      if (is_in_any_case(suffix, typed.ending)) return {typed.ending, typed.type, typed.encoding};
    }
    return {suffix.empty() ? std::string_view("data") : suffix};
  }
  if (dot > 0) {
    for (const Ending& typed : kTypedEndings) {
      if (suffix.substr(dot + 1) == typed.ending) {
        return {suffix.substr(0, dot), typed.type, typed.encoding};
      }
    }
  }
  return {suffix};
}

/// Whether a reader of `suffix` would see exactly this field. An array file may hold a number.
bool says(std::string_view suffix, std::string_view name, FieldType type, Encoding encoding) {
  const Reading reading = read_suffix(suffix);
  const bool same_type =
      reading.type == type || (encoding == Encoding::npy && type == FieldType::number);
  if (!same_type || reading.encoding != encoding) return false;
  if (reading.name.find('%') == std::string_view::npos) return reading.name == name;
  return unescape_name(reading.name) == name;
}

bool all_differ(const std::vector<std::string>& names) {
  for (size_t i = 1; i < names.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (names[i] == names[j]) return false;
    }
  }
  return true;
}

/// Sets every name that occurs more than once to the suffix it came from. Suffixes differ, so
/// this ends.
void part_equal_names(const std::vector<FoundField>& fields, std::vector<std::string>& names) {
  if (names.size() <= 16 && all_differ(names)) return;
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (bool changed = true; changed;) {
    changed = false;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return names[a] < names[b]; });
    std::vector<size_t> equal;
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      if (names[order[i]] != names[order[i + 1]]) continue;
      equal.push_back(order[i]);
      equal.push_back(order[i + 1]);
    }
    for (const size_t field : equal) {
      if (names[field] == fields[field].suffix) continue;
      names[field] = fields[field].suffix;
      changed = true;
    }
  }
}

}  // namespace

std::string_view image_suffix_of(std::string_view begin) {
  if (begin.starts_with("\xFF\xD8\xFF")) return "jpg";
  if (begin.starts_with("\x89PNG\r\n")) return "png";
  if (begin.starts_with("GIF8")) return "gif";
  if (begin.starts_with("BM")) return "bmp";
  if (begin.starts_with("RIFF") && begin.size() >= kImageMagic && begin.substr(8, 4) == "WEBP") {
    return "webp";
  }
  return {};
}

bool is_text_suffix(std::string_view suffix) {
  return std::any_of(kTypedSuffixes.begin(), kTypedSuffixes.end(), [&](const Ending& typed) {
    return typed.ending == suffix && typed.type == FieldType::text;
  });
}

bool is_image_suffix(std::string_view suffix) {
  if (suffix.size() < 3 || suffix.size() > 4) return false;
  std::array<char, 4> lower{};
  std::transform(suffix.begin(), suffix.end(), lower.begin(), lower_case);
  return std::find(kImageSuffixes.begin(), kImageSuffixes.end(),
                   std::string_view(lower.data(), suffix.size())) != kImageSuffixes.end();
}

std::optional<MemberName> split_member_name(std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(std::min(path.find_first_not_of('/', 1), path.size()));
  }
  const size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  const size_t dot = path.find('.', base);
  if (dot == base) return std::nullopt;
  if (dot == std::string_view::npos) return MemberName{path, {}};
  return MemberName{path.substr(0, dot), path.substr(dot + 1)};
}

std::string_view unfit_key(std::string_view key) {
  if (const std::string_view unsafe = unsafe_name(key); !unsafe.empty()) return unsafe;
  if (key.starts_with("./")) return "name begins with './'";
  const std::string_view base = key.substr(key.rfind('/') + 1);
  if (base.empty()) return "name ends with '/'";
  if (base.find('.') != std::string_view::npos) return "name contains a dot";
  return {};
}

FieldOfSuffix field_of_suffix(std::string_view suffix) {
  const Reading reading = read_suffix(suffix);
  return {unescape_name(reading.name), reading.type, reading.encoding, reading.image};
}

std::string suffix_of_field(std::string_view name, FieldType type, Encoding encoding,
                            std::string_view original_suffix) {
  if (!original_suffix.empty() && says(original_suffix, name, type, encoding)) {
    return std::string(original_suffix);
  }
  if (name == kLabelField && says("cls", name, type, encoding)) return "cls";
  std::string suffix = escape_name(name);
  if (says(suffix, name, type, encoding)) return suffix;
  for (const Ending& typed : kTypedEndings) {
    std::string ended = fmt::format("{}.{}", suffix, typed.ending);
    if (says(ended, name, type, encoding)) return ended;
  }
  // Bytes whose name reads as something else: "jpg", "notes.txt". One escaped letter hides that.
  const size_t last = suffix.rfind('.') + 1;
  suffix.replace(last, 1, fmt::format("%{:02X}", static_cast<unsigned char>(suffix[last])));
  if (says(suffix, name, type, encoding)) return suffix;
  throw Error(ErrorKind::unsupported,
              fmt::format("field {}: no file name says that it is a {} stored as {}",
                          printable(name), name_of(type), name_of(encoding)));
}

void name_fields(std::vector<FoundField>& fields, std::vector<std::string>& names) {
  names.resize(fields.size());
  size_t images = 0;
  size_t first_image = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    FoundField& field = fields[i];
    const Reading reading = read_suffix(field.suffix);
    names[i] = reading.name;
    if (reading.name.find('%') != std::string_view::npos) names[i] = unescape_name(reading.name);
    field.type = reading.type;
    field.encoding = reading.encoding;
    field.dtype = reading.encoding == Encoding::decimal ? DType::int64 : DType::unknown;
    if (!reading.image) continue;
    if (images++ == 0 || field.suffix < fields[first_image].suffix) first_image = i;
  }
  if (images > 1) {
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i != first_image && is_image_suffix(fields[i].suffix)) names[i] = fields[i].suffix;
    }
  }
  part_equal_names(fields, names);
  for (size_t i = 0; i < fields.size(); ++i) fields[i].name = names[i];
}

}  // namespace stoker
