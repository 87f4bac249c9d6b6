// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/scan.h"

namespace stoker {

/// "before-00003-of-00128": the name of a shard that says how many there are.
struct NumberedName {
  std::string_view before;
  std::string_view digits;  // "00003"
  std::string_view after;   // "-of-00128" and what follows
  uint64_t number = 0, count = 0;
};

/// `end` is where the count ends in `name`.
std::optional<NumberedName> numbered_name(std::string_view name, size_t end);

/// Names the shards that are missing in the series of these names, which are sorted.
void find_gaps(const std::vector<std::string>& names,
               std::optional<NumberedName> (*parse)(std::string_view name),
               std::vector<Fault>& faults);

/// Which numbers in names count shards.
struct SeriesNumbers {
  size_t fewest_digits = 5;
  bool padded = true;  // one of them has a leading zero: others may be years, or sizes
  uint64_t holes = 1;  // where so many times as many are missing as there are, nothing is lost:
                       // they were chosen, or are numbers of something else
};

/// The same for names that have a number, but not how many there are: "train-000003.h5". What comes
/// before the first and after the last of a series cannot be known.
void find_series_gaps(const std::vector<std::string>& names, std::vector<Fault>& faults,
                      const SeriesNumbers& which = {});

}  // namespace stoker
