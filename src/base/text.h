// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

/// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view bytes);

/// Writes '%', control bytes (below 0x20, and 0x7F) and every byte in `reserved` as %XX with
/// upper-case digits. percent_unescape() gives the text back.
std::string percent_escape(std::string_view text, std::string_view reserved = {});

/// A '%' without two hexadecimal digits behind it stays as it is.
std::string percent_unescape(std::string_view text);

/// `bytes` fit for one line of a terminal: what could move the cursor, change the reading
/// direction or is not UTF-8 becomes \n, \r, \t or \xNN. For people; cannot be reversed.
std::string printable(std::string_view bytes);

/// The candidate that `word` most likely means: one it begins, else one within a few typing
/// errors. Ignores ASCII case. The first listed wins a tie.
std::optional<std::string_view> closest(std::string_view word,
                                        std::span<const std::string_view> candidates);

/// Whether all of `text`, a path with '/', matches: ? is one byte and * any run of bytes except
/// '/', [a-z] and [!a-z] one byte in or not in a set and never '/', ** any run of bytes, and **/
/// at the begin of a component any number of components, also none. \ takes the next byte
/// literally; a [ that is never closed is literal. Takes polynomial time on any pattern.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace stoker
