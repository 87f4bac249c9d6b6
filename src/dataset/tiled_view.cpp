// SPDX-License-Identifier: Apache-2.0
#include "dataset/tiled_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "dataset/codec.h"
#include "dataset/protobuf.h"

namespace stoker {
namespace {

constexpr uint64_t kMaxRank = 64;
constexpr uint64_t kLargest = uint64_t{1} << 63;

[[noreturn]] void damaged() {
  throw Error(ErrorKind::corrupt, "the description of its chunks makes no sense: run stoker index");
}

uint64_t product(uint64_t a, uint64_t b) {
  uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || result >= kLargest) damaged();
  return result;
}

/// How many steps of `step` cover `length`.
uint64_t steps_over(uint64_t length, uint64_t step) {
  return length / step + (length % step != 0 ? 1 : 0);
}

uint64_t zigzag(uint64_t value) { return value << 1 ^ (value >> 63 != 0 ? ~uint64_t{0} : 0); }
uint64_t unzigzag(uint64_t value) { return value >> 1 ^ ((value & 1) != 0 ? ~uint64_t{0} : 0); }

void append_text(std::string& to, std::string_view text) {
  append_varint(to, text.size());
  to += text;
}

class Parser {
 public:
  explicit Parser(Bytes rest) : rest_(rest) {}

  uint64_t number() {
    const std::optional<uint64_t> value = take_varint(rest_);
    if (!value) damaged();
    return *value;
  }
  /// That many things follow, each of which takes a byte at least.
  uint64_t count() {
    const uint64_t value = number();
    if (value > rest_.size()) damaged();
    return value;
  }
  uint64_t positive() {
    const uint64_t value = number();
    if (value == 0 || value >= kLargest) damaged();
    return value;
  }
  std::string text() {
    const uint64_t size = count();
    const std::string text(as_text(rest_.first(size)));
    rest_ = rest_.subspan(size);
    return text;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  Bytes rest_;
};

/// Sees that everything that is computed from the lengths can be.
void check(const TiledView& view) {
  if (view.begin > view.stored_element || view.element > view.stored_element - view.begin ||
      (!view.fill.empty() && view.fill.size() != view.stored_element)) {
    damaged();
  }
  uint64_t row = view.stored_element;
  uint64_t chunk = product(view.stored_element, view.chunk[0]);
  uint64_t cells = steps_over(view.rows, view.chunk[0]);
  for (size_t i = 0; i < view.dims.size(); ++i) {
    row = product(row, view.dims[i]);
    chunk = product(chunk, view.chunk[i + 1]);
    cells = product(cells, steps_over(view.dims[i], view.chunk[i + 1]));
  }
  (void)product(row, view.rows);
  for (size_t i = 0; i < view.chunks.size(); ++i) {
    const TiledView::Chunk& one = view.chunks[i];
    if (one.number >= cells || one.chain >= view.chains.size() || one.offset >= kLargest ||
        one.stored_length >= kLargest || (i > 0 && one.number <= view.chunks[i - 1].number)) {
      damaged();
    }
  }
}

}  // namespace

uint64_t TiledView::row_bytes() const {
  uint64_t bytes = element;
  for (const uint64_t dim : dims) bytes *= dim;
  return bytes;
}

uint64_t TiledView::chunk_bytes() const {
  uint64_t bytes = stored_element;
  for (const uint64_t dim : chunk) bytes *= dim;
  return bytes;
}

uint64_t TiledView::chunks_per_row() const {
  uint64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) count *= steps_over(dims[i], chunk[i + 1]);
  return count;
}

std::span<const TiledView::Chunk> TiledView::written(uint64_t n) const {
  const uint64_t count = chunks_per_row();
  const auto before = [](const Chunk& one, uint64_t number) { return one.number < number; };
  const auto first = std::lower_bound(chunks.begin(), chunks.end(), n * count, before);
  return {first, std::lower_bound(first, chunks.end(), (n + 1) * count, before)};
}

uint64_t TiledView::band_rows(uint64_t memory) const {
  return std::min({chunk[0], rows, std::max<uint64_t>(memory / row_bytes(), 1)});
}

std::string to_bytes(const TiledView& view) {
  std::string bytes;
  append_varint(bytes, view.rows);
  append_varint(bytes, view.stored_element);
  append_varint(bytes, view.begin);
  append_varint(bytes, view.element);
  append_text(bytes, view.fill);
  append_varint(bytes, view.dims.size());
  for (const uint64_t dim : view.dims) append_varint(bytes, dim);
  for (const uint64_t dim : view.chunk) append_varint(bytes, dim);
  append_varint(bytes, view.chains.size());
  for (const std::vector<Codec>& chain : view.chains) {
    append_varint(bytes, chain.size());
    for (const Codec& codec : chain) {
      append_varint(bytes, codec.id);
      append_text(bytes, codec.parameters);
    }
  }
  append_varint(bytes, view.chunks.size());
  uint64_t number = 0;
  uint64_t end = 0;
  for (const TiledView::Chunk& chunk : view.chunks) {
    append_varint(bytes, chunk.number - number);
    append_varint(bytes, chunk.chain);
    append_varint(bytes, zigzag(chunk.offset - end));
    append_varint(bytes, chunk.stored_length);
    number = chunk.number + 1;
    end = chunk.offset + chunk.stored_length;
  }
  return bytes;
}

TiledView parse_tiled_view(Bytes bytes) {
  Parser from(bytes);
  TiledView view;
  view.rows = from.positive();
  view.stored_element = from.positive();
  view.begin = from.number();
  view.element = from.positive();
  view.fill = from.text();
  const uint64_t rank = from.count();
  if (rank > kMaxRank) damaged();
  for (uint64_t i = 0; i < rank; ++i) view.dims.push_back(from.positive());
  for (uint64_t i = 0; i <= rank; ++i) view.chunk.push_back(from.positive());
  view.chains.resize(from.count());
  for (std::vector<Codec>& chain : view.chains) {
    chain.resize(from.count());
    for (Codec& codec : chain) {
      const uint64_t id = from.number();
      if (id > UINT16_MAX) damaged();
      codec = {static_cast<uint16_t>(id), from.text()};
    }
  }
  view.chunks.resize(from.count());
  uint64_t number = 0;
  uint64_t end = 0;
  for (TiledView::Chunk& chunk : view.chunks) {
    chunk.number = number + from.number();
    const uint64_t chain = from.number();
    if (chain >= view.chains.size()) damaged();
    chunk.chain = static_cast<uint32_t>(chain);
    chunk.offset = end + unzigzag(from.number());
    chunk.stored_length = from.number();
    number = chunk.number + 1;
    end = chunk.offset + chunk.stored_length;
  }
  if (!from.at_end()) damaged();
  check(view);
  return view;
}

void refuse_unfounded(const TiledView& view, uint64_t file_size) {
  const uint64_t row = view.row_bytes();
  if (row <= kLargestFill) return;
  uint64_t decoded = 0;
  for (const TiledView::Chunk& chunk : view.chunks) {
    if (chunk.stored_length > file_size) break;
    file_size -= chunk.stored_length;  // they share no bytes
    decoded +=
        std::min(view.chunk_bytes(), decoded_limit(view.chains[chunk.chain], chunk.stored_length));
  }
  if (decoded / row >= view.rows) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("samples of {} bytes of which some were never written", row));
}

}  // namespace stoker
