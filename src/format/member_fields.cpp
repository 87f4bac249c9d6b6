// SPDX-License-Identifier: Apache-2.0
#include "format/member_fields.h"

#include "format/member_name.h"

namespace stoker {
namespace {

/// A suffix may say something else by itself than among the others of its sample ("png" beside
/// "jpg", "x.txt" beside "x.json"): keeps those of the source where together they say the same.
void keep_suffixes(std::span<const OutField> fields, std::vector<std::string>& suffixes) {
  std::vector<FoundField> found(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    found[i].suffix = fields[i].suffix.empty() ? suffixes[i] : fields[i].suffix;
  }
  std::vector<std::string> names;
  name_fields(found, names);
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool same_type = found[i].type == fields[i].type || (found[i].encoding == Encoding::npy &&
                                                               fields[i].type == FieldType::number);
    const bool same = found[i].name == fields[i].name && found[i].encoding == fields[i].encoding;
    if (!same || !same_type) return;
  }
  for (size_t i = 0; i < fields.size(); ++i) suffixes[i] = std::string(found[i].suffix);
}

/// The suffixes that say which field is which. Those of the source, where these say the same when
/// they are read back.
std::vector<std::string> choose_suffixes(std::span<const OutField> fields) {
  std::vector<std::string> suffixes;
  bool kept = true;
  for (const OutField& field : fields) {
    suffixes.push_back(suffix_of_field(field.name, field.type, field.encoding, field.suffix));
    kept = kept && (field.suffix.empty() || suffixes.back() == field.suffix);
  }
  if (!kept) keep_suffixes(fields, suffixes);
  return suffixes;
}

}  // namespace

const std::vector<std::string>& member_suffixes(std::span<const OutField> fields) {
  thread_local std::string asked;
  thread_local std::string last_asked;
  thread_local std::vector<std::string> last;
  asked.clear();
  for (const OutField& field : fields) {
    // Lengths first, so that no two lists of fields look alike.
    const uint64_t lengths[] = {field.name.size(), field.suffix.size()};
    asked.append(reinterpret_cast<const char*>(lengths), sizeof lengths);
    asked.append(field.name).append(field.suffix);
    asked += static_cast<char>(field.type);
    asked += static_cast<char>(field.encoding);
  }
  if (asked != last_asked || last.size() != fields.size()) {
    last_asked.clear();
    last = choose_suffixes(fields);
    last_asked = asked;
  }
  return last;
}

Encoding member_encoding(const Field& field) {
  switch (field.encoding) {
    case Encoding::raw:
    case Encoding::decimal:
    case Encoding::npy:
    case Encoding::tf_strings:
      return field.encoding;
    case Encoding::none:
    case Encoding::tf_int64s:
    case Encoding::tf_floats:
    case Encoding::elements:
    case Encoding::elements_big:
      break;
    case Encoding::padded:
      return Encoding::raw;
  }
  // What lies beyond int64 is no decimal number here.
  const bool other = field.dtype == DType::float16 || field.dtype == DType::float32 ||
                     field.dtype == DType::float64 || field.dtype == DType::uint64;
  return field.type == FieldType::number && !other ? Encoding::decimal : Encoding::npy;
}

std::string member_suffix(const Field& field, Encoding encoding, std::string_view original) {
  // As choose_suffixes() has it: a field that is named like its suffix owes that to others of its
  // sample.
  if (!original.empty() && original == field.name) return std::string(original);
  return suffix_of_field(field.name, field.type, encoding, original);
}

}  // namespace stoker
