// SPDX-License-Identifier: Apache-2.0
#include "os/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace stoker {

uint64_t cached_bytes(int descriptor, uint64_t offset, uint64_t length) {
  if (length == 0) return 0;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  length += offset % page;
  offset -= offset % page;
  void* mapped =
      ::mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return 0;
  std::vector<unsigned char> pages((length + page - 1) / page);
  uint64_t cached = 0;
  if (::mincore(mapped, length, pages.data()) == 0) {
    cached = page * static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(),
                                                        [](unsigned char p) { return p & 1; }));
  }
  ::munmap(mapped, length);
  return std::min(cached, length);
}

CachedBytes drop_from_page_cache(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const CachedBytes left = drop_from_page_cache(descriptor);
  ::close(descriptor);
  return left;
}

CachedBytes drop_from_page_cache(int descriptor) {
  CachedBytes left;
  struct stat info {};
  if (::fstat(descriptor, &info) == 0 && info.st_size > 0) {
    left.all = static_cast<uint64_t>(info.st_size);
    ::fdatasync(descriptor);  // what is not written yet cannot be forgotten
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    left.cached = cached_bytes(descriptor, 0, left.all);
  }
  return left;
}

void bring_into_page_cache(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_WILLNEED);
  ::close(descriptor);
}

}  // namespace stoker
