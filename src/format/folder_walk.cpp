// SPDX-License-Identifier: Apache-2.0
#include "format/folder_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "base/transient.h"
#include "dataset/manifest.h"
#include "os/open_beneath.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// Listing waits for the file system more than it computes, above all on a shared one.
constexpr unsigned kMinThreads = 8;
// Directories listed before what they hold is packed; bounds the memory of wide trees.
constexpr size_t kBatch = 4096;
// Links behind links multiply: a directory is entered by so many of them, and no more.
constexpr unsigned kMaxWays = 100;

struct Pending {
  std::string path;
  bool by_link = false;  // a link lies on the way
};

struct Child {
  std::string name;
  bool by_link = false;
  uint64_t device = 0, inode = 0;  // of what a link leads to
};

/// One directory as it was found.
struct Listing {
  std::string path;
  bool by_link = false;
  std::string names;
  std::vector<FileNames::Name> files;
  std::vector<Child> children;
  std::vector<std::string> refused;  // children that are faults
  std::vector<Fault> faults;
  uint64_t hidden = 0;
  bool indexed = false;

  void fault(std::string_view name, std::string cause, int os_error = 0) {
    faults.push_back({name.empty() ? path : join_path(path, name),
                      {},
                      {},
                      {},
                      std::move(cause),
                      {},
                      is_transient(os_error)});
  }
};

std::string_view first_component(std::string_view path) { return path.substr(0, path.find('/')); }

/// Classes first: "a" and all below it comes before "a-b", though '-' sorts before '/'.
bool directory_before(std::string_view a, std::string_view b) {
  const int top = first_component(a).compare(first_component(b));
  return top != 0 ? top < 0 : a < b;
}

std::string_view words_for(const std::string& path) {
  std::error_code ignored;
  switch (fs::status(path, ignored).type()) {
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::fifo:
      return "a fifo";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    default:
      return "something else";
  }
}

std::string words_for(const Error& error) {
  return error.os_error() != 0 ? std::generic_category().message(error.os_error()) : error.what();
}

class Walk {
 public:
  explicit Walk(const Source& source)
      : files_(*source.file_system), of_other_splits_(source.of_other_splits), root_(source.root) {
    std::error_code failed;  // where it matters, listing the root fails just after
    real_root_ = fs::canonical(root_, failed);
    if (failed) real_root_ = fs::absolute(root_, failed);
    blobs_ = blobs_of_snapshot(real_root_.native());
  }

  FolderTree run() {
    std::vector<Pending> level(1);
    while (!level.empty()) level = walk_level(level);
    sort_directories();
    std::stable_sort(tree_.faults.begin(), tree_.faults.end(),
                     [](const Fault& a, const Fault& b) { return a.shard < b.shard; });
    return std::move(tree_);
  }

 private:
  std::string absolute(std::string_view path) const {
    return path.empty() ? root_ : join_path(root_, path);
  }

  std::vector<Pending> walk_level(std::vector<Pending>& level) {
    std::vector<Pending> next;
    const unsigned threads = std::max(usable_cores(), kMinThreads);
    for (size_t first = 0; first < level.size(); first += kBatch) {
      std::vector<Listing> batch(std::min(kBatch, level.size() - first));
      for (size_t i = 0; i < batch.size(); ++i) {
        batch[i].path = std::move(level[first + i].path);
        batch[i].by_link = level[first + i].by_link;
      }
      parallel_for(batch.size(), threads, [&](size_t i) { list_directory(batch[i]); });
      for (Listing& listing : batch) take(listing, next);
    }
    return next;
  }

  void list_directory(Listing& listing) {
    try {
      files_.list(absolute(listing.path), [&](std::string_view name, FileKind kind) {
        if (listing.path.empty() && of_other_splits_.contains(name)) return;
        if (name == kIndexDirectory) {
          listing.indexed = true;
        } else if (name.starts_with('.')) {
          ++listing.hidden;
        } else {
          add(listing, name, kind);
        }
      });
    } catch (const Error& error) {
      if (listing.path.empty()) throw;
      listing.fault({}, fmt::format("cannot be listed: {}", words_for(error)), error.os_error());
    }
    const std::string_view names = listing.names;
    std::sort(listing.files.begin(), listing.files.end(), [&](const auto& a, const auto& b) {
      return name_before(names.substr(a.offset, a.length), names.substr(b.offset, b.length));
    });
    std::sort(listing.children.begin(), listing.children.end(),
              [](const Child& a, const Child& b) { return a.name < b.name; });
  }

