// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
#include "format/numbered_name.h"
#include "format/shard_directory.h"
#include "format/tfrecord.h"

namespace stoker {
namespace {

// More loose files than this are not opened one by one to see what they are.
constexpr size_t kMostLoose = 4096;
// Where none of so many is a tfrecord, the others are not either.
constexpr size_t kFirstLoose = 64;
// Opening a file waits for the file system, not for a core.
constexpr unsigned kOpenThreads = 16;

constexpr std::byte kZlib{0x78};
constexpr std::string_view kCompressed[] = {".gz", ".gzip", ".zlib", ".zst"};
constexpr std::string_view kEndings[] = {".tfrecord", ".tfrecords", ".tfrec"};

std::string_view without_compression(std::string_view name) {
  for (const std::string_view ending : kCompressed) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

std::string_view without_ending(std::string_view name) {
  for (const std::string_view ending : kEndings) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

std::optional<NumberedName> find_number(std::string_view name) {
  return numbered_name(name, without_ending(without_compression(name)).size());
}

bool is_shard_name(std::string_view name) {
  const std::string_view plain = without_compression(name);
  const std::string_view stem = without_ending(plain);
  return !stem.empty() && (stem.size() < plain.size() || numbered_name(plain, plain.size()));
}

bool begins_like_tfrecord(ReadableFile& file) {
  std::array<std::byte, kRecordHead> head{};
  return file.read_at(0, head) == head.size() && parse_record_head(head).right();
}

/// What the content of a file says.
struct Content {
  bool tfrecord = false;
  Compression compression = Compression::none;
};

Content look_into(const Source& source, const std::string& name) {
  const std::string path = source.root + "/" + name;
  auto file = source.file_system->open(path);
  if (begins_like_tfrecord(*file)) return {true, Compression::none};
  std::array<std::byte, kRecordHead> begin{};
  const size_t size = file->read_at(0, begin);
  const Compression compression = compression_of(Bytes(begin).first(size));
  if (compression == Compression::none) return {};
  bool found = false;
  try {
    file = inflate(std::move(file), path, compression);
    found = begins_like_tfrecord(*file);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
  }
  // The two bytes that zlib begins with may as well be those of a length.
  const bool by_chance = begin[0] == kZlib && !found;
  return {found, by_chance ? Compression::none : compression};
}

std::optional<Layout> detect_file(const Source& source) {
  const auto info = source.file_system->info(source.root + "/" + source.file, true);
  if (!info || info->kind != FileKind::file) return std::nullopt;
  const Content content = look_into(source, source.file);
  if (!content.tfrecord && !is_shard_name(source.file)) return std::nullopt;
  Layout layout;
  layout.table = true;
  layout.parts.push_back({source.file, content.compression, 0, 0});
  return layout;
}

/// Adds those of the files that are tfrecords; all are where their names say so.
void add_parts(const Source& source, const std::vector<std::string>& names, bool by_name,
               Layout& layout) {
  std::vector<Content> contents(names.size());
  std::vector<std::string> failures(names.size());
  parallel_for(names.size(), kOpenThreads, [&](size_t i) {
    try {
      contents[i] = look_into(source, names[i]);
    } catch (const Error& error) {
      failures[i] = error.what();
    }
  });
  for (size_t i = 0; i < names.size(); ++i) {
    if (by_name && !failures[i].empty()) {
      layout.faults.push_back({names[i], {}, {}, {}, std::move(failures[i])});
    } else if (by_name || contents[i].tfrecord) {
      layout.parts.push_back({names[i], contents[i].compression, 0, 0});
    }
  }
}

std::optional<Layout> detect_directory(const Source& source) {
  ShardDirectory top = look_at_shards(source, is_shard_name, kMostLoose);
  if (top.deep) return std::nullopt;
  Layout layout;
  layout.table = true;
  layout.hidden = top.hidden;
  layout.faults = std::move(top.faults);
  if (!top.shards.empty()) {
    add_parts(source, top.shards, true, layout);
    find_gaps(top.shards, find_number, layout.faults);
    find_series_gaps(top.shards, layout.faults);
  } else if (!top.more_loose) {
    std::vector<std::string> first = std::move(top.loose);
    std::vector<std::string> rest;
    if (first.size() > kFirstLoose) {
      rest.assign(first.begin() + kFirstLoose, first.end());
      first.resize(kFirstLoose);
    }
    add_parts(source, first, false, layout);
    if (!layout.parts.empty()) add_parts(source, rest, false, layout);
  }
  layout.unlisted =
      top.other_files - (top.shards.empty() ? layout.parts.size() : 0);  // parts without an ending
  const size_t shards = std::max(top.shards.size(), layout.parts.size());
  if (shards == 0 || top.images > shards) return std::nullopt;
  return layout;
}

}  // namespace

std::string shard_stem(std::string_view file_name) {
  const std::string_view plain = without_compression(file_name);
  std::string stem(without_ending(plain));
  if (const auto numbered = find_number(plain)) {
    // "train.tfrecord-00000-of-00128"
    stem = fmt::format("{}-{}{}",
                       without_ending(numbered->before.substr(0, numbered->before.size() - 1)),
                       numbered->digits, without_ending(numbered->after));
  }
  std::replace(stem.begin(), stem.end(), '.', '_');
  return stem;
}

std::optional<Layout> detect_tfrecord(const Source& source) {
  if (!source.list.empty()) return std::nullopt;  // a list names the files of a folder
  return source.file.empty() ? detect_directory(source) : detect_file(source);
}

}  // namespace stoker
