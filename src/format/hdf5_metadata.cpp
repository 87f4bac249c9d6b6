// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_metadata.h"

#include <algorithm>

#include "base/bytes.h"
#include "format/hdf5_file.h"

namespace stoker {
namespace {

using namespace std::string_view_literals;
constexpr uint64_t kUndefined = ~uint64_t{0};
// Nodes have room for twice as many; the first is what version 0 of the superblock implies.
constexpr size_t kChunkK = 32;
constexpr size_t kGroupK = 16;

/// Bytes that grow; `begin` is where they will lie in the file.
class Writer {
 public:
  explicit Writer(uint64_t begin = 0) : begin_(begin) {}

  template <typename T>
  void put(T value) {
    bytes.resize(bytes.size() + sizeof(T));
    store(std::as_writable_bytes(std::span(bytes)).data() + bytes.size() - sizeof(T), value);
  }
  void u8(unsigned value) { put(static_cast<uint8_t>(value)); }
  void u16(uint64_t value) { put(static_cast<uint16_t>(value)); }
  void u32(uint64_t value) { put(static_cast<uint32_t>(value)); }
  void u64(uint64_t value) { put(value); }
  void text(std::string_view text) { bytes += text; }
  void zeros(size_t count) { bytes.append(count, '\0'); }
  void align() { zeros((8 - bytes.size() % 8) % 8); }
  /// Up to `size` bytes behind `from`.
  void fill(size_t from, size_t size) { zeros(from + size - bytes.size()); }
  uint64_t at() const { return begin_ + bytes.size(); }

  std::string bytes;