  void add(Listing& listing, std::string_view name, FileKind kind) {
    if (kind == FileKind::unknown) {  // some file systems do not say
      try {
        const auto info = files_.info(absolute(join_path(listing.path, name)), false);
        if (!info) return listing.fault(name, "vanished while the folder was listed");
        kind = info->kind;
      } catch (const Error& error) {
        return listing.fault(name, fmt::format("cannot be looked at: {}", words_for(error)),
                             error.os_error());
      }
    }
    switch (kind) {
      case FileKind::file:
        return add_file(listing, name);
      case FileKind::directory:
        listing.children.push_back({std::string(name)});
        return;
      case FileKind::link:
        return add_link(listing, name);
      default:
        listing.fault(name, fmt::format("is {}, not a file",
                                        words_for(absolute(join_path(listing.path, name)))));
    }
  }

  static void add_file(Listing& listing, std::string_view name) {
    if (name.find('.') == name.size() - 1) {
      // Paths are put together from key and suffix: this one would lose its dot.
      return listing.fault(name, "its name ends in its only dot: cannot tell which field it is");
    }
    listing.files.push_back({0, static_cast<uint32_t>(name.size()), listing.names.size()});
    listing.names += name;
  }

  void add_link(Listing& listing, std::string_view name) {
    const std::string path = join_path(listing.path, name);
    std::error_code failed;
    const std::string target = printable(fs::read_symlink(absolute(path), failed).native());
    const auto refuse = [&](std::string_view why) {
      listing.fault(name, fmt::format("is a link to '{}', {}", target, why));
    };
    std::optional<FileInfo> info;
    try {
      info = files_.info(absolute(path), true);
    } catch (const Error& error) {
      return refuse(error.os_error() == ELOOP ? "which leads in a circle" : words_for(error));
    }
    if (!info) return refuse("which does not exist");
    if (info->kind == FileKind::other) {
      return refuse(fmt::format("{}, not a file", words_for(absolute(path))));
    }
    const bool directory = info->kind == FileKind::directory;
    const fs::path real = fs::canonical(absolute(path), failed);
    const bool blob = !directory && !blobs_.empty() && real.native().starts_with(blobs_);
    if (failed || !(is_inside(real) || blob)) {
      refuse("which is outside the folder");
    } else if (!directory) {
      return add_file(listing, name);
    } else if (lies_in(listing.path, *info)) {
      refuse("a directory that it is in itself: following it would never end");
    } else {
      listing.children.push_back({std::string(name), true, info->device, info->inode});
      return;
    }
    if (directory) listing.refused.emplace_back(name);
  }

  bool is_inside(const fs::path& real) const {
    return std::mismatch(real_root_.begin(), real_root_.end(), real.begin(), real.end()).first ==
           real_root_.end();
  }

  /// Whether `directory`, on the way by which the walk came there, is or lies in `other`.
  bool lies_in(std::string_view directory, const FileInfo& other) const {
    for (;;) {
      const auto info = files_.info(absolute(directory), true);
      if (!info || (info->device == other.device && info->inode == other.inode)) return true;
      if (directory.empty()) return false;
      const size_t slash = directory.rfind('/');
      directory = slash == directory.npos ? "" : directory.substr(0, slash);
    }
  }

  /// Packs what was listed, and appends its directories to `next`.
  void take(Listing& listing, std::vector<Pending>& next) {
    tree_.hidden += listing.hidden;
    for (const Child& child : listing.children) {
      if (listing.by_link && child.by_link && ++ways_[{child.device, child.inode}] > kMaxWays) {
        listing.fault(child.name, fmt::format("is a link to a directory that {} links behind "
                                              "other links lead to already",
                                              kMaxWays));
        continue;
      }
      next.push_back({join_path(listing.path, child.name), listing.by_link || child.by_link});
    }
    if (listing.path.empty()) {
      for (const Pending& top : next) tree_.tops.push_back({top.path});
      for (std::string& name : listing.refused) tree_.tops.push_back({std::move(name)});
      std::sort(tree_.tops.begin(), tree_.tops.end(), top_before);
    } else if (listing.indexed && listing.path.find('/') == listing.path.npos) {
      mark_indexed(listing.path);
    }
    std::move(listing.faults.begin(), listing.faults.end(), std::back_inserter(tree_.faults));
    take_files(listing);
  }

