// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataset/codec.h"

namespace stoker {
namespace {

constexpr uint64_t kWindow = 1 << 18;

}  // namespace

Hdf5Rows::Hdf5Rows(Hdf5File& file, const Hdf5Dataset& dataset, uint32_t shard, ScanSink& sink)
    : file_(file), dataset_(dataset), shard_(shard), sink_(sink) {
  if (dataset.layout == Hdf5Dataset::Layout::chunked) {
    // All of them must be known, but one that lacks parameters matters only where it was used: the
    // library leaves shuffle out for data of variable length.
    try {
      (void)hdf5_codecs(dataset, 0);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::corrupt) throw;
    }
    table_.emplace(file, dataset);
    count_pieces();
    if (pieces_ <= kMostPieces) find_runs();
  } else if (dataset.row_bytes > 0) {
    const uint64_t bytes = dataset.row_bytes * dataset.space.dims[0];
    if (dataset.data != kNowhere && dataset.data_length < bytes) {
      throw Hdf5Error(
          ErrorKind::corrupt, dataset.address,
          fmt::format("a dataset of {} bytes with {} bytes of data", bytes, dataset.data_length));
    }
    pieces_ = 1;
    runs_.push_back({0, dataset.row_bytes, 0, 0});
  }
}

uint64_t Hdf5Rows::stored() const {
  const uint64_t rows = dataset_.space.dims[0];
  if (dataset_.row_bytes == 0) return 0;
  if (!table_) return dataset_.data == kNowhere ? 0 : rows;
  const uint64_t per_chunk = std::max<uint64_t>(dataset_.chunks.dims[0], 1);
  return table_->written() >= rows / per_chunk ? rows : table_->written() * per_chunk;
}

uint64_t Hdf5Rows::lost_until(uint64_t row) const {
  const bool damaged = std::any_of(places_.begin(), places_.end(),
                                   [](const Place& place) { return !place.damage.empty(); });
  if (!damaged || row / dataset_.chunks.dims[0] != chunk_row_) return row + 1;
  return std::min((chunk_row_ + 1) * dataset_.chunks.dims[0], dataset_.space.dims[0]);
}

// Rows are split where a chunk ends, and where the elements of a chunk that follow each other are
// not those of the row: behind the last dimension in which the two differ.
void Hdf5Rows::count_pieces() {
  const auto& dims = dataset_.space.dims;
  if (dataset_.row_bytes == 0) return;
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dataset_.chunks.dims[i] != dims[i]) split_ = i;
  }
  pieces_ = 1;  // of no more than there are elements
  for (size_t i = 1; i <= split_; ++i) pieces_ *= i < split_ ? dims[i] : table_->grid()[i];
}

void Hdf5Rows::find_runs() {
  const auto& dims = dataset_.space.dims;
  const auto& chunk = dataset_.chunks.dims;
  const size_t rank = dims.size();
  std::vector<uint64_t> strides(rank, dataset_.type.size);  // in a chunk, in bytes
  for (size_t i = rank - 1; i-- > 0;) strides[i] = strides[i + 1] * chunk[i + 1];
  row_stride_ = strides[0];
  for (size_t i = 1; i < rank; ++i) chunks_per_row_ *= table_->grid()[i];
  if (dataset_.row_bytes == 0) return;

  const size_t split = split_;
  uint64_t tail = dataset_.type.size;  // bytes of one step of `split`
  for (size_t i = split + 1; i < rank; ++i) tail *= dims[i];
  std::vector<uint64_t> at(rank, 0);
  std::unordered_map<uint64_t, size_t> slot_of;
  for (uint64_t done = 0; done < dataset_.row_bytes;) {
    uint64_t number = 0;
    uint64_t inside = 0;
    for (size_t i = 1; i < rank; ++i) {
      number = number * table_->grid()[i] + at[i] / chunk[i];
      inside += at[i] % chunk[i] * strides[i];
    }
    const uint64_t steps = split == 0 ? 1 : std::min(chunk[split], dims[split] - at[split]);
    const auto [slot, is_new] = slot_of.try_emplace(number, slots_.size());
    if (is_new) slots_.push_back(number);
    runs_.push_back({done, steps * tail, slot->second, inside});
    done += steps * tail;
    if (split == 0) continue;
    at[split] += steps;
    for (size_t i = split; i > 1 && at[i] == dims[i]; --i) {
      at[i] = 0;
      ++at[i - 1];
    }
  }
}

uint32_t Hdf5Rows::codecs_for(uint32_t mask) {
  const auto known = codecs_.find(mask);
  if (known != codecs_.end()) return known->second;
  return codecs_[mask] = sink_.codecs(hdf5_codecs(dataset_, mask));
}

Extent Hdf5Rows::fill_extent() {
  if (fill_) return *fill_;
  if (dataset_.row_bytes > kLargestFill) {
    throw Hdf5Error(ErrorKind::unsupported, dataset_.address,
                    fmt::format("samples of {} bytes that were never written", dataset_.row_bytes));
  }
  std::string parameters(4, '\0');
  store(std::as_writable_bytes(std::span(parameters)).data(),
        static_cast<uint32_t>(dataset_.row_bytes));
  parameters += as_text(dataset_.fill);
  const Codec fill{static_cast<uint16_t>(CodecId::fill), parameters};
  Block block;
  block.shard = shard_;
  block.decoded_length = dataset_.row_bytes;
  block.codecs = sink_.codecs({&fill, 1});
  fill_ = {Container::block, sink_.block(block), 0, dataset_.row_bytes, 0};
  return *fill_;
}

