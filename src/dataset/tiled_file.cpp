// SPDX-License-Identifier: Apache-2.0
#include "dataset/tiled_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <list>
#include <mutex>

#include "base/error.h"
#include "base/parallel.h"
#include "dataset/block_reader.h"

namespace stoker {
namespace {

/// A dimension that is walked through: how often, and how far the next step is on either side.
struct Loop {
  uint64_t count = 0, to_stride = 0, from_stride = 0;
};

template <size_t kBytes>
void copy_each(std::byte* to, const std::byte* from, const Loop& loop) {
  for (uint64_t i = 0; i < loop.count; ++i, to += loop.to_stride, from += loop.from_stride) {
    std::memcpy(to, from, kBytes);
  }
}

/// The innermost loop. Pieces are often as short as an element: for those a call each would cost
/// more than the copy.
void copy_each(std::byte* to, const std::byte* from, const Loop& loop, uint64_t bytes) {
  switch (bytes) {
    case 1:
      return copy_each<1>(to, from, loop);
    case 2:
      return copy_each<2>(to, from, loop);
    case 3:
      return copy_each<3>(to, from, loop);
    case 4:
      return copy_each<4>(to, from, loop);
    case 8:
      return copy_each<8>(to, from, loop);
    default:
      for (uint64_t i = 0; i < loop.count; ++i, to += loop.to_stride, from += loop.from_stride) {
        std::memcpy(to, from, bytes);
      }
  }
}

void copy_box(std::byte* to, const std::byte* from, std::span<const Loop> loops, uint64_t bytes) {
  const Loop& loop = loops.front();
  if (loops.size() == 1) return copy_each(to, from, loop, bytes);
  for (uint64_t i = 0; i < loop.count; ++i, to += loop.to_stride, from += loop.from_stride) {
    copy_box(to, from, loops.subspan(1), bytes);
  }
}

class TiledFile final : public ReadableFile {
 public:
  TiledFile(std::unique_ptr<ReadableFile> file, TiledView view, const ViewLimits& limits)
      : file_(std::move(file)),
        view_(std::move(view)),
        memory_(limits.memory),
        row_(view_.row_bytes()),
        band_rows_(view_.band_rows(limits.memory)) {
    refuse_unfounded(view_, file_->info().size);
    // Each thread has a decoded chunk of its own.
    const uint64_t fit = std::max<uint64_t>(memory_ / view_.chunk_bytes(), 1);
    threads_ = static_cast<unsigned>(std::min<uint64_t>(limits.threads, fit));
  }

  size_t read_at(uint64_t offset, MutableBytes into) override {
    const std::lock_guard lock(mutex_);
    size_t done = 0;
    while (done < into.size() && (offset + done) / row_ < view_.rows) {
      const Band& band = band_with((offset + done) / row_);
      const uint64_t within = offset + done - band.first * row_;
      const size_t count = std::min<uint64_t>(into.size() - done, band.count * row_ - within);
      std::memcpy(into.data() + done, band.bytes.get() + within, count);
      done += count;
    }
    return done;
  }
  size_t read_at(uint64_t offset, std::span<const MutableBytes> into) override {
    size_t done = 0;
    for (const MutableBytes piece : into) {
      const size_t count = read_at(offset + done, piece);
      done += count;
      if (count < piece.size()) break;
    }
    return done;
  }
  FileInfo info() override { return file_->info(); }

 private:
  /// Rows of one row of chunks that were brought together.
  struct Band {
    uint64_t first = 0, count = 0;
    std::unique_ptr<std::byte[]> bytes;
    std::exception_ptr damage;  // why there are none
  };

