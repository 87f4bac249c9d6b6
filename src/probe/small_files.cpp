// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/error.h"
#include "os/output_file.h"
#include "os/page_cache.h"
#include "probe/measurements.h"
#include "probe/stopwatch.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMostFiles = 6000;   // of one trial
constexpr size_t kMostColdFiles = 100;  // each is synced before it can be forgotten
constexpr double kColdEnough = 0.01;

using Contents = std::array<char, kSmallFileBytes>;

/// Returns false where there is no room for it.
bool create_file(const std::string& path, const Contents& contents) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    if (errno == ENOSPC || errno == EDQUOT) return false;
    throw system_error(path, "cannot create", errno);
  }
  const ssize_t put = ::write(descriptor, contents.data(), contents.size());
  const int cause = errno;
  ::close(descriptor);
  if (put == static_cast<ssize_t>(contents.size())) return true;
  ::unlink(path.c_str());
  if (put >= 0 || cause == ENOSPC || cause == EDQUOT) return false;
  throw system_error(path, "cannot write", cause);
}

int open_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw system_error(path, "cannot open", errno);
  return descriptor;
}

void stat_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) throw system_error(path, "cannot stat", errno);
}

void open_and_close(const std::string& path) { ::close(open_file(path)); }

void read_file_once(const std::string& path) {
  thread_local Contents buffer;
  const int descriptor = open_file(path);
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  const int cause = errno;
  ::close(descriptor);
  if (got < 0) throw system_error(path, "cannot read", cause);
}

/// Makes the kernel forget the files; returns the share that it has kept.
double forget(const std::vector<std::string>& files) {
  // All at once on the way first, so that the syncs behind find little to do.
  for (const std::string& path : files) {
    const int descriptor = open_file(path);
    ::sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
    ::close(descriptor);
  }
  CachedBytes left;
  for (const std::string& path : files) {
    const CachedBytes of_file = drop_from_page_cache(path);
    left.cached += of_file.cached;
    left.all += of_file.all;
  }
  return left.all == 0 ? 0 : static_cast<double>(left.cached) / static_cast<double>(left.all);
}

/// As many of the files as can be forgotten within `seconds`: syncing them may take long.
std::vector<std::string> files_to_forget(const std::vector<std::string>& files, double seconds,
                                         const Progress& progress) {
  const Slot slot(seconds, progress);
  std::vector<std::string> some;
  for (const std::string& path : files) {
    if (some.size() == kMostColdFiles || (!some.empty() && slot.over())) break;
    forget({path});
    some.push_back(path);
  }
  return some;
}

/// Each thread takes every n-th file; `once`: each file once in a repeat.
Rate time_files(const std::vector<std::string>& files, void (*operation)(const std::string&),
                Trial trial, bool once, Progress& progress,
                const std::function<void()>& before_each = {}) {
  trial.threads = static_cast<unsigned>(std::min<size_t>(trial.threads, files.size()));
  return time_trial(
      trial, progress,
      [&](unsigned thread, unsigned, const Slot& slot) {
        uint64_t done = 0;
        for (size_t at = thread; slot.more(done); at += trial.threads, ++done) {
          if (at >= files.size()) {
            if (once) break;
            at %= files.size();
          }
          operation(files[at]);
        }
        return done;
      },
      before_each);
}

void add(Place& place, Rate rate, const char* what, bool cold, std::string how) {
  if (rate.repeats == 0) return;
  rate.what = what;
  rate.unit = "operations";
  rate.block_bytes = kSmallFileBytes;
  rate.cold = cold;
  rate.how = std::move(how);
  place.rates.push_back(std::move(rate));
}

std::vector<unsigned> counts_for(const Allowance& allowance) {
  return thread_counts(std::min(4U, allowance.threads));
}

}  // namespace

std::vector<std::string> measure_creates(Place& place, const std::string& directory,
                                         Allowance& allowance, Progress& progress) {
  const std::vector<unsigned> counts = counts_for(allowance);
  const bool in_memory = is_in_memory(place.type);
  const uint64_t bytes = std::min(allowance.bytes, kMostFiles * kSmallFileBytes) / counts.size();
  const Contents contents{};
  std::vector<std::string> kept;
  for (const unsigned threads : counts) {
    if (allowance.over()) break;
    const Trial trial{.threads = threads, .seconds = allowance.seconds};
    const uint64_t each = bytes / kSmallFileBytes / threads / trial.repeats;
    const std::string parent = fmt::format("{}/files-{}", directory, threads);
    for (unsigned i = 0; i < threads; ++i) make_directories(fmt::format("{}/{}", parent, i));
    std::vector<std::vector<std::string>> names(threads);
    for (unsigned i = 0; i < threads; ++i) {
      for (uint64_t number = 0; number < each * trial.repeats; ++number) {
        names[i].push_back(fmt::format("{}/{}/{:06}", parent, i, number));
      }
    }
    std::vector<uint64_t> next(threads);
    Rate rate = time_trial(trial, progress, [&](unsigned thread, unsigned, const Slot& slot) {
      uint64_t done = 0;
      for (; done < each && slot.more(done); ++done, ++next[thread]) {
        if (!create_file(names[thread][next[thread]], contents)) break;
      }
      return done;
    });
    const uint64_t written = rate.amount * kSmallFileBytes;
    allowance.bytes -= std::min(allowance.bytes, written);
    place.written_bytes += written;
    add(place, std::move(rate), "create", false,
        in_memory ? "memory" : "not synced: as fast as the file system takes them");
    if (threads == 1)
      kept.assign(names[0].begin(), names[0].begin() + static_cast<ptrdiff_t>(next[0]));
  }
  return kept;
}

void measure_small_files(Place& place, const std::vector<std::string>& files,
                         const Allowance& allowance, Progress& progress) {
  if (files.empty()) return;
  constexpr const char* kNames = "names known to this machine";
  const bool in_memory = is_in_memory(place.type);
  std::vector<std::string> some;
  if (!in_memory) some = files_to_forget(files, 2 * allowance.seconds, progress);
  for (const unsigned threads : counts_for(allowance)) {
    if (allowance.over()) break;
    const Trial trial{.threads = threads, .seconds = allowance.seconds};
    add(place, time_files(files, stat_file, trial, false, progress), "stat", false, kNames);
    add(place, time_files(files, open_and_close, trial, false, progress), "open", false, kNames);
    if (!in_memory) {
      double kept = 0;
      Rate rate = time_files(some, read_file_once, trial, true, progress,
                             [&] { kept = std::max(kept, forget(some)); });
      add(place, std::move(rate), "small_read", kept <= kColdEnough,
          fmt::format("fadvise; mincore: {:.1f} % in memory; {}", 100 * kept, kNames));
    }
    for (const std::string& path : files) {
      if (progress.stop) break;
      read_file_once(path);
    }
    add(place, time_files(files, read_file_once, trial, false, progress), "small_read", false,
        "memory");
  }
}

std::vector<FoundFile> existing_files(const std::string& directory, Progress& progress) {
  constexpr size_t kMost = 2000;
  constexpr double kSeconds = 1;
  const Slot slot(kSeconds, progress);
  std::vector<FoundFile> found;
  std::error_code failed;
  const auto skip = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(directory, skip, failed), end;
       !failed && at != end && found.size() < kMost && !slot.over(); at.increment(failed)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored) || at->is_symlink(ignored)) continue;
    const std::string path = at->path().string();
    if (::access(path.c_str(), R_OK) == 0) found.push_back({path, at->file_size(ignored)});
  }
  return found;
}

}  // namespace stoker
