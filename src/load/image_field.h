// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dataset/value.h"
#include "image/decode.h"
#include "load/sources.h"

namespace stoker {

/// The field that is decoded. Throws Error(usage) where there is none of this name, or it holds no
/// images; says which ones there are, and how to choose one: in Python, or `for_shell`.
uint32_t find_image(const Sources& sources, const std::string& name, bool for_shell = false);

/// An array of uint8 as a picture: (height, width), (height, width, 1 or 3) or
/// (1 or 3, height, width). Throws Error(unsupported) where it is none.
RawImage raw_image_of(const Array& array);

}  // namespace stoker