Hdf5Rows::Place Hdf5Rows::place_of(uint64_t chunk_number) {
  Place place;
  const std::optional<Hdf5Chunk> chunk = table_->find(chunk_number);
  try {
    if (!chunk || chunk->address == kNowhere) {
      place.extent.container = Container::absent;  // the fill value
      return place;
    }
    const bool plain = hdf5_codecs(dataset_, chunk->mask).empty();
    const uint64_t length = plain ? table_->chunk_bytes() : chunk->length;
    if (chunk->length < length) {
      throw Hdf5Error(ErrorKind::corrupt, chunk->address,
                      fmt::format("chunk of {} bytes that should have {}", chunk->length, length));
    }
    const uint64_t offset = file_.bytes().offset_of(chunk->address, length, "chunk");
    if (plain) {
      place.extent = {Container::shard, shard_, offset, length, 0};
      return place;
    }
    place.block.shard = shard_;
    place.block.offset = offset;
    place.block.stored_length = length;
    place.block.decoded_length = table_->chunk_bytes();
    place.block.codecs = codecs_for(chunk->mask);
    place.extent = {Container::block, sink_.block(place.block), 0, table_->chunk_bytes(), 0};
    place.mask = chunk->mask;
  } catch (const Hdf5Error& error) {
    place.damage = error.what();
    place.damage_at = error.offset();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    place.damage = error.what();
    place.damage_at = chunk->address;
  }
  return place;
}

void Hdf5Rows::find_places(uint64_t chunk_row) {
  chunk_row_ = chunk_row;
  places_.clear();
  for (const uint64_t slot : slots_) {
    places_.push_back(place_of(chunk_row * chunks_per_row_ + slot));
  }
}

void Hdf5Rows::locate(uint64_t row, uint64_t from, uint64_t length, std::vector<Extent>& extents) {
  if (dataset_.row_bytes == 0) {
    extents.push_back({Container::shard, shard_, 0, 0, 0});
    return;
  }
  if (!table_) {
    if (dataset_.data == kNowhere) {
      Extent extent = fill_extent();
      extent.offset = from;
      extent.length = length;
      extents.push_back(extent);
      return;
    }
    const uint64_t address = dataset_.data + row * dataset_.row_bytes + from;
    extents.push_back(
        {Container::shard, shard_, file_.bytes().offset_of(address, length, "data"), length, 0});
    return;
  }
  const uint64_t rows = dataset_.chunks.dims[0];
  if (row / rows != chunk_row_) find_places(row / rows);
  auto run = std::upper_bound(runs_.begin(), runs_.end(), from,
                              [](uint64_t at, const Run& each) { return at < each.at; });
  for (--run; length > 0; ++run) {
    const uint64_t skipped = from - run->at;
    const uint64_t count = std::min(length, run->length - skipped);
    const Place& place = places_[run->slot];
    if (!place.damage.empty()) {
      throw Hdf5Error(ErrorKind::corrupt, place.damage_at, place.damage);
    }
    Extent extent = place.extent;
    if (extent.container == Container::absent) {
      extent = fill_extent();
      extent.offset = from;
    } else {
      extent.offset += row % rows * row_stride_ + run->inside + skipped;
    }
    extent.length = count;
    extents.push_back(extent);
    from += count;
    length -= count;
  }
}

const std::vector<std::byte>& Hdf5Rows::decoded(const Extent& extent) {
  if (decoded_block_ == extent.number) return decoded_;
  decoded_block_.reset();
  const auto place = std::find_if(places_.begin(), places_.end(), [&](const Place& each) {
    return each.extent.container == Container::block && each.extent.number == extent.number;
  });
  if (place == places_.end()) {  // the fill value
    decoded_.assign(dataset_.row_bytes, std::byte{0});
    for (size_t i = 0; !dataset_.fill.empty() && i < decoded_.size(); ++i) {
      decoded_[i] = dataset_.fill[i % dataset_.fill.size()];
    }
  } else {
    const Block& block = place->block;
    std::vector<std::byte> stored(block.stored_length);
    if (file_.bytes().file().read_at(block.offset, stored) < stored.size()) {
      throw Hdf5Error(ErrorKind::corrupt, block.offset, "chunk: the file was truncated");
    }
    try {
      decoded_ = decode_block(stored, hdf5_codecs(dataset_, place->mask), block.decoded_length);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::corrupt) throw;
      // Remembered: it would be decoded again for each of its rows.
      place->damage = fmt::format("chunk: {}", error.what());
      place->damage_at = block.offset;
      throw Hdf5Error(ErrorKind::corrupt, place->damage_at, place->damage);
    }
  }
  decoded_block_ = extent.number;
  return decoded_;
}

Bytes Hdf5Rows::read(uint64_t row, uint64_t from, uint64_t length) {
  if (length == 0) return {};
  std::vector<Extent> extents;
  locate(row, from, length, extents);
  const Extent& extent = extents.at(0);
  if (extents.size() != 1) throw std::logic_error("a value in pieces");
  if (extent.container == Container::block) {
    return Bytes(decoded(extent)).subspan(extent.offset, extent.length);
  }
  const uint64_t end = window_at_ + window_.size();
  if (extent.offset < window_at_ || extent.offset + length > end) {
    window_at_ = extent.offset;
    window_.resize(std::min(std::max(length, kWindow), file_.bytes().size() - extent.offset));
    window_.resize(file_.bytes().file().read_at(window_at_, window_));
    if (window_.size() < length) {
      throw Hdf5Error(ErrorKind::corrupt, extent.offset, "data: the file was truncated");
    }
  }
  return Bytes(window_).subspan(extent.offset - window_at_, length);
}

}  // namespace stoker
