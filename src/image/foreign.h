// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/bytes.h"

namespace stoker {

/// What bytes are that no decoder here takes, as far as their beginning tells, as the rest of a
/// sentence: "is a TIFF image, which is not decoded yet".
std::string describe_foreign(Bytes data);

}  // namespace stoker
