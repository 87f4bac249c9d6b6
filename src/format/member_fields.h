// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"

namespace stoker {

// For formats whose members are named KEY.SUFFIX, as member_name.h has it: tar and lmdb.

/// In which encoding a member holds a field.
Encoding member_encoding(const Field& field);

/// WriteFormat::suffix.
std::string member_suffix(const Field& field, Encoding encoding, std::string_view original);

/// The suffixes under which the fields of a sample are stored. Remembers the last answer, because
/// most samples have the fields of the one before: valid until the next call of the thread.
const std::vector<std::string>& member_suffixes(std::span<const OutField> fields);

}  // namespace stoker
