// SPDX-License-Identifier: Apache-2.0
#include "format/parquet_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "dataset/tf_list.h"
#include "dataset/value.h"
#include "format/columnar.h"
#include "format/member_name.h"

namespace stoker {
namespace {

// What a column puts into the index may be more than its pages, which repeat values by dictionaries
// and runs, and more than it takes in the file, where they are compressed: by how much.
constexpr uint64_t kHerePerDecoded = 256;
constexpr uint64_t kHerePerStored = 4096;
constexpr uint64_t kHereAtLeast = 1 << 20;

/// The bytes of a number in its dtype: small integers are stored in 32 bits.
Bytes narrowed(Bytes stored, DType dtype) {
  return stored.first(std::min(stored.size(), size_of(dtype)));
}

/// Nanoseconds since 1970 of an INT96: those of the day, then the Julian day. Nothing where 64 bits
/// have no room for them.
std::optional<int64_t> nanoseconds_of(Bytes stored) {
  constexpr int64_t kEpochDay = 2'440'588, kDay = 86'400'000'000'000;
  const auto of_day = load<int64_t>(stored.data());
  const int64_t day = int64_t{load<int32_t>(stored.data() + sizeof(int64_t))} - kEpochDay;
  int64_t all = 0;
  if (__builtin_mul_overflow(day, kDay, &all) || __builtin_add_overflow(all, of_day, &all)) {
    return std::nullopt;
  }
  return all;
}

/// REQUIRES: `next` lies right behind `last`, or not.
bool follows(const Extent& last, const Extent& next) {
  return last.container == next.container && last.number == next.number &&
         last.offset + last.length == next.offset;
}

}  // namespace

ParquetColumn::ParquetColumn(ReadableFile& file, ParquetPlan& plan, const ParquetChunk& chunk,
                             uint32_t shard, ScanSink& sink)
    : plan_(plan),
      pages_(file, chunk, plan, shard, sink),
      values_(*plan.node),
      here_left_(kHereAtLeast),
      here_to_come_(kHerePerStored * (chunk.end - chunk.begin)) {
  page_.begin = chunk.begin;
}

void ParquetColumn::give_up(const std::string& cause) {
  broken_ = true;
  corrupt(cause + "; the rows from here to the end of the row group have no value of it");
}

/// Goes to the next page with values; false at the end of the column.
bool ParquetColumn::next_page() {
  for (;;) {
    try {
      if (!pages_.next(page_)) return false;
      if (page_.dictionary) {
        values_.take_dictionary(std::move(page_));
        page_ = {};
        continue;
      }
      if (page_.values == 0) continue;
      values_.begin(page_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::unsupported) throw;
      // Rows are counted by the pages: those of one that says how many it has can be passed over.
      if (page_.values == 0 || page_.dictionary || plan_.most_repetition > 0) give_up(error.what());
      lost_ = page_.values;
      corrupt(fmt::format("{}; {} rows have no value of it", error.what(), lost_));
    }
    const uint64_t more = std::min(here_to_come_, kHerePerDecoded * page_.decoded.size());
    here_to_come_ -= more;
    here_left_ += more;
    left_ = page_.values;
    repetitions_ = RunReader(page_.repetition, std::bit_width(plan_.most_repetition));
    definitions_ = RunReader(page_.definition, std::bit_width(plan_.most_definition));
    return true;
  }
}

bool ParquetColumn::next(FoundField& found) {
  if (broken_) return false;
  if (lost_ > 0) {
    --lost_;
    return false;
  }
  found.name = plan_.name;
  return plan_.most_repetition == 0 ? next_flat(found) : next_list(found);
}

bool ParquetColumn::next_flat(FoundField& found) {
  if (left_ == 0) {
    try {
      if (!next_page()) give_up("its pages have fewer values than there are rows");
    } catch (const Error&) {
      if (lost_ > 0) --lost_;  // this row is one of them
      throw;
    }
  }
  --left_;
  Bytes stored;
  try {
    if (plan_.most_definition > 0 && definitions_.next() < plan_.most_definition) return false;
    const ParquetValue value = values_.next();
    stored = value.bytes;
    bytes_ = value.bytes;
    found.extent = value.extent;
  } catch (const Error& error) {
    // Where the next value begins is not known.
    lost_ = left_;
    left_ = 0;
    throw Error(error.kind(),
                fmt::format("{}; the {} rows after it have no value of it", error.what(), lost_));
  }
  if (plan_.use == ParquetUse::number) {
    number(stored, found);
    return true;
  }
  if (plan_.node->text) found.type = FieldType::text;
  if (found.extent.container == Container::here) {
    scratch_ = as_text(bytes_);
    put_here(found);
  }
  return true;
}

/// What is in scratch_. The index shares a value that is the same as the one before.
void ParquetColumn::put_here(FoundField& found) {
  if (scratch_ != last_here_) {
    if (scratch_.size() > here_left_) give_up("its values are far more than their pages hold");
    here_left_ -= scratch_.size();
    last_here_ = scratch_;
  }
  found.extent.container = Container::here;
  found.inline_bytes = scratch_;
}

/// Of a list that is being gathered, and may become as long as its runs say.
void ParquetColumn::require_room() const {
  if (scratch_.size() > here_left_ + last_here_.size()) {
    corrupt("its values are far more than their pages hold");
  }
}

void ParquetColumn::number(Bytes stored, FoundField& found) {
  found.extent = {};
  Array element;
  element.dtype = plan_.node->dtype;
  element.data = narrowed(stored, element.dtype);
  if (*plan_.node->type == ParquetType::int96) {
    const std::optional<int64_t> time = nanoseconds_of(stored);
    if (!time) corrupt("a time that nanoseconds in 64 bits have no room for");
    scratch_ = as_text(std::as_bytes(std::span(&*time, 1)));
    element.data = as_bytes(scratch_);
  }
  found.type = FieldType::number;
  found.dtype = element.dtype;
  found.encoding = Encoding::none;
  const Value value = only_element(element);
  if (const auto* integer = std::get_if<int64_t>(&value)) found.integer = *integer;
  if (const auto* real = std::get_if<double>(&value)) found.real = *real;
  if (element.dtype != DType::uint64) return;
  // What does not fit an int64 stays what it is.
  found.encoding = Encoding::elements;
  found.shape.emplace();
  scratch_ = as_text(element.data);
  found.extent.container = Container::here;
  found.inline_bytes = scratch_;
}

/// Looks at the next entry; false at the end of the column.
bool ParquetColumn::peek() {
  if (peeked_) return true;
  if (left_ == 0 && !next_page()) return false;
  --left_;
  entry_ = {repetitions_.next(), definitions_.next()};
  if (entry_.repetition > plan_.most_repetition || entry_.definition > plan_.most_definition) {
    corrupt("levels that its schema does not have");
  }
  peeked_ = true;
  return true;
}

/// A list of level `repetition` goes on: those inside it are complete.
void ParquetColumn::note_dimension(unsigned repetition) {
  for (size_t level = repetition; level < counts_.size(); ++level) {
    uint64_t& length = lengths_[level];
    if (length == 0) length = counts_[level];
    if (length != counts_[level]) ragged_ = true;
    counts_[level] = 1;
  }
  if (repetition > 0) ++counts_[repetition - 1];
}

void ParquetColumn::take_element() {
  if (entry_.definition < plan_.most_definition) {
    has_null_ = true;
    return;
  }
  const ParquetValue value = values_.next();
  if (plan_.use == ParquetUse::strings) {
    scratch_ += write_bytes_list(std::span(&value.bytes, 1));
    require_room();
    return;
  }
  const size_t size = size_of(plan_.node->dtype);
  scratch_ += as_text(narrowed(value.bytes, plan_.node->dtype));
  in_place_ = in_place_ && value.extent.container != Container::here &&
              value.bytes.size() == size && page_.encoding == ParquetEncoding::plain;
  if (!in_place_) {
    require_room();
    pieces_.clear();
  } else if (!pieces_.empty() && follows(pieces_.back(), value.extent)) {
    pieces_.back().length += size;
  } else {
    pieces_.push_back(value.extent);
  }
}

bool ParquetColumn::next_list(FoundField& found) {
  pieces_.clear();
  scratch_.clear();
  in_place_ = true;
  has_null_ = ragged_ = false;
  counts_.assign(plan_.most_repetition, 1);
  lengths_.assign(plan_.most_repetition, 0);
  bool empty = false;
  bool is_null = false;
  try {
    if (!peek()) corrupt("its pages have fewer values than there are rows");
    if (entry_.repetition != 0) corrupt("a row that begins in the middle of a list");
    is_null = entry_.definition + 1 < plan_.element_definition;
    empty = entry_.definition < plan_.element_definition;
    if (!empty) take_element();
    peeked_ = false;
    while (!empty && peek() && entry_.repetition > 0) {
      note_dimension(entry_.repetition);
      take_element();
      peeked_ = false;
    }
  } catch (const Error& error) {
    if (broken_) throw;
    give_up(error.what());
  }
  if (is_null) return false;
  if (!empty) note_dimension(0);
  if (has_null_) corrupt("a list with nulls, or empty lists, in it, which no array has");
  finish_list(found, empty);
  return true;
}

/// What is said holds where the row is so: others leave the first dimension open. A tensor of
/// several dimensions is a flat list.
void ParquetColumn::set_stated_shape(std::vector<int64_t>& shape) const {
  if (plan_.stated.empty()) return;
  const auto inner = size_of_elements(plan_.node->dtype, std::span(shape).subspan(1));
  if (!inner || *inner == 0) return;
  const bool flat = shape.size() == 1 && plan_.stated.size() > 1 &&
                    std::all_of(plan_.stated.begin(), plan_.stated.end(),
                                [](int64_t dimension) { return dimension > 0; }) &&
                    size_of_elements(plan_.node->dtype, plan_.stated) == scratch_.size();
  const uint64_t outer = scratch_.size() / *inner;
  if (flat || is_of_shape(plan_.stated, outer, std::span(shape).subspan(1))) shape = plan_.stated;
}

void ParquetColumn::finish_list(FoundField& found, bool empty) {
  if (plan_.use == ParquetUse::strings) {
    found.type = FieldType::list;
    found.encoding = Encoding::tf_strings;
    found.suffix = kListSuffix;
    put_here(found);
    return;
  }
  found.type = FieldType::array;
  found.encoding = Encoding::elements;
  found.dtype = plan_.node->dtype;
  if (ragged_) corrupt("inner lists differ in length: no array");
  if (plan_.most_repetition > 1 && !empty) {
    const std::vector<int64_t> inner(lengths_.begin() + 1, lengths_.end());
    if (plan_.inner.empty()) plan_.inner = inner;
    if (plan_.inner != inner) corrupt("inner lists are not as long as in earlier rows: no array");
  }
  if (plan_.inner.size() + 1 == plan_.most_repetition) {
    found.shape.emplace({int64_t{-1}});
    found.shape->insert(found.shape->end(), plan_.inner.begin(), plan_.inner.end());
    set_stated_shape(*found.shape);
  } else {  // all are empty: no row says how long inner lists would be
    found.shape = shape_of_nothing(plan_.stated, std::vector<int64_t>(plan_.most_repetition, 0));
  }
  if (in_place_ && pieces_.size() == 1) {
    found.extent = pieces_[0];
  } else if (in_place_ && pieces_.size() > 1) {
    found.pieces = pieces_;
    found.extent = {Container::pieces, 0, 0, scratch_.size(), 0};
  } else {
    put_here(found);
  }
}

}  // namespace stoker
