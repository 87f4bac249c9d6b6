// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "os/file_system.h"

namespace stoker {

/// Whose a file or directory is, and who may do what with it.
struct Ownership {
  uid_t user = 0;
  gid_t group = 0;
  uint32_t mode = 0;  // permission bits, with set-group-ID and sticky
};

/// A directory that is held open, for places where anybody may write: what is checked is what is
/// used, whatever others rename meanwhile. Names are single components, others are Error(corrupt),
/// and no link is followed.
class SafeDirectory {
 public:
  /// Links on the way there are followed: whoever named the path meant them.
  explicit SafeDirectory(const std::string& path);
  ~SafeDirectory();
  SafeDirectory(SafeDirectory&& other) noexcept;
  SafeDirectory& operator=(SafeDirectory&& other) noexcept;

  const std::string& path() const { return path_; }
  Ownership ownership() const;
  uint64_t device() const;
  void set_mode(uint32_t mode) const;
  void set_group(gid_t group) const;

  /// A directory in it; nothing where there is none. Throws Error(permission) for a link, a file.
  std::optional<SafeDirectory> find(const std::string& name) const;
  /// The same; made where there is none, with exactly these permission bits.
  SafeDirectory make(const std::string& name, uint32_t mode) const;
  /// The directory that a relative path leads through, without its last component; made as needed.
  SafeDirectory make_parents(const std::string& path, uint32_t mode) const;

  std::vector<DirectoryEntry> list() const;
  /// Of the entry itself, or "."; nothing where there is none.
  std::optional<FileInfo> info(const std::string& name) const;
  std::optional<Ownership> ownership(const std::string& name) const;

  /// A new file, for writing, with exactly these permission bits; -1 where the name is taken.
  int create(const std::string& name, uint32_t mode) const;
  /// A link that leads nowhere and says `text`: made at once, with what it says, or not at all.
  /// False where the name is taken.
  bool mark(const std::string& name, const std::string& text) const;
  std::optional<std::string> read_mark(const std::string& name) const;
  /// All of a small file; nothing where there is none.
  std::optional<std::string> read(const std::string& name, uint64_t limit) const;

  /// Gives a file to a group, with exactly these permission bits. Links are not followed.
  void give_file(const std::string& name, gid_t group, uint32_t mode) const;
  /// Makes now the time of change of an entry. False where it is gone.
  bool touch(const std::string& name) const;

  /// Nothing happens where it is gone already.
  void remove(const std::string& name) const;
  /// A directory that has nothing in it; others stay.
  void remove_empty(const std::string& name) const;
  /// With everything in it; other file systems that are mounted there are left alone.
  void remove_tree(const std::string& name) const;
  /// All that is in it, as remove_tree() does.
  void remove_contents() const;
  /// Into another directory, over what is there under that name.
  void rename(const std::string& name, const SafeDirectory& to, const std::string& new_name) const;
  void sync() const;
  /// Makes now its time of change, and returns that: the clock is the file system's, which may be
  /// a server's. This host's where the directory is somebody else's.
  int64_t touch() const;

 private:
  SafeDirectory(int descriptor, std::string path)
      : descriptor_(descriptor), path_(std::move(path)) {}
  /// The name itself. Throws Error(corrupt) where it is not one component.
  const char* component(const std::string& name) const;
  std::string shown(const std::string& name) const { return path_ + "/" + name; }

  int descriptor_ = -1;
  std::string path_;
};

}  // namespace stoker
