// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/text.h"
#include "format/arrow.h"
#include "format/arrow_ipc.h"
#include "format/columnar.h"
#include "format/hugging_face.h"
#include "format/member_name.h"
#include "format/numbered_name.h"
#include "format/parquet_metadata.h"
#include "format/shard_directory.h"

namespace stoker {
namespace {

constexpr std::string_view kEndings[] = {".arrow", ".arrows", ".ipc"};
constexpr std::string_view kFeather = ".feather";
constexpr std::string_view kState = "state.json";
constexpr std::string_view kInfo = "dataset_info.json";
// Where none of so many is Arrow, the others are not either.
constexpr size_t kMostLoose = 16;
constexpr uint64_t kLargestJson = 64 << 20;

std::string_view without_ending(std::string_view name) {
  for (const std::string_view ending : kEndings) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

bool is_arrow_name(std::string_view name) {
  const std::string_view stem = without_ending(name);
  return !stem.empty() && stem.size() < name.size();
}

bool is_feather_name(std::string_view name) {
  return name.size() > kFeather.size() && name.ends_with(kFeather);
}

std::optional<NumberedName> find_number(std::string_view name) {
  const size_t feather = is_feather_name(name) ? kFeather.size() : 0;
  return numbered_name(name, without_ending(name).size() - feather);
}

/// Parquet files under the name of Arrow files.
bool is_parquet(const Source& source, const std::string& name) {
  std::array<std::byte, kParquetMagic.size()> begin{};
  const auto file = source.file_system->open(source.root + "/" + name);
  return file->read_at(0, begin) == begin.size() && as_text(begin) == kParquetMagic;
}

bool is_arrow(const Source& source, const std::string& name) {
  const auto file = source.file_system->open(source.root + "/" + name);
  std::array<std::byte, kArrowMagic.size()> begin{};
  const size_t size = file->read_at(0, begin);
  return as_text(Bytes(begin).first(size)) == kArrowMagic || begins_arrow_stream(*file);
}

/// Another format under the same name, which is refused as such.
bool is_feather_1(const Source& source) {
  constexpr std::string_view kMagic = "FEA1";
  std::array<std::byte, kMagic.size()> begin{};
  const auto file = source.file_system->open(source.root + "/" + source.file);
  return file->read_at(0, begin) == begin.size() && as_text(begin) == kMagic;
}

/// The contents of a small file; empty where it is not there.
std::string read_text(const Source& source, std::string_view name) {
  const std::string path = fmt::format("{}/{}", source.root, name);
  const auto info = source.file_system->info(path, true);
  if (!info || info->kind != FileKind::file || info->size > kLargestJson) return {};
  std::string text(info->size, '\0');
  text.resize(source.file_system->open(path)->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

/// By the schema of a shard, or dataset_info.json.
std::vector<std::string> classes_of(const Source& source, const Layout& layout) {
  return first_classes(source, layout, [&](ReadableFile& file) {
    const ArrowMessages messages(file, [](uint64_t, const std::string&) {});
    std::string_view json = messages.schema().metadata_of(kHuggingFaceKey);
    const std::string beside = json.empty() ? read_dataset_info(source) : std::string();
    if (json.empty()) json = beside;
    std::vector<std::string_view> columns;
    for (const ArrowField& field : messages.schema().fields) columns.push_back(field.name);
    return name_columns(columns, parse_hugging_face(json)).classes;
  });
}

/// The shards that state.json lists; nothing where it lists none.
std::optional<std::vector<std::string>> listed_shards(const std::string& state) {
  const Json json = parse_json_or_discard(state);
  if (!json.is_object()) return std::nullopt;
  const auto files = json.find("_data_files");
  if (files == json.end() || !files->is_array()) return std::nullopt;
  std::vector<std::string> names;
  for (const Json& file : *files) {
    const auto name = file.is_object() ? file.find("filename") : file.end();
    if (!file.is_object() || name == file.end() || !name->is_string()) return std::nullopt;
    names.push_back(name->get<std::string>());
  }
  return names;
}

std::optional<Layout> detect_saved(const Source& source, std::vector<std::string> names) {
  if (names.empty()) {
    throw Error(ErrorKind::not_found, fmt::format("{}: a dataset without samples: {} lists no file",
                                                  printable(source.root), kState));
  }
  Layout layout;
  for (std::string& name : names) {
    const std::string_view unsafe = unsafe_path(name);
    const auto info =
        unsafe.empty() ? source.file_system->info(source.root + "/" + name, true) : std::nullopt;
    if (info && info->kind == FileKind::file) {
      layout.parts.push_back({std::move(name), Compression::none, 0, 0});
    } else {
      layout.faults.push_back(
          {name,
           {},
           {},
           {},
           unsafe.empty() ? "state.json lists it, but it is missing" : std::string(unsafe)});
    }
  }
  return layout;
}

/// By names, or where no name says so, by contents.
std::optional<Layout> detect_shards(const Source& source, bool (*is_shard)(std::string_view name),
                                    bool by_contents) {
  ShardDirectory top = look_at_shards(source, is_shard, kMostLoose);
  if (top.deep || (!top.shards.empty() && is_parquet(source, top.shards[0]))) return std::nullopt;
  Layout layout;
  layout.hidden = top.hidden;
  layout.faults = std::move(top.faults);
  for (const std::string& name : top.shards) {
    layout.parts.push_back({name, Compression::none, 0, 0});
  }
  find_gaps(top.shards, find_number, layout.faults);
  find_series_gaps(top.shards, layout.faults);
  // What lies next to Feather shards is theirs: one that is unfinished, say.
  const bool has_feather = std::any_of(top.loose.begin(), top.loose.end(), is_feather_name);
  if (by_contents && top.shards.empty() && !top.more_loose && top.images == 0 && !has_feather) {
    for (const std::string& name : top.loose) {
      if (is_arrow(source, name)) {
        layout.parts.push_back({name, Compression::none, 0, 0});
      }
    }
  }
  if (layout.parts.empty() || top.images > layout.parts.size()) return std::nullopt;
  layout.unlisted = top.other_files - (top.shards.empty() ? layout.parts.size() : 0);
  return layout;
}

std::optional<Layout> detect_directory(const Source& source) {
  if (auto listed = listed_shards(read_text(source, kState))) {
    return detect_saved(source, std::move(*listed));
  }
  return detect_shards(source, is_arrow_name, true);
}

void refuse_big_endian(const Source& source) {
  const std::string path = source.root + "/" + source.file;
  const auto file = source.file_system->open(path);
  try {
    const ArrowMessages messages(*file, [](uint64_t, const std::string&) {});
  } catch (const BigEndianArrow& error) {
    throw Error(error.kind(), fmt::format("{}: {}", printable(path), error.what()));
  } catch (const Error& error) {
    if (!is_damage(error)) throw;  // the scan names what is wrong
  }
}

std::optional<Layout> detect_file(const Source& source) {
  const auto info = source.file_system->info(source.root + "/" + source.file, true);
  if (!info || info->kind != FileKind::file || is_feather_name(source.file)) return std::nullopt;
  if (!is_arrow_name(source.file)) {  // else the scan names what is wrong
    if (!is_arrow(source, source.file)) return std::nullopt;
    refuse_big_endian(source);
  }
  Layout layout;
  layout.parts.push_back({source.file, Compression::none, 0, 0});
  return layout;
}

std::optional<Layout> with_rows(const Source& source, std::optional<Layout> layout) {
  if (!layout) return layout;
  layout->classes = classes_of(source, *layout);
  layout->table = true;
  return layout;
}

}  // namespace

std::string read_dataset_info(const Source& source) { return read_text(source, kInfo); }

std::optional<Layout> detect_arrow(const Source& source) {
  if (!source.list.empty()) return std::nullopt;  // a list names the files of a folder
  auto layout = source.file.empty() ? detect_directory(source) : detect_file(source);
  return with_rows(source, std::move(layout));
}

std::optional<Layout> detect_feather(const Source& source) {
  if (!source.list.empty()) return std::nullopt;
  std::optional<Layout> layout;
  if (source.file.empty()) {
    layout = detect_shards(source, is_feather_name, false);
  } else if (is_feather_name(source.file)) {
    const auto info = source.file_system->info(source.root + "/" + source.file, true);
    if (!info || info->kind != FileKind::file || is_feather_1(source)) return std::nullopt;
    layout.emplace().parts.push_back({source.file, Compression::none, 0, 0});
  }
  return with_rows(source, std::move(layout));
}

}  // namespace stoker
