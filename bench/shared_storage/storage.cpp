// SPDX-License-Identifier: Apache-2.0
#include "storage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <thread>

namespace stoker {
namespace {

constexpr std::array<const char*, kKinds> kKindNames = {"lookup", "getattr", "setattr", "create",
                                                        "remove", "open",    "list",    "statfs",
                                                        "read",   "write",   "sync"};

}  // namespace

std::string Storage::operations_text() const {
  const auto count = [&](Kind kind) { return counts[static_cast<size_t>(kind)].load(); };
  nlohmann::ordered_json kinds;
  uint64_t metadata = 0;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    kinds[kKindNames[kind]] = counts[kind].load();
    if (kind < static_cast<size_t>(Kind::read)) metadata += counts[kind].load();
  }
  const nlohmann::ordered_json document = {{"metadata", metadata},
                                           {"reads", count(Kind::read)},
                                           {"read_bytes", read_bytes.load()},
                                           {"writes", count(Kind::write)},
                                           {"written_bytes", written_bytes.load()},
                                           {"kinds", kinds}};
  return document.dump() + "\n";
}

void Storage::drop(fuse_ino_t number, uint64_t references) {
  auto* inode = reinterpret_cast<Inode*>(number);
  if (number == FUSE_ROOT_ID || inode == &operations) return;
  const std::lock_guard lock(mutex);
  inode->references -= std::min(inode->references, references);
  if (inode->references > 0) return;
  ::close(inode->descriptor);
  const auto identity = inode->identity;  // goes with it
  inodes.erase(identity);
}

Storage& storage_of(fuse_req_t request) {
  return *static_cast<Storage*>(fuse_req_userdata(request));
}

Inode& inode_of(fuse_req_t request, fuse_ino_t number) {
  if (number == FUSE_ROOT_ID) return storage_of(request).root;
  return *reinterpret_cast<Inode*>(number);
}

int descriptor_of(fuse_req_t request, fuse_ino_t number) {
  return inode_of(request, number).descriptor;
}

std::string path_of(fuse_req_t request, fuse_ino_t number) {
  return "/proc/self/fd/" + std::to_string(descriptor_of(request, number));
}

std::optional<fuse_entry_param> find(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Storage& storage = storage_of(request);
  const int directory = descriptor_of(request, parent);
  const std::lock_guard lock(storage.mutex);
  const int named = ::openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (named < 0) return {};
  fuse_entry_param entry{};
  if (::fstat(named, &entry.attr) != 0) {
    ::close(named);
    return {};
  }
  const std::pair<dev_t, ino_t> identity(entry.attr.st_dev, entry.attr.st_ino);
  std::unique_ptr<Inode>& inode = storage.inodes[identity];
  if (inode) {
    ::close(named);
  } else {
    inode = std::make_unique<Inode>(Inode{named, identity, 0});
  }
  ++inode->references;
  entry.ino = reinterpret_cast<fuse_ino_t>(inode.get());
  entry.attr_timeout = entry.entry_timeout = storage.settings.remember_s;
  return entry;
}

Storage& pay(fuse_req_t request, Kind kind) {
  Storage& storage = storage_of(request);
  storage.counts[static_cast<size_t>(kind)].fetch_add(1);
  std::this_thread::sleep_for(storage.settings.metadata);
  return storage;
}

void pay_data(Storage& storage, Kind kind, SharedLink::Clock::time_point begin, uint64_t bytes) {
  storage.counts[static_cast<size_t>(kind)].fetch_add(1);
  const auto latency =
      std::chrono::duration_cast<SharedLink::Clock::duration>(storage.settings.request);
  std::this_thread::sleep_until(storage.link.arrival(begin + latency, bytes));
}

void reply_status(fuse_req_t request, bool good) { fuse_reply_err(request, good ? 0 : errno); }

}  // namespace stoker
