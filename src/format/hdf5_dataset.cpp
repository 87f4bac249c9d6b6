// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "dataset/codec.h"

namespace stoker {
namespace {

[[noreturn]] void unsupported(const Hdf5Cursor& message, const std::string& cause) {
  throw Hdf5Error(ErrorKind::unsupported, message.offset(), cause);
}

/// The dimensions behind the first.
void measure_row(Hdf5Dataset& dataset, const Hdf5Cursor& message) {
  dataset.row_elements = 1;
  const auto& dims = dataset.space.dims;
  for (size_t i = 1; i < dims.size(); ++i) {
    if (__builtin_mul_overflow(dataset.row_elements, dims[i], &dataset.row_elements)) {
      message.fail("more elements than can be counted");
    }
  }
  uint64_t all = 0;
  if (__builtin_mul_overflow(dataset.row_elements, dataset.type.size, &dataset.row_bytes) ||
      (!dims.empty() && __builtin_mul_overflow(dataset.row_bytes, dims[0], &all)) ||
      dataset.row_bytes > uint64_t{1} << 62 || all > uint64_t{1} << 62) {
    message.fail("more bytes than can be counted");
  }
}

constexpr uint8_t kNewestLayout = 5;
constexpr uint64_t kLargestOldChunk = UINT32_MAX;
constexpr uint64_t kLargestChunk = uint64_t{1} << 62;  // of HDF5 2.0

void parse_chunk_dims(Hdf5Cursor& message, unsigned count, unsigned size, uint64_t largest,
                      Hdf5Dataset& dataset) {
  if (count != dataset.space.dims.size() + 1) {
    message.fail("chunks of another rank than the dataset");
  }
  uint64_t bytes = 1;
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t dim = message.number(size);
    if (dim == 0 || __builtin_mul_overflow(bytes, dim, &bytes) || bytes > largest) {
      message.fail("chunks of no bytes, or of more than a chunk can have");
    }
    if (i + 1 < count)
      dataset.chunks.dims.push_back(dim);
    else if (dim != dataset.type.size)
      message.fail("chunks of elements of another size");
  }
}

void parse_old_layout(Hdf5Cursor& message, Hdf5Dataset& dataset) {
  const unsigned count = message.u8();
  const unsigned kind = message.u8();
  message.skip(5);
  if (kind > 2) message.fail(fmt::format("a layout of kind {}", kind));
  dataset.layout = static_cast<Hdf5Dataset::Layout>(kind);
  if (dataset.layout != Hdf5Dataset::Layout::compact) dataset.data = message.address();
  if (dataset.layout == Hdf5Dataset::Layout::chunked) {
    dataset.chunks.address = dataset.data;
    parse_chunk_dims(message, count, 4, kLargestOldChunk, dataset);
    return;
  }
  message.skip(uint64_t{4} * count);
  if (dataset.layout == Hdf5Dataset::Layout::compact) {
    dataset.data_length = message.u32();
    dataset.data = message.offset();
    message.skip(dataset.data_length);
  } else {
    dataset.data_length = dataset.row_bytes * dataset.space.dims.at(0);
  }
}

/// Versions 4 and 5 differ in how the indexes note the lengths of filtered chunks, which elements
/// and records of their sizes tell, and in how large a chunk may be.
void parse_new_chunks(Hdf5Cursor& message, uint8_t version, Hdf5Dataset& dataset) {
  Hdf5Chunks& chunks = dataset.chunks;
  const uint8_t flags = message.u8();
  chunks.plain_edges = (flags & 1) != 0;
  const unsigned count = message.u8();
  const unsigned size = message.u8();
  if (size == 0 || size > 8) message.fail("dimensions of a size that cannot be right");
  parse_chunk_dims(message, count, size, version == 4 ? kLargestOldChunk : kLargestChunk, dataset);
  const uint8_t kind = message.u8();
  switch (kind) {
    case 1:
      chunks.index = Hdf5ChunkIndex::single;
      if ((flags & 2) != 0) {
        chunks.single_length = message.length();
        chunks.single_mask = message.u32();
      }
      break;
    case 2:
      chunks.index = Hdf5ChunkIndex::implicit;
      break;
    case 3:
      chunks.index = Hdf5ChunkIndex::fixed_array;
      message.skip(1);
      break;
    case 4:
      chunks.index = Hdf5ChunkIndex::extensible;
      message.skip(5);
      break;
    case 5:
      chunks.index = Hdf5ChunkIndex::btree2;
      message.skip(6);
      break;
    default:
      unsupported(message, fmt::format("chunks indexed in a way that is not known: {}", kind));
  }
  chunks.address = message.address();
}

void parse_layout(Hdf5Cursor& message, Hdf5Dataset& dataset) {
  const uint8_t version = message.u8();
  if (version > kNewestLayout) {
    unsupported(message, fmt::format("chunk layout of a newer HDF5 (version {}), which is not read "
                                     "yet: h5repack --low=0 --high=1 writes an older one",
                                     version));
  }
  if (version == 0) message.fail("a layout of version 0");
  if (version < 3) return parse_old_layout(message, dataset);
  const uint8_t kind = message.u8();
  switch (kind) {
    case 0:
      dataset.layout = Hdf5Dataset::Layout::compact;
      dataset.data_length = message.u16();
      dataset.data = message.offset();
      message.skip(dataset.data_length);
      return;
    case 1:
      dataset.layout = Hdf5Dataset::Layout::contiguous;
      dataset.data = message.address();
      dataset.data_length = message.length();
      return;
    case 2:
      dataset.layout = Hdf5Dataset::Layout::chunked;
      if (version >= 4) return parse_new_chunks(message, version, dataset);
      {
        const unsigned count = message.u8();
        dataset.chunks.address = message.address();
        parse_chunk_dims(message, count, 4, kLargestOldChunk, dataset);
      }
      return;
    case 3:
      unsupported(message,
                  "a virtual dataset, whose data lie in others: index those, or copy it with h5py");
    default:
      message.fail(fmt::format("a layout of kind {}", kind));
  }
}

std::vector<Hdf5Filter> parse_filters(Hdf5Cursor& message) {
  const uint8_t version = message.version(1, 2);
  const unsigned count = message.u8();
  if (version == 1) message.skip(6);
  std::vector<Hdf5Filter> filters;
  for (unsigned i = 0; i < count; ++i) {
    Hdf5Filter& filter = filters.emplace_back();
    filter.id = message.u16();
    const bool named = version == 1 || filter.id >= 256;
    const uint16_t name_length = named ? message.u16() : uint16_t{0};
    message.skip(2);
    const unsigned parameters = message.u16();
    const std::string_view name = as_text(message.bytes(name_length));
    filter.name = name.substr(0, name.find('\0'));
    if (version == 1 && name_length % 8 != 0) message.skip(8 - name_length % 8);
    for (unsigned each = 0; each < parameters; ++each) filter.parameters.push_back(message.u32());
    if (version == 1 && parameters % 2 == 1) message.skip(4);
  }
  return filters;
}

std::vector<std::byte> parse_fill(Hdf5Cursor& message) {
  const uint8_t version = message.version(1, 3);
  bool defined = true;
  if (version == 3) {
    defined = (message.u8() & 0x20) != 0;
  } else {
    message.skip(2);
    defined = message.u8() != 0 || version == 1;
  }
  if (!defined) return {};
  const uint32_t length = message.u32();
  if (length == 0 || length > message.left()) return {};  // -1: none
  const Bytes value = message.bytes(length);
  return {value.begin(), value.end()};
}

std::vector<std::byte> find_fill(Hdf5File& file, const Hdf5Messages& messages) {
  if (const Hdf5Message* const message = find_message(messages, Hdf5Message::fill)) {
    Hdf5Cursor cursor = file.cursor(*message, "fill value");
    return parse_fill(cursor);
  }
  if (const Hdf5Message* const message = find_message(messages, Hdf5Message::old_fill)) {
    Hdf5Cursor cursor = file.cursor(*message, "fill value");
    const uint32_t length = cursor.u32();
    const Bytes value = cursor.bytes(length);
    return {value.begin(), value.end()};
  }
  return {};
}

const Hdf5Message& need(const Hdf5Messages& messages, uint16_t kind, const char* what,
                        uint64_t offset) {
  const Hdf5Message* const found = find_message(messages, kind);
  if (found == nullptr) {
    throw Hdf5Error(ErrorKind::corrupt, offset, fmt::format("a dataset without its {}", what));
  }
  return *found;
}

std::string four_bytes(std::initializer_list<uint32_t> numbers) {
  std::string text(4 * numbers.size(), '\0');
  std::byte* to = std::as_writable_bytes(std::span(text)).data();
  for (const uint32_t number : numbers) {
    store(to, number);
    to += 4;
  }
  return text;
}

Codec codec_of(const Hdf5Filter& filter) {
  const auto id = [](CodecId codec) { return static_cast<uint16_t>(codec); };
  const auto parameter = [&](size_t i) -> uint32_t {
    if (i < filter.parameters.size()) return filter.parameters[i];
    throw Error(ErrorKind::corrupt, fmt::format("filter {} lacks a parameter", filter.id));
  };
  switch (filter.id) {
    case 1:
      return {id(CodecId::zlib), ""};
    case 2:
      return {id(CodecId::shuffle), four_bytes({parameter(0)})};
    case 3:
      return {id(CodecId::fletcher32), ""};
    case 4:
      return {id(CodecId::szip),
              four_bytes({parameter(0), parameter(2), parameter(1), parameter(3)})};
    case 32000:
      return {id(CodecId::lzf), ""};
    default:
      break;
  }
  constexpr std::pair<uint16_t, std::string_view> kNames[] = {
      {5, "N-bit"},   {6, "scale-offset"},   {305, "lzo"},   {307, "bzip2"},  {32001, "blosc"},
      {32004, "lz4"}, {32008, "bitshuffle"}, {32013, "zfp"}, {32015, "zstd"}, {32026, "blosc2"}};
  std::string name = printable(filter.name);
  for (const auto& [number, known] : kNames) {
    if (number == filter.id) name = known;
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("its chunks are stored with filter {}{}, which is not known here; "
                          "h5repack -f GZIP=4 writes it anew with one that is",
                          filter.id, name.empty() ? "" : " (" + name + ")"));
}

}  // namespace

