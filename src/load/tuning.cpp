// SPDX-License-Identifier: Apache-2.0
#include "load/tuning.h"

#include <algorithm>

namespace stoker {
namespace {

/// Threads that wait for a disk may be many; those that compute need a core each.
unsigned more_fetch(unsigned now, const StageTime& fetch, const TuningLimits& limits) {
  const bool computes = fetch.computing > 0.5 * fetch.busy;
  const unsigned most = computes ? std::min(limits.most_fetch, limits.cores) : limits.most_fetch;
  return std::max(now, std::min(computes ? now + 1 : now * 2, most));
}

}  // namespace

Tuning tuned(Tuning now, const StageTime& fetch, const StageTime& decode, double waited,
             double seconds, const TuningLimits& limits) {
  const auto share = [&](double part, unsigned threads) {
    return threads == 0 ? 0 : part / (seconds * threads);
  };
  const double no_room = share(fetch.waiting_for_room, now.fetch);
  const double no_input = share(decode.waiting_for_input, now.decode);
  if (waited / seconds > 0.02) {
    // The step waits now, though there was no room a moment ago: its speed, or ours, changes.
    if (no_room > 0.2) now.ahead = std::min(now.ahead + 1, limits.most_ahead);
    if (now.decode == 0 || no_input > 0.2) {
      if (no_room < 0.2) now.fetch = more_fetch(now.fetch, fetch, limits);
    } else {
      now.decode = std::max(now.decode, std::min(now.decode + 1, limits.most_decode));
    }
    return now;
  }
  if (no_room > 0.8) now.fetch = std::max(1U, now.fetch - 1);
  if (no_room > 0.5 && no_input > 0.5) now.decode = std::max(1U, now.decode - 1);
  if (no_room > 0.9 && now.ahead > limits.least_ahead) --now.ahead;
  return now;
}

}  // namespace stoker
