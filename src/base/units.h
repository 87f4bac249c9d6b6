// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

/// Three digits and a decimal unit: "999 B", "1.28 GB", "12.8 GB".
std::string format_bytes(uint64_t bytes);

/// As format_bytes() with "/s"; "n/a" for a rate that is not a finite number >= 0.
std::string format_rate(double bytes_per_s);

/// "1,281,167".
std::string format_count(uint64_t count);

/// "850 ns", "3.2 s", "12 ms", "4 min 05 s", "2 h 03 min", "3 d 04 h"; "n/a" for a time that is
/// not a finite number >= 0.
std::string format_duration(double seconds);

/// Bytes from "4096", "512M" or "1.5 TB" (decimal), "64Ki" or "1GiB" (binary). The unit letter may
/// be lower-case; a fraction of a byte is rounded down where there is a unit and refused where
/// there is none. Nothing for any other text and for what exceeds 64 bits.
std::optional<uint64_t> parse_size(std::string_view text);

}  // namespace stoker
