// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace stoker {

Error no_room(const std::string& place, uint64_t needed, uint64_t room);

/// What is packed on the way does not fit.
Error no_room_for_folder(const std::string& place, uint64_t needed, uint64_t room);

/// The same error, with what a failure at the place means, and what to do.
Error explained(const Error& error, const std::string& place, bool packed);

}  // namespace stoker
