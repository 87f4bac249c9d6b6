// SPDX-License-Identifier: Apache-2.0
#include "format/folder_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "format/folder_walk.h"
#include "format/list_file.h"
#include "format/member_name.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

struct ColumnInProgress {
  ListColumn column;
  bool any = false, real = false, text = false;

  void add(size_t row, const ListCell& cell) {
    column.ends.resize(row, column.text.size() | ListColumn::kAbsent);
    if (cell.kind == CellKind::absent) return;
    column.text += cell.text;
    column.ends.push_back(column.text.size());
    any = true;
    real |= cell.kind == CellKind::real;
    text |= cell.kind == CellKind::text;
  }
};

/// The path without ".", empty components and `root` in front. Nothing where it leads out.
std::optional<std::string> inside(std::string_view path, const std::string& root,
                                  const std::string& real_root) {
  if (path.starts_with('/')) {
    const auto below = [&](const std::string& directory) {
      return !directory.empty() && path.size() > directory.size() && path.starts_with(directory) &&
             path[directory.size()] == '/';
    };
    if (below(real_root)) {
      path.remove_prefix(real_root.size());
    } else if (below(root)) {
      path.remove_prefix(root.size());
    } else {
      return std::nullopt;
    }
  }
  std::string clean;
  while (!path.empty()) {
    const std::string_view component = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(component.size() + 1, path.size()));
    if (component == "..") return std::nullopt;
    if (!component.empty() && component != ".") clean = join_path(clean, component);
  }
  return clean;
}

std::pair<std::string_view, std::string_view> split_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

class ListedFiles {
 public:
  ListedFiles(const Source& source, Layout& layout)
      : source_(source), layout_(layout), files_(layout.files), lines_(files_.files.size()) {
    std::error_code failed;
    real_root_ = fs::canonical(source.root, failed).native();
    std::swap(faults_, layout.faults);
  }

  void run() {
    ListFile list(*source_.file_system, source_.list);
    refuse_missing_header(list);
    bool rows = false;
    for (; list.next(); rows = true) take_row(list);
    if (!rows) {
      throw Error(ErrorKind::usage, fmt::format("{}: lists no files", printable(source_.list)));
    }
    count_unlisted();
    finish_columns();
    files_.files = std::move(chosen_);
    refuse_clashes();
  }

 private:
  struct Range {
    size_t first = 0, last = 0;
  };

  /// A list that begins with a file would lose it without a word.
  void refuse_missing_header(const ListFile& list) {
    if (list.path_heading() == "path" || !find_file(list.path_heading())) return;
    throw Error(ErrorKind::usage,
                fmt::format("{}: line 1 names the file '{}' where a list has the names of its "
                            "columns, such as \"path,label\"",
                            printable(source_.list), printable(list.path_heading())));
  }

  std::optional<size_t> find_file(std::string_view path) const {
    const auto [directory, name] = split_path(path);
    const auto at = find_place(files_, directory, name);
    return at && is_in(*at, directory) && files_.name(*at) == name ? at : std::nullopt;
  }

  bool is_in(size_t file, std::string_view directory) const {
    return file < files_.files.size() &&
           files_.directories[files_.files[file].directory] == directory;
  }

  /// The files of the sample that `path` is a file or the key of.
  std::optional<Range> find_sample(std::string_view path) const {
    const auto [directory, name] = split_path(path);
    const std::string_view stem = stem_of(name);
    if (stem != name && !find_file(path)) return std::nullopt;
    const auto first = find_place(files_, directory, stem);
    Range range{first.value_or(0), first.value_or(0)};
    while (first && is_in(range.last, directory) && stem_of(files_.name(range.last)) == stem) {
      ++range.last;
    }
    return range.first == range.last ? std::nullopt : std::optional(range);
  }

  void fault(const ListFile& list, std::string path, std::string_view cause) {
    layout_.faults.push_back({std::move(path),
                              {},
                              {},
                              {},
                              fmt::format("is listed in line {} of {}, {}", list.line(),
                                          printable(source_.list), cause)});
  }

