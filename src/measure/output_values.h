// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regex>
#include <string>
#include <string_view>

#include "results/column_file.h"
#include "results/run.h"

namespace stoker {

/// Finds numbers in what a command prints, and writes them into values.columns.
class OutputValues {
 public:
  /// Throws Error(usage) where `pattern` is no regular expression with one group.
  OutputValues(const std::string& pattern, const RunInfo& info);

  /// The next bytes of one of the two streams that the command writes.
  void take(size_t stream, std::string_view bytes);
  /// Nothing more comes: what has no end of line is one, too.
  void finish();
  /// The number that a line has where the pattern says.
  static bool find(const std::regex& pattern, const std::string& line, double& value);

 private:
  void take_line(const std::string& line);

  std::regex pattern_;
  std::string literal_;   // that every match contains: most lines are told apart by it alone
  std::string lines_[2];  // begun
  int64_t begin_ns_;
  int64_t next_flush_ns_ = 0;
  ColumnWriter writer_;
};

/// The longest piece of plain text in a regular expression that must be there for it to match.
std::string longest_literal(std::string_view pattern);

}  // namespace stoker
