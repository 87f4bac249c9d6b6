// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "base/progress.h"

namespace stoker::python {

/// Calls work(progress) on a thread of its own, without the GIL, and meanwhile lets Python handle
/// its signals. What a handler raises (KeyboardInterrupt, say) stops the work and is thrown once
/// it has ended. REQUIRES: the GIL is held; `work` touches nothing of Python.
template <typename Work>
auto run_interruptible(Work work) {
  using Result = decltype(work(std::declval<Progress&>()));
  Progress progress;
  std::optional<nanobind::python_error> raised;
  std::packaged_task<Result()> task([&] { return work(progress); });
  std::future<Result> result = task.get_future();
  std::jthread worker(std::move(task));
  {
    const nanobind::gil_scoped_release without_gil;
    while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      const nanobind::gil_scoped_acquire with_gil;
      if (PyErr_CheckSignals() == 0) continue;
      nanobind::python_error error;
      if (!raised) raised.emplace(std::move(error));
      progress.stop = true;
    }
  }
  if (raised) throw nanobind::python_error(std::move(*raised));
  return result.get();
}

}  // namespace stoker::python
