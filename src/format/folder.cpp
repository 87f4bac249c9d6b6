// SPDX-License-Identifier: Apache-2.0
#include "format/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "base/transient.h"
#include "dataset/splits.h"
#include "format/folder_layouts.h"
#include "format/folder_list.h"
#include "format/folder_walk.h"
#include "format/member_name.h"
#include "os/slow_requests.h"

namespace stoker {
namespace {

// Files of a part: large enough for a segment to be worth its file, small enough to share out.
constexpr size_t kPartFiles = 10'000;

/// Whether some file, or column of the list, says what the label is.
bool has_label(const Layout& layout) {
  for (const ListColumn& column : layout.list) {
    if (column.field.name == kLabelField) return true;
  }
  std::string_view seen;  // most files have the suffix of the file before
  for (size_t i = 0; i < layout.files.files.size(); ++i) {
    const std::string_view name = layout.files.name(i);
    const size_t dot = name.find('.');
    const std::string_view suffix = dot == name.npos ? "" : name.substr(dot + 1);
    if (suffix == seen) continue;
    seen = suffix;
    if (field_of_suffix(suffix).name == kLabelField) return true;
  }
  return false;
}

size_t end_of_sample(const FileNames& files, size_t first) {
  const FileNames::Name& begin = files.files[first];
  const std::string_view stem = stem_of(files.name(first));
  size_t end = first + 1;
  while (end < files.files.size() && files.files[end].directory == begin.directory &&
         files.files[end].row == begin.row && stem_of(files.name(end)) == stem) {
    ++end;
  }
  return end;
}

std::vector<Part> cut_into_parts(const FileNames& files) {
  std::vector<Part> parts;
  const size_t count = files.files.size();
  for (size_t first = 0; first < count;) {
    size_t last = std::min(first + kPartFiles, count);
    last = end_of_sample(files, last - 1);
    Part& part = parts.emplace_back();
    part.first = first;
    part.last = last;
    first = last;
  }
  return parts;
}

class FolderScan {
 public:
  FolderScan(const Source& source, const Layout& layout, const Part& part, ScanSink& sink)
      : source_(source), layout_(layout), files_(layout.files), last_(part.last), sink_(sink) {}

  void sample(size_t first, size_t last) {
    enter(files_.files[first].directory);
    key_.resize(directory_length_);
    key_ += stem_of(files_.name(first));
    fields_.clear();
    for (size_t file = first; file < last; ++file) add_file(file);
    if (fields_.empty()) return;
    name_fields(fields_, names_);
    if (label_) add_number(kLabelField, DType::int64).integer = *label_;
    if (const uint32_t row = files_.files[first].row; row != kNoRow) {
      for (const ListColumn& column : layout_.list) add_cell(column, row);
    }
    sink_.sample(key_, fields_);
  }

 private:
  static constexpr uint32_t kNoRow = ~0U;

  void enter(uint32_t directory) {
    if (directory == directory_) return;
    directory_ = directory;
    const std::string& path = files_.directories[directory];
    key_ = path.empty() ? "" : path + "/";
    directory_length_ = key_.size();
    label_.reset();
    if (layout_.classes.empty() || path.empty() || listed_label()) return;
    const std::string_view top = std::string_view(path).substr(0, path.find('/'));
    const auto& classes = layout_.classes;
    label_ = std::lower_bound(classes.begin(), classes.end(), top) - classes.begin();
  }

  bool listed_label() const {
    return std::any_of(layout_.list.begin(), layout_.list.end(),
                       [](const ListColumn& column) { return column.field.name == kLabelField; });
  }

  void fault(size_t file, std::string_view cause, int os_error = 0) {
    const std::string path =
        join_path(files_.directories[files_.files[file].directory], files_.name(file));
    sink_.fault({path, {}, key_, {}, std::string(cause), {}, is_transient(os_error)});
  }

  std::string path_of(size_t file) const {
    return join_path(source_.root, join_path(files_.directories[files_.files[file].directory],
                                             files_.name(file)));
  }

