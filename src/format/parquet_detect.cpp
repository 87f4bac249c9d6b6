// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "format/hugging_face.h"
#include "format/numbered_name.h"
#include "format/parquet.h"
#include "format/parquet_metadata.h"
#include "format/shard_directory.h"

namespace stoker {
namespace {

constexpr std::string_view kEnding = ".parquet";
// Where none of so many is Parquet, the others are not either.
constexpr size_t kMostLoose = 16;

bool is_shard_name(std::string_view name) {
  return name.size() > kEnding.size() && name.ends_with(kEnding);
}

std::optional<NumberedName> find_number(std::string_view name) {
  return numbered_name(name, name.size() - (is_shard_name(name) ? kEnding.size() : 0));
}

bool is_parquet(const Source& source, const std::string& name) {
  const auto file = source.file_system->open(source.root + "/" + name);
  std::array<std::byte, kParquetMagic.size()> begin{};
  return file->read_at(0, begin) == begin.size() && as_text(begin) == kParquetMagic;
}

std::vector<std::string> classes_of(const Source& source, const Layout& layout) {
  return first_classes(source, layout, [](ReadableFile& file) {
    const ParquetFile parsed = read_parquet_footer(file);
    std::vector<std::string_view> columns;
    for (const ParquetNode& node : parsed.root.children) columns.push_back(node.name);
    return name_columns(columns, parse_hugging_face(parsed.metadata_of(kHuggingFaceKey))).classes;
  });
}

std::optional<Layout> detect_directory(const Source& source) {
  ShardDirectory top = look_at_shards(source, is_shard_name, kMostLoose);
  if (top.deep) return std::nullopt;
  Layout layout;
  layout.table = true;
  layout.hidden = top.hidden;
  layout.faults = std::move(top.faults);
  for (const std::string& name : top.shards)
    layout.parts.push_back({name, Compression::none, 0, 0});
  find_gaps(top.shards, find_number, layout.faults);
  find_series_gaps(top.shards, layout.faults);
  if (top.shards.empty() && !top.more_loose && top.images == 0) {
    for (const std::string& name : top.loose) {
      if (is_parquet(source, name)) layout.parts.push_back({name, Compression::none, 0, 0});
    }
  }
  if (layout.parts.empty() || top.images > layout.parts.size()) return std::nullopt;
  layout.unlisted = top.other_files - (top.shards.empty() ? layout.parts.size() : 0);
  return layout;
}

std::optional<Layout> detect_file(const Source& source) {
  const auto info = source.file_system->info(source.root + "/" + source.file, true);
  if (!info || info->kind != FileKind::file) return std::nullopt;
  if (!is_shard_name(source.file) && !is_parquet(source, source.file)) return std::nullopt;
  Layout layout;
  layout.table = true;
  layout.parts.push_back({source.file, Compression::none, 0, 0});
  return layout;
}

}  // namespace

std::optional<Layout> detect_parquet(const Source& source) {
  if (!source.list.empty()) return std::nullopt;  // a list names the files of a folder
  auto layout = source.file.empty() ? detect_directory(source) : detect_file(source);
  if (layout) layout->classes = classes_of(source, *layout);
  return layout;
}

}  // namespace stoker
