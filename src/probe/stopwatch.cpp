// SPDX-License-Identifier: Apache-2.0
#include "probe/stopwatch.h"

#include <algorithm>
#include <barrier>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace stoker {
namespace {

struct Repeat {
  uint64_t amount = 0;
  double seconds = 0;
};

Repeat run_repeat(const Trial& trial, unsigned repeat, const Progress& progress, const Work& work) {
  ProbeClock::time_point begin;
  const auto note_begin = [&]() noexcept { begin = ProbeClock::now(); };
  std::barrier together(trial.threads, note_begin);
  std::vector<uint64_t> amounts(trial.threads);
  std::vector<ProbeClock::time_point> ends(trial.threads);
  std::mutex mutex;
  std::exception_ptr failure;
  const double seconds = trial.seconds / trial.repeats;
  const auto run = [&](unsigned thread) {
    together.arrive_and_wait();
    try {
      amounts[thread] = work(thread, repeat, Slot(seconds, progress));
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
    ends[thread] = ProbeClock::now();
  };
  {
    std::vector<std::jthread> others;
    others.reserve(trial.threads);
    try {
      for (unsigned thread = 1; thread < trial.threads; ++thread) others.emplace_back(run, thread);
    } catch (const std::system_error&) {  // no more threads to be had: those here must not wait
      for (size_t missing = others.size() + 1; missing < trial.threads; ++missing) {
        together.arrive_and_drop();
      }
    }
    run(0);
  }
  if (failure) std::rethrow_exception(failure);
  Repeat result;
  for (const uint64_t amount : amounts) result.amount += amount;
  const auto last = *std::max_element(ends.begin(), ends.end());
  result.seconds = std::chrono::duration<double>(last - begin).count();
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

double seconds_since(ProbeClock::time_point begin) {
  return std::chrono::duration<double>(ProbeClock::now() - begin).count();
}

Slot::Slot(double seconds, const Progress& progress)
    : end_(ProbeClock::now() + std::chrono::duration_cast<ProbeClock::duration>(
                                   std::chrono::duration<double>(seconds))),
      progress_(progress) {}

bool Slot::over() const {
  return ProbeClock::now() >= end_ || progress_.stop.load(std::memory_order_relaxed);
}

Rate time_trial(const Trial& trial, Progress& progress, const Work& work,
                const std::function<void()>& before_each) {
  Rate rate;
  rate.threads = trial.threads;
  std::vector<double> rates;
  for (unsigned repeat = 0; repeat < trial.repeats; ++repeat) {
    if (before_each) before_each();
    progress.check_stop();
    const Repeat done = run_repeat(trial, repeat, progress, work);
    progress.check_stop();
    if (done.amount == 0 || done.seconds <= 0) break;
    rates.push_back(static_cast<double>(done.amount) / done.seconds);
    rate.amount += done.amount;
    rate.seconds += done.seconds;
  }
  rate.repeats = static_cast<unsigned>(rates.size());
  if (rates.empty()) return rate;
  rate.per_s = median(rates);
  rate.least = *std::min_element(rates.begin(), rates.end());
  rate.most = *std::max_element(rates.begin(), rates.end());
  return rate;
}

std::vector<unsigned> thread_counts(unsigned most) {
  std::vector<unsigned> counts;
  for (unsigned count = 1; count < most; count *= 4) counts.push_back(count);
  counts.push_back(std::max(1U, most));
  return counts;
}

}  // namespace stoker
