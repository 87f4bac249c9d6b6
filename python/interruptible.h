// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <future>
#include <thread>
#include <utility>

#include "base/progress.h"

namespace stoker::python {

/// Calls work(progress) on a thread of its own, without the GIL, and meanwhile lets Python handle
/// its signals. What a handler raises (KeyboardInterrupt, say) stops the work and is thrown once
/// it has ended. So is what meanwhile() throws, which is called with the GIL, again and again, and
/// once more when the work has ended. REQUIRES: the GIL is held; `work` touches nothing of Python.
template <typename Work, typename Meanwhile>
auto run_interruptible(Work work, Meanwhile meanwhile) {
  using Result = decltype(work(std::declval<Progress&>()));
  Progress progress;
  std::exception_ptr raised;
  std::packaged_task<Result()> task([&] { return work(progress); });
  std::future<Result> result = task.get_future();
  std::jthread worker(std::move(task));
  for (bool ended = false; !ended;) {
    {
      const nanobind::gil_scoped_release without_gil;
      ended = result.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready;
    }
    try {
      if (!ended && PyErr_CheckSignals() != 0) throw nanobind::python_error();
      meanwhile();
    } catch (...) {
      if (!raised) raised = std::current_exception();
      progress.stop = true;
    }
  }
  if (raised) std::rethrow_exception(raised);
  return result.get();
}

template <typename Work>
auto run_interruptible(Work work) {
  return run_interruptible(std::move(work), [] {});
}

}  // namespace stoker::python
