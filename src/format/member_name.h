// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/scan.h"
#include "dataset/schema.h"

namespace stoker {

// Folders and tars name things the same way, WebDataset's: the key is the path up to the first
// dot of the base name, and what follows the dot says which field it is.

struct MemberName {
  std::string_view key;
  std::string_view suffix;  // without the dot; empty where there is none
};

/// Nothing where the base name begins with a dot: such files are no samples.
std::optional<MemberName> split_member_name(std::string_view path);

/// Why no member name can begin with `key` and be split into that key again: unsafe_name(), or a
/// dot in its base name. Empty when one can.
std::string_view unfit_key(std::string_view key);

/// What a suffix says about its field.
struct FieldOfSuffix {
  std::string name;
  FieldType type = FieldType::bytes;
  Encoding encoding = Encoding::raw;
  bool image = false;
};
/// "jpg" → image; "cls" → label, a number; "txt", "json" → text; "npy" → array; anything else is
/// bytes under its own name. "height.cls" is the number `height`, "caption.txt" the text
/// `caption`; "seg.png" stays "seg.png". %XX in a name stands for the byte it says; no suffix at
/// all is the bytes field `data`.
FieldOfSuffix field_of_suffix(std::string_view suffix);
bool is_image_suffix(std::string_view suffix);
bool is_text_suffix(std::string_view suffix);
/// The ending that images with such a beginning have; empty where it is not known. kImageMagic
/// bytes are enough.
std::string_view image_suffix_of(std::string_view begin);
inline constexpr size_t kImageMagic = 12;

/// "words.byteslist" is the field `words`, a list.
inline constexpr std::string_view kListSuffix = "byteslist";

/// The suffix under which a field is stored so that field_of_suffix() gives it back: the one it
/// came with where that says the same, or one made from its name and encoding. Throws
/// Error(unsupported) for an encoding that no file has.
std::string suffix_of_field(std::string_view name, FieldType type, Encoding encoding,
                            std::string_view original_suffix);

/// Names the fields of one sample from their suffixes: where several are images, the first by
/// suffix is `image` and the others keep their suffix as name; where two would have the same name
/// ("x.txt", "x.json"), both keep their suffix. Suffixes must differ. Sets name, type, encoding and
/// dtype; the names lie in `names`.
void name_fields(std::vector<FoundField>& fields, std::vector<std::string>& names);

}  // namespace stoker