  /// What is known about a file. Asked for in groups: on shared storage each waits.
  const std::optional<FileInfo>& info_of(size_t file) {
    constexpr size_t kTogether = 1024;
    if (file >= looked_at_ + looks_.size()) {
      looked_at_ = file;
      looks_.assign(std::min(kTogether, last_ - file), {});
      requests_.run(looks_.size(), [&](size_t i) {
        try {
          looks_[i].info = source_.file_system->info(path_of(looked_at_ + i), true);
        } catch (const Error&) {
          looks_[i].failed = std::current_exception();
        }
      });
    }
    const Look& look = looks_[file - looked_at_];
    if (look.failed) std::rethrow_exception(look.failed);
    return look.info;
  }

  void add_file(size_t file) {
    const std::string_view name = files_.name(file);
    try {
      const std::optional<FileInfo>& info = info_of(file);
      if (!info) return fault(file, "is gone since the folder was listed");
      if (info->kind != FileKind::file) return fault(file, "is no file any more");
      if (!info->readable)
        source_.file_system->open(path_of(file));  // throws unless it is all the same
      sink_.whole_file(*info);
      const size_t dot = name.find('.');
      FoundField& field = fields_.emplace_back();
      if (dot != name.npos) field.suffix = name.substr(dot + 1);
      field.extent = {Container::file, 0, static_cast<uint64_t>(info->modified_ns), info->size, 0};
    } catch (const Error& error) {
      if (error.os_error() == 0) throw;
      fault(file, "cannot be read: " + std::generic_category().message(error.os_error()),
            error.os_error());
    }
  }

  FoundField& add_number(std::string_view name, DType dtype) {
    FoundField& field = fields_.emplace_back();
    field.name = name;
    field.type = FieldType::number;
    field.encoding = Encoding::none;
    field.dtype = dtype;
    return field;
  }

  void add_cell(const ListColumn& column, size_t row) {
    const auto cell = column.cell(row);
    if (!cell) return;
    const char* end = cell->data() + cell->size();
    if (column.field.type == FieldType::text) {
      FoundField& field = fields_.emplace_back();
      field.name = column.field.name;
      field.type = FieldType::text;
      field.extent = {Container::here, 0, 0, cell->size(), 0};
      field.inline_bytes = *cell;
    } else if (column.field.dtype == DType::int64) {
      int64_t value = 0;
      std::from_chars(cell->data(), end, value);
      add_number(column.field.name, DType::int64).integer = value;
    } else {
      double value = 0;
      std::from_chars(cell->data(), end, value);
      add_number(column.field.name, DType::float64).real = value;
    }
  }

  const Source& source_;
  const Layout& layout_;
  const FileNames& files_;
  size_t last_;  // of the files that this part has
  ScanSink& sink_;

  struct Look {
    std::optional<FileInfo> info;
    std::exception_ptr failed;
  };
  std::vector<Look> looks_;  // at the files from looked_at_ on
  size_t looked_at_ = 0;
  SlowRequests requests_;

  uint32_t directory_ = ~0U;
  size_t directory_length_ = 0;  // of the key's part that names it, with its '/'
  std::optional<int64_t> label_;
  std::string key_;
  std::vector<FoundField> fields_;
  std::vector<std::string> names_;
};

}  // namespace

std::optional<Layout> detect_folder(const Source& source) {
  if (!source.file.empty()) return std::nullopt;
  FolderTree tree = walk_folder(source);
  if (source.list.empty()) refuse_other_layouts(source, tree);
  Layout layout;
  layout.files = std::move(tree.files);
  layout.faults = std::move(tree.faults);
  layout.hidden = tree.hidden;
  if (!source.list.empty()) apply_list(source, layout);
  const FileNames& files = layout.files;
  const bool nested = std::any_of(files.files.begin(), files.files.end(), [&](const auto& file) {
    return !files.directories[file.directory].empty();
  });
  if (nested && !has_label(layout)) {
    if (source.list.empty() && source.split != kAllSplits) refuse_roles(source, tree);
    for (FolderTree::Top& top : tree.tops) layout.classes.push_back(std::move(top.name));
  }
  layout.parts = cut_into_parts(layout.files);
  return layout;
}

void scan_folder(const Source& source, const Layout& layout, const Part& part, ScanSink& sink) {
  FolderScan scan(source, layout, part, sink);
  for (size_t first = part.first; first < part.last;) {
    const size_t last = end_of_sample(layout.files, first);
    scan.sample(first, last);
    first = last;
  }
}

}  // namespace stoker
