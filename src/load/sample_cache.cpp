// SPDX-License-Identifier: Apache-2.0
#include "load/sample_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/hash.h"

namespace stoker {

SampleCache::SampleCache(const std::string& directory, uint64_t limit) : limit_(limit) {
  if (directory.empty()) return;
  // Has no name, so nothing is left over however the process ends.
  file_ = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0) throw system_error(directory, "cannot make a cache there", errno);
}

SampleCache::~SampleCache() {
  if (file_ >= 0) ::close(file_);
}

size_t SampleCache::Hash::operator()(const Name& name) const {
  return mix64(name.sample * 64 + name.field);
}

bool SampleCache::get(uint64_t sample, uint32_t field, MutableBytes into) {
  const std::shared_lock lock(mutex_);
  const auto found = kept_.find({sample, field});
  if (found == kept_.end() || found->second.length != into.size()) return false;
  const Kept& kept = found->second;
  if (file_ < 0) {
    std::memcpy(into.data(), kept.data.get(), into.size());
  } else {
    for (size_t done = 0; done < into.size();) {
      const ssize_t got = ::pread(file_, into.data() + done, into.size() - done,
                                  static_cast<off_t>(kept.offset + done));
      if (got <= 0) return false;  // the dataset itself has it
      done += static_cast<size_t>(got);
    }
    if (crc32c(into) != kept.crc) return false;
  }
  ++hits_;
  return true;
}

void SampleCache::put(uint64_t sample, uint32_t field, Bytes bytes) {
  Kept kept;
  kept.length = bytes.size();
  Kept* place =
      nullptr;  // of no length until the bytes are there: nobody gets it, or puts it again
  {
    const std::unique_lock lock(mutex_);
    if (used_ + bytes.size() > limit_) return;
    const auto [entry, fresh] = kept_.try_emplace({sample, field});
    if (!fresh) return;
    place = &entry->second;
    kept.offset = used_;
    used_ += bytes.size();
  }
  if (file_ < 0) {
    kept.data = std::make_unique_for_overwrite<std::byte[]>(bytes.size());
    std::memcpy(kept.data.get(), bytes.data(), bytes.size());
  } else {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t put = ::pwrite(file_, bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(kept.offset + done));
      if (put <= 0) return;  // the disk is full: what is there stays
      done += static_cast<size_t>(put);
    }
    kept.crc = crc32c(bytes);
  }
  const std::unique_lock lock(mutex_);
  *place = std::move(kept);
}

}  // namespace stoker
