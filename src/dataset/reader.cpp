// SPDX-License-Identifier: Apache-2.0
#include "dataset/reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dataset/read_runs.h"
#include "dataset/reader_fetcher.h"

namespace stoker {
namespace {

// Up to this size copying an item costs less than a system call that takes its head apart.
constexpr uint64_t kSmallItem = 16384;
}  // namespace

Reader::Reader(std::shared_ptr<const Index> index, ReaderOptions options)
    : index_(std::move(index)), options_(std::move(options)) {
  if (options_.threads == 0) options_.threads = usable_cores();
}

Reader::~Reader() {
  Fetcher* mine = fetcher_.load();
  if (mine != nullptr && mine->process == ::getpid()) delete mine;
}

Reader::Fetcher& Reader::fetcher() const {
  Fetcher* known = fetcher_.load(std::memory_order_acquire);
  if (known != nullptr && known->process == ::getpid()) return *known;
  auto made = std::make_unique<Fetcher>(options_, options_.threads);
  if (fetcher_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *known;
}

Batch Reader::locate(std::span<const uint64_t> samples, std::span<const uint32_t> fields) const {
  Batch batch;
  batch.samples.assign(samples.begin(), samples.end());
  std::vector<uint32_t> all;
  if (fields.empty()) {
    for (uint32_t f = 0; f < index_->schema().fields.size(); ++f) all.push_back(f);
    fields = all;
  }
  batch.items.reserve(samples.size() * fields.size());
  // In an order by chance every sample's place in the index is a wait for memory: all at once.
  std::vector<Index::Place> places;
  places.reserve(samples.size());
  for (const uint64_t sample : samples) {
    const Index::Place place = places.emplace_back(index_->place(sample));
    for (const uint32_t field : fields) {
      const std::optional<uint32_t> local = index_->local_field(place.segment, field);
      if (local) index_->segment(place.segment).prefetch(place.sample, *local);
    }
  }
  for (uint32_t row = 0; row < samples.size(); ++row) {
    const Index::Place& place = places[row];
    const Segment& segment = index_->segment(place.segment);
    for (const uint32_t field : fields) {
      const std::optional<uint32_t> local = index_->local_field(place.segment, field);
      if (!local) continue;
      Item item;
      item.row = row;
      item.field = field;
      item.segment = place.segment;
      item.located = segment.locate(place.sample, *local);
      if (!item.located.present) continue;
      if (!item.located.has_scalar || options_.fetch_inline) {
        item.length = item.located.extent.length;
      }
      check_bounds(segment, item.located.extent);
      batch.items.push_back(item);
    }
  }
  return batch;
}

void Reader::check_bounds(const Segment& segment, const Extent& extent) {
  // No file is larger: sums of lengths cannot overflow.
  constexpr uint64_t kMaxLength = uint64_t{1} << 48;
  bool fits = extent.length <= kMaxLength;
  if (fits && extent.container == Container::shard) {
    const std::optional<uint64_t> size = segment.plain_size(extent.number);
    // Of a compressed one nobody knows the size.
    const uint64_t end = size.value_or(uint64_t{1} << 62);
    fits = extent.offset <= end && extent.length <= end - extent.offset;
  }
  if (fits && extent.container == Container::block) {
    const uint64_t size = segment.block(extent.number).decoded_length;
    fits = extent.offset <= size && extent.length <= size - extent.offset;
  }
  if (fits) return;
  throw Error(ErrorKind::corrupt,
              fmt::format("the index speaks of {} bytes at offset {}, where none can be: run "
                          "stoker index",
                          extent.length, extent.offset));
}

/// Shard and offset of an extent.
void Reader::name_place(const Segment& segment, const Extent& extent, Fault& fault) {
  switch (extent.container) {
    case Container::shard: {
      const Shard shard = segment.shard(extent.number);
      fault.shard = shard.path;
      // Where a row is in the array says nothing about the file: the cause names the chunk.
      if (shard.compression != Compression::tiled) fault.offset = extent.offset;
      break;
    }
    case Container::block: {
      const Block block = segment.block(extent.number);
      fault.shard = segment.shard(block.shard).path;
      fault.offset = block.offset;
      break;
    }
    case Container::pieces:
      if (extent.length > 0) name_place(segment, segment.piece(extent.offset), fault);
      break;
    default:
      break;
  }
}

Fault Reader::fault(const Batch& batch, const Item& item, std::string cause) const {
  const Index::Place place = index_->place(batch.samples[item.row]);
  const Segment& segment = index_->segment(place.segment);
  Fault fault;
  fault.sample = segment.key(place.sample);
  fault.field = index_->schema().fields[item.field].name;
  fault.cause = std::move(cause);
  if (item.located.extent.container == Container::file) {
    fault.shard = file_path(segment, place.sample, item);
  } else {
    name_place(segment, item.located.extent, fault);
  }
  return fault;
}

std::string Reader::file_path(const Segment& segment, uint64_t sample, const Item& item) const {
  const uint32_t local = index_->local_field(item.segment, item.field).value();
  return file_name(segment.key(sample), segment.fields()[local].suffixes.at(item.located.suffix));
}

namespace {

/// Where the bytes of an item go, in their order.
std::array<MutableBytes, 2> pieces_of(const Item& item) {
  return {MutableBytes(item.head_data, item.head), {item.data, item.length - item.head}};
}

void check_length(uint64_t offset, uint64_t got, uint64_t wanted) {
  if (got == wanted) return;
  throw Error(ErrorKind::corrupt, fmt::format("the shard ends at offset {}, {} bytes short",
                                              offset + got, wanted - got));
}

/// One read, of which the system puts each piece where it belongs.
void read_scattered(ReadableFile& file, const Batch& batch, std::span<const uint32_t> items) {
  const uint64_t begin = batch.items[items.front()].located.extent.offset;
  thread_local std::byte gap[kMaxReadGap];
  thread_local MutableBytes pieces[3 * kMaxRunItems];  // not cleared for every read
  size_t count = 0;
  uint64_t end = begin;
  for (const uint32_t i : items) {
    const Item& item = batch.items[i];
    const uint64_t offset = item.located.extent.offset;
    if (offset > end) pieces[count++] = {gap, offset - end};
    const auto [head, rest] = pieces_of(item);
    if (!head.empty()) pieces[count++] = head;
    pieces[count++] = rest;
    end = offset + item.length;
  }
  const size_t got =
      count == 1 ? file.read_at(begin, pieces[0]) : file.read_at(begin, std::span(pieces, count));
  check_length(begin, got, end - begin);
}

/// Items of one shard, one behind the other.
void read_run(ReadableFile& file, const Batch& batch, std::span<const uint32_t> items) {
  const Item& item = batch.items[items.front()];
  if (items.size() > 1 || item.head == 0 || item.length > kSmallItem) {
    return read_scattered(file, batch, items);
  }
  std::byte whole[kSmallItem];
  const uint64_t offset = item.located.extent.offset;
  check_length(offset, file.read_at(offset, MutableBytes(whole, item.length)), item.length);
  std::memcpy(item.head_data, whole, item.head);
  std::memcpy(item.data, whole + item.head, item.length - item.head);
}

}  // namespace

std::vector<ReadFailure> Reader::fetch(Batch& batch) const {
  Failures failures(*this, batch);
  std::vector<uint8_t> done(batch.items.size(), 0);
  fetch_records(batch, done, failures);
  std::vector<uint32_t> order, inlined;
  for (uint32_t i = 0; i < batch.items.size(); ++i) {
    const Item& item = batch.items[i];
    if (done[i] != 0 || item.fetched) continue;
    // Of a file the reading also sees that it is still the one that was indexed, empty or not.
    const Extent& extent = item.located.extent;
    const bool empty_file = extent.container == Container::file && extent.length == 0;
    const bool read = item.length > 0 || empty_file;
    if (read) order.push_back(i);
    if (read ? extent.container == Container::here : item.located.has_scalar) inlined.push_back(i);
  }
  confirm_inline(batch, inlined, failures);
  fetch_items(batch, order, failures);
  return failures.take();
}

void Reader::fetch_items(Batch& batch, std::vector<uint32_t>& order, Failures& failures) const {
  uint64_t bytes = 0;
  for (const uint32_t i : order) bytes += batch.items[i].length;
  const std::vector<ReadRun> runs = merge_runs(*index_, batch.items, order);
  for (const ReadRun& run : runs) bytes += decoding_cost(*index_, batch.items[order[run.first]]);

  Fetcher& fetcher = this->fetcher();
  const auto fetch_one = [&](OpenShard& shard, DecodedBlocks& blocks, const uint32_t& item,
                             bool fetched) {
    try {
      if (!fetched) fetch_run(shard, blocks, batch, {&item, 1});
      verify(batch.items[item]);
    } catch (const Error& error) {
      failures.add(item, error);
    } catch (const std::exception& error) {
      failures.add(item, Error(ErrorKind::io, error.what()));
    }
  };
  const auto work = [&](OpenShard& shard, size_t number) {
    const ReadRun& run = runs[number];
    const std::span<const uint32_t> items(order.data() + run.first, run.last - run.first);
    const uint32_t segment = batch.items[items.front()].segment;
    DecodedBlocks blocks([&](uint32_t block) { return shared_block(shard, segment, block); });
    bool fetched = items.size() > 1 && is_plain(batch.items[items.front()]);
    if (fetched) {
      try {
        fetch_run(shard, blocks, batch, items);
      } catch (const std::exception&) {
        fetched = false;  // each by itself: whichever is readable must not suffer
      }
    }
    for (const uint32_t& item : items) fetch_one(shard, blocks, item, fetched);
  };
  if (bytes < kMinThreaded || runs.size() == 1 || options_.threads == 1) {
    OpenShard shard(fetcher);
    for (size_t i = 0; i < runs.size(); ++i) work(shard, i);
  } else {
    fetcher.pool.run(runs.size(), [&](size_t i) {
      OpenShard shard(fetcher);
      work(shard, i);
    });
  }
}

void Reader::verify(Item& item) const {
  const bool known =
      options_.verify && (item.stated || index_->segment(item.segment).depth() == Depth::full);
  if (!known && !options_.checksum) return;
  item.crc = crc32c({item.data, item.length - item.head}, crc32c({item.head_data, item.head}));
  const uint32_t expected = item.located.extent.crc;
  if (!known || item.crc == expected) return;
  throw Error(ErrorKind::corrupt,
              item.stated
                  ? fmt::format("checksum of the record is {:08x}, the file states {:08x}: the "
                                "data is damaged",
                                item.crc, expected)
                  : fmt::format("checksum is {:08x}, should be {:08x}: the data has changed or is "
                                "damaged",
                                item.crc, expected));
}

void Reader::fetch_run(OpenShard& shard, DecodedBlocks& blocks, const Batch& batch,
                       std::span<const uint32_t> items) const {
  const Item& first = batch.items[items.front()];
  const Segment& segment = index_->segment(first.segment);
  switch (first.located.extent.container) {
    case Container::shard:
      return read_run(shard.open(segment, first.located.extent.number), batch, items);
    case Container::file: {
      const Index::Place place = index_->place(batch.samples[first.row]);
      const uint32_t local = index_->local_field(first.segment, first.field).value();
      const std::string path = segment.file_path(place.sample, local, first.located);
      const int64_t modified = segment.depth() == Depth::structure
                                   ? static_cast<int64_t>(first.located.extent.offset)
                                   : 0;
      const auto file = shard.fetcher.files.open_once(path, {first.length, modified});
      const auto pieces = pieces_of(first);
      if (file->read_at(0, std::span<const MutableBytes>(pieces)) != first.length) {
        throw Error(ErrorKind::corrupt, "the file became shorter while it was read");
      }
      return;
    }
    default:
      break;
  }
  if (first.head == 0) {
    return fetch_extent(shard, blocks, segment, first.located.extent, {first.data, first.length});
  }
  std::vector<std::byte> whole(first.length);
  fetch_extent(shard, blocks, segment, first.located.extent, whole);
  const std::byte* from = whole.data();
  for (const MutableBytes piece : pieces_of(first)) {
    std::memcpy(piece.data(), from, piece.size());
    from += piece.size();
  }
}

void Reader::fetch_extent(OpenShard& shard, DecodedBlocks& blocks, const Segment& segment,
                          const Extent& extent, MutableBytes into) const {
  if (extent.container == Container::here) return segment.read_here(extent.offset, into);
  if (extent.container == Container::shard) {
    const size_t got = shard.open(segment, extent.number).read_at(extent.offset, into);
    check_length(extent.offset, got, into.size());
    return;
  }
  if (extent.container == Container::pieces) {
    // Pieces follow each other until the length is reached.
    for (uint64_t number = extent.offset; !into.empty(); ++number) {
      const Extent piece = segment.piece(number);
      if (piece.length == 0 || piece.length > into.size() || piece.container == Container::pieces) {
        throw Error(ErrorKind::corrupt, "its pieces make no sense: run stoker index");
      }
      fetch_extent(shard, blocks, segment, piece, into.first(piece.length));
      into = into.subspan(piece.length);
    }
    return;
  }
  const bool alone = into.size() == segment.block(extent.number).decoded_length;
  if (alone && extent.offset == 0) {  // nobody else needs it
    const std::vector<std::byte> decoded = decode_block(shard, segment, extent.number);
    std::memcpy(into.data(), decoded.data(), into.size());
    return;
  }
  const std::vector<std::byte>& decoded = blocks.get(extent.number);
  if (extent.offset > decoded.size() || into.size() > decoded.size() - extent.offset) {
    throw Error(ErrorKind::corrupt, "lies outside of its block: run stoker index");
  }
  std::memcpy(into.data(), decoded.data() + extent.offset, into.size());
}

std::vector<std::byte> Reader::decode_block(OpenShard& shard, const Segment& segment,
                                            uint32_t number) const {
  const Block block = segment.block(number);
  if (block.codecs >= segment.codec_chains().size()) {
    throw Error(ErrorKind::corrupt, "its block has no codecs: run stoker index");
  }
  ReadableFile& file = shard.open(segment, block.shard);
  return read_block(file, segment.shard(block.shard).size, block,
                    segment.codec_chains()[block.codecs], options_.verify);
}

DecodedBlock Reader::shared_block(OpenShard& shard, uint32_t segment, uint32_t number) const {
  BlockCache& cache = shard.fetcher.blocks;
  shard.look(index_->segment(segment), index_->segment(segment).block(number).shard);
  const uint64_t changes = shard.fetcher.files.changes();
  if (DecodedBlock known = cache.find(segment, number, changes)) return known;
  auto decoded = std::make_shared<const std::vector<std::byte>>(
      decode_block(shard, index_->segment(segment), number));
  cache.keep(segment, number, changes, decoded);
  return decoded;
}

Value Reader::decode(const Item& item) const {
  if (item.located.has_scalar &&
      (!options_.fetch_inline || item.located.extent.container == Container::absent)) {
    // Another segment may hold other numbers under this name: this one's say what it is.
    const uint32_t local = index_->local_field(item.segment, item.field).value();
    return decode_scalar(index_->segment(item.segment).fields()[local], item.located.scalar);
  }
  const Field& field = index_->schema().fields[item.field];
  if (!is_elements(field.encoding)) return decode_value(field, {item.data, item.length});
  const uint32_t local = index_->local_field(item.segment, item.field).value();
  return decode_value(index_->segment(item.segment).fields()[local], {item.data, item.length});
}

Value Reader::decode(const Batch& batch, const Item& item) const {
  try {
    return decode(item);
  } catch (const Error& error) {
    throw Error(error.kind(), fault(batch, item, error.what()).message());
  }
}

void throw_failure(const ReadFailure& failure) {
  throw Error(failure.kind, failure.fault.message(), failure.os_error);
}

Samples read_many(const Reader& reader, std::span<const uint64_t> samples,
                  std::span<const uint32_t> fields) {
  Samples result;
  result.batch = reader.locate(samples, fields);
  uint64_t total = 0;
  for (const Item& item : result.batch.items) total += round_up(item.length, 8);
  try {
    result.memory = std::make_unique_for_overwrite<std::byte[]>(total);
  } catch (const std::bad_alloc&) {
    throw reader.no_memory(result.batch);
  }
  uint64_t at = 0;
  for (Item& item : result.batch.items) {
    item.data = result.memory.get() + at;
    at += round_up(item.length, 8);
  }
  const std::vector<ReadFailure> failures = reader.fetch(result.batch);
  if (!failures.empty()) throw_failure(failures.front());
  result.rows.resize(samples.size());
  for (const Item& item : result.batch.items) {
    result.rows[item.row].emplace_back(item.field, reader.decode(result.batch, item));
  }
  return result;
}

}  // namespace stoker
