// SPDX-License-Identifier: Apache-2.0
#include "image/vectors.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"

namespace stoker {
namespace {

bool choose() {
  const char* const wanted = std::getenv("STOKER_VECTORS");
  if (wanted == nullptr || *wanted == '\0') return true;
  std::string names;
  for (int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    if (std::string_view(hwy::TargetName(target)) == wanted) {
      hwy::SetSupportedTargetsForTest(target);
      return true;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", hwy::TargetName(target));
  }
  throw Error(ErrorKind::usage,
              fmt::format("STOKER_VECTORS={}: this CPU and build have {}", wanted, names));
}

}  // namespace

void choose_vectors() {
  static const bool chosen = choose();
  (void)chosen;
}

}  // namespace stoker
