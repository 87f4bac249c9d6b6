// SPDX-License-Identifier: Apache-2.0
#include "column.h"

#include <fmt/format.h>

#include <optional>
#include <variant>

#include "base/text.h"

namespace stoker::python {
namespace {

constexpr uint64_t kRowsAtOnce = 8192;

void append(Column& column, std::optional<std::variant<int64_t, double>> number) {
  const auto* real = number ? std::get_if<double>(&*number) : nullptr;
  if (real != nullptr && !column.is_real) {
    column.is_real = true;
    column.reals.assign(column.integers.begin(), column.integers.end());
    column.integers.clear();
  }
  if (!number) {
    const size_t position = column.integers.size() + column.reals.size();
    column.absent.push_back(static_cast<int64_t>(position));
    number = int64_t{0};
  }
  if (column.is_real) {
    column.reals.push_back(std::visit([](auto n) { return static_cast<double>(n); }, *number));
  } else {
    column.integers.push_back(std::get<int64_t>(*number));
  }
}

/// A row of what read_many() gives when it is asked for a single field.
std::optional<std::variant<int64_t, double>> number_in(
    const std::vector<std::pair<uint32_t, Value>>& row) {
  if (row.empty()) return std::nullopt;
  const Value& value = row.front().second;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  throw Error(ErrorKind::unsupported, "a column of numbers beyond 64 bits with a sign");
}

}  // namespace

Column read_column(const Dataset& dataset, const std::string& field, Range range) {
  const std::vector<uint32_t> number = dataset.field_numbers({field});
  const Field& described = dataset.index().schema().fields[number.front()];
  if (described.type != FieldType::number) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{}: field '{}' holds {}, and only numbers make a column",
                    printable(dataset.paths().path), printable(field), name_of(described.type)));
  }
  Column column;
  column.is_real = described.dtype == DType::float16 || described.dtype == DType::float32 ||
                   described.dtype == DType::float64;
  for (uint64_t begin = 0; begin < range.count; begin += kRowsAtOnce) {
    const std::vector<uint64_t> samples = range.part(begin, kRowsAtOnce);
    const Samples read = stoker::read_many(dataset.reader(), samples, number);
    for (const auto& row : read.rows) append(column, number_in(row));
  }
  return column;
}

std::vector<std::pair<std::string, uint64_t>> shards_of_segment(const Dataset& dataset,
                                                                uint32_t number) {
  const Segment& segment = dataset.index().segment(number);
  std::vector<std::pair<std::string, uint64_t>> shards;
  for (uint32_t i = 0; i < segment.shard_count(); ++i) {
    const Shard shard = segment.shard(i);
    if (shard.begin == 0) shards.emplace_back(shard.path, shard.size);
  }
  // Small files are no rows of that table: where each one lies follows from key and suffix.
  const std::vector<Field>& fields = segment.fields();
  for (uint64_t sample = 0; sample < segment.samples(); ++sample) {
    for (uint32_t field = 0; field < fields.size(); ++field) {
      const Located located = segment.locate(sample, field);
      if (located.extent.container != Container::file) continue;
      const std::string& suffix = fields[field].suffixes.at(located.suffix);
      const std::string key = segment.key(sample);
      shards.emplace_back(suffix.empty() ? key : key + "." + suffix, located.extent.length);
    }
  }
  return shards;
}

}  // namespace stoker::python