 private:
  uint64_t begin_;
};

/// An object header of version 1.
std::string object_header(std::span<const std::pair<uint16_t, std::string>> messages) {
  Writer body;
  for (const auto& [kind, message] : messages) {
    const size_t length = round_up(message.size(), 8);
    body.u16(kind);
    body.u16(length);
    body.u32(0);  // flags
    body.text(message);
    body.align();
  }
  Writer header;
  header.u8(1);
  header.u8(0);
  header.u16(messages.size());
  header.u32(1);  // links to it
  header.u32(body.bytes.size());
  header.u32(0);
  return header.bytes + body.bytes;
}

/// The beginning of a B-tree node.
void put_node(Writer& out, unsigned kind, unsigned level, size_t count, uint64_t left,
              uint64_t right) {
  out.text("TREE");
  out.u8(kind);
  out.u8(level);
  out.u16(count);
  out.u64(left);
  out.u64(right);
}

void put_key(Writer& out, const Hdf5OutDataset& dataset, uint64_t row, uint32_t length) {
  out.u32(length);
  out.u32(0);  // filters that were left out
  out.u64(row);
  for (size_t i = 0; i <= dataset.dims.size(); ++i) out.u64(0);
}

/// The B-tree over the chunks, level by level; returns the address of its root.
uint64_t put_chunk_tree(Writer& out, const Hdf5OutDataset& dataset) {
  std::vector<Hdf5OutChunk> entries = dataset.chunks;  // of the level; `address` is the child
  const uint64_t end = dataset.chunks.back().row + dataset.chunk_rows;
  const size_t key = 8 + 8 * (dataset.dims.size() + 2);
  const size_t size = 24 + (2 * kChunkK + 1) * key + 2 * kChunkK * 8;
  for (unsigned level = 0;; ++level) {
    std::vector<Hdf5OutChunk> above;
    const uint64_t first = out.at();
    const size_t nodes = (entries.size() + 2 * kChunkK - 1) / (2 * kChunkK);
    for (size_t node = 0; node < nodes; ++node) {
      const size_t begin = node * 2 * kChunkK;
      const size_t count = std::min(2 * kChunkK, entries.size() - begin);
      const size_t from = out.bytes.size();
      above.push_back({entries[begin].row, out.at(), entries[begin].length});
      put_node(out, 1, level, count, node == 0 ? kUndefined : first + (node - 1) * size,
               node + 1 == nodes ? kUndefined : first + (node + 1) * size);
      for (size_t i = begin; i < begin + count; ++i) {
        put_key(out, dataset, entries[i].row, entries[i].length);
        out.u64(entries[i].address);
      }
      const bool last = begin + count == entries.size();
      put_key(out, dataset, last ? end : entries[begin + count].row,
              last ? 0 : entries[begin + count].length);
      out.fill(from, size);
    }
    if (nodes == 1) return first;
    entries = std::move(above);
  }
}

std::string space_message(const Hdf5OutDataset& dataset, uint64_t rows) {
  Writer out;
  out.u8(1);
  out.u8(static_cast<unsigned>(dataset.dims.size() + 1));
  // Without chunks it cannot grow; with them it may, and the last one be larger than it is.
  const bool grows = !dataset.chunks.empty();
  out.u8(grows ? 1 : 0);
  out.zeros(5);
  out.u64(rows);
  for (const uint64_t dim : dataset.dims) out.u64(dim);
  if (!grows) return out.bytes;
  out.u64(kUndefined);
  for (const uint64_t dim : dataset.dims) out.u64(dim);
  return out.bytes;
}

std::string layout_message(const Hdf5OutDataset& dataset, uint64_t tree) {
  Writer out;
  out.u8(3);
  if (tree == kUndefined) {  // no bytes: contiguous, and nowhere
    out.u8(1);
    out.u64(kUndefined);
    out.u64(0);
    return out.bytes;
  }
  out.u8(2);
  out.u8(static_cast<unsigned>(dataset.dims.size() + 2));
  out.u64(tree);
  out.u32(dataset.chunk_rows);
  for (const uint64_t dim : dataset.dims) out.u32(dim);
  out.u32(dataset.element_size);
  return out.bytes;
}

std::string deflate_message() {
  constexpr unsigned kLevel = 4;  // what h5py takes; nothing but a hint
  Writer out;
  out.u8(1);
  out.u8(1);
  out.zeros(6);
  out.u16(1);  // deflate
  out.u16(8);  // bytes of its name
  out.u16(1);  // optional
  out.u16(1);  // parameters
  out.text("deflate\0"sv);
  out.u32(kLevel);
  out.u32(0);
  return out.bytes;
}

uint64_t put_dataset(Writer& out, const Hdf5OutDataset& dataset, uint64_t rows) {
  const uint64_t tree = dataset.chunks.empty() ? kUndefined : put_chunk_tree(out, dataset);
  std::vector<std::pair<uint16_t, std::string>> messages = {
      {Hdf5Message::space, space_message(dataset, rows)},
      {Hdf5Message::type, dataset.type},
      {Hdf5Message::fill, std::string("\x02\x03\x02\0"sv)},  // allocated with its chunks, no value
      {Hdf5Message::layout, layout_message(dataset, tree)}};
  if (dataset.deflated && tree != kUndefined) {
    messages.emplace_back(Hdf5Message::filters, deflate_message());
  }
  const uint64_t header = out.at();
  out.text(object_header(messages));
  return header;
}

}  // namespace

std::string hdf5_metadata(std::span<const Hdf5OutDataset> datasets, uint64_t rows, uint64_t address,
                          std::string& superblock) {
  Writer out(address);
  std::vector<uint64_t> headers;
  for (const Hdf5OutDataset& dataset : datasets) {
    headers.push_back(put_dataset(out, dataset, dataset.rows.value_or(rows)));
  }

  // Names, behind the empty one.
  Writer names;
  names.zeros(8);
  std::vector<uint64_t> name_offsets;
  for (const Hdf5OutDataset& dataset : datasets) {
    name_offsets.push_back(names.bytes.size());
    names.text(dataset.name);
    names.u8(0);
    names.align();
  }
  const uint64_t heap = out.at();
  constexpr uint64_t kNothingFree = 1;
  out.text("HEAP"sv);
  out.u32(0);
  out.u64(names.bytes.size());
  out.u64(kNothingFree);
  out.u64(heap + 32);
  out.text(names.bytes);

  // One node with all links, as large as the superblock says.
  const uint64_t links = out.at();
  const size_t leaf_k = std::max<size_t>(4, (datasets.size() + 1) / 2);
  const size_t from = out.bytes.size();
  out.text("SNOD"sv);
  out.u16(1);
  out.u16(datasets.size());
  for (size_t i = 0; i < datasets.size(); ++i) {
    out.u64(name_offsets[i]);
    out.u64(headers[i]);
    out.zeros(24);
  }
  out.fill(from, 8 + 2 * leaf_k * 40);

  const uint64_t tree = out.at();
  const size_t tree_from = out.bytes.size();
  put_node(out, 0, 0, 1, kUndefined, kUndefined);
  out.u64(0);
  out.u64(links);
  out.u64(name_offsets.back());
  out.fill(tree_from, 24 + 2 * kGroupK * 8 + (2 * kGroupK + 1) * 8);

  const uint64_t root = out.at();
  Writer table;
  table.u64(tree);
  table.u64(heap);
  const std::pair<uint16_t, std::string> message{Hdf5Message::symbol_table, table.bytes};
  out.text(object_header({&message, 1}));

  Writer begin;
  begin.text("\x89HDF\r\n\x1a\n"sv);
  begin.zeros(5);
  begin.u8(8);  // bytes of an offset, of a length
  begin.u8(8);
  begin.u8(0);
  begin.u16(leaf_k);
  begin.u16(kGroupK);
  begin.u32(0);
  begin.u64(0);  // base
  begin.u64(kUndefined);
  begin.u64(out.at());  // end of the file
  begin.u64(kUndefined);
  begin.u64(0);
  begin.u64(root);
  begin.u32(1);  // what follows repeats its symbol table
  begin.u32(0);
  begin.u64(tree);
  begin.u64(heap);
  superblock = std::move(begin.bytes);
  return std::move(out.bytes);
}

namespace {

void put_integer_type(Writer& out, size_t size, bool is_signed, bool big_endian) {
  out.u8(0x10);
  out.u8((big_endian ? 1U : 0U) | (is_signed ? 8U : 0U));
  out.u16(0);
  out.u32(size);
  out.u16(0);
  out.u16(8 * size);
}

void put_real_type(Writer& out, DType dtype, bool big_endian) {
  const size_t size = size_of(dtype);
  struct Shape {
    unsigned exponent, mantissa, bias;
  };
  const Shape shape = dtype == DType::float16   ? Shape{5, 10, 15}
                      : dtype == DType::float32 ? Shape{8, 23, 127}
                                                : Shape{11, 52, 1023};
  out.u8(0x11);
  out.u8(0x20U | (big_endian ? 1U : 0U));
  out.u8(static_cast<unsigned>(8 * size - 1));  // sign
  out.u8(0);
  out.u32(size);
  out.u16(0);
  out.u16(8 * size);
  out.u8(shape.mantissa);
  out.u8(shape.exponent);
  out.u8(0);
  out.u8(shape.mantissa);
  out.u32(shape.bias);
}

bool is_signed(DType dtype) {
  return dtype == DType::int8 || dtype == DType::int16 || dtype == DType::int32 ||
         dtype == DType::int64;
}

void put_enumeration(Writer& out, size_t size, bool has_sign, std::span<const std::string> names) {
  out.u8(0x18);
  out.u16(names.size());
  out.u8(0);
  out.u32(size);
  put_integer_type(out, size, has_sign, false);
  for (const std::string& name : names) {
    out.text(name);
    out.zeros(8 - name.size() % 8);
  }
  for (uint64_t value = 0; value < names.size(); ++value) {
    for (size_t i = 0; i < size; ++i) out.u8(static_cast<unsigned>(value >> (8 * i) & 0xFF));
  }
}

void put_number_type(Writer& out, DType dtype, bool big_endian) {
  if (dtype == DType::bool8) {
    const std::string names[] = {"FALSE", "TRUE"};  // as h5py has it
    put_enumeration(out, 1, true, names);
  } else if (dtype == DType::float16 || dtype == DType::float32 || dtype == DType::float64) {
    put_real_type(out, dtype, big_endian);
  } else {
    put_integer_type(out, size_of(dtype), is_signed(dtype), big_endian);
  }
}

}  // namespace

std::string hdf5_number_type(DType dtype, bool big_endian) {
  Writer out;
  put_number_type(out, dtype, big_endian);
  return out.bytes;
}

std::string hdf5_class_type(DType dtype, std::span<const std::string> names) {
  Writer out;
  put_enumeration(out, size_of(dtype), is_signed(dtype), names);
  return out.bytes;
}

std::string hdf5_sequence_type(DType dtype, bool big_endian) {
  Writer out;
  out.u8(0x19);
  out.zeros(3);
  out.u32(16);
  put_number_type(out, dtype, big_endian);
  return out.bytes;
}

std::string hdf5_padded_type(uint32_t width) {
  Writer out;
  out.u8(0x13);
  out.u8(0x11);  // filled up with NUL, UTF-8
  out.u16(0);
  out.u32(width);
  return out.bytes;
}

std::string hdf5_text_type() {
  Writer out;
  out.u8(0x19);
  out.u8(1);  // text that ends with NUL
  out.u8(1);  // UTF-8
  out.u8(0);
  out.u32(16);
  put_integer_type(out, 1, false, false);
  return out.bytes;
}

}  // namespace stoker