bool is_hdf5_dataset(const Hdf5Messages& messages) {
  return find_message(messages, Hdf5Message::layout) != nullptr;
}

Hdf5Dataset parse_hdf5_dataset(Hdf5File& file, uint64_t address, const Hdf5Messages& messages) {
  const uint64_t offset = file.bytes().offset_of(address, 0, "dataset");
  Hdf5Dataset dataset;
  dataset.address = address;
  Hdf5Cursor space =
      file.cursor(need(messages, Hdf5Message::space, "dataspace", offset), "dataspace");
  dataset.space = parse_hdf5_space(space);
  Hdf5Cursor type = file.cursor(need(messages, Hdf5Message::type, "datatype", offset), "datatype");
  dataset.type = parse_hdf5_type(type);
  if (!dataset.space.simple) return dataset;
  measure_row(dataset, space);
  if (find_message(messages, Hdf5Message::external) != nullptr) {
    throw Hdf5Error(ErrorKind::unsupported, offset,
                    "its data lie in other files (external storage): h5repack brings them in");
  }
  Hdf5Cursor layout = file.cursor(need(messages, Hdf5Message::layout, "layout", offset), "layout");
  parse_layout(layout, dataset);
  if (dataset.layout == Hdf5Dataset::Layout::compact) {
    dataset.data -= file.bytes().offset_of(0, 0, "dataset");  // an address, as others are
  }
  if (const Hdf5Message* const filters = find_message(messages, Hdf5Message::filters)) {
    Hdf5Cursor cursor = file.cursor(*filters, "filters");
    if (dataset.layout == Hdf5Dataset::Layout::chunked) dataset.filters = parse_filters(cursor);
  }
  dataset.fill = find_fill(file, messages);
  if (dataset.fill.size() != dataset.type.size) dataset.fill.clear();
  return dataset;
}

std::vector<Codec> hdf5_codecs(const Hdf5Dataset& dataset, uint32_t mask) {
  std::vector<Codec> codecs;
  for (size_t i = 0; i < dataset.filters.size(); ++i) {
    if (i < 32 && (mask >> i & 1) != 0) continue;
    codecs.push_back(codec_of(dataset.filters[i]));
  }
  return codecs;
}

}  // namespace stoker
