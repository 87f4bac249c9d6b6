// SPDX-License-Identifier: Apache-2.0
#include "os/fake_file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace stoker {
namespace {

/// Without repeated and trailing slashes and "." components.
std::string normal(const std::string& path) {
  std::string result = path.starts_with('/') ? "/" : "";
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string component = path.substr(begin, end - begin);
    if (!component.empty() && component != ".") {
      if (!result.empty() && result.back() != '/') result += '/';
      result += component;
    }
    begin = end + 1;
  }
  return result.empty() ? "." : result;
}

std::string parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

class FakeFile final : public ReadableFile {
 public:
  using Entry = FakeFileSystem::Entry;
  using Counts = FakeFileSystem::Counts;

  FakeFile(std::shared_ptr<Entry> entry, std::shared_ptr<Counts> counts, std::string path)
      : entry_(std::move(entry)), counts_(std::move(counts)), path_(std::move(path)) {}

  size_t read_at(uint64_t offset, MutableBytes into) override {
    const MutableBytes pieces[] = {into};
    return read_at(offset, pieces);
  }

  size_t read_at(uint64_t offset, std::span<const MutableBytes> into) override {
    ++counts_->reads;
    if (entry_->info.kind == FileKind::directory) throw system_error(path_, "cannot read", EISDIR);
    const uint64_t end = std::min<uint64_t>(entry_->contents.size(), entry_->reads_end);
    size_t done = 0;
    for (const MutableBytes piece : into) {
      const uint64_t from = std::min(offset + done, end);
      const size_t size = std::min<uint64_t>(piece.size(), end - from);
      if (entry_->read_error != 0 && entry_->bad_offset >= from &&
          entry_->bad_offset < from + size) {
        throw system_error(path_, "cannot read", entry_->read_error);
      }
      if (size > 0) std::memcpy(piece.data(), entry_->contents.data() + from, size);
      done += size;
      if (size < piece.size()) break;
    }
    counts_->bytes += done;
    return done;
  }

  FileInfo info() override { return entry_->info; }

 private:
  std::shared_ptr<Entry> entry_;
  std::shared_ptr<Counts> counts_;
  std::string path_;
};

FakeFileSystem::Entry& FakeFileSystem::add(const std::string& path, FileKind kind) {
  auto& entry = entries_[normal(path)];
  entry = std::make_shared<Entry>();
  entry->info.kind = kind;
  entry->info.mode = kind == FileKind::directory ? 0755 : 0644;
  entry->info.modified_ns = 1;
  entry->info.device = 1;
  entry->info.inode = next_inode_++;
  const std::string above = parent(normal(path));
  if (above != normal(path) && !entries_.contains(above)) add(above, FileKind::directory);
  return *entry;
}

void FakeFileSystem::add_file(const std::string& path, std::string contents, int64_t modified_ns) {
  Entry& entry = add(path, FileKind::file);
  entry.info.size = contents.size();
  entry.info.modified_ns = modified_ns;
  entry.contents = std::move(contents);
}

void FakeFileSystem::add_directory(const std::string& path) { add(path, FileKind::directory); }

void FakeFileSystem::add_link(const std::string& path, const std::string& target) {
  Entry& entry = add(path, FileKind::link);
  entry.contents = target.starts_with('/') ? target : parent(normal(path)) + "/" + target;
}

void FakeFileSystem::add_other(const std::string& path) { add(path, FileKind::other); }

void FakeFileSystem::remove(const std::string& path) { entries_.erase(normal(path)); }

void FakeFileSystem::fail_open(const std::string& path, int os_error) {
  const auto entry = find_or_throw(path, "cannot make fail");
  entry->open_error = os_error;
  entry->info.readable = os_error != EACCES;
}

void FakeFileSystem::fail_read(const std::string& path, uint64_t offset, int os_error) {
  const auto entry = find_or_throw(path, "cannot make fail");
  entry->bad_offset = offset;
  entry->read_error = os_error;
}

void FakeFileSystem::end_reads_at(const std::string& path, uint64_t offset) {
  find_or_throw(path, "cannot cut")->reads_end = offset;
}

void FakeFileSystem::reset_counts() {
  counts_->reads = 0;
  counts_->bytes = 0;
  counts_->opens = 0;
  counts_->infos = 0;
}

std::shared_ptr<FakeFileSystem::Entry> FakeFileSystem::find(const std::string& path,
                                                            bool follow_links) const {
  std::string at = normal(path);
  for (int links = 0; links < 40; ++links) {
    const auto found = entries_.find(at);
    if (found == entries_.end()) return nullptr;
    if (!follow_links || found->second->info.kind != FileKind::link) return found->second;
    at = normal(found->second->contents);
  }
  throw system_error(path, "cannot follow", ELOOP);
}

std::shared_ptr<FakeFileSystem::Entry> FakeFileSystem::find_or_throw(const std::string& path,
                                                                     const char* what) const {
  auto entry = find(path, true);
  if (!entry) throw system_error(path, what, ENOENT);
  return entry;
}

std::unique_ptr<ReadableFile> FakeFileSystem::open(const std::string& path) {
  auto entry = find_or_throw(path, "cannot open");
  if (entry->open_error != 0) throw system_error(path, "cannot open", entry->open_error);
  if (entry->info.kind == FileKind::other) throw system_error(path, "cannot open", ENXIO);
  ++counts_->opens;
  return std::make_unique<FakeFile>(std::move(entry), counts_, path);
}

std::optional<FileInfo> FakeFileSystem::info(const std::string& path, bool follow_links) {
  ++counts_->infos;
  const auto entry = find(path, follow_links);
  if (!entry) return std::nullopt;
  return entry->info;
}

void FakeFileSystem::list(const std::string& directory, const EachEntry& each) {
  const auto entry = find_or_throw(directory, "cannot list");
  int os_error = entry->open_error;
  if (entry->info.kind != FileKind::directory) os_error = ENOTDIR;
  if (os_error != 0) throw system_error(directory, "cannot list", os_error);
  // Back to front: nobody may rely on the order.
  for (auto at = entries_.rbegin(); at != entries_.rend(); ++at) {
    if (at->first == "/" || at->first == "." || find(parent(at->first), true) != entry) continue;
    const std::string_view path = at->first;
    each(path.substr(path.rfind('/') + 1), hide_kinds_ ? FileKind::unknown : at->second->info.kind);
  }
}

}  // namespace stoker
