// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "os/node.h"

namespace stoker {

struct MeterOptions {
  /// A directory that does not exist yet, which the ranks of a distributed training share; empty: a
  /// new one in stoker-runs/. Within `stoker time` its run is taken, whatever stands here.
  std::string run = {};
  /// What the run says that was run; empty: the command line of this process.
  std::vector<std::string> command = {};
};

class ColumnWriter;
template <typename Batches, typename Count>
class Watched;

/// Measures a training loop from within, as stoker.Meter does in Python: same files, same meaning.
///
///     stoker::Meter meter;                             // or {.run = "runs/a"}
///     while (const auto batch = loader.next()) {       // between two steps: waiting for data
///       const auto step = meter.step(batch->size());
///       train(*batch);
///     }
///
/// or, around anything that a `for` takes,
///
///     for (const Batch& batch : meter.watch(batches, "training")) train(batch);
///
/// Rows are written once a second, so that a process that is killed loses its last second; the rest
/// when the Meter goes. Nothing but the constructor throws: measuring must not stop what is
/// measured. A process that forks goes on in a file of its own. For one thread at a time.
class Meter {
 public:
  /// Throws Error where the run's directory cannot be made.
  explicit Meter(const MeterOptions& options = {});
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  /// Lasts as long as what a step does.
  class [[nodiscard]] Step {
   public:
    ~Step() { meter_.end_step(begin_, samples_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    friend class Meter;
    Step(Meter& meter, uint64_t samples)
        : meter_(meter), samples_(samples), begin_(monotonic_ns()) {}

    Meter& meter_;
    uint64_t samples_;
    int64_t begin_;
  };

  /// The time since the step before it counts as waiting for data.
  Step step(uint64_t samples = 0) {
    begin_again_in_child();
    return {*this, samples};
  }

  /// The same batches, which must outlive it; each is a step from when it is there until the next
  /// one is asked for. `count` says how many samples a batch has; without it, std::size() where a
  /// batch has one. Each time it is gone through is an epoch.
  template <typename Batches, typename Count = std::nullptr_t>
  Watched<Batches, Count> watch(Batches& batches, const std::string& name, Count count = nullptr) {
    return {*this, batches, add_loader(name), std::move(count)};
  }

  /// Writes what is recorded now, instead of within a second.
  void flush() noexcept;
  /// The directory of the run.
  const std::string& run() const { return run_; }
  /// Why nothing is recorded any more; empty where all is well.
  const std::string& failure() const { return failure_; }

 private:
  template <typename Batches, typename Count>
  friend class Watched;

  uint32_t add_loader(const std::string& name);
  void end_step(int64_t begin_ns, uint64_t samples) noexcept;
  enum class Kind : int64_t { step = 0, end_of_epoch = 1 };
  void record(uint32_t loader, uint64_t epoch, Kind kind, int64_t end_ns, int64_t wait_ns,
              int64_t step_ns, uint64_t samples) noexcept;
  bool begin_again_in_child() noexcept;
  void write_rows(bool ended);
  void open_file();

  std::string run_, failure_;
  std::vector<std::string> command_;
  std::vector<std::string> loaders_;
  size_t told_ = 0;                     // how many of them the file knows
  std::unique_ptr<ColumnWriter> file_;  // made with the first block
  std::vector<int64_t> rows_;           // not written yet; a row after the other
  int64_t flush_at_ns_;
  int64_t step_end_ns_;
  int64_t step_loader_ = -1;
  unsigned forks_;
};

/// What Meter::watch() returns: to be gone through with `for`.
template <typename Batches, typename Count>
class Watched {
 public:
  using Inner = decltype(std::begin(std::declval<Batches&>()));
  using InnerEnd = decltype(std::end(std::declval<Batches&>()));

  Watched(Meter& meter, Batches& batches, uint32_t loader, Count count)
      : meter_(meter), batches_(batches), loader_(loader), count_(std::move(count)) {}

  // Some iterators do their work when they are asked for what they point to: once, then.
  using Given = decltype(*std::declval<Inner&>());
  using Batch = std::remove_reference_t<Given>;
  using Held = std::conditional_t<std::is_reference_v<Given>, Batch*, std::optional<Batch>>;

  struct End {};

  /// Where a pass is; goes nowhere else, since it also keeps the time.
  class Pass {
   public:
    explicit Pass(Watched& watched)
        : watched_(watched),
          epoch_(watched.epoch_++),
          asked_(monotonic_ns()),
          at_(std::begin(watched.batches_)),
          end_(std::end(watched.batches_)) {
      arrive();
    }
    ~Pass() {  // also of a pass that is left midway
      if (stepping_) finish(monotonic_ns());
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    Batch& operator*() { return *held_; }
    Pass& operator++() {
      asked_ = monotonic_ns();
      finish(asked_);
      ++at_;
      arrive();
      return *this;
    }
    bool operator!=(End) const { return !ended_; }

   private:
    void arrive() {
      ended_ = !(at_ != end_);
      if (!ended_) take();
      got_ = monotonic_ns();
      wait_ = got_ - asked_;
      stepping_ = !ended_;
      if (ended_) {
        watched_.meter_.record(watched_.loader_, epoch_, Meter::Kind::end_of_epoch, got_, wait_, 0,
                               0);
      }
    }
    void take() {
      if constexpr (std::is_reference_v<Given>) {
        Given batch = *at_;
        held_ = &batch;
      } else {
        held_.emplace(*at_);
      }
      samples_ = watched_.samples_of(*held_);
    }
    void finish(int64_t end) {
      stepping_ = false;
      watched_.meter_.record(watched_.loader_, epoch_, Meter::Kind::step, end, wait_, end - got_,
                             samples_);
    }

    Watched& watched_;
    uint64_t epoch_;
    int64_t asked_, got_ = 0, wait_ = 0;
    uint64_t samples_ = 0;
    bool ended_ = false;
    bool stepping_ = false;
    Held held_{};
    Inner at_;
    InnerEnd end_;
  };

  Pass begin() { return Pass(*this); }
  End end() const { return {}; }

 private:
  uint64_t samples_of(const Batch& batch) {
    if constexpr (!std::is_same_v<Count, std::nullptr_t>) {
      return std::invoke(count_, batch);
    } else if constexpr (requires { std::size(batch); }) {
      return std::size(batch);
    } else {
      return 0;
    }
  }

  Meter& meter_;
  Batches& batches_;
  uint32_t loader_;
  Count count_;
  uint64_t epoch_ = 0;
};

}  // namespace stoker
