// SPDX-License-Identifier: Apache-2.0
#include "format/list_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace stoker {
namespace {

// Nested values are written out again by recursion.
constexpr size_t kMaxNesting = 100;

size_t nesting(std::string_view json) {
  size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

ListCell cell_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return {};
    case Json::value_t::string:
      return {CellKind::text, value.get<std::string>()};
    case Json::value_t::number_integer:
      return {CellKind::integer, value.dump()};
    case Json::value_t::number_float:
      return {CellKind::real, value.dump()};
    case Json::value_t::number_unsigned: {
      const bool fits = checked<uint64_t>(value) <= uint64_t{std::numeric_limits<int64_t>::max()};
      return {fits ? CellKind::integer : CellKind::text, value.dump()};
    }
    default:
      return {CellKind::text, value.dump()};
  }
}

}  // namespace

CellKind kind_of_cell(std::string_view text) {
  if (text.empty()) return CellKind::absent;
  const std::string_view digits = text.substr(text.front() == '-' ? 1 : 0);
  const char* end = text.data() + text.size();
  if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') {
    return CellKind::text;
  }
  if (!digits.empty() && digits.find_first_not_of("0123456789") == digits.npos) {
    int64_t value = 0;
    const auto [stopped, failed] = std::from_chars(text.data(), end, value);
    return failed == std::errc{} && stopped == end ? CellKind::integer : CellKind::text;
  }
  double value = 0;
  const auto [stopped, failed] = std::from_chars(text.data(), end, value);
  const bool number = failed == std::errc{} && stopped == end && text.back() != ')';
  return number ? CellKind::real : CellKind::text;
}

/// The bytes of a list one by one, with their line.
class ListFile::Text {
 public:
  static constexpr int kEnd = -1;

  explicit Text(std::unique_ptr<ReadableFile> file) : file_(std::move(file)), buffer_(1U << 16) {}

  int peek() {
    if (next_ == filled_) fill();
    return next_ == filled_ ? kEnd : std::to_integer<int>(buffer_[next_]);
  }
  int get() {
    const int c = peek();
    if (c == kEnd) return c;
    ++next_;
    if (c == '\n') ++line_;
    return c;
  }
  uint64_t line() const { return line_; }

 private:
  void fill() {
    offset_ += filled_;
    next_ = 0;
    filled_ = file_->read_at(offset_, MutableBytes(buffer_));
  }

  std::unique_ptr<ReadableFile> file_;
  std::vector<std::byte> buffer_;
  uint64_t offset_ = 0;
  size_t next_ = 0, filled_ = 0;
  uint64_t line_ = 1;
};

ListFile::ListFile(FileSystem& file_system, std::string path)
    : name_(std::move(path)), text_(std::make_unique<Text>(file_system.open(name_))) {
  if (text_->peek() == 0xFF || text_->peek() == 0xFE) fail(1, "is UTF-16: save it as UTF-8");
  if (text_->peek() == 0xEF) {  // a byte order mark
    for (const int expected : {0xEF, 0xBB, 0xBF}) {
      if (text_->get() != expected) fail(1, "begins with bytes that are not UTF-8");
    }
  }
  while (text_->peek() == ' ' || text_->peek() == '\r' || text_->peek() == '\n') text_->get();
  if (text_->peek() == '[') {
    fail(text_->line(), "is a JSON array; JSON lines are expected, one object per line");
  }
  json_ = text_->peek() == '{';
  if (!json_) read_header();
}

ListFile::~ListFile() = default;

void ListFile::fail(uint64_t line, std::string_view cause) const {
  throw Error(ErrorKind::corrupt, fmt::format("{}: line {}: {}", printable(name_), line, cause));
}

bool ListFile::next() { return json_ ? next_json() : next_csv(); }

size_t ListFile::column(const std::string& name) {
  const auto [at, added] = column_numbers_.try_emplace(name, columns_.size());
  if (added) columns_.push_back(name);
  return at->second;
}

