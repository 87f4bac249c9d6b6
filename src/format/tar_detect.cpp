// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
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

/// A name with a number in it: "train-000012.tar", or "train-00012-of-00128.tar".
struct Numbered {
  std::string_view before, digits, after;
  std::optional<uint64_t> count;  // from "-of-00128"
};

std::optional<Numbered> find_number(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kOf = "-of-";
  const std::string_view stem = name.substr(0, name.size() - ending_of(name)->ending.size());
  const size_t end = stem.find_last_of(kDigits) + 1;
  if (end == 0) return std::nullopt;
  const size_t begin = stem.find_last_not_of(kDigits, end - 1) + 1;
  Numbered numbered{name.substr(0, begin), name.substr(begin, end - begin), name.substr(end), {}};
  if (!numbered.before.ends_with(kOf)) return numbered;
  const size_t middle = begin - kOf.size();
  const size_t first = stem.find_last_not_of(kDigits, middle - 1) + 1;
  if (middle == 0 || first >= middle) return numbered;
  uint64_t count = 0;
  std::from_chars(numbered.digits.data(), numbered.digits.data() + numbered.digits.size(), count);
  return Numbered{name.substr(0, first), name.substr(first, middle - first), name.substr(middle),
                  count};
}

/// Shards that are numbered must be there without a gap; the names are sorted.
void find_gaps(Layout& layout) {
  struct Series {
    uint64_t next = 0;
    Numbered like;
  };
  const auto gap = [&](const Numbered& like, uint64_t first, uint64_t last) {
    layout.faults.push_back(
        missing_shards(like.before, like.digits.size(), like.after, first, last));
  };
  std::map<std::tuple<std::string_view, std::string_view, size_t>, Series> all;
  for (const Part& part : layout.parts) {
    const auto numbered = find_number(part.shard);
    if (!numbered) continue;
    const std::string_view digits = numbered->digits;
    uint64_t number = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (parsed.ec != std::errc()) continue;
    const auto [at, is_new] =
        all.try_emplace({numbered->before, numbered->after, digits.size()}, Series{0, *numbered});
    Series& series = at->second;
    // Where a series begins is only known when it says how many there are.
    const bool first = is_new && !numbered->count;
    if (!first && number > series.next) gap(*numbered, series.next, number - 1);
    series.next = number + 1;
  }
  for (const auto& [key, series] : all) {
    const uint64_t count = series.like.count.value_or(0);
    if (series.next < count) gap(series.like, series.next, count - 1);
  }
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
  for (std::string& name : found.shards) {
    const Compression compression = ending_of(name)->compression;
    layout.parts.push_back({std::move(name), compression, 0, 0});
  }
  find_gaps(layout);
  return layout;
}

}  // namespace

std::optional<Layout> detect_tar(const Source& source) {
  if (!source.list.empty()) return std::nullopt;  // a list names the files of a folder
  return source.file.empty() ? detect_directory(source) : detect_file(source);
}

}  // namespace stoker
