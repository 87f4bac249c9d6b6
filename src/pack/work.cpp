// SPDX-License-Identifier: Apache-2.0
#include "pack/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "dataset/splits.h"
#include "index/build_index.h"
#include "pack/plan.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

bool is_inside(const fs::path& inner, const fs::path& outer) {
  const auto [end, ignored] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return end == outer.end();
}

void check_paths(const std::string& source, const DatasetPaths& from,
                 const Destination& destination) {
  const fs::path read = from.file.empty() ? fs::path(from.root) : fs::path(from.root) / from.file;
  if (is_inside(destination.root, read)) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: is inside the source {}: choose a destination outside of it",
                            printable(destination.root), printable(source)));
  }
  if (is_inside(read, destination.root)) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: the source {} is inside it: choose another destination",
                            printable(destination.root), printable(source)));
  }
  if (fs::exists(destination.root) && !fs::is_directory(destination.root)) {
    throw Error(ErrorKind::usage, fmt::format("{}: is a file; the destination is a directory",
                                              printable(destination.root)));
  }
}

void check_compression(const Format& format, const std::string& compress) {
  const auto known = format.write->compressions;
  if (compress.empty() || std::find(known.begin(), known.end(), compress) != known.end()) return;
  throw Error(ErrorKind::usage,
              known.empty()
                  ? fmt::format("compress {}: {} is written as it is, without compression",
                                printable(compress), format.name)
                  : fmt::format("compress {}: {} can be compressed with {}", printable(compress),
                                format.name, fmt::join(known, ", ")));
}

/// What shards are named after. No leading dot: that would hide them.
std::string name_of_source(const DatasetPaths& paths) {
  std::string name = paths.file.empty() ? fs::path(paths.root).filename().string() : paths.file;
  name.erase(0, name.find_first_not_of('.'));
  if (!paths.file.empty()) name = name.substr(0, name.find('.'));
  if (!paths.split.empty() && paths.split != kAllSplits) name += "-" + paths.split;
  const bool readable = is_utf8(name);
  if (name.size() > kLongestShardName) name.resize(kLongestShardName);
  while (readable && !is_utf8(name)) name.pop_back();  // not within a letter
  return name.empty() ? "data" : name;
}

}  // namespace

Work work_of(const std::string& source_path, const std::string& destination_path,
             const PackOptions& options) {
  const Format* format = find_format(options.to);
  if (format == nullptr || format->write == nullptr) {
    throw Error(ErrorKind::usage,
                fmt::format("to {}: not a format that can be written", printable(options.to)));
  }
  check_compression(*format, options.compress);
  const DatasetPaths paths = DatasetPaths::of(source_path);
  const Destination destination(destination_path);
  check_paths(source_path, paths, destination);
  const std::string name = name_of_source(paths);
  return {format,      paths,
          destination, source_at(paths, options.list, nullptr),
          name,        options_of(name, paths.part(), options)};
}

}  // namespace stoker
