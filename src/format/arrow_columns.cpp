// SPDX-License-Identifier: Apache-2.0
#include "format/arrow_columns.h"

#include <fmt/format.h>

#include <array>
#include <tuple>

#include "base/error.h"
#include "dataset/codec.h"
#include "format/columnar.h"

namespace stoker {
namespace {

constexpr uint64_t kViewSize = 16;
constexpr uint64_t kPrefix = sizeof(int64_t);  // of a compressed buffer

bool has_large_offsets(ArrowType type) {
  return type == ArrowType::large_binary || type == ArrowType::large_utf8 ||
         type == ArrowType::large_list;
}

bool is_view(ArrowType type) {
  return type == ArrowType::binary_view || type == ArrowType::utf8_view;
}

/// Buffers of a column itself, validity included; views have others behind them.
unsigned buffers_of(const ArrowField& field, bool old_unions) {
  if (field.dictionary) return 2;
  switch (field.type) {
    case ArrowType::null:
    case ArrowType::run_end_encoded:
      return 0;
    case ArrowType::structure:
    case ArrowType::fixed_size_list:
      return 1;
    case ArrowType::sum:
      return (field.dense_union ? 2 : 1) + (old_unions ? 1 : 0);
    case ArrowType::binary:
    case ArrowType::utf8:
    case ArrowType::large_binary:
    case ArrowType::large_utf8:
    case ArrowType::list_view:
    case ArrowType::large_list_view:
      return 3;
    default:
      return 2;
  }
}

uint64_t number_bytes(DType dtype, uint64_t rows) {
  return dtype == DType::bool8 ? (rows + 7) / 8 : rows * size_of(dtype);
}

}  // namespace

ArrowNode ArrowBody::next_node() {
  if (node_ >= batch_.nodes.size()) corrupt("the batch has fewer columns than the schema");
  return batch_.nodes[node_++];
}

ArrowRange ArrowBody::next_buffer() {
  if (buffer_ >= batch_.buffers.size()) corrupt("the batch has fewer buffers than the schema");
  return batch_.buffers[buffer_++];
}

uint64_t ArrowBody::next_variadic() {
  if (variadic_ >= batch_.variadic.size())
    corrupt("the batch does not say how many buffers views have");
  const uint64_t count = batch_.variadic[variadic_++];
  if (count > batch_.buffers.size()) corrupt(fmt::format("views with {} buffers", count));
  return count;
}

void ArrowBody::skip(const ArrowField& field) {
  next_node();
  for (unsigned i = 0; i < buffers_of(field, batch_.old_unions); ++i) next_buffer();
  if (field.dictionary) return;
  if (is_view(field.type)) {
    for (uint64_t i = next_variadic(); i > 0; --i) next_buffer();
  }
  for (const ArrowField& child : field.children) skip(child);
}

ArrowColumn ArrowBody::column(const ArrowPlan& plan, uint64_t rows) {
  const auto before = std::tuple(node_, buffer_, variadic_);
  skip(*plan.field);
  const auto behind = std::tuple(node_, buffer_, variadic_);
  std::tie(node_, buffer_, variadic_) = before;
  try {
    ArrowColumn column = read_column(plan, rows, false);
    std::tie(node_, buffer_, variadic_) = behind;
    return column;
  } catch (const Error&) {
    std::tie(node_, buffer_, variadic_) = behind;
    throw;
  }
}

ArrowColumn ArrowBody::dictionary(const ArrowPlan& plan) {
  return read_column(plan, batch_.rows, true);
}

ArrowColumn ArrowBody::read_column(const ArrowPlan& plan, uint64_t rows, bool decode_dictionary) {
  const ArrowField& field = *plan.field;
  if (plan.use == ArrowUse::skip) {
    skip(field);
    return {};
  }
  if (plan.use == ArrowUse::array || plan.use == ArrowUse::strings) {
    return read_list(field, rows, plan.use == ArrowUse::strings);
  }
  ArrowColumn column;
  column.field = &field;
  const ArrowNode node = next_node();
  if (node.rows != rows) corrupt(fmt::format("has {} rows, should have {}", node.rows, rows));
  column.rows = rows;
  column.validity = validity(node);
  if (plan.use == ArrowUse::structure) {
    for (const ArrowPlan& child : plan.children) {
      column.children.push_back(read_column(child, rows, false));
    }
  } else if (field.dictionary && !decode_dictionary) {
    column.entries = read(next_buffer(), number_bytes(field.index, rows));
  } else {
    read_values(plan, column);
  }
  return column;
}

/// Numbers and bytes.
void ArrowBody::read_values(const ArrowPlan& plan, ArrowColumn& column) {
  const ArrowField& field = *plan.field;
  if (field.is_number()) {
    const ArrowRange values = next_buffer();
    column.entries = read(values, number_bytes(field.dtype, column.rows));
    // What does not fit an int64 is read from where it lies.
    if (field.dtype == DType::uint64) column.data = place(values);
    return;
  }
  if (is_view(field.type)) return read_views(plan, column);
  if (field.type != ArrowType::fixed_size_binary) column.entries = offsets(field, column.rows);
  const ArrowRange bytes = next_buffer();
  column.data = place(bytes);
  if (field.type == ArrowType::fixed_size_binary &&
      uint64_t{field.width} * column.rows > column.data.length) {
    corrupt(
        fmt::format("{} bytes for {} values of {}", column.data.length, column.rows, field.width));
  }
  if (plan.look || (plan.image && column.data.container == Container::block)) {
    column.looked_at = look_into(bytes);
  }
}

void ArrowBody::read_views(const ArrowPlan& plan, ArrowColumn& column) {
  const ArrowRange views = next_buffer();
  column.entries = read(views, column.rows * kViewSize);
  column.data = place(views);  // short values lie in the view itself
  for (uint64_t i = next_variadic(); i > 0; --i) {
    const ArrowRange bytes = next_buffer();
    column.views.push_back(place(bytes));
    const bool look =
        plan.look || (plan.image && column.views.back().container == Container::block);
    column.views_looked_at.push_back(look ? look_into(bytes) : std::vector<std::byte>());
  }
}

ArrowColumn ArrowBody::read_list(const ArrowField& field, uint64_t rows, bool strings) {
  ArrowColumn column;
  column.field = &field;
  const ArrowNode node = next_node();
  if (node.rows < rows) corrupt(fmt::format("has {} rows, should have {}", node.rows, rows));
  column.rows = node.rows;
  column.validity = validity(node);
  if (!field.children.empty()) {
    if (field.type != ArrowType::fixed_size_list) column.entries = offsets(field, column.rows);
    uint64_t children = 0;
    if (field.type == ArrowType::fixed_size_list &&
        __builtin_mul_overflow(column.rows, uint64_t{field.width}, &children)) {
      corrupt(fmt::format("{} lists of {} elements", column.rows, field.width));
    }
    column.children.push_back(read_list(field.children[0], children, strings));
    return column;
  }
  if (strings) {
    ArrowPlan plan;
    plan.field = &field;
    plan.look = true;
    read_values(plan, column);
    return column;
  }
  const ArrowRange values = next_buffer();
  column.data = place(values);
  const uint64_t needed = number_bytes(field.dtype, column.rows);
  if (needed > column.data.length) {
    corrupt(fmt::format("{} bytes for {} numbers", column.data.length, column.rows));
  }
  // Bits are no elements: they become bytes in the index.
  if (field.dtype == DType::bool8) column.looked_at = read(values, needed);
  return column;
}

std::vector<std::byte> ArrowBody::validity(const ArrowNode& node) {
  const ArrowRange bits = next_buffer();
  if (node.nulls == 0 || bits.length == 0) {
    if (node.nulls > 0) corrupt(fmt::format("{} nulls, and nothing says which", node.nulls));
    return {};
  }
  return read(bits, (node.rows + 7) / 8);
}

std::vector<std::byte> ArrowBody::offsets(const ArrowField& field, uint64_t rows) {
  const uint64_t size = has_large_offsets(field.type) ? sizeof(int64_t) : sizeof(int32_t);
  const ArrowRange range = next_buffer();
  // No rows need no offsets, though most writers give one.
  return rows == 0 ? std::vector<std::byte>() : read(range, (rows + 1) * size);
}

std::vector<Codec> ArrowBody::chain() const {
  const CodecId id =
      batch_.compression == ArrowCompression::lz4 ? CodecId::lz4_frame : CodecId::zstd;
  return {{static_cast<uint16_t>(id), {}}};
}

/// What lies in a buffer: compressed ones begin with the length of what they hold, or -1.
ArrowBody::Stored ArrowBody::stored(const ArrowRange& range) {
  if (batch_.compression == ArrowCompression::none || range.length == 0) {
    return {range, range.length, false};
  }
  if (range.length < kPrefix) corrupt("a compressed buffer is too short");
  std::array<std::byte, kPrefix> prefix;
  read_exactly(file_, "buffer", range.offset, prefix);
  const auto decoded = load<int64_t>(prefix.data());
  const ArrowRange rest{range.offset + kPrefix, range.length - kPrefix};
  if (decoded == -1) return {rest, rest.length, false};
  if (decoded < 0 || static_cast<uint64_t>(decoded) > decoded_limit(chain(), rest.length)) {
    corrupt(fmt::format("a compressed buffer of {} bytes claims to hold {}", rest.length, decoded));
  }
  return {rest, static_cast<uint64_t>(decoded), true};
}

std::vector<std::byte> ArrowBody::read(const ArrowRange& range, uint64_t needed) {
  const Stored stored = this->stored(range);
  if (stored.decoded < needed) {
    corrupt(fmt::format("a buffer of {} bytes, should have {}", stored.decoded, needed));
  }
  std::vector<std::byte> bytes(stored.compressed ? stored.range.length : needed);
  read_exactly(file_, "buffer", stored.range.offset, bytes);
  if (!stored.compressed) return bytes;
  return decode_block(bytes, chain(), stored.decoded);
}

std::vector<std::byte> ArrowBody::look_into(const ArrowRange& range) {
  return read(range, stored(range).decoded);
}

ArrowPlace ArrowBody::place(const ArrowRange& range) {
  const Stored stored = this->stored(range);
  if (!stored.compressed) {
    return {Container::shard, shard_, stored.range.offset, stored.range.length};
  }
  Block block;
  block.shard = shard_;
  block.offset = stored.range.offset;
  block.stored_length = stored.range.length;
  block.decoded_length = stored.decoded;
  block.codecs = sink_.codecs(chain());
  return {Container::block, sink_.block(block), 0, stored.decoded};
}

}  // namespace stoker
