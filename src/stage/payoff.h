// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stoker {

/// A time with what it may be, from the repeats of the measurements behind it.
struct Estimate {
  double value = 0, least = 0, most = 0;
};

/// Whether a copy is worth its time.
struct Payoff {
  std::optional<Estimate> copy_s;         // of what has to be copied
  std::optional<Estimate> epoch_saves_s;  // reading all of it once, there instead of here
  std::optional<Estimate> pays_after;     // epochs; nothing where it never does
  std::string known_from;                 // the profiles; or what is missing
};

/// From the profiles that `probe` keeps of the two places, in `profiles`. `copy_bytes` have to be
/// copied, an epoch reads `epoch_bytes`.
Payoff estimate_payoff(const std::string& source, const std::string& place, uint64_t copy_bytes,
                       uint64_t epoch_bytes, const std::string& profiles);

}  // namespace stoker
