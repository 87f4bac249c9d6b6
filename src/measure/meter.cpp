// SPDX-License-Identifier: Apache-2.0
#include "measure/meter.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "base/json.h"
#include "measure/time.h"
#include "results/column_file.h"

namespace stoker {
namespace {

constexpr int64_t kFlushNs = 1'000'000'000;  // what a kill can cost
constexpr size_t kColumns = 8;

// Cheaper to look at in every step than the number of the process.
std::atomic<unsigned> forks{0};

void count_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  });
}

/// As launchers say it: torchrun, Slurm, Open MPI, MPICH; 0 of 1 without one.
std::pair<uint32_t, uint32_t> find_rank() {
  constexpr std::array<std::pair<const char*, const char*>, 4> kNames = {{
      {"RANK", "WORLD_SIZE"},
      {"SLURM_PROCID", "SLURM_NTASKS"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
  }};
  const auto number = [](const std::string& text) -> std::optional<uint32_t> {
    constexpr size_t kLongest = 9;  // digits that certainly fit
    if (text.empty() || text.size() > kLongest) return std::nullopt;
    if (text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    return static_cast<uint32_t>(std::stoul(text));
  };
  for (const auto& [rank_name, world_name] : kNames) {
    const auto rank = number(environment(rank_name));
    const auto world = number(environment(world_name));
    if (rank && world) return {*rank, *world};
  }
  return {0, 1};
}

std::vector<std::string> own_command() {
  std::vector<std::string> words;
  std::ifstream file("/proc/self/cmdline");
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string find_run(const std::string& wanted, const std::vector<std::string>& command) {
  const std::string around = environment("STOKER_RUN");
  if (!around.empty()) return around;
  try {
    std::string note;  // run() says where it is
    return begin_run(wanted, command, note).directory;
  } catch (const Error& error) {
    // The first rank that comes makes it, the others join it.
    if (error.os_error() != EEXIST || wanted.empty() || find_rank().second < 2) throw;
    return wanted;
  }
}

int64_t as_stored(uint64_t number) {
  return static_cast<int64_t>(std::min<uint64_t>(number, std::numeric_limits<int64_t>::max()));
}

}  // namespace

Meter::Meter(const MeterOptions& options)
    : command_(options.command.empty() ? own_command() : options.command) {
  count_forks();
  run_ = find_run(options.run, command_);
  forks_ = forks.load(std::memory_order_relaxed);
  step_end_ns_ = monotonic_ns();
  flush_at_ns_ = step_end_ns_ + kFlushNs;
}

Meter::~Meter() {
  if (begin_again_in_child()) return;
  try {
    write_rows(true);
  } catch (const std::exception&) {  // nobody is left to be told
  }
}

/// What is not written yet is the parent's, and so is the file.
bool Meter::begin_again_in_child() noexcept {
  const unsigned now = forks.load(std::memory_order_relaxed);
  if (now == forks_) return false;
  forks_ = now;
  rows_.clear();
  told_ = 0;
  file_.reset();
  step_end_ns_ = monotonic_ns();
  return true;
}

uint32_t Meter::add_loader(const std::string& name) {
  loaders_.push_back(name);
  return static_cast<uint32_t>(loaders_.size() - 1);
}

void Meter::end_step(int64_t begin_ns, uint64_t samples) noexcept {
  const int64_t end = monotonic_ns();
  try {
    if (step_loader_ < 0) step_loader_ = add_loader("Meter.step");
  } catch (const std::exception& error) {
    failure_ = "out of memory";
    return;
  }
  record(static_cast<uint32_t>(step_loader_), 0, Kind::step, end, begin_ns - step_end_ns_,
         end - begin_ns, samples);
  step_end_ns_ = end;
}

void Meter::record(uint32_t loader, uint64_t epoch, Kind kind, int64_t end_ns, int64_t wait_ns,
                   int64_t step_ns, uint64_t samples) noexcept {
  // A step that was begun before a fork is the parent's.
  if (begin_again_in_child() || !failure_.empty()) return;
  try {
    rows_.insert(rows_.end(), {int64_t{loader}, as_stored(epoch), static_cast<int64_t>(kind),
                               end_ns, wait_ns, step_ns, as_stored(samples), -1});
  } catch (const std::exception&) {
    failure_ = "out of memory";
    return;
  }
  if (end_ns >= flush_at_ns_) flush();
}

void Meter::flush() noexcept {
  if (begin_again_in_child()) return;
  flush_at_ns_ = monotonic_ns() + kFlushNs;
  try {
    write_rows(false);
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
}

void Meter::write_rows(bool ended) {
  if (!failure_.empty()) return rows_.clear();
  const bool news = !rows_.empty() || told_ < loaders_.size();
  if (!news && !(ended && file_ != nullptr)) return;
  if (file_ == nullptr) open_file();
  if (told_ < loaders_.size()) {
    Json loaders = Json::array();
    for (const std::string& name : loaders_) {
      loaders.push_back({{"name", name}, {"training", true}, {"explicit", true}});
    }
    file_->describe("loaders", loaders);
    told_ = loaders_.size();
  }
  if (ended) file_->describe("ended", true);
  for (size_t at = 0; at < rows_.size(); at += kColumns) file_->add(rows_.data() + at, nullptr);
  rows_.clear();
  file_->flush();
  failure_ = file_->failure();
}

void Meter::open_file() {
  const std::string host = host_name();
  const std::string name =
      fmt::format("{}/steps-{}-{}", run_, host.substr(0, host.find('.')), ::getpid());
  constexpr int kMostInOneProcess = 100;
  for (int i = 0; file_ == nullptr; ++i) {
    try {
      file_ = std::make_unique<ColumnWriter>(
          i == 0 ? name + ".columns" : fmt::format("{}-{}.columns", name, i),
          std::vector<std::string>{"loader", "epoch", "kind", "end_ns", "wait_ns", "step_ns",
                                   "samples", "gpu_ns"},
          std::vector<std::string>{});
    } catch (const Error& error) {
      if (error.os_error() != EEXIST || i >= kMostInOneProcess) throw;
    }
  }
  const auto [rank, world] = find_rank();
  file_->describe("host", host);
  file_->describe("pid", ::getpid());
  file_->describe("rank", rank);
  file_->describe("world", world);
  file_->describe("program", command_);
  file_->describe("time_of_day_ns", time_of_day_ns() - monotonic_ns());
}

}  // namespace stoker
