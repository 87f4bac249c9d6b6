// SPDX-License-Identifier: Apache-2.0
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "link.h"

namespace stoker {

enum class Kind : size_t {
  lookup,
  getattr,
  setattr,
  create,
  remove,
  open,
  list,
  statfs,
  read,
  write,
  sync
};
constexpr size_t kKinds = static_cast<size_t>(Kind::sync) + 1;

constexpr unsigned kInFlight = 64;  // requests that wait at once
constexpr unsigned kLargestRequest = 1 << 20;

struct Settings {
  std::chrono::duration<double, std::milli> metadata{1};
  std::chrono::duration<double, std::milli> request{0.5};
  uint64_t bytes_per_s = 300'000'000;
  double remember_s = 1;
};

/// A file or directory that the kernel knows: a descriptor that only names it.
struct Inode {
  int descriptor = -1;
  std::pair<dev_t, ino_t> identity;
  uint64_t references = 0;
};

struct Storage {
  explicit Storage(const Settings& chosen) : settings(chosen), link(chosen.bytes_per_s) {}

  /// What was asked for so far, as JSON.
  std::string operations_text() const;
  /// The kernel does not refer to it so many times any more.
  void drop(fuse_ino_t number, uint64_t references);

  const Settings settings;
  SharedLink link;
  Inode root;
  Inode operations;  // the file that says what was asked for; has no descriptor
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::unique_ptr<Inode>> inodes;  // guarded by mutex
  std::array<std::atomic<uint64_t>, kKinds> counts{};
  std::atomic<uint64_t> read_bytes = 0;
  std::atomic<uint64_t> written_bytes = 0;
};

Storage& storage_of(fuse_req_t request);
Inode& inode_of(fuse_req_t request, fuse_ino_t number);
int descriptor_of(fuse_req_t request, fuse_ino_t number);
/// A descriptor that only names a file cannot be used; its name in /proc can.
std::string path_of(fuse_req_t request, fuse_ino_t number);

/// What `name` in a directory is, known to the kernel from now on; errno says why not.
std::optional<fuse_entry_param> find(fuse_req_t request, fuse_ino_t parent, const char* name);

/// Counts a request about names and attributes, and waits as long as the storage would.
Storage& pay(fuse_req_t request, Kind kind);
/// The same for data. `begin` is when it was asked for: what we do meanwhile costs nothing on top.
void pay_data(Storage& storage, Kind kind, SharedLink::Clock::time_point begin, uint64_t bytes);

/// errno where it is not good.
void reply_status(fuse_req_t request, bool good);

void add_names(fuse_lowlevel_ops& table);
void add_data(fuse_lowlevel_ops& table);

}  // namespace stoker
