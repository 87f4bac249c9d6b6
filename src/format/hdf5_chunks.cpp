// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_chunks.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/hdf5_btree.h"

namespace stoker {

Hdf5ChunkTable::Hdf5ChunkTable(Hdf5File& file, const Hdf5Dataset& dataset)
    : dataset_(dataset), file_bytes_(file.bytes().size()) {
  const auto& dims = dataset.space.dims;
  chunk_bytes_ = dataset.type.size;
  uint64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const uint64_t size = dataset.chunks.dims.at(i);
    grid_.push_back(dims[i] / size + (dims[i] % size != 0 ? 1 : 0));
    chunk_bytes_ *= size;  // below 4 GiB, as was seen when the layout was read
    if (__builtin_mul_overflow(count, grid_.back(), &count)) {
      throw Hdf5Error(ErrorKind::corrupt, dataset.address, "more chunks than can be counted");
    }
    if (dataset.space.max_dims[i] == kNowhere) growing_ = i;
  }
  if (dataset.chunks.address == kNowhere || count == 0) return;
  switch (dataset.chunks.index) {
    case Hdf5ChunkIndex::btree1:
      read_btree1(file);
      break;
    case Hdf5ChunkIndex::btree2:
      read_btree2(file);
      break;
    case Hdf5ChunkIndex::fixed_array:
    case Hdf5ChunkIndex::extensible:
      read_array(file);
      break;
    case Hdf5ChunkIndex::single: {
      const bool filtered = dataset.chunks.single_length != 0;
      add(std::vector<uint64_t>(dims.size(), 0),
          {dataset.chunks.address, filtered ? dataset.chunks.single_length : chunk_bytes_,
           dataset.chunks.single_mask});
      break;
    }
    case Hdf5ChunkIndex::implicit:
      break;  // one after the other: computed when asked for
  }
  std::sort(chunks_.begin(), chunks_.end(),
            [](const Entry& a, const Entry& b) { return a.number < b.number; });
}

std::optional<Hdf5Chunk> Hdf5ChunkTable::find(uint64_t number) const {
  if (dataset_.chunks.index == Hdf5ChunkIndex::implicit) {
    if (dataset_.chunks.address == kNowhere) return std::nullopt;
    // They were laid out for the greatest size that the dataset may take.
    uint64_t position = 0;
    uint64_t stride = 1;
    uint64_t rest = number;
    for (size_t i = grid_.size(); i-- > 0;) {
      const uint64_t size = dataset_.chunks.dims[i];
      const uint64_t most = dataset_.space.max_dims[i];
      position += rest % grid_[i] * stride;
      rest /= grid_[i];
      stride *= most / size + (most % size != 0 ? 1 : 0);
    }
    uint64_t address = 0;
    if (__builtin_mul_overflow(position, chunk_bytes_, &address) ||
        __builtin_add_overflow(address, dataset_.chunks.address, &address)) {
      address = kNowhere - 1;
    }
    return Hdf5Chunk{address, chunk_bytes_, 0};
  }
  const auto found =
      std::lower_bound(chunks_.begin(), chunks_.end(), number,
                       [](const Entry& entry, uint64_t wanted) { return entry.number < wanted; });
  if (found == chunks_.end() || found->number != number) return std::nullopt;
  return found->chunk;
}

void Hdf5ChunkTable::each(
    const std::function<void(uint64_t number, const Hdf5Chunk& chunk)>& take) const {
  if (dataset_.chunks.index != Hdf5ChunkIndex::implicit) {
    for (size_t i = 0; i < chunks_.size(); ++i) {
      if (i == 0 || chunks_[i].number != chunks_[i - 1].number) {
        take(chunks_[i].number, chunks_[i].chunk);
      }
    }
    return;
  }
  if (dataset_.chunks.address == kNowhere) return;
  uint64_t count = 1;
  for (const uint64_t size : grid_) count *= size;
  if (count > file_bytes_ / chunk_bytes_) {
    throw Hdf5Error(ErrorKind::corrupt, dataset_.address, "more chunks than the file has bytes");
  }
  for (uint64_t number = 0; number < count; ++number) take(number, *find(number));
}

