// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <numeric>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "dataset/reader.h"
#include "dataset/reader_fetcher.h"

namespace stoker {

// What a Reader does beyond fetching bytes, so that none of them is believed without reason: it
// reads records whole whose checksum their file states, and looks at shards before it believes the
// numbers that an index holds.

namespace {

constexpr uint64_t kRecordsAtOnce = 8 << 20;
constexpr uint32_t kNoShard = ~uint32_t{0};

/// The shard that an extent lies in; nothing where it lies in none.
std::optional<uint32_t> shard_of(const Segment& segment, const Extent& extent) {
  if (extent.container == Container::shard) return extent.number;
  if (extent.container == Container::block) return segment.block(extent.number).shard;
  if (extent.container != Container::pieces || extent.length == 0) return std::nullopt;
  const Extent first = segment.piece(extent.offset);
  return first.container == Container::pieces ? std::nullopt : shard_of(segment, first);
}

}  // namespace

Error Reader::no_memory(const Batch& batch) const {
  uint64_t total = 0, largest = 0;
  const Item* first = nullptr;  // of the largest sample
  for (size_t i = 0; i < batch.items.size();) {
    const size_t begin = i;
    uint64_t bytes = 0;
    for (; i < batch.items.size() && batch.items[i].row == batch.items[begin].row; ++i) {
      bytes += batch.items[i].located.extent.length;
    }
    total += bytes;
    if (bytes > largest || first == nullptr) {
      largest = bytes;
      first = &batch.items[begin];
    }
  }
  if (first == nullptr) return {ErrorKind::io, "out of memory", ENOMEM};
  const Fault where = fault(batch, *first, "");
  const std::string name = printable(where.shard.empty() ? where.sample : where.shard);
  return {ErrorKind::io,
          largest > total / 2
              ? fmt::format("{}: one sample of {} does not fit into the memory limit", name,
                            format_bytes(largest))
              : fmt::format("{}: {} of samples that are read together do not fit into the memory "
                            "limit",
                            name, format_bytes(total)),
          ENOMEM};
}

/// The record that holds these items, which are those of one row, where it must be read for them.
std::optional<Extent> Reader::record_of(const Batch& batch, std::span<const Item> row) const {
  const auto stored = [](const Item& item) { return item.length > 0; };
  const bool any_stored = std::any_of(row.begin(), row.end(), stored);
  const bool wanted = std::any_of(row.begin(), row.end(), [&](const Item& item) {
    return !item.fetched && (any_stored ? item.length > 0 : item.located.has_scalar);
  });
  if (!wanted) return std::nullopt;
  const Index::Place place = index_->place(batch.samples[row.front().row]);
  const std::optional<Extent> record = index_->segment(place.segment).stated(place.sample);
  if (record) check_bounds(index_->segment(place.segment), *record);
  return record;
}

/// Takes an item out of its record; false where it lies elsewhere.
bool Reader::copy_from(const Item& record, Item& item) const {
  const Extent& from = record.located.extent;
  const Extent& extent = item.located.extent;
  if (extent.container != Container::shard || extent.number != from.number ||
      extent.offset < from.offset || extent.offset - from.offset > from.length ||
      extent.length > from.length - (extent.offset - from.offset)) {
    return false;
  }
  if (item.length == 0) return true;  // the index holds it
  const std::byte* const begin = record.data + (extent.offset - from.offset);
  std::copy_n(begin, item.head, item.head_data);
  std::copy_n(begin + item.head, item.length - item.head, item.data);
  if (options_.checksum) item.crc = crc32c({begin, item.length});
  return true;
}

void Reader::fetch_records(Batch& batch, std::vector<uint8_t>& done, Failures& failures) const {
  if (!options_.verify) return;
  Batch records;
  std::vector<std::pair<uint32_t, uint32_t>> whose;  // items of the batch
  uint64_t bytes = 0;
  const auto fetch = [&] {
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    std::byte* next = memory.get();
    for (Item& record : records.items) record.data = std::exchange(next, next + record.length);
    std::vector<uint32_t> order(records.items.size());
    std::iota(order.begin(), order.end(), 0);
    Failures of_records(*this, records);
    fetch_items(records, order, of_records);
    for (ReadFailure& failure : of_records.take()) {
      failure.fault.field.clear();
      const auto [first, last] = whose[failure.item];
      for (uint32_t i = first; i < last; ++i) {
        if (batch.items[i].fetched) continue;
        done[i] = 1;
        failures.add({i, failure.kind, failure.fault, failure.os_error});
      }
    }
    for (size_t r = 0; r < records.items.size(); ++r) {
      if (records.items[r].failed) continue;
      for (uint32_t i = whose[r].first; i < whose[r].second; ++i) {
        if (!batch.items[i].fetched) done[i] = copy_from(records.items[r], batch.items[i]) ? 1 : 0;
      }
    }
    records.items.clear();
    whose.clear();
    bytes = 0;
  };
  const std::span<const Item> items = batch.items;
  for (uint32_t first = 0; first < items.size();) {
    uint32_t last = first + 1;
    while (last < items.size() && items[last].row == items[first].row) ++last;
    if (const auto record = record_of(batch, items.subspan(first, last - first))) {
      if (records.samples.empty()) records.samples = batch.samples;
      Item item = items[first];
      item.located = {};
      item.located.extent = *record;
      item.length = record->length;
      item.head = 0;
      item.stated = true;
      records.items.push_back(item);
      whose.emplace_back(first, last);
      bytes += record->length;
    }
    first = last;
    if (bytes >= kRecordsAtOnce) fetch();
  }
  if (!records.items.empty()) fetch();
}

/// For values of which the index does not say where they are in the shards: such cannot be compared
/// with what the shards have now. Throws where one was modified. A copy has other times: there, a
/// full index that is not older than the shard was made, or copied by `stage`, after it. `pack`
/// records no times; what it writes has a place.
bool Reader::all_as_indexed(ShardFiles& files, const Segment& segment) {
  std::string looked_at;
  for (uint32_t number = 0; number < segment.shard_count(); ++number) {
    const Shard shard = segment.shard(number);
    if (shard.path == looked_at) continue;  // the next range of the same file
    const int64_t modified = shard.modified_ns;
    const bool full = segment.depth() == Depth::full;
    if (!files.untouched(shard.path, {shard.size, 0}, modified, full ? segment.written_ns() : 0) &&
        modified != 0) {
      throw Error(
          ErrorKind::corrupt,
          fmt::format("{} was modified after it was indexed, or copied without its times, and "
                      "this value of the index cannot be compared with it: run stoker index",
                      printable(shard.path)));
    }
    looked_at = shard.path;
  }
  return true;
}

/// Whether nobody has written to the file with an item since it was indexed.
bool Reader::is_untouched(Fetcher& fetcher, Untouched& untouched, const Batch& batch,
                          const Item& item) const {
  const Segment& segment = index_->segment(item.segment);
  const Extent& extent = item.located.extent;
  if (extent.container == Container::file) {
    const auto modified = static_cast<int64_t>(extent.offset);
    const Index::Place place = index_->place(batch.samples[item.row]);
    const bool structure = segment.depth() == Depth::structure;
    return fetcher.files.untouched(file_path(segment, place.sample, item),
                                   {extent.length, structure ? modified : 0}, modified);
  }
  const std::optional<uint32_t> shard = shard_of(segment, extent);
  const uint64_t name = uint64_t{item.segment} << 32 | shard.value_or(kNoShard);
  {
    const std::lock_guard lock(untouched.mutex);
    const auto known = untouched.known.find(name);
    if (known != untouched.known.end()) return known->second;
    const auto thrown = untouched.thrown.find(name);
    if (thrown != untouched.thrown.end()) std::rethrow_exception(thrown->second);
  }
  try {
    const bool answer =
        shard ? fetcher.files.untouched(segment, *shard) : all_as_indexed(fetcher.files, segment);
    const std::lock_guard lock(untouched.mutex);
    return untouched.known.try_emplace(name, answer).first->second;
  } catch (const Error&) {
    const std::lock_guard lock(untouched.mutex);
    untouched.thrown.try_emplace(name, std::current_exception());
    throw;
  }
}

/// Throws where the number that the index holds for an item may not be what its file has now.
void Reader::confirm(OpenShard& shard, Untouched& untouched, const Batch& batch,
                     const Item& item) const {
  const Segment& segment = index_->segment(item.segment);
  if (is_untouched(shard.fetcher, untouched, batch, item)) return;
  if (segment.depth() != Depth::full || !options_.verify) return;
  std::vector<std::byte> bytes(item.located.extent.length);
  Item whole = item;
  whole.length = bytes.size();
  whole.data = bytes.data();
  Batch alone{{batch.samples[item.row]}, {whole}};
  alone.items.front().row = 0;
  const uint32_t first = 0;
  DecodedBlocks blocks([&](uint32_t block) { return shared_block(shard, item.segment, block); });
  fetch_run(shard, blocks, alone, {&first, 1});
  verify(alone.items.front());
}

void Reader::confirm_inline(Batch& batch, const std::vector<uint32_t>& inlined,
                            Failures& failures) const {
  if (inlined.empty()) return;
  constexpr size_t kTogether = 64;
  Fetcher& fetcher = this->fetcher();
  Untouched untouched;
  const auto work = [&](size_t begin, size_t end) {
    OpenShard shard(fetcher);
    for (size_t i = begin; i < end; ++i) {
      try {
        confirm(shard, untouched, batch, batch.items[inlined[i]]);
      } catch (const Error& error) {
        failures.add(inlined[i], error);
      }
    }
  };
  // Looking at a small file waits for the storage; shards are looked at once.
  const bool files = std::any_of(inlined.begin(), inlined.end(), [&](uint32_t item) {
    return batch.items[item].located.extent.container == Container::file;
  });
  if (!files || options_.threads == 1) return work(0, inlined.size());
  fetcher.pool.run((inlined.size() + kTogether - 1) / kTogether, [&](size_t part) {
    work(part * kTogether, std::min(inlined.size(), (part + 1) * kTogether));
  });
}

}  // namespace stoker
