// SPDX-License-Identifier: Apache-2.0
// What putting many small files into a few large ones costs at least: each is opened, read and
// written, by as many threads as there are cores. No names, no index, no checksums, no sync.
//
//     copy_floor SOURCE DESTINATION
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace {

namespace fs = std::filesystem;

constexpr size_t kGroup = 256 * 1024;  // faster than 1 MiB, which stays less well in the cache

struct File {
  std::string path;
  size_t size;
};

[[noreturn]] void fail(const std::string& path) {
  std::perror(path.c_str());
  std::exit(1);
}

void copy(const std::vector<File>& files, size_t first, size_t last, const std::string& target) {
  const int out = ::open(target.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (out < 0) fail(target);
  std::vector<char> buffer(kGroup);
  size_t used = 0;
  const auto flush = [&] {
    if (::write(out, buffer.data(), used) != static_cast<ssize_t>(used)) fail(target);
    used = 0;
  };
  for (size_t i = first; i < last; ++i) {
    const File& file = files[i];
    if (used + file.size > buffer.size()) flush();
    if (file.size > buffer.size()) buffer.resize(file.size);
    const int in = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (in < 0) fail(file.path);
    if (::pread(in, buffer.data() + used, file.size, 0) != static_cast<ssize_t>(file.size)) {
      fail(file.path);
    }
    ::close(in);
    used += file.size;
  }
  flush();
  ::close(out);
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    (void)std::fputs("copy_floor SOURCE DESTINATION\n", stderr);
    return 2;
  }
  std::vector<File> files;
  for (const auto& entry : fs::recursive_directory_iterator(words[1])) {
    if (entry.is_regular_file()) files.push_back({entry.path().string(), entry.file_size()});
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  fs::create_directories(words[2]);
  const unsigned threads = stoker::usable_cores();
  stoker::parallel_for(threads, threads, [&](size_t i) {
    copy(files, files.size() * i / threads, files.size() * (i + 1) / threads,
         std::string(words[2]) + "/" + std::to_string(i));
  });
  return 0;
}
