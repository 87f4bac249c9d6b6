// SPDX-License-Identifier: Apache-2.0
#include "os/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace stoker {
namespace {

uint64_t cached_bytes(int descriptor, uint64_t size) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return 0;
  std::vector<unsigned char> pages((size + page - 1) / page);
  uint64_t cached = 0;
  if (::mincore(mapped, size, pages.data()) == 0) {
    cached = page * static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(),
                                                        [](unsigned char p) { return p & 1; }));
  }
  ::munmap(mapped, size);
  return std::min(cached, size);
}

}  // namespace

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
    left.cached = cached_bytes(descriptor, left.all);
  }
  return left;
}

}  // namespace stoker
