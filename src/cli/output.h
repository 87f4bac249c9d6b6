// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/scan.h"
#include "index/row_indexes.h"

namespace stoker {

/// What the terminal behind stdout can show.
struct Style {
  bool colour = false;
  bool unicode = false;
  size_t width = 100;

  /// From isatty(), TERM, NO_COLOR, COLUMNS and the locale.
  static Style of_stdout();

  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  std::string good(std::string_view text) const { return paint("32", text); }
  std::string bad(std::string_view text) const { return paint("31", text); }

 private:
  std::string paint(std::string_view code, std::string_view text) const;
};

/// Columns of a terminal that UTF-8 text takes.
size_t display_width(std::string_view text);
/// The text with spaces up to `width` behind it, or before it.
std::string pad_right(std::string text, size_t width);
std::string pad_left(std::string text, size_t width);
/// Cut to `width` columns, with an ellipsis where something is missing.
std::string shorten(std::string_view text, size_t width, const Style& style);
/// Whether the locale of this process is UTF-8, by its environment.
bool unicode_locale();

struct Column {
  std::string_view title;
  bool right = false;  // aligned, as figures are
};
/// Lines of aligned columns; where they do not fit, each row becomes a block of lines instead, so
/// that nothing is lost on a narrow terminal.
std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows, const Style& style);

struct Bar {
  std::string name;
  uint64_t count = 0;
};
/// One bar per line, the longest as wide as the terminal allows (40 columns at most). Of many
/// only the first ten, then how many more there are and what the extremes are.
std::string bar_chart(const std::vector<Bar>& bars, const Style& style);

/// The first twenty faults, one line each, then how many more. `count` may exceed the list.
std::string list_faults(const std::vector<Fault>& faults, uint64_t count, const Style& style);

/// "3 samples", "1 sample".
std::string counted(uint64_t count, std::string_view singular);
/// "148 tar shards"; those of a folder are "148 files".
std::string counted_shards(uint64_t count, std::string_view format);
/// "2 files that the list does not name", or "2 files beside the shards".
std::string unlisted_files(uint64_t count, std::string_view format);

/// "mean (3), std (3)": the first six of what a dataset holds and nothing reads, then how many
/// more.
std::string unused_datasets(const std::vector<std::string>& unused);

/// A line that says how many photos have a row index, and why others have none; empty where there
/// are no JPEG photos.
std::string row_index_line(const RowIndexSummary& summary);

/// A path as a word for the shell, and as a literal of Python, to be copied from the screen.
std::string shell_word(std::string_view path);
std::string python_literal(std::string_view path);
/// A directory in a dataset as the user names that dataset: "photos/.stoker" rather than its real
/// path; the real path where it lies elsewhere.
std::string shown_within(const std::string& directory, const std::string& dataset);
/// What to do with a dataset now: a command that does `what`, and how Python opens it.
std::string next_steps(std::string_view command, std::string_view what, std::string_view dataset,
                       const Style& style);

/// Writes to stdout. Somebody who reads only the first lines (`| head`) is no failure; anything
/// else that keeps the output from being written is an Error(io).
void print(std::string_view text);
/// Writes to stderr, and does not care whether that worked.
void print_error(std::string_view text);

}  // namespace stoker
