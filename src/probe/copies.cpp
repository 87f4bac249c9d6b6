// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.h"
#include "os/page_cache.h"
#include "probe/measurements.h"
#include "probe/stopwatch.h"

namespace stoker {

Rate measure_copy(const ProbeFile& from, const std::string& directory, Allowance& allowance,
                  Progress& progress) {
  constexpr uint64_t kBlock = 512 << 10;
  const ProbeFile to = ProbeFile::create(directory);
  Trial trial{.threads = std::min(4U, allowance.threads), .seconds = allowance.seconds};
  const uint64_t blocks = std::min(from.size(), allowance.bytes) / kBlock;
  trial.threads = static_cast<unsigned>(std::min<uint64_t>(trial.threads, blocks / trial.repeats));
  if (trial.threads == 0) return {};
  const uint64_t each = blocks / trial.threads / trial.repeats;
  CachedBytes left;
  std::vector<std::vector<char>> buffers(trial.threads, std::vector<char>(kBlock));
  Rate rate = time_trial(
      trial, progress,
      [&](unsigned thread, unsigned repeat, const Slot& slot) {
        const uint64_t first = (uint64_t{repeat} * trial.threads + thread) * each;
        uint64_t done = 0;
        for (; done < each && slot.more(done); ++done) {
          const auto offset = static_cast<off_t>((first + done) * kBlock);
          const ssize_t got = ::pread(from.buffered(), buffers[thread].data(), kBlock, offset);
          if (got < 0) throw system_error(directory, "cannot read what is copied", errno);
          const ssize_t put =
              ::pwrite(to.buffered(), buffers[thread].data(), static_cast<size_t>(got), offset);
          if (put < 0 && errno != ENOSPC && errno != EDQUOT) {
            throw system_error(directory, "cannot write", errno);
          }
          if (put != static_cast<ssize_t>(kBlock)) break;
        }
        ::fdatasync(to.buffered());
        return done * kBlock;
      },
      [&] { left = drop_from_page_cache(from.buffered()); });
  allowance.bytes -= std::min(allowance.bytes, rate.amount);
  rate.what = "copy";
  rate.unit = "bytes";
  rate.block_bytes = kBlock;
  rate.cold = left.all > 0 && left.cached * 100 <= left.all;
  rate.how = rate.cold ? "read from the storage, written with fdatasync"
                       : "read from memory, written with fdatasync";
  return rate;
}

}  // namespace stoker