void ListFile::read_header() {
  if (!read_record(record_)) return;
  const auto path = std::find(record_.begin(), record_.end(), "path");
  path_column_ = path == record_.end() ? 0 : static_cast<size_t>(path - record_.begin());
  path_heading_ = record_[path_column_];
  for (size_t i = 0; i < record_.size(); ++i) {
    if (i == path_column_) continue;
    if (record_[i].empty()) fail(row_line_, fmt::format("column {} has no name", i + 1));
    const size_t before = columns_.size();
    if (column(record_[i]) != before || record_[i] == path_heading_) {
      fail(row_line_, fmt::format("two columns are called '{}'", printable(record_[i])));
    }
  }
}

bool ListFile::next_csv() {
  if (!read_record(record_)) return false;
  if (record_.size() != columns_.size() + 1) {
    fail(row_line_, fmt::format("has {} cell{} where the header has {}", record_.size(),
                                record_.size() == 1 ? "" : "s", columns_.size() + 1));
  }
  cells_.resize(columns_.size());
  for (size_t i = 0, cell = 0; i < record_.size(); ++i) {
    if (i == path_column_) {
      row_path_ = std::move(record_[i]);
    } else {
      cells_[cell].kind = kind_of_cell(record_[i]);
      cells_[cell++].text = std::move(record_[i]);
    }
  }
  if (row_path_.empty()) fail(row_line_, "the path is empty");
  return true;
}

/// Empty lines are passed over.
bool ListFile::read_record(std::vector<std::string>& record) {
  while (text_->peek() != Text::kEnd) {
    row_line_ = text_->line();
    record.clear();
    bool quoted = false;
    do {
      quoted |= read_cell(record.emplace_back());
    } while (text_->get() == ',');
    if (record.size() > 1 || quoted || !record[0].empty()) return true;
  }
  return false;
}

/// Stops in front of the comma, line feed or end behind the cell. Returns whether it was quoted.
bool ListFile::read_cell(std::string& cell) {
  const auto ends = [&] {
    const int c = text_->peek();
    return c == ',' || c == '\n' || c == Text::kEnd;
  };
  if (text_->peek() != '"') {
    while (!ends()) cell += static_cast<char>(text_->get());
    if (text_->peek() != ',' && cell.ends_with('\r')) cell.pop_back();
    return false;
  }
  const uint64_t begin = text_->line();
  text_->get();
  for (;;) {
    const int c = text_->get();
    if (c == Text::kEnd) fail(begin, "a quote is opened and never closed");
    if (c == '"') {
      if (text_->peek() != '"') break;
      text_->get();
    }
    cell += static_cast<char>(c);
  }
  if (text_->peek() == '\r') text_->get();
  if (!ends()) fail(text_->line(), "a closing quote is followed by more than a comma");
  return true;
}

bool ListFile::next_json() {
  std::string line;
  do {
    if (text_->peek() == Text::kEnd) return false;
    row_line_ = text_->line();
    line.clear();
    for (int c = text_->get(); c != '\n' && c != Text::kEnd; c = text_->get()) {
      line += static_cast<char>(c);
    }
  } while (line.find_first_not_of(" \t\r") == line.npos);
  if (nesting(line) > kMaxNesting) {
    fail(row_line_, fmt::format("is nested more than {} levels deep", kMaxNesting));
  }
  const Json object = parse_json_or_discard(line);
  if (object.is_discarded()) fail(row_line_, "is not valid JSON");
  if (!object.is_object()) fail(row_line_, "is not a JSON object");
  const auto path = object.find("path");
  if (path == object.end() || !path->is_string() || path->get_ref<const std::string&>().empty()) {
    fail(row_line_, "has no text under \"path\"");
  }
  row_path_ = path->get<std::string>();
  cells_.assign(columns_.size(), {});
  for (const auto& [name, value] : object.items()) {
    if (name == "path") continue;
    if (name.empty()) fail(row_line_, "has a name of no characters");
    const size_t number = column(name);
    cells_.resize(columns_.size());
    cells_[number] = cell_of(value);
  }
  return true;
}

}  // namespace stoker
