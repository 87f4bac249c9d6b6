// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "bind.h"
#include "convert.h"
#include "interruptible.h"
#include "results/document.h"
#include "stage/stage.h"
#include "stage/stage_document.h"

namespace nb = nanobind;

namespace stoker::python {
namespace {

/// What the threads that stage have to say, until the thread that has the GIL passes it on.
class Notices {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(text);
  }
  void pass_on(const nb::callable& notify) {
    std::vector<std::string> texts;
    {
      const std::lock_guard lock(mutex_);
      texts.swap(texts_);
    }
    for (const std::string& text : texts) notify(to_str(text));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

StageOptions options_of(nb::handle place, bool partial, const std::string& group, unsigned jobs) {
  StageOptions options;
  options.place = to_path(place);
  options.partial = partial;
  options.group = group;
  options.jobs = jobs;
  return options;
}

nb::object stage(nb::handle dataset, nb::handle place, bool partial, const std::string& group,
                 unsigned jobs, bool keep, bool verify, const nb::callable& notify) {
  const std::string source = to_path(dataset);
  StageOptions options = options_of(place, partial, group, jobs);
  options.keep = keep;
  options.verify = verify;
  Notices notices;
  options.notify = [&](const std::string& text) { notices.add(text); };
  return to_str(run_interruptible(
      [&](Progress& progress) {
        options.progress = &progress;
        return to_text(stage_document(stoker::stage(source, options)));
      },
      [&] { notices.pass_on(notify); }));
}

/// Stages on a thread of its own while the dataset is read. Stops with the object; what is there by
/// then stays. A fork of the process has no such thread, and leaves everything alone.
class Staging {
 public:
  Staging(const std::string& dataset, StageOptions options) : process_(::getpid()) {
    options.progress = &progress_;
    options.notify = [this](const std::string& text) { notices_.add(text); };
    stager_ = std::make_unique<Stager>(dataset, options);
  }
  ~Staging() {
    if (process_ != ::getpid()) {
      (void)thread_.release();  // NOLINT(bugprone-unused-return-value): it is its parent's
      return;
    }
    progress_.stop = true;
    const nb::gil_scoped_release without_gil;
    if (thread_) thread_->join();
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const StageTarget& target() const { return stager_->target(); }

  void start() {
    thread_ = std::make_unique<std::thread>([this] {
      std::string text, failure;
      try {
        text = to_text(stage_document(stager_->run()));
      } catch (const std::exception& error) {
        failure = error.what();
      }
      const std::lock_guard lock(mutex_);
      ended_ = true;
      result_ = std::move(text);
      failure_ = std::move(failure);
    });
  }

  /// Why it failed; None where it has not, or goes on.
  nb::object failure() {
    const std::lock_guard lock(mutex_);
    return failure_.empty() ? nb::object(nb::none()) : nb::object(to_str(failure_));
  }

  void pass_on_notices(const nb::callable& notify) { notices_.pass_on(notify); }

  nb::object wait(const nb::callable& notify) {
    for (;;) {
      notices_.pass_on(notify);
      {
        const std::lock_guard lock(mutex_);
        if (ended_ && !failure_.empty()) throw Error(ErrorKind::io, failure_);
        if (ended_) return to_str(result_);
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      const nb::gil_scoped_release without_gil;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

 private:
  const pid_t process_;
  Progress progress_;
  Notices notices_;
  std::unique_ptr<Stager> stager_;
  std::mutex mutex_;
  bool ended_ = false;
  std::string result_, failure_;
  std::unique_ptr<std::thread> thread_;
};

void make(Staging* staging, nb::handle dataset, nb::handle place, bool partial) {
  const std::string source = to_path(dataset);
  const StageOptions options = options_of(place, partial, "", 0);
  const nb::gil_scoped_release without_gil;
  new (staging) Staging(source, options);
}

}  // namespace

void bind_stage(nb::module_& module) {
  module.def("stage", &stage, nb::arg("dataset"), nb::arg("place").none(), nb::arg("partial"),
             nb::arg("group"), nb::arg("jobs"), nb::arg("keep"), nb::arg("verify"),
             nb::arg("notify"),
             nb::sig("def stage(dataset: object, place: object | None, partial: bool, group: str, "
                     "jobs: int, keep: bool, verify: bool, notify: object) -> str"));
  nb::class_<Staging>(module, "Staging")
      .def("__init__", &make, nb::arg("dataset"), nb::arg("place").none(), nb::arg("partial"),
           nb::sig("def __init__(self, dataset: object, place: object | None, partial: bool) -> "
                   "None"))
      .def("start", &Staging::start)
      .def("wait", &Staging::wait, nb::arg("notify"),
           nb::sig("def wait(self, notify: object) -> str"))
      .def("pass_on_notices", &Staging::pass_on_notices, nb::arg("notify"),
           nb::sig("def pass_on_notices(self, notify: object) -> None"))
      .def("failure", &Staging::failure, nb::sig("def failure(self) -> str | None"))
      .def_prop_ro("packed", [](const Staging& staging) { return staging.target().packed; })
      .def_prop_ro(
          "root",
          [](const Staging& staging) {
            return nb::make_tuple(from_path(staging.target().data),
                                  from_path(staging.target().arrivals));
          },
          nb::sig("def root(self) -> tuple[str, str]"));
}

}  // namespace stoker::python
