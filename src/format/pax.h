// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

/// What an extended header ("x", "g") of a pax archive says that matters here. Names are taken as
/// bytes, whatever their hdrcharset.
struct PaxRecords {
  std::optional<std::string_view> path;
  std::optional<uint64_t> size;
  bool sparse = false;
  std::string damage;  // why the rest could not be read; empty: all was
};

/// `body` are records "LENGTH KEY=VALUE\n"; the views point into it.
PaxRecords parse_pax(std::string_view body);

/// Appends one record.
void append_pax(std::string& body, std::string_view key, std::string_view value);

/// How many bytes append_pax() appends.
size_t size_of_pax(size_t key, size_t value);

}  // namespace stoker
