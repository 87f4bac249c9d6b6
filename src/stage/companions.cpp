// SPDX-License-Identifier: Apache-2.0
#include "stage/companions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "os/file_system.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kLargest = 16 << 20;
constexpr size_t kMost = 1000;
constexpr std::array<std::string_view, 7> kEndings = {".json", ".txt", ".md", ".yaml",
                                                      ".yml",  ".csv", ".tsv"};
constexpr std::array<std::string_view, 2> kNames = {"_metadata", "_common_metadata"};

bool describes_data(const std::string& name) {
  if (name.starts_with('.')) return false;
  const std::string ending = fs::path(name).extension().string();
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end() ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// The directories that shards are in, and those above them, up to the root: "", "train/".
std::set<std::string> directories_of(const std::vector<ShardToStage>& shards) {
  std::set<std::string> directories = {""};
  for (const ShardToStage& shard : shards) {
    for (size_t slash = shard.path.find('/'); slash != std::string::npos;
         slash = shard.path.find('/', slash + 1)) {
      directories.insert(shard.path.substr(0, slash + 1));
    }
  }
  return directories;
}

std::string contents_of(FilesBeneath& files, const std::string& path) {
  const auto file = files.open(path, Links::trusted);
  const FileInfo info = file->info();
  if (info.kind != FileKind::file || info.size > kLargest) {
    throw Error(ErrorKind::io, fmt::format("{}: is not a small file", printable(path)));
  }
  std::string text(info.size, '\0');
  text.resize(file->read_at(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  return text;
}

void write_companion(const StagedCopy& copy, const std::string& mark, const std::string& path,
                     const std::string& text) {
  const SafeDirectory to = copy.data.make_parents(path, copy.modes.directory);
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::optional<FileInfo> there = to.info(name);
  if (there && there->kind == FileKind::file && there->size == text.size() &&
      to.read(name, kLargest) == text) {
    return;
  }
  const SafeDirectory part = copy.parts.make(mark, copy.modes.directory);
  constexpr const char* kPart = "companion";
  part.remove(kPart);
  const int file = part.create(kPart, copy.modes.file);
  const ssize_t put = file < 0 ? -1 : ::write(file, text.data(), text.size());
  const int cause = put < 0 ? errno : ENOSPC;
  if (file >= 0) ::close(file);
  if (put != static_cast<ssize_t>(text.size())) {
    throw system_error(to.path() + "/" + name, "cannot write", cause);
  }
  part.rename(kPart, to, name);
}

}  // namespace

std::vector<std::string> companions_of(const DatasetPaths& paths,
                                       const std::vector<ShardToStage>& shards) {
  std::vector<std::string> found;
  if (!paths.file.empty()) return found;  // what is next to a single file is not the dataset's
  std::set<std::string> of_shards;
  for (const ShardToStage& shard : shards) of_shards.insert(shard.path);
  for (const std::string& directory : directories_of(shards)) {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(paths.root + "/" + directory, failed)) {
      const std::string name = entry.path().filename().string();
      if (!describes_data(name) || of_shards.contains(directory + name)) continue;
      std::error_code ignored;
      if (!entry.is_regular_file(ignored) || entry.file_size(ignored) > kLargest) continue;
      if (found.size() < kMost) found.push_back(directory + name);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void copy_companions(const DatasetPaths& paths, const std::vector<ShardToStage>& shards,
                     const StagedCopy& copy, const std::string& mark, const Notify& notify) {
  const std::unique_ptr<FilesBeneath> files = real_file_system().beneath(paths.root);
  for (const std::string& path : companions_of(paths, shards)) {
    std::string text;
    try {
      text = contents_of(*files, path);
    } catch (const Error& error) {
      if (notify) notify(fmt::format("left out of the copy: {}", error.what()));
      continue;
    }
    write_companion(copy, mark, path, text);
  }
}

}  // namespace stoker