  static bool top_before(const FolderTree::Top& a, const FolderTree::Top& b) {
    return a.name < b.name;
  }

  void mark_indexed(const std::string& top) {
    const auto at =
        std::lower_bound(tree_.tops.begin(), tree_.tops.end(), FolderTree::Top{top}, top_before);
    if (at == tree_.tops.end() || at->name != top) return;
    try {
      const std::string index = join_path(absolute(top), kIndexDirectory);
      at->indexed = files_.info(join_path(index, kManifestName), true).has_value();
    } catch (const Error&) {
      // An index that cannot be looked at is not ours to judge: the files count.
    }
  }

  void take_files(Listing& listing) {
    if (listing.files.empty()) return;
    FileNames& files = tree_.files;
    for (FileNames::Name& name : listing.files) {
      name.directory = static_cast<uint32_t>(files.directories.size());
      name.offset += files.names.size();
    }
    files.directories.push_back(std::move(listing.path));
    if (files.files.empty()) {  // a flat folder is packed once, not twice
      files.names = std::move(listing.names);
      files.files = std::move(listing.files);
    } else {
      files.names += listing.names;
      files.files.insert(files.files.end(), listing.files.begin(), listing.files.end());
    }
  }

  void sort_directories() {
    FileNames& files = tree_.files;
    if (std::is_sorted(files.directories.begin(), files.directories.end(), directory_before)) {
      return;
    }
    std::vector<size_t> first(files.directories.size() + 1, files.files.size());
    for (size_t i = files.files.size(); i-- > 0;) first[files.files[i].directory] = i;
    std::vector<uint32_t> order(files.directories.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return directory_before(files.directories[a], files.directories[b]);
    });
    FileNames sorted;
    sorted.files.reserve(files.files.size());
    for (const uint32_t old : order) {
      const auto number = static_cast<uint32_t>(sorted.directories.size());
      sorted.directories.push_back(std::move(files.directories[old]));
      for (size_t i = first[old]; i < first[old + 1]; ++i) {
        sorted.files.push_back(files.files[i]);
        sorted.files.back().directory = number;
      }
    }
    sorted.names = std::move(files.names);
    files = std::move(sorted);
  }

  FileSystem& files_;
  const std::set<std::string, std::less<>>& of_other_splits_;
  std::string root_;
  fs::path real_root_;
  std::string blobs_;  // see blobs_of_snapshot()
  FolderTree tree_;
  // By device and inode: links behind links that lead to a directory.
  std::map<std::pair<uint64_t, uint64_t>, unsigned> ways_;
};

}  // namespace

FolderTree walk_folder(const Source& source) { return Walk(source).run(); }

bool name_before(std::string_view a, std::string_view b) {
  const size_t common = std::min(a.size(), b.size());
  const int order = std::memcmp(a.data(), b.data(), common);
  if (order != 0) return order < 0;
  if (a.size() == b.size()) return false;
  if (a.size() > b.size()) return !name_before(b, a);
  return a.find('.') != a.npos || '.' <= static_cast<unsigned char>(b[common]);
}

std::optional<size_t> find_place(const FileNames& files, std::string_view directory,
                                 std::string_view name) {
  const auto found = std::lower_bound(files.directories.begin(), files.directories.end(), directory,
                                      directory_before);
  if (found == files.directories.end() || *found != directory) return std::nullopt;
  const auto number = static_cast<uint32_t>(found - files.directories.begin());
  const auto at = std::lower_bound(
      files.files.begin(), files.files.end(), name,
      [&](const FileNames::Name& file, std::string_view wanted) {
        if (file.directory != number) return file.directory < number;
        return name_before(std::string_view(files.names).substr(file.offset, file.length), wanted);
      });
  return static_cast<size_t>(at - files.files.begin());
}

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path;
  path.reserve(directory.size() + name.size() + 1);
  path += directory;
  if (!directory.empty() && directory.back() != '/') path += '/';
  return path += name;
}

}  // namespace stoker
