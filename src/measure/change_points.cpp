// SPDX-License-Identifier: Apache-2.0
#include "measure/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker {
namespace {

constexpr double kPenalty = 4;  // times ln n, and times what autocorrelation adds to variances
constexpr double kMostRho = 0.8;
constexpr size_t kMostValues = 600;    // PELT takes quadratic time where nothing changes
constexpr size_t kShortest = 4;        // values in a phase
constexpr double kLeastSigma = 0.002;  // of the median; differences that nobody cares about

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Sums of values and squares over any range in constant time.
class Sums {
 public:
  explicit Sums(std::span<const double> values)
      : origin_(median_of({values.begin(), values.end()})),
        sum_(values.size() + 1),
        squares_(values.size() + 1),
        moves_(values.size() + 1) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i] - origin_;  // squares of what is left lose fewer digits
      sum_[i + 1] = sum_[i] + value;
      squares_[i + 1] = squares_[i] + value * value;
      const double move = i > 0 ? values[i] - values[i - 1] : 0;
      moves_[i + 1] = moves_[i] + move * move;
    }
  }

  double origin() const { return origin_; }
  double mean(size_t begin, size_t end) const {
    return origin_ + (sum_[end] - sum_[begin]) / static_cast<double>(end - begin);
  }
  double variance(size_t begin, size_t end) const {
    const auto count = static_cast<double>(end - begin);
    const double mean = (sum_[end] - sum_[begin]) / count;
    return std::max(0.0, (squares_[end] - squares_[begin]) / count - mean * mean);
  }
  /// From one value to the next.
  double mean_square_move(size_t begin, size_t end) const {
    return end - begin < 2
               ? 0
               : (moves_[end] - moves_[begin + 1]) / static_cast<double>(end - begin - 1);
  }
  /// -2 ln of the likelihood, less what is the same for every cut.
  double cost(size_t begin, size_t end, double least_variance) const {
    return static_cast<double>(end - begin) *
           std::log(std::max(variance(begin, end), least_variance));
  }

 private:
  double origin_;
  std::vector<double> sum_, squares_, moves_;
};

/// A lower bound of variances: phases of equal values would have an infinite likelihood.
double least_variance(const Sums& sums, double sigma) {
  const double least = std::max(kLeastSigma * std::abs(sums.origin()), 0.5 * sigma);
  return std::max(least * least, std::numeric_limits<double>::min());
}

std::vector<size_t> pelt(const Sums& sums, size_t n, double penalty, double floor) {
  std::vector<double> best(n + 1, 0);
  std::vector<size_t> previous(n + 1, 0), candidates = {0};
  best[0] = -penalty;
  std::vector<double> costs;
  for (size_t end = kShortest; end <= n; ++end) {
    costs.clear();
    double least = std::numeric_limits<double>::infinity();
    for (const size_t begin : candidates) {
      costs.push_back(best[begin] + sums.cost(begin, end, floor));
      if (costs.back() + penalty < least) {
        least = costs.back() + penalty;
        previous[end] = begin;
      }
    }
    best[end] = least;
    size_t kept = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (costs[i] <= least) candidates[kept++] = candidates[i];
    }
    candidates.resize(kept);
    if (end + 1 >= 2 * kShortest) candidates.push_back(end + 1 - kShortest);
  }
  std::vector<size_t> starts;
  for (size_t at = n; at > 0; at = previous[at]) starts.push_back(previous[at]);
  std::reverse(starts.begin(), starts.end());
  return starts;
}

std::vector<double> averaged(std::span<const double> values, size_t by) {
  std::vector<double> means;
  for (size_t i = 0; i < values.size(); i += by) {
    const size_t end = std::min(i + by, values.size());
    double sum = 0;
    for (size_t j = i; j < end; ++j) sum += values[j];
    means.push_back(sum / static_cast<double>(end - i));
  }
  return means;
}

