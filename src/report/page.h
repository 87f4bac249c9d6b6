// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace stoker {

/// The script and the style of a report's page, dygraphs included, in pieces that compilers take.
/// The build makes it of page.js and page.css.
struct PagePart {
  std::vector<std::string_view> pieces;
  std::string_view sha256;  // of all pieces, in hexadecimal digits
};
const PagePart& page_script();
const PagePart& page_style();

}  // namespace stoker
