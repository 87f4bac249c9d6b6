// SPDX-License-Identifier: Apache-2.0
#include "format/list_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

/// Rows as "line path|cell|cell", a cell with the first letter of its kind.
std::vector<std::string> rows_of(const std::string& contents) {
  FakeFileSystem files;
  files.add_file("/list", contents);
  ListFile list(files, "/list");
  std::vector<std::string> rows;
  while (list.next()) {
    std::string& row = rows.emplace_back(fmt::format("{} {}", list.line(), list.path()));
    for (const ListCell& cell : list.cells()) {
      row += fmt::format("|{}{}", "-irt"[static_cast<int>(cell.kind)], cell.text);
    }
  }
  return rows;
}

std::string error_of(const std::string& contents) {
  try {
    rows_of(contents);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

using Rows = std::vector<std::string>;

TEST(ListFile, ReadsCsv) {
  EXPECT_EQ(rows_of("path,label,score\na.jpg,3,0.5\nb/c.jpg,,cat\n"),
            (Rows{"2 a.jpg|i3|r0.5", "3 b/c.jpg|-|tcat"}));
}

TEST(ListFile, PathIsTheColumnOfThatNameOrTheFirst) {
  EXPECT_EQ(rows_of("n,path\n1,a\n"), Rows{"2 a|i1"});
  EXPECT_EQ(rows_of("file,n\na,1"), Rows{"2 a|i1"});
}

TEST(ListFile, ReadsQuotesLineEndsAndByteOrderMark) {
  EXPECT_EQ(
      rows_of("\xEF\xBB\xBFpath,\"a \"\"b\"\"\"\r\n\"x,y.jpg\",\"two\r\nlines\"\r\n\r\nz,\r\n"),
      (Rows{"2 x,y.jpg|ttwo\r\nlines", "5 z|-"}));
  EXPECT_EQ(rows_of("path,t\na,it's \"so\"\nb,\"\"\n"), (Rows{"2 a|tit's \"so\"", "3 b|-"}));
}

TEST(ListFile, TakesForNumbersWhatNumbersGiveBack) {
  for (const char* text : {"0", "-1", "9223372036854775807", "-9223372036854775808"}) {
    EXPECT_EQ(kind_of_cell(text), CellKind::integer) << text;
  }
  for (const char* text : {"0.5", "-1e9", "1.", ".5", "nan", "-inf"}) {
    EXPECT_EQ(kind_of_cell(text), CellKind::real) << text;
  }
  for (const char* text : {"007", "-00.5", "9223372036854775808", "1e999", "+1", " 1", "1 ", "-",
                           "0x10", "1,5", "nan(1)", "cat"}) {
    EXPECT_EQ(kind_of_cell(text), CellKind::text) << text;
  }
  EXPECT_EQ(kind_of_cell(""), CellKind::absent);
}

TEST(ListFile, ReadsJsonLines) {
  EXPECT_EQ(
      rows_of("{\"path\": \"a\", \"n\": 1, \"s\": \"1\"}\n\n"
              "{\"x\": [1, {\"y\": null}], \"path\": \"b\", \"n\": null, \"s\": \"\"}\r\n"
              "{\"path\": \"c\", \"x\": 1.5, \"n\": 18446744073709551615, \"s\": true}"),
      (Rows{"1 a|i1|t1", "3 b|-|t|t[1,{\"y\":null}]", "4 c|t18446744073709551615|ttrue|r1.5"}));
}

TEST(ListFile, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("path,a\nx,1\ny,1,2\n"), "/list: line 3: has 3 cells where the header has 2");
  EXPECT_EQ(error_of("path,a\nx\n"), "/list: line 2: has 1 cell where the header has 2");
  EXPECT_EQ(error_of("path,a\n,1\n"), "/list: line 2: the path is empty");
  EXPECT_EQ(error_of("path,a\nx,\"1\n2\n"), "/list: line 2: a quote is opened and never closed");
  EXPECT_EQ(error_of("path,a\nx,\"1\"2\n"),
            "/list: line 2: a closing quote is followed by more than a comma");
  EXPECT_EQ(error_of("path,a,a\n"), "/list: line 1: two columns are called 'a'");
  EXPECT_EQ(error_of("path,path\n"), "/list: line 1: two columns are called 'path'");
  EXPECT_EQ(error_of("path,\n"), "/list: line 1: column 2 has no name");
  EXPECT_EQ(error_of("\xFF\xFEp"), "/list: line 1: is UTF-16: save it as UTF-8");
  EXPECT_EQ(error_of("[{}]"),
            "/list: line 1: is a JSON array; JSON lines are expected, one object per line");
  EXPECT_EQ(error_of("{\"path\": \"a\"}\n{\"path\":\n"), "/list: line 2: is not valid JSON");
  EXPECT_EQ(error_of("{\"path\": \"a\"}\n[]\n"), "/list: line 2: is not a JSON object");
  EXPECT_EQ(error_of("{\"path\": 3}"), "/list: line 1: has no text under \"path\"");
  EXPECT_EQ(error_of("{\"p\": \"\xff\"}"), "/list: line 1: is not valid JSON");
}

TEST(ListFile, DeepNestingIsRefused) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(error_of("{\"path\": \"a\", \"x\": " + deep + "}"),
            "/list: line 1: is nested more than 100 levels deep");
  EXPECT_EQ(error_of("{\"path\": \"a\", \"x\": \"" + std::string(1000, '[') + "\"}"), "");
}

TEST(ListFile, EmptyListsHaveNoRows) {
  EXPECT_TRUE(rows_of("").empty());
  EXPECT_TRUE(rows_of("path,label\n").empty());
  EXPECT_TRUE(rows_of("\n\n").empty());
}

TEST(ListFile, LongListsAreReadInPieces) {
  std::string contents = "path,n\n";
  for (int i = 0; i < 20'000; ++i) contents += fmt::format("dir/file{}.jpg,{}\n", i, i);
  const Rows rows = rows_of(contents);
  ASSERT_EQ(rows.size(), 20'000U);
  EXPECT_EQ(rows[19'999], "20001 dir/file19999.jpg|i19999");
}

}  // namespace
}  // namespace stoker
