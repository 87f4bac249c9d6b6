// SPDX-License-Identifier: Apache-2.0
#include "results/column_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "os/file_system.h"
#include "os/output_file.h"

namespace stoker {
namespace {

constexpr std::string_view kBegin = "stoker-columns ";
constexpr std::string_view kVersion = "1\n";
constexpr std::string_view kMagic = "SBLK";
constexpr size_t kHead = 16;                      // magic and the two lengths
constexpr uint64_t kLargest = uint64_t{4} << 30;  // of a whole file: a step takes some 50 bytes

template <typename T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T number_at(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <typename T>
void take_column(std::map<std::string, std::vector<T>>& columns, const std::string& name,
                 uint64_t rows_before, std::string_view bytes) {
  std::vector<T>& column = columns[name];
  column.resize(rows_before);
  const size_t count = bytes.size() / sizeof(T);
  column.resize(rows_before + count);
  if (count > 0) std::memcpy(column.data() + rows_before, bytes.data(), bytes.size());
}

/// The rows of one block whose checksum is right; throws where its description makes no sense.
void take_block(ColumnTable& table, std::string_view description, std::string_view rows) {
  const Json json = parse_json(description);
  const auto count = checked<uint64_t>(json.at("rows"));
  const Json& columns = json.at("columns");
  if (count > rows.size() || columns.size() * count * 8 != rows.size()) {
    throw Error(ErrorKind::corrupt, "its columns are not as long as it says");
  }
  for (const Json& column : columns) {
    const auto name = column.at("name").get<std::string>();
    const auto type = column.at("type").get<std::string>();
    if (type == "i8") {
      take_column(table.integers, name, table.rows, rows.substr(0, count * 8));
    } else if (type == "f8") {
      take_column(table.reals, name, table.rows, rows.substr(0, count * 8));
    } else {
      throw Error(ErrorKind::corrupt, fmt::format("a column of the unknown type '{}'", type));
    }
    rows.remove_prefix(count * 8);
  }
  for (const auto& [name, value] : json.at("about").items()) table.about[name] = value.dump();
  table.rows += count;
}

/// The length of the block at the begin of `bytes`; 0: there is none that is whole and right.
size_t whole_block(std::string_view bytes) {
  if (bytes.size() < kHead + 4 || !bytes.starts_with(kMagic)) return 0;
  const auto description = number_at<uint32_t>(bytes, 4);
  const auto rows = number_at<uint64_t>(bytes, 8);
  const size_t room = bytes.size() - kHead - 4;
  if (description > room || rows > room - description) return 0;
  const size_t body = kHead + description + rows;
  return crc_of(bytes.substr(0, body)) == number_at<uint32_t>(bytes, body) ? body + 4 : 0;
}

/// The offset behind the beginning of the file, which must be ours.
size_t check_begin(std::string_view all, const std::string& path) {
  if (!all.starts_with(kBegin)) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: is no file of measured columns", printable(path)));
  }
  if (!all.substr(kBegin.size()).starts_with(kVersion)) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: was written by another version of stoker", printable(path)));
  }
  return kBegin.size() + kVersion.size();
}

/// The next block that is right at or behind `at`; the end where there is none.
size_t find_block(std::string_view all, size_t at) {
  // Each look sums up to the end: whoever wrote more beginnings without a block means harm.
  constexpr int kMostLooks = 200;
  for (int i = 0; at < all.size() && whole_block(all.substr(at)) == 0; ++i) {
    at = i < kMostLooks ? std::min(all.find(kMagic, at + 1), all.size()) : all.size();
  }
  return at;
}

/// Takes the blocks from `at` on; returns where the last one ends.
size_t take_blocks(std::string_view all, size_t at, ColumnTable& table) {
  size_t end = at;
  while (at < all.size()) {
    const size_t begin = find_block(all, at);
    if (begin > at) {
      // Goes on behind it: a flipped bit should cost one block.
      table.damage.push_back(
          {at, fmt::format("{} bytes {}", begin - at,
                           begin == all.size() ? "at the end are no whole block"
                                               : "are no block that is whole and right")});
      at = begin;
      continue;
    }
    const auto description = number_at<uint32_t>(all, at + 4);
    const auto rows = number_at<uint64_t>(all, at + 8);
    try {
      take_block(table, all.substr(at + kHead, description),
                 all.substr(at + kHead + description, rows));
    } catch (const std::exception& error) {
      table.damage.push_back({at, fmt::format("a block that cannot be read: {}", error.what())});
    }
    at += kHead + description + rows + 4;
    end = at;
  }
  for (auto& [name, column] : table.integers) column.resize(table.rows);
  for (auto& [name, column] : table.reals) column.resize(table.rows);
  return end;
}

}  // namespace

