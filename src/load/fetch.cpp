// SPDX-License-Identifier: Apache-2.0
#include "load/fetch.h"

#include <algorithm>

namespace stoker {

const ReadFailure& FetchedSamples::failure(const Item& item) const {
  const auto number = static_cast<size_t>(&item - batch.items.data());
  return *std::find_if(failures.begin(), failures.end(),
                       [&](const ReadFailure& failure) { return failure.item == number; });
}

SampleFetcher::SampleFetcher(const Sources& sources, const std::vector<ColumnPlan>& columns,
                             SampleCache* cache)
    : sources_(sources), columns_(columns), cache_(cache) {
  for (uint32_t source = 0; source < sources.count(); ++source) {
    OwnFields& own = own_.emplace_back();
    own.by_field.resize(sources.reader(source).index().schema().fields.size());
    for (const ColumnPlan& column : columns) {
      if (const auto field = sources.field_in(source, column.field)) {
        own.wanted.push_back(*field);
        own.by_field[*field] = &column;
        if (column.kind == ColumnPlan::Kind::pictures) own.pictures = *field;
      }
    }
    std::sort(own.wanted.begin(), own.wanted.end());
  }
}

std::vector<FetchedRow> SampleFetcher::fetch(std::span<const uint64_t> samples,
                                             const LoadedBatch* into, uint64_t first_row) const {
  std::vector<FetchedRow> rows(samples.size());
  std::vector<std::vector<uint32_t>> by_source(sources_.count());
  for (uint32_t row = 0; row < samples.size(); ++row) {
    by_source[sources_.place(samples[row]).source].push_back(row);
  }
  for (uint32_t source = 0; source < by_source.size(); ++source) {
    if (by_source[source].empty() || own_[source].wanted.empty()) continue;
    auto fetched = std::make_shared<FetchedSamples>();
    fetched->source = source;
    std::vector<uint64_t> numbers;
    for (const uint32_t row : by_source[source]) {
      rows[row] = {fetched, static_cast<uint32_t>(numbers.size())};
      numbers.push_back(sources_.place(samples[row]).sample);
    }
    const Reader& reader = sources_.reader(source);
    fetched->batch = reader.locate(numbers, own_[source].wanted);
    place(*fetched, by_source[source], into, first_row);
    if (cache_ != nullptr) take_from_cache(*fetched);
    fetched->failures = reader.fetch(fetched->batch);
    if (cache_ != nullptr) put_into_cache(*fetched);
    if (own_[source].pictures) read_row_indexes(*fetched);
  }
  return rows;
}

/// Says where the bytes go: into the batch, or into memory of their own.
void SampleFetcher::place(FetchedSamples& fetched, std::span<const uint32_t> rows,
                          const LoadedBatch* into, uint64_t first_row) const {
  constexpr uint64_t kLongestHeader = 4096;
  std::vector<Item>& items = fetched.batch.items;
  const auto column_of = [&](const Item& item) {
    return own_[fetched.source].by_field[item.field];
  };
  const auto goes_straight = [&](const Item& item) {
    const ColumnPlan& column = *column_of(item);
    if (into == nullptr || cache_ != nullptr || column.kind != ColumnPlan::Kind::arrays) {
      return false;
    }
    if (column.elements) return item.length == column.row_bytes;
    return column.npy && item.length > column.row_bytes &&
           item.length - column.row_bytes <= kLongestHeader;
  };
  fetched.row_ends.assign(rows.size(), 0);
  uint64_t bytes = 0;
  for (const Item& item : items) {
    ++fetched.row_ends[item.row];
    const uint64_t here =
        goes_straight(item) ? item.length - column_of(item)->row_bytes : item.length;
    bytes += round_up(here, 8);
  }
  for (size_t row = 1; row < rows.size(); ++row) fetched.row_ends[row] += fetched.row_ends[row - 1];
  try {
    fetched.memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  } catch (const std::bad_alloc&) {
    throw sources_.reader(fetched.source).no_memory(fetched.batch);
  }
  std::byte* next = fetched.memory.get();
  for (Item& item : items) {
    if (goes_straight(item)) {
      const ColumnPlan& column = *column_of(item);
      const uint32_t number = column_number(fetched.source, item);
      item.head = static_cast<uint32_t>(item.length - column.row_bytes);
      item.head_data = next;
      item.data = into->columns[number].row(first_row + rows[item.row]);
      next += round_up(item.head, 8);
    } else {
      item.data = next;
      next += round_up(item.length, 8);
    }
  }
}

/// Those of photos that follow each other lie one behind the other, in the file as in memory, and
/// are read at once.
void SampleFetcher::read_row_indexes(FetchedSamples& fetched) const {
  struct Wanted {
    const RowIndexFile* file;
    uint64_t sample, length;
    size_t item;
  };
  const Index& index = sources_.reader(fetched.source).index();
  const uint32_t pictures = *own_[fetched.source].pictures;
  std::vector<Wanted> wanted;
  uint64_t bytes = 0;
  for (size_t i = 0; i < fetched.batch.items.size(); ++i) {
    const Item& item = fetched.batch.items[i];
    if (item.field != pictures || item.failed) continue;
    const RowIndexFile* file = index.row_indexes(item.segment);
    if (file == nullptr) continue;
    // It may be that of another field than the one which has this name now.
    if (index.local_field(item.segment, pictures) != file->facts().field) continue;
    const uint64_t sample = fetched.batch.samples[item.row] - index.first_sample(item.segment);
    // One that is larger than any can be is not worth memory.
    const uint64_t length = file->length(sample);
    if (length == 0 || length > 64 + 16 * item.length) continue;
    wanted.push_back({file, sample, length, i});
    bytes += length;
  }
  if (wanted.empty()) return;
  fetched.row_indexes.resize(fetched.batch.items.size());
  fetched.row_index_memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::byte* next = fetched.row_index_memory.get();
  for (size_t first = 0; first < wanted.size();) {
    size_t last = first;
    std::byte* end = next;
    const auto follows = [&](const Wanted& one) {
      return one.file == wanted[first].file && one.sample == wanted[first].sample + (last - first);
    };
    for (; last < wanted.size() && follows(wanted[last]); ++last) end += wanted[last].length;
    const bool read = wanted[first].file->read(wanted[first].sample, {next, end});
    for (; first < last; ++first) {
      if (read) fetched.row_indexes[wanted[first].item] = {next, wanted[first].length};
      next += wanted[first].length;
    }
  }
}

void SampleFetcher::take_from_cache(FetchedSamples& fetched) const {
  const uint64_t first = sources_.first(fetched.source);
  for (Item& item : fetched.batch.items) {
    if (item.length == 0) continue;
    item.fetched = cache_->get(first + fetched.batch.samples[item.row],
                               column_number(fetched.source, item), {item.data, item.length});
  }
}

void SampleFetcher::put_into_cache(const FetchedSamples& fetched) const {
  const uint64_t first = sources_.first(fetched.source);
  for (const Item& item : fetched.batch.items) {
    if (item.length == 0 || item.fetched || item.failed) continue;
    cache_->put(first + fetched.batch.samples[item.row], column_number(fetched.source, item),
                {item.data, item.length});
  }
}

uint32_t SampleFetcher::column_number(uint32_t source, const Item& item) const {
  return static_cast<uint32_t>(own_[source].by_field[item.field] - columns_.data());
}

}  // namespace stoker