/// Moves each start by up to the shortest phase to where the two phases beside it fit best.
void refine(std::vector<size_t>& starts, const Sums& sums, size_t n, size_t by, double floor) {
  for (size_t k = 1; k < starts.size(); ++k) {
    const size_t begin = starts[k - 1], end = k + 1 < starts.size() ? starts[k + 1] : n;
    const size_t from = std::max(begin + 2, starts[k] - std::min(starts[k], kShortest * by));
    const size_t until = std::min(end - 2, starts[k] + kShortest * by);
    double least = std::numeric_limits<double>::infinity();
    for (size_t cut = from; cut <= until; ++cut) {
      const double cost = sums.cost(begin, cut, floor) + sums.cost(cut, end, floor);
      if (cost >= least) continue;
      least = cost;
      starts[k] = cut;
    }
  }
}

Phase phase_of(const Sums& sums, size_t begin, size_t end) {
  return {begin, end, sums.mean(begin, end), std::sqrt(sums.variance(begin, end))};
}

}  // namespace

Noise noise_of(std::span<const double> values) {
  const auto typical = [&](size_t lag) {
    std::vector<double> bends;
    for (size_t i = 2 * lag; i < values.size(); ++i) {
      bends.push_back(std::abs(values[i] - 2 * values[i - lag] + values[i - 2 * lag]));
    }
    return median_of(std::move(bends)) / 0.6745;
  };
  // In an AR(1) their variances are 2 sigma^2 (1 - r)(3 - r) with r = rho and r = rho^2.
  const double one = typical(1), two = typical(2);
  Noise noise;
  const auto ratio = [](double rho) { return (1 + rho) * (3 - rho * rho) / (3 - rho); };
  while (one > 0 && noise.rho < kMostRho && ratio(noise.rho) < two * two / (one * one)) {
    noise.rho += 0.01;
  }
  noise.sigma = one / std::sqrt(2 * (1 - noise.rho) * (3 - noise.rho));
  // So little noise is more likely a smooth curve.
  if (noise.sigma < kLeastSigma * std::abs(median_of({values.begin(), values.end()})))
    noise.rho = 0;
  return noise;
}

std::vector<Phase> find_phases(std::span<const double> values, const Noise& noise) {
  const size_t n = values.size();
  if (n == 0) return {};
  const size_t by = (n + kMostValues - 1) / kMostValues;
  const Sums exact(values);
  std::vector<size_t> starts;
  if (by == 1) {
    starts = pelt(exact, n, kPenalty * noise.inflation() * std::log(n),
                  least_variance(exact, noise.sigma));
  } else {
    const std::vector<double> means = averaged(values, by);
    const Sums sums(means);
    const Noise left = noise_of(means);
    const double floor = least_variance(sums, left.sigma);
    starts = pelt(sums, means.size(), kPenalty * left.inflation() * std::log(n), floor);
    for (size_t& start : starts) start *= by;
    refine(starts, exact, n, by, least_variance(exact, noise.sigma));
  }
  std::vector<Phase> phases;
  for (size_t i = 0; i < starts.size(); ++i) {
    phases.push_back(phase_of(exact, starts[i], i + 1 < starts.size() ? starts[i + 1] : n));
  }
  return phases;
}

std::vector<Phase> merge_equal(std::span<const double> values, std::vector<Phase> phases,
                               const Noise& noise, double tolerance, double sigmas) {
  const Sums sums(values);
  // Of the mean of a phase, squared. Its variance would count what it creeps; its moves do not.
  const auto error = [&](const Phase& phase) {
    const double moves = sums.mean_square_move(phase.begin, phase.end) / (2 * (1 - noise.rho));
    return std::min(moves, phase.sigma * phase.sigma) * noise.inflation() /
           static_cast<double>(phase.end - phase.begin);
  };
  const auto unlike = [&](const Phase& a, const Phase& b) {
    const double allowed = std::max(tolerance * std::min(std::abs(a.mean), std::abs(b.mean)),
                                    sigmas * std::sqrt(error(a) + error(b)));
    const double apart = std::abs(a.mean - b.mean);
    return allowed > 0 ? apart / allowed : (apart > 0 ? 2.0 : 0.0);
  };
  while (phases.size() > 1) {
    size_t closest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i + 1 < phases.size(); ++i) {
      const double now = unlike(phases[i], phases[i + 1]);
      if (now < least) {
        least = now;
        closest = i;
      }
    }
    if (least >= 1) break;
    phases[closest] = phase_of(sums, phases[closest].begin, phases[closest + 1].end);
    phases.erase(phases.begin() + static_cast<long>(closest) + 1);
  }
  return phases;
}

}  // namespace stoker