  void take_row(const ListFile& list) {
    const auto path = inside(list.path(), source_.root, real_root_);
    if (!path) return fault(list, list.path(), "but leads out of the folder");
    const auto range = find_sample(*path);
    if (!range) return fault(list, *path, why_missing(*path));
    uint32_t& line = lines_[range->first];
    if (line != 0) {
      return fault(list, *path, fmt::format("but line {} lists the same sample", line));
    }
    line = static_cast<uint32_t>(list.line());
    for (size_t file = range->first; file < range->last; ++file) {
      chosen_.push_back(files_.files[file]);
      chosen_.back().row = static_cast<uint32_t>(rows_);
    }
    columns_.resize(list.columns().size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].column.field.name.empty()) columns_[i].column.field.name = list.columns()[i];
      if (i < list.cells().size()) columns_[i].add(rows_, list.cells()[i]);
    }
    ++rows_;
  }

  std::string why_missing(std::string_view path) {
    if (split_path(path).second.starts_with('.')) {
      return "but its name begins with a dot: such files are no samples";
    }
    for (std::string_view at = path; !at.empty(); at = split_path(at).first) {
      const auto found = std::lower_bound(
          faults_.begin(), faults_.end(), at,
          [](const Fault& known, std::string_view wanted) { return known.shard < wanted; });
      if (found == faults_.end() || found->shard != at) continue;
      if (at == path) return fmt::format("but {}", found->cause);
      return fmt::format("but '{}' {}", printable(at), found->cause);
    }
    return "but does not exist";
  }

  void count_unlisted() {
    layout_.unlisted = files_.files.size() - chosen_.size();
    std::error_code failed;
    const std::string list = fs::canonical(source_.list, failed).native();
    const auto own = failed ? std::nullopt : inside(list, real_root_, real_root_);
    const auto range = own ? find_sample(*own) : std::nullopt;
    if (range && lines_[range->first] == 0) --layout_.unlisted;  // the list is no sample
  }

  void finish_columns() {
    for (ColumnInProgress& made : columns_) {
      if (!made.any) continue;  // nothing but empty cells
      ListColumn& column = made.column;
      column.ends.resize(rows_, column.text.size() | ListColumn::kAbsent);
      column.field.type = made.text ? FieldType::text : FieldType::number;
      column.field.encoding = made.text ? Encoding::raw : Encoding::none;
      if (!made.text) column.field.dtype = made.real ? DType::float64 : DType::int64;
      layout_.list.push_back(std::move(column));
    }
    for (const std::string_view name : {kLabelField, std::string_view("class")}) {
      const auto label =
          std::find_if(layout_.list.begin(), layout_.list.end(),
                       [&](const ListColumn& column) { return column.field.name == name; });
      if (label == layout_.list.end()) continue;
      if (label->field.type == FieldType::text) number_classes(*label);
      break;
    }
  }

  void number_classes(ListColumn& column) {
    std::set<std::string_view> names;
    for (size_t row = 0; row < rows_; ++row) {
      if (const auto cell = column.cell(row)) names.insert(*cell);
    }
    auto& classes = layout_.classes;
    classes.assign(names.begin(), names.end());
    ListColumn numbered;
    for (size_t row = 0; row < rows_; ++row) {
      const auto cell = column.cell(row);
      if (cell) {
        const auto at = std::lower_bound(classes.begin(), classes.end(), *cell);
        numbered.text += std::to_string(at - classes.begin());
      }
      numbered.ends.push_back(numbered.text.size() | (cell ? 0 : ListColumn::kAbsent));
    }
    numbered.field.name = kLabelField;
    numbered.field.type = FieldType::number;
    numbered.field.encoding = Encoding::none;
    numbered.field.dtype = DType::int64;
    column = std::move(numbered);
  }

  /// One sample cannot have two fields of one name.
  void refuse_clashes() const {
    std::string_view seen;
    for (size_t file = 0; file < files_.files.size(); ++file) {
      const std::string_view name = files_.name(file);
      const size_t dot = name.find('.');
      const std::string_view suffix = dot == name.npos ? "" : name.substr(dot + 1);
      if (suffix == seen && file > 0) continue;
      seen = suffix;
      const std::string field = field_of_suffix(suffix).name;
      for (const ListColumn& column : layout_.list) {
        if (column.field.name != field && column.field.name != suffix) continue;
        throw Error(
            ErrorKind::usage,
            fmt::format("{}: column '{}' has the name of a field that comes from files "
                        "such as '{}': rename the column",
                        printable(source_.list), printable(column.field.name), printable(name)));
      }
    }
  }

  const Source& source_;
  Layout& layout_;
  FileNames& files_;
  std::string real_root_;
  std::vector<Fault> faults_;    // of the folder
  std::vector<uint32_t> lines_;  // by file: the line that lists the sample it begins
  std::vector<FileNames::Name> chosen_;
  std::vector<ColumnInProgress> columns_;
  size_t rows_ = 0;
};

}  // namespace

void apply_list(const Source& source, Layout& layout) { ListedFiles(source, layout).run(); }

}  // namespace stoker