ColumnTable read_columns(const std::string& path) {
  const std::string file = read_file(path, kLargest);
  ColumnTable table;
  take_blocks(file, check_begin(file, path), table);
  return table;
}

ColumnTable read_new_columns(const std::string& path, uint64_t& offset) {
  const auto file = real_file_system().open(path);
  const uint64_t size = file->info().size;
  ColumnTable table;
  if (size <= offset || size - offset > kLargest) return table;
  std::string bytes(size - offset, '\0');
  bytes.resize(file->read_at(offset, std::as_writable_bytes(std::span(bytes))));
  size_t at = 0;
  if (offset == 0) {
    if (bytes.size() < kBegin.size() + kVersion.size()) return table;
    at = check_begin(bytes, path);
  }
  offset += take_blocks(bytes, at, table);
  return table;
}

ColumnWriter::ColumnWriter(const std::string& path, std::vector<std::string> integers,
                           std::vector<std::string> reals)
    : integer_names_(std::move(integers)),
      real_names_(std::move(reals)),
      integers_(integer_names_.size()),
      reals_(real_names_.size()) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw system_error(path, "cannot be made", errno);
  const std::string begin = std::string(kBegin) + std::string(kVersion);
  if (::write(descriptor_, begin.data(), begin.size()) != static_cast<ssize_t>(begin.size())) {
    failure_ = std::strerror(errno);
  }
}

ColumnWriter::~ColumnWriter() {
  flush();
  ::close(descriptor_);
}

void ColumnWriter::add(const int64_t* integers, const double* reals) {
  for (size_t i = 0; i < integers_.size(); ++i) integers_[i].push_back(integers[i]);
  for (size_t i = 0; i < reals_.size(); ++i) reals_[i].push_back(reals[i]);
}

void ColumnWriter::describe(const std::string& name, const Json& value) {
  about_[name] = value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void ColumnWriter::flush() {
  const size_t rows =
      integers_.empty() ? reals_.empty() ? 0 : reals_[0].size() : integers_[0].size();
  if (rows == 0 && about_.empty()) return;
  Json description;
  description["rows"] = rows;
  description["columns"] = Json::array();
  std::string body;
  for (size_t i = 0; i < integers_.size(); ++i) {
    description["columns"].push_back({{"name", integer_names_[i]}, {"type", "i8"}});
    body.append(reinterpret_cast<const char*>(integers_[i].data()), rows * 8);
    integers_[i].clear();
  }
  for (size_t i = 0; i < reals_.size(); ++i) {
    description["columns"].push_back({{"name", real_names_[i]}, {"type", "f8"}});
    body.append(reinterpret_cast<const char*>(reals_[i].data()), rows * 8);
    reals_[i].clear();
  }
  description["about"] = Json::object();
  for (const auto& [name, value] : about_) description["about"][name] = parse_json(value);
  about_.clear();
  if (!failure_.empty()) return;
  const std::string text = description.dump();
  std::string block(kMagic);
  append(block, static_cast<uint32_t>(text.size()));
  append(block, uint64_t{body.size()});
  block += text;
  block += body;
  append(block, crc_of(block));
  // One write: a block is there or not, whoever kills us. A short one is the end.
  if (::write(descriptor_, block.data(), block.size()) != static_cast<ssize_t>(block.size())) {
    failure_ = errno != 0 ? std::strerror(errno) : "No space left on device";
  }
}

}  // namespace stoker
