// SPDX-License-Identifier: Apache-2.0
#include "measure/spikes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace stoker {
namespace {

constexpr size_t kWindow = 200;        // Barrett et al. 2017, as are the next two
constexpr double kOutlierSpread = 3;   // times P90 - P10
constexpr double kSpikeSigmas = 6;     // by the quartiles, which a spike every 5 steps leaves alone
constexpr double kSpikeShare = 0.25;   // a checkpoint that costs less than a quarter step is noise
constexpr size_t kShortestPeriod = 5;  // steps
constexpr size_t kLeastSpikes = 4;     // three at a regular distance happen by chance
constexpr double kMostChance = 1e-3;   // that outliers at random look as regular
constexpr double kLeastFound = 0.75;   // of the spikes of a period
constexpr size_t kMostKinds = 4;       // of periodic spikes in one run

constexpr size_t kNeighbours = 64;  // spikes behind a spike that may be of its kind
constexpr size_t kPeriodsTried = 24;

enum Mark : unsigned char { plain, low, high };

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

/// Compares each step with the window around it.
std::vector<unsigned char> mark_unlike(std::span<const double> steps) {
  const size_t n = steps.size(), half = kWindow / 2;
  std::vector<unsigned char> marks(n, plain);
  std::vector<double> window(steps.begin(), steps.begin() + static_cast<long>(std::min(half, n)));
  std::sort(window.begin(), window.end());
  for (size_t i = 0; i < n; ++i) {
    if (i + half < n) {
      const double value = steps[i + half];
      window.insert(std::upper_bound(window.begin(), window.end(), value), value);
    }
    if (i > half) {
      window.erase(std::lower_bound(window.begin(), window.end(), steps[i - half - 1]));
    }
    const double median = quantile(window, 0.5);
    const double spread = kOutlierSpread * (quantile(window, 0.9) - quantile(window, 0.1));
    const double sigma = (quantile(window, 0.75) - quantile(window, 0.25)) / 1.349;
    const double above = steps[i] - median;
    if (above > std::max(std::min(spread, kSpikeSigmas * sigma), kSpikeShare * median)) {
      marks[i] = high;
    } else if (-above > std::max(spread, kSpikeShare * median)) {
      marks[i] = low;
    }
  }
  return marks;
}

/// Spikes from `first` on at distances of `period`, each at most a step off.
std::vector<size_t> walk(const std::vector<unsigned char>& marks, size_t first, size_t period) {
  std::vector<size_t> found = {first};
  for (size_t at = first + period; at < marks.size(); at += period) {
    for (const size_t near : {at, at - 1, at + 1}) {
      if (near < marks.size() && marks[near] == high) {
        found.push_back(at = near);
        break;
      }
    }
  }
  return found;
}

/// The distances that occur most often between a spike and those behind it: many, since outliers
/// may lie between two checkpoints.
std::vector<size_t> likely_periods(const std::vector<size_t>& spikes) {
  std::map<size_t, size_t> counts;
  for (size_t i = 0; i < spikes.size(); ++i) {
    for (size_t j = i + 1; j < std::min(i + kNeighbours, spikes.size()); ++j) {
      if (spikes[j] - spikes[i] >= kShortestPeriod) ++counts[spikes[j] - spikes[i]];
    }
  }
  std::vector<std::pair<size_t, size_t>> ranked;
  for (const auto& [period, count] : counts) ranked.emplace_back(count, period);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<size_t> periods;
  for (size_t i = 0; i < std::min(ranked.size(), kPeriodsTried); ++i)
    periods.push_back(ranked[i].second);
  return periods;
}

/// The most spikes at one regular distance; none where chance would explain them.
std::optional<std::vector<size_t>> most_regular(const std::vector<unsigned char>& marks) {
  std::vector<size_t> spikes;
  for (size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] == high) spikes.push_back(i);
  }
  if (spikes.size() < kLeastSpikes) return std::nullopt;
  const double density = static_cast<double>(spikes.size()) / static_cast<double>(marks.size());
  const double tries = kPeriodsTried * static_cast<double>(spikes.size());
  std::optional<std::vector<size_t>> best;
  for (const size_t period : likely_periods(spikes)) {
    for (size_t start = 0; start < spikes.size() && spikes[start] < 2 * period; ++start) {
      std::vector<size_t> found = walk(marks, spikes[start], period);
      const size_t span = (marks.size() - 1 - spikes[start] % period) / period + 1;
      const auto count = static_cast<double>(found.size());
      const double chance = tries * std::pow(std::min(1.0, 3 * density), count - 2);
      if (found.size() < kLeastSpikes || count < kLeastFound * static_cast<double>(span)) continue;
      // All spikes of a run may be one period: then their own density says nothing.
      if (chance > kMostChance && count < 0.8 * static_cast<double>(spikes.size())) continue;
      if (!best || found.size() > best->size()) best = std::move(found);
    }
  }
  return best;
}

Periodic describe(std::span<const double> steps, const std::vector<size_t>& found) {
  std::vector<double> lengths;
  for (const size_t i : found) lengths.push_back(steps[i]);
  std::sort(lengths.begin(), lengths.end());
  std::vector<size_t> distances;
  for (size_t i = 1; i < found.size(); ++i) distances.push_back(found[i] - found[i - 1]);
  std::sort(distances.begin(), distances.end());
  return {distances[distances.size() / 2], found.front(), found.size(), quantile(lengths, 0.5)};
}

/// A phase is not an outlier: what has more than two of its kind among ten neighbours stays.
bool is_alone(const std::vector<unsigned char>& marks, size_t i) {
  const size_t from = i < 5 ? 0 : i - 5, until = std::min(marks.size(), i + 6);
  size_t others = 0;
  for (size_t j = from; j < until; ++j) others += j != i && marks[j] == marks[i] ? 1 : 0;
  return others <= 2;
}

}  // namespace

Spikes find_spikes(std::span<const double> steps, std::span<const size_t> boundaries) {
  Spikes spikes;
  spikes.kept.assign(steps.size(), 1);
  if (steps.empty()) return spikes;
  std::vector<unsigned char> marks = mark_unlike(steps);
  while (spikes.leading < steps.size() && marks[spikes.leading] == high) ++spikes.leading;
  const auto take = [&](size_t i) {
    spikes.kept[i] = 0;
    marks[i] = plain;
  };
  // A checkpoint or an epoch may begin with the first step.
  if (spikes.leading == 1) {
    const auto found = most_regular(marks);
    if (found && found->front() == 0 && steps[0] < 2 * describe(steps, *found).seconds) {
      spikes.leading = 0;
    }
  }
  for (size_t i = 0; i < spikes.leading; ++i) take(i);
  for (const size_t i : boundaries) {
    if (i < steps.size() && marks[i] == high) {
      spikes.outliers.push_back(i);
      take(i);
    }
  }
  while (spikes.periodic.size() < kMostKinds) {
    const auto found = most_regular(marks);
    if (!found) break;
    spikes.periodic.push_back(describe(steps, *found));
    for (const size_t i : *found) take(i);
  }
  const std::vector<unsigned char> left = marks;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (left[i] == plain || !is_alone(left, i)) continue;
    spikes.outliers.push_back(i);
    take(i);
  }
  std::sort(spikes.outliers.begin(), spikes.outliers.end());
  return spikes;
}

}  // namespace stoker