  const Band& band_with(uint64_t row) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Band& band) {
      return row >= band.first && row - band.first < band.count;
    });
    if (found == kept_.end()) {
      add_band(row);
    } else {
      kept_.splice(kept_.begin(), kept_, found);
    }
    if (kept_.front().damage) std::rethrow_exception(kept_.front().damage);
    return kept_.front();
  }

  void add_band(uint64_t row) {
    const uint64_t chunk_row = row / view_.chunk[0];
    const uint64_t first_of_chunks = chunk_row * view_.chunk[0];
    Band band;
    band.first = first_of_chunks + (row - first_of_chunks) / band_rows_ * band_rows_;
    const uint64_t left_of_chunks = view_.chunk[0] - (band.first - first_of_chunks);
    band.count = std::min({band_rows_, left_of_chunks, view_.rows - band.first});
    while (!kept_.empty() && (kept_.size() + 1) * band_rows_ * row_ > memory_) {
      if (kept_.back().bytes) band.bytes = std::move(kept_.back().bytes);
      kept_.pop_back();
    }
    if (!band.bytes) band.bytes = std::make_unique_for_overwrite<std::byte[]>(band_rows_ * row_);
    try {
      fill(band, view_.written(chunk_row));
    } catch (const Error&) {
      // Not tried again for each of its rows.
      band.bytes.reset();
      band.damage = std::current_exception();
    }
    kept_.push_front(std::move(band));
  }

  void fill(Band& band, std::span<const TiledView::Chunk> written) {
    if (written.size() < view_.chunks_per_row()) put_fill({band.bytes.get(), band.count * row_});
    const uint64_t size = file_->info().size;
    parallel_for(written.size(), threads_, [&](size_t i) { take_chunk(band, written[i], size); });
  }

  void put_fill(MutableBytes into) const {
    const std::string element = view_.fill.substr(std::min(view_.begin, view_.fill.size()));
    if (element.find_first_not_of('\0') == std::string::npos) {
      std::memset(into.data(), 0, into.size());
      return;
    }
    for (size_t at = 0; at < into.size(); at += view_.element) {
      std::memcpy(into.data() + at, element.data(), view_.element);
    }
  }

  /// The first row of the array that a chunk has a part of.
  uint64_t first_row(const TiledView::Chunk& chunk) const {
    return chunk.number / view_.chunks_per_row() * view_.chunk[0];
  }

  std::vector<std::byte> decode(const TiledView::Chunk& chunk, uint64_t file_size) {
    const std::vector<Codec>& chain = view_.chains[chunk.chain];
    const uint64_t rows = std::min(view_.chunk[0], view_.rows - first_row(chunk));
    const uint64_t needed = rows * (view_.chunk_bytes() / view_.chunk[0]);
    Block block;
    block.offset = chunk.offset;
    block.stored_length = chunk.stored_length;
    // What is not encoded may end with the last row.
    block.decoded_length = chain.empty() ? chunk.stored_length : view_.chunk_bytes();
    if (block.decoded_length < needed) {
      throw Error(ErrorKind::corrupt, fmt::format("block at offset {}: {} bytes, should be {}",
                                                  chunk.offset, block.decoded_length, needed));
    }
    return read_block(*file_, file_size, block, chain, false);
  }

  /// Puts what the band has of a chunk to its place.
  void take_chunk(Band& band, const TiledView::Chunk& chunk, uint64_t file_size) {
    const std::vector<std::byte> decoded = decode(chunk, file_size);
    // From the innermost dimension outwards, as long as bytes follow each other on either side.
    uint64_t run = view_.element;
    bool together = view_.element == view_.stored_element;
    std::vector<Loop> loops;
    uint64_t to_stride = view_.element;
    uint64_t from_stride = view_.stored_element;
    uint64_t to = 0;
    uint64_t rest = chunk.number % view_.chunks_per_row();
    for (size_t i = view_.dims.size(); i-- > 0;) {
      const uint64_t dim = view_.dims[i];
      const uint64_t size = view_.chunk[i + 1];
      const uint64_t grid = dim / size + (dim % size != 0 ? 1 : 0);
      const uint64_t at = rest % grid * size;
      const uint64_t count = std::min(size, dim - at);
      rest /= grid;
      if (together) {
        run *= count;
        together = count == dim && count == size;
      } else {
        loops.push_back({count, to_stride, from_stride});
      }
      to += at * to_stride;
      to_stride *= dim;
      from_stride *= size;
    }
    loops.push_back({band.count, to_stride, from_stride});
    std::reverse(loops.begin(), loops.end());
    const uint64_t from = (band.first - first_row(chunk)) * from_stride + view_.begin;
    copy_box(band.bytes.get() + to, decoded.data() + from, loops, run);
  }

  std::unique_ptr<ReadableFile> file_;
  const TiledView view_;
  const uint64_t memory_;
  const uint64_t row_;  // bytes
  const uint64_t band_rows_;
  unsigned threads_ = 1;
  std::mutex mutex_;
  std::list<Band> kept_;  // last used first
};

}  // namespace

std::unique_ptr<ReadableFile> as_rows(std::unique_ptr<ReadableFile> file, TiledView view,
                                      const ViewLimits& limits) {
  return std::make_unique<TiledFile>(std::move(file), std::move(view), limits);
}

}  // namespace stoker
