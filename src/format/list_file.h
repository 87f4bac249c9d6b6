// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "os/file_system.h"

namespace stoker {

enum class CellKind : uint8_t { absent, integer, real, text };

struct ListCell {
  CellKind kind = CellKind::absent;
  std::string text;
};

/// What a CSV cell is. Only what an int64 or a double gives back counts as a number: "007" and
/// 2^64 are text.
CellKind kind_of_cell(std::string_view text);

/// A list of files with columns, read row by row: CSV (RFC 4180, with a header) or JSON lines.
/// The path of a row stands in the column `path`; in a CSV file without one, in the first column.
/// Every Error names the list and the line.
class ListFile {
 public:
  ListFile(FileSystem& file_system, std::string path);
  ~ListFile();
  ListFile(const ListFile&) = delete;
  ListFile& operator=(const ListFile&) = delete;

  /// Goes to the next row; false behind the last one.
  bool next();

  uint64_t line() const { return row_line_; }  // where the row begins, from 1
  const std::string& path() const { return row_path_; }
  /// Names of all columns but the path's, as far as they are known: JSON lines may bring new ones.
  const std::vector<std::string>& columns() const { return columns_; }
  /// In the order of columns(); those behind its end are absent.
  const std::vector<ListCell>& cells() const { return cells_; }
  /// What heads the column with the paths.
  const std::string& path_heading() const { return path_heading_; }

 private:
  class Text;

  void read_header();
  bool next_csv();
  bool next_json();
  bool read_record(std::vector<std::string>& record);
  bool read_cell(std::string& cell);
  size_t column(const std::string& name);
  [[noreturn]] void fail(uint64_t line, std::string_view cause) const;

  std::string name_;
  std::unique_ptr<Text> text_;
  bool json_ = false;
  std::string path_heading_ = "path";
  size_t path_column_ = 0;
  uint64_t row_line_ = 0;
  std::string row_path_;
  std::vector<std::string> record_;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, size_t> column_numbers_;
  std::vector<ListCell> cells_;
};

}  // namespace stoker
