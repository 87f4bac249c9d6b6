// SPDX-License-Identifier: Apache-2.0
#include "stage/patience.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "os/process_mark.h"
#include "stage/heartbeat.h"

namespace stoker {
namespace {

using std::chrono::seconds;

constexpr seconds kLook{1};               // between two looks at the same process
constexpr seconds kLongest{10};           // that a stopped process is waited for
constexpr seconds kSayAfter{10};          // of waiting for one that is at work
constexpr auto kSilent = 3 * kHeartbeat;  // without a sign of life: it, or its node, hangs

double in_seconds(int64_t ns) { return static_cast<double>(std::max<int64_t>(0, ns)) * 1e-9; }

}  // namespace

Patience::Patience(const StagedCopy& copy, Notify notify)
    : copy_(copy), notify_(std::move(notify)) {}

void Patience::tell_once(const std::string& mark, const char* kind, const std::string& text) {
  if (notify_ && told_.insert(mark + kind).second) notify_(text);
}

void Patience::look(const std::string& claim, Wait& wait, Clock::time_point now) {
  const std::optional<std::string> mark = copy_.claims.read_mark(claim);
  const std::optional<FileInfo> link = copy_.claims.info(claim);
  if (!mark || !link) {
    wait.stalled.reset();
    return;
  }
  const std::string process = mark->substr(0, mark->rfind(','));
  const int64_t clock = copy_.parts.touch();
  const std::optional<FileInfo> part = copy_.parts.info(*mark);
  const int64_t silent = part ? clock - part->modified_ns : 0;
  const bool stopped = process_is_stopped(process);
  const bool hangs = silent > std::chrono::duration_cast<std::chrono::nanoseconds>(kSilent).count();
  const std::string who = printable(process_in_words(process));
  const std::string held = format_duration(in_seconds(clock - link->modified_ns));
  if (!stopped && !hangs) {
    wait.stalled.reset();
    if (now - wait.begin >= kSayAfter) {
      tell_once(*mark, "works",
                fmt::format("waiting for {}, which claimed a part of this copy {} ago", who, held));
    }
    return;
  }
  const std::string why = stopped ? "is stopped (SIGSTOP, or scontrol suspend)"
                                  : fmt::format("has given no sign of life for {}",
                                                format_duration(in_seconds(silent)));
  if (!wait.stalled) wait.stalled = now;
  tell_once(*mark, "stalls",
            fmt::format("{} claimed a part of this copy {} ago and {}: waiting {} s for it, then "
                        "copying that part here",
                        who, held, why, kLongest.count()));
  if (now - *wait.stalled < kLongest) return;
  wait.over = true;
  tell_once(*mark, "over", fmt::format("{} still {}: copying its part here", who, why));
}

bool Patience::is_over(const std::string& claim) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  const auto [found, added] = waits_.try_emplace(claim);
  Wait& wait = found->second;
  if (added) wait.begin = now;
  if (!wait.over && (added || now - wait.looked_at >= kLook)) {
    wait.looked_at = now;
    look(claim, wait, now);
  }
  return wait.over;
}

}  // namespace stoker
