// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
#include "format/numbered_name.h"
#include "format/shard_directory.h"
#include "format/tar.h"
#include "format/tar_header.h"
#include "format/unread.h"

namespace stoker {
namespace {

struct Ending {
  std::string_view ending;
  Compression compression;
};
constexpr std::array<Ending, 4> kEndings = {{{".tar", Compression::none},
                                             {".tgz", Compression::gzip},
                                             {".tar.gz", Compression::gzip},
                                             {".tar.zst", Compression::zstd}}};

const Ending* ending_of(std::string_view name) {
  for (const Ending& ending : kEndings) {
    if (name.size() > ending.ending.size() && name.ends_with(ending.ending)) return &ending;
  }
  return nullptr;
}

bool begins_like_tar(Bytes begin) {
  return begin.size() >= kTarBlock && sum_of(as_tar_header(begin)).right;
}

std::optional<Layout> detect_file(const Source& source) {
  const std::string path = source.root + "/" + source.file;
  auto file = source.file_system->open(path);
  if (file->info().kind == FileKind::directory) return std::nullopt;
  const Ending* const ending = ending_of(source.file);
  std::array<std::byte, kTarBlock> block{};
  Bytes begin = Bytes(block).first(file->read_at(0, block));
  Compression compression = Compression::none;
  bool found = begins_like_tar(begin);
  if (!found) {
    compression = compression_of(begin);
    if (compression != Compression::none) {
      try {
        file = inflate(std::move(file), path, compression);
        found = begins_like_tar(Bytes(block).first(file->read_at(0, block)));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::corrupt) throw;
      }
    } else if (ending != nullptr) {
      compression = ending->compression;
    }
  }
  if (!found && ending == nullptr) return std::nullopt;
  if (!found && compression_of(begin) == Compression::none) {
    const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
    if (const auto known = describe_unread_file(source.file, text)) {
      throw Error(ErrorKind::unsupported, fmt::format("{}: {}", printable(path), *known));
    }
  }
  Layout layout;
  layout.parts.push_back({source.file, compression, 0, 0});
  return layout;
}

/// Of "train-00012-of-00128.tar", whatever the number of digits.
std::optional<NumberedName> find_number(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kOf = "-of-";
  const std::string_view stem = name.substr(0, name.size() - ending_of(name)->ending.size());
  const size_t end = stem.find_last_of(kDigits) + 1;
  if (end == 0) return std::nullopt;
  const size_t begin = stem.find_last_not_of(kDigits, end - 1) + 1;
  if (!stem.substr(0, begin).ends_with(kOf)) return std::nullopt;
  const size_t middle = begin - kOf.size();
  const size_t first = stem.substr(0, middle).find_last_not_of(kDigits) + 1;
  if (first >= middle) return std::nullopt;
  NumberedName numbered{name.substr(0, first), name.substr(first, middle - first),
                        name.substr(middle), 0, 0};
  const auto to_number = [](std::string_view digits, uint64_t& number) {
    return std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc();
  };
  if (!to_number(numbered.digits, numbered.number) ||
      !to_number(stem.substr(begin, end - begin), numbered.count)) {
    return std::nullopt;
  }
  return numbered;
}

std::optional<Layout> detect_directory(const Source& source) {
  ShardDirectory found = look_at_shards(
      source, [](std::string_view name) { return ending_of(name) != nullptr; }, 0);
  if (found.shards.empty() || found.deep || found.images > found.shards.size()) {
    return std::nullopt;
  }
  Layout layout;
  layout.hidden = found.hidden;
  layout.unlisted = found.other_files;
  layout.faults = std::move(found.faults);
  find_gaps(found.shards, find_number, layout.faults);
  constexpr uint64_t kIdentifiers = 100;  // such as those of ImageNet's classes
  find_series_gaps(found.shards, layout.faults, {1, false, kIdentifiers});
  for (std::string& name : found.shards) {
    const Compression compression = ending_of(name)->compression;
    layout.parts.push_back({std::move(name), compression, 0, 0});
  }
  return layout;
}

}  // namespace

std::optional<Layout> detect_tar(const Source& source) {
  if (!source.list.empty()) return std::nullopt;  // a list names the files of a folder
  return source.file.empty() ? detect_directory(source) : detect_file(source);
}

}  // namespace stoker