void Hdf5ChunkTable::add(const std::vector<uint64_t>& at, Hdf5Chunk chunk) {
  // Each takes up a byte at least: a file that names more of them names some again and again.
  if (++seen_ > file_bytes_) {
    throw Hdf5Error(ErrorKind::corrupt, dataset_.address, "more chunks than the file has bytes");
  }
  uint64_t number = 0;
  bool edge = false;
  for (size_t i = 0; i < grid_.size(); ++i) {
    if (at[i] >= grid_[i]) return;  // left over from when the dataset was larger
    number = number * grid_[i] + at[i];
    edge = edge || (at[i] + 1) * dataset_.chunks.dims[i] > dataset_.space.dims[i];
  }
  if (dataset_.chunks.plain_edges && edge) chunk.mask = ~uint32_t{0};
  chunks_.push_back({number, chunk});
}

void Hdf5ChunkTable::read_btree1(Hdf5File& file) {
  const size_t rank = grid_.size();
  const uint64_t key_size = 8 + 8 * (rank + 1);
  std::vector<uint64_t> at(rank);
  walk_btree1(file.bytes(), dataset_.chunks.address, 1, key_size,
              [&](Hdf5Cursor key, uint64_t address) {
                Hdf5Chunk chunk;
                chunk.address = address;
                chunk.length = key.u32();
                chunk.mask = key.u32();
                for (size_t i = 0; i < rank; ++i) {
                  const uint64_t element = key.number(8);
                  if (element % dataset_.chunks.dims[i] != 0) key.fail("a chunk between chunks");
                  at[i] = element / dataset_.chunks.dims[i];
                }
                add(at, chunk);
              });
}

void Hdf5ChunkTable::read_btree2(Hdf5File& file) {
  const size_t rank = grid_.size();
  const bool filtered = !dataset_.filters.empty();
  std::vector<uint64_t> at(rank);
  walk_btree2(file.bytes(), dataset_.chunks.address, filtered ? 11 : 10, [&](Hdf5Cursor record) {
    const uint64_t others = record.offset_size() + 8 * rank + (filtered ? 4 : 0);
    if (record.left() < others || record.left() - others > 8) record.fail("of a strange size");
    const auto length_size = static_cast<unsigned>(record.left() - others);
    Hdf5Chunk chunk{record.address(), chunk_bytes_, 0};
    if (filtered) {
      chunk.length = record.number(length_size);
      chunk.mask = record.u32();
    }
    for (uint64_t& each : at) each = record.number(8);
    add(at, chunk);
  });
}

std::vector<uint64_t> Hdf5ChunkTable::coordinates(uint64_t number) const {
  const size_t rank = grid_.size();
  std::vector<uint64_t> at(rank, 0);
  // The dimension without a limit counts slowest, whichever it is.
  std::vector<size_t> order;
  if (dataset_.chunks.index == Hdf5ChunkIndex::extensible) order.push_back(growing_);
  for (size_t i = 0; i < rank; ++i) {
    if (order.empty() || i != order.front() ||
        dataset_.chunks.index != Hdf5ChunkIndex::extensible) {
      order.push_back(i);
    }
  }
  for (size_t i = rank; i-- > 1;) {
    const size_t dim = order[i];
    const uint64_t size = dataset_.chunks.dims[dim];
    const uint64_t most = dataset_.space.max_dims[dim];
    const uint64_t count = std::max<uint64_t>(most / size + (most % size != 0 ? 1 : 0), 1);
    at[dim] = number % count;
    number /= count;
  }
  at[order[0]] = number;
  return at;
}

void Hdf5ChunkTable::read_array(Hdf5File& file) {
  const bool filtered = !dataset_.filters.empty();
  const auto take = [&](uint64_t number, Hdf5Cursor element) {
    const uint64_t others = element.offset_size() + (filtered ? 4 : 0);
    if (element.left() < others || element.left() - others > 8) element.fail("of a strange size");
    const auto length_size = static_cast<unsigned>(element.left() - others);
    Hdf5Chunk chunk{element.address(), chunk_bytes_, 0};
    if (filtered) {
      chunk.length = element.number(length_size);
      chunk.mask = element.u32();
    }
    if (chunk.address != kNowhere) add(coordinates(number), chunk);
  };
  if (dataset_.chunks.index == Hdf5ChunkIndex::fixed_array) {
    walk_fixed_array(file.bytes(), dataset_.chunks.address, take);
  } else {
    walk_extensible_array(file.bytes(), dataset_.chunks.address, take);
  }
}

}  // namespace stoker
