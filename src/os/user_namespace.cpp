// SPDX-License-Identifier: Apache-2.0
#include "os/user_namespace.h"

#include <cstdint>
#include <fstream>
#include <vector>

namespace stoker {
namespace {

struct Range {
  uint64_t inside = 0, outside = 0, count = 0;
};

/// All numbers stand for themselves where the system does not say. A namespace without users, as
/// `unshare -U` makes it, has none.
std::vector<Range> ranges() {
  std::ifstream map("/proc/self/uid_map");
  if (!map.is_open()) return {{0, 0, uint64_t{1} << 32}};
  std::vector<Range> found;
  for (Range one; map >> one.inside >> one.outside >> one.count;) found.push_back(one);
  return found;
}

std::optional<uid_t> mapped(uid_t user, uint64_t Range::*from, uint64_t Range::*to) {
  for (const Range& range : ranges()) {
    const uint64_t first = range.*from;
    if (user >= first && user - first < range.count) {
      return static_cast<uid_t>(range.*to + (user - first));
    }
  }
  return std::nullopt;
}

}  // namespace

uid_t outer_user(uid_t inside) {
  return mapped(inside, &Range::inside, &Range::outside).value_or(inside);
}

std::optional<uid_t> inner_user(uid_t outside) {
  return mapped(outside, &Range::outside, &Range::inside);
}

bool is_any_unmapped_user(uid_t user) {
  uid_t overflow = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> overflow;
  return user == overflow && !mapped(user, &Range::inside, &Range::outside);
}

}  // namespace stoker
