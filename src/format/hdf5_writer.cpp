// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "dataset/codec.h"
#include "format/hdf5.h"
#include "format/hdf5_metadata.h"
#include "format/hdf5_select.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

// A file is data first: chunks of rows, and collections of values whose length varies. What
// describes them comes behind, and the superblock in front is filled in last.

constexpr uint64_t kChunkBytes = 1 << 16;       // of a chunk of several rows
constexpr uint64_t kGroupBytes = 1 << 23;       // of the rows that are placed together
constexpr uint64_t kMostGroupBytes = 1 << 26;   // of them, whatever their values are
constexpr uint64_t kUsualValue = 1 << 17;       // what a value of unknown length is taken for
constexpr uint64_t kMostRows = 1024;            // of a chunk
constexpr uint64_t kCollectionBytes = 1 << 16;  // of several values: the library reads all of them
constexpr uint64_t kSmallestCollection = 4096;
constexpr size_t kHeapHead = 16;  // of a collection, and of each object in it
constexpr size_t kReference = 16;

constexpr std::string_view kCompressions[] = {"gzip"};

bool is_variable(const Field& field) {
  return field.encoding == Encoding::raw ||
         (field.shape && !field.shape->empty() && field.shape->front() < 0);
}

Storage storage(const Field& field, uint64_t samples) {
  Storage storage;
  if (field.name.find('/') != field.name.npos || field.name.empty() || field.name == ".") {
    storage.refusal = "its name would be a path: a slash separates groups";
  } else if (field.name.find('\0') != field.name.npos) {
    storage.refusal = "its name has a NUL byte";
  } else if (field.name == kKeyFeature || field.name == kHdf5Classes) {
    storage.refusal = "keys or classes have that name";
  } else if (field.present < samples) {
    storage.refusal = "some samples do not have it";
  } else if (field.type == FieldType::list) {
    storage.refusal = "lists have no place in a dataset";
  }
  if (!storage.refusal.empty()) return storage;
  if (field.type == FieldType::bytes || field.type == FieldType::text) return storage;
  storage.dtype = field.dtype;
  storage.encoding =
      field.encoding == Encoding::elements_big ? Encoding::elements_big : Encoding::elements;
  if (field.dtype == DType::unknown) {
    storage.refusal = "its dtype varies or is not known";
  } else if (field.type == FieldType::number) {
    storage.shape.emplace();
  } else if (!field.shape) {
    storage.refusal = "its shape is not known";
  } else {
    storage.shape = field.shape;
    constexpr size_t kMostDimensions = 31;  // and one that counts the samples
    if (field.shape->size() > kMostDimensions) storage.refusal = "it has more than 31 dimensions";
    const bool varies =
        std::any_of(field.shape->begin(), field.shape->end(), [](int64_t dim) { return dim < 0; });
    if (varies && field.shape->size() != 1) storage.refusal = "its shape varies";
    const auto bytes = size_of_elements(field.dtype, *field.shape);
    if (!varies && (!bytes || *bytes > UINT32_MAX)) storage.refusal = "a chunk ends at 4 GiB";
  }
  return storage;
}

std::string shard_name(std::string_view name, uint64_t number, uint64_t) {
  return fmt::format("{}-{:06}.h5", name, number);
}

std::string suffix(const Field&, Encoding, std::string_view) { return {}; }

uint64_t size_of_sample(std::string_view key, std::span<const OutField> fields) {
  const auto variable = [](uint64_t length) {
    return kReference + kHeapHead + round_up(length, 8);
  };
  if (key.find('\0') != key.npos) {
    throw Error(ErrorKind::unsupported,
                fmt::format("key '{}' cannot be stored in an HDF5 file: others would read it up to "
                            "its NUL byte",
                            printable(key)));
  }
  uint64_t size = variable(key.size());
  for (const OutField& field : fields) {
    size += is_elements(field.encoding) ? field.length : variable(field.length);
  }
  return size;
}

std::string_view unfit_value(const OutField& field) {
  if (field.type != FieldType::text || field.length == 0) return {};
  return std::memchr(field.data, 0, field.length) == nullptr
             ? std::string_view()
             : "a text with a NUL byte, up to which others would read it in an HDF5 file: store it "
               "as bytes";
}

/// One dataset while it is written.
struct Column {
  Hdf5OutDataset out;
  bool variable = false;
  uint64_t row_bytes = 0;
  uint32_t value_bytes = 1;  // of one element of a sequence
  // Of the group that is being written:
  struct Chunk {
    uint64_t row = 0;
    std::byte* data = nullptr;
    uint64_t offset = 0;            // where it lies, unless it is compressed
    std::vector<std::byte> memory;  // where it is
  };
  std::vector<Chunk> chunks;
};

std::vector<std::byte> deflated(Bytes plain) {
  constexpr int kLevel = 4;
  uLongf size = compressBound(plain.size());
  std::vector<std::byte> stored(size);
  const int status = compress2(reinterpret_cast<Bytef*>(stored.data()), &size,
                               reinterpret_cast<const Bytef*>(plain.data()), plain.size(), kLevel);
  if (status != Z_OK) throw std::bad_alloc();
  stored.resize(size);
  return stored;
}

class Hdf5Writer final : public ShardWriter {
 public:
  Hdf5Writer(const OutSchema& schema, ShardOutput& out) : compress_(!schema.compress.empty()) {
    for (const Field& field : schema.fields) {
      add_column(field, schema.classes);
      if (field.name == kLabelField && !names_classes(field, schema.classes)) {
        classes_ = schema.classes;
      }
    }
    columns_.push_back(key_column());
    choose_sizes(schema.samples);
    std::memset(out.append(0, kHdf5Superblock), 0, kHdf5Superblock);
    if (compress_) {
      codecs_ = out.codecs({{static_cast<uint16_t>(CodecId::zlib), ""}});
    }
  }

  size_t group() const override { return group_; }

  void expect(uint64_t largest_sample) override {
    const uint64_t fit = kMostGroupBytes / std::max<uint64_t>(largest_sample, 1);
    group_ = std::bit_floor(std::clamp<uint64_t>(fit, 1, group_));
    choose_chunks();
  }

  void place(std::span<const OutSample> samples, ShardOutput& out) override {
    samples_ = samples;
    for (Column& column : columns_) place_chunks(column, samples.size(), out);
    for (size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].fields.size() + 1 != columns_.size()) {
        throw Error(ErrorKind::unsupported, fmt::format("sample '{}' has not all of the fields",
                                                        printable(samples[i].key)));
      }
      for (OutField& field : samples[i].fields) place_row(i, field);
    }
    place_values(out);
  }

  void seal(ShardOutput& out) override {
    for (Column& column : columns_) {
      for (Column::Chunk& chunk : column.chunks) seal_chunk(column, chunk, out);
    }
    rows_ += samples_.size();
    samples_ = {};
  }

  void finish(ShardOutput& out) override {
    std::vector<Hdf5OutDataset> datasets;
    for (Column& column : columns_) datasets.push_back(std::move(column.out));
    if (!classes_.empty()) datasets.push_back(place_classes(out));
    std::sort(datasets.begin(), datasets.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    std::string superblock;
    const std::string end = hdf5_metadata(datasets, rows_, out.size(0), superblock);
    out.append(0, as_bytes(end));
    out.patch(0, 0, as_bytes(superblock));
  }

 private:
  void add_column(const Field& field, const std::vector<std::string>& classes) {
    Column& column = columns_.emplace_back();
    column.out.name = field.name;
    column.variable = is_variable(field);
    const bool big = field.encoding == Encoding::elements_big;
    if (field.type == FieldType::text) {
      column.out.type = hdf5_text_type();
    } else if (column.variable) {
      const DType dtype = field.type == FieldType::bytes ? DType::uint8 : field.dtype;
      column.value_bytes = static_cast<uint32_t>(size_of(dtype));
      column.out.type = hdf5_sequence_type(dtype, big);
    } else {
      column.out.type = names_classes(field, classes) ? hdf5_class_type(field.dtype, classes)
                                                      : hdf5_number_type(field.dtype, big);
      for (const int64_t dim : *field.shape) column.out.dims.push_back(static_cast<uint64_t>(dim));
      column.out.element_size = static_cast<uint32_t>(size_of(field.dtype));
      column.row_bytes = size_of_elements(field.dtype, *field.shape).value();
      column.out.deflated = compress_;
    }
    if (column.variable) {
      column.out.element_size = kReference;
      column.row_bytes = kReference;
    }
  }

  /// Whether the dataset can say what its numbers mean.
  static bool names_classes(const Field& field, const std::vector<std::string>& classes) {
    constexpr uint64_t kMostBytes = 60'000;  // of a message
    if (field.name != kLabelField || field.type != FieldType::number || classes.empty())
      return false;
    if (field.encoding != Encoding::elements || field.dtype == DType::bool8 ||
        field.dtype == DType::float16 || field.dtype == DType::float32 ||
        field.dtype == DType::float64) {
      return false;
    }
    uint64_t bytes = 0;
    for (const std::string& name : classes) {
      if (name.find('\0') != name.npos) return false;
      bytes += name.size() + 8 + size_of(field.dtype);
    }
    const bool fits = size_of(field.dtype) > 1 || classes.size() <= 127;
    return bytes <= kMostBytes && fits && classes.size() <= INT16_MAX;
  }

  /// The names as a dataset of their own.
  Hdf5OutDataset place_classes(ShardOutput& out) const {
    size_t width = 1;
    for (const std::string& name : classes_) width = std::max(width, name.size());
    const uint64_t bytes = width * classes_.size();
    if (bytes > UINT32_MAX) {
      throw Error(ErrorKind::unsupported, fmt::format("{} bytes of names of classes", bytes));
    }
    Hdf5OutDataset dataset;
    dataset.name = kHdf5Classes;
    dataset.type = hdf5_padded_type(static_cast<uint32_t>(width));
    dataset.element_size = static_cast<uint32_t>(width);
    dataset.chunk_rows = classes_.size();
    dataset.rows = classes_.size();
    dataset.chunks.push_back({0, out.size(0), static_cast<uint32_t>(bytes)});
    std::byte* to = out.append(0, bytes);
    std::memset(to, 0, bytes);
    for (const std::string& name : classes_) {
      std::memcpy(to, name.data(), name.size());
      to += width;
    }
    return dataset;
  }

  static Column key_column() {
    Column column;
    column.out.name = kKeyFeature;
    column.out.type = hdf5_text_type();
    column.out.element_size = kReference;
    column.row_bytes = kReference;
    column.variable = true;
    return column;
  }

  /// Chunks of a power of two of rows, so that they fill a group.
  void choose_sizes(uint64_t samples) {
    uint64_t row = 0;
    for (const Column& column : columns_) row += column.row_bytes;
    for (size_t i = 0; i + 1 < columns_.size(); ++i) {
      if (columns_[i].variable) row += kUsualValue;
    }
    const uint64_t fit = std::clamp<uint64_t>(kGroupBytes / row, 1, kMostRows);
    group_ = std::bit_floor(std::min(fit, std::bit_ceil(std::max<uint64_t>(samples, 1))));
    choose_chunks();
  }

  void choose_chunks() {
    for (Column& column : columns_) {
      const uint64_t rows = kChunkBytes / std::max<uint64_t>(column.row_bytes, 1);
      column.out.chunk_rows = std::bit_floor(std::clamp<uint64_t>(rows, 1, group_));
    }
  }

  void place_chunks(Column& column, size_t count, ShardOutput& out) {
    column.chunks.clear();
    if (column.row_bytes == 0) return;
    const uint64_t rows = column.out.chunk_rows;
    for (uint64_t first = 0; first < count; first += rows) {
      Column::Chunk& chunk = column.chunks.emplace_back();
      const uint64_t bytes = rows * column.row_bytes;
      chunk.row = rows_ + first;
      if (column.out.deflated) {
        chunk.memory.resize(bytes);
        chunk.data = chunk.memory.data();
      } else {
        chunk.offset = out.size(0);
        chunk.data = out.append(0, bytes);
      }
      const uint64_t used = std::min<uint64_t>(rows, count - first) * column.row_bytes;
      std::memset(chunk.data + used, 0, bytes - used);
    }
  }

  /// Where a row of the group lies in its chunk.
  static std::pair<Column::Chunk*, uint64_t> find(Column& column, size_t row) {
    const uint64_t rows = column.out.chunk_rows;
    return {&column.chunks[row / rows], row % rows * column.row_bytes};
  }

  void place_row(size_t row, OutField& field) {
    Column& column = columns_[field.number];
    if (column.variable) return;  // see place_values
    if (field.length != column.row_bytes) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("field {} has {} bytes where the others have {}",
                              printable(field.name), field.length, column.row_bytes));
    }
    field.data = nothing_;
    field.extent = {Container::shard, 0, 0, 0, 0};
    if (column.row_bytes == 0) return;
    const auto [chunk, at] = find(column, row);
    field.data = chunk->data + at;
    if (!column.out.deflated) {
      field.extent = {Container::shard, 0, chunk->offset + at, field.length, 0};
    }
  }

  /// A value of variable length: a key where there is no field.
  struct Value {
    size_t row = 0;
    OutField* field = nullptr;
    Column* column = nullptr;
    uint64_t length = 0;
  };

  void place_values(ShardOutput& out) {
    std::vector<Value> waiting;
    uint64_t bytes = 0;
    const auto add = [&](const Value& value) {
      const uint64_t more = kHeapHead + round_up(value.length, 8);
      if (!waiting.empty() && bytes + more > kCollectionBytes) {
        place_collection(waiting, bytes, out);
        waiting.clear();
        bytes = 0;
      }
      if (value.length == 0) return place_nothing(value);
      waiting.push_back(value);
      bytes += more;
    };
    for (size_t row = 0; row < samples_.size(); ++row) {
      add({row, nullptr, &columns_.back(), samples_[row].key.size()});
      for (OutField& field : samples_[row].fields) {
        Column& column = columns_[field.number];
        if (column.variable) add({row, &field, &column, field.length});
      }
    }
    if (!waiting.empty()) place_collection(waiting, bytes, out);
  }

  void refer(const Value& value, uint64_t collection, uint32_t object) {
    const auto [chunk, at] = find(*value.column, value.row);
    const uint64_t count = value.length / value.column->value_bytes;
    if (count > UINT32_MAX) {
      throw Error(ErrorKind::unsupported, fmt::format("a value of {} bytes", value.length));
    }
    store(chunk->data + at, static_cast<uint32_t>(count));
    store(chunk->data + at + 4, collection);
    store(chunk->data + at + 12, object);
  }

  void place_nothing(const Value& value) {
    refer(value, 0, 0);
    if (value.field == nullptr) return;
    value.field->data = nothing_;
    value.field->extent = {Container::shard, 0, 0, 0, 0};
  }

  void place_collection(std::span<const Value> values, uint64_t bytes, ShardOutput& out) {
    uint64_t size = kHeapHead + bytes;
    if (size < kSmallestCollection) {
      // What is free is an object as well, and needs room for its head.
      const bool room = kSmallestCollection - size >= kHeapHead;
      size = kSmallestCollection + (room ? 0 : kHeapHead);
    }
    const uint64_t offset = out.size(0);
    std::byte* const begin = out.append(0, size);
    std::memcpy(begin, "GCOL\1\0\0\0", 8);
    store(begin + 8, size);
    std::byte* to = begin + kHeapHead;
    uint32_t object = 0;
    for (const Value& value : values) {
      store(to, static_cast<uint64_t>(++object) | uint64_t{1} << 16);  // number, references to it
      store(to + 8, value.length);
      to += kHeapHead;
      refer(value, offset, object);
      if (value.field == nullptr) {
        std::memcpy(to, samples_[value.row].key.data(), value.length);
      } else {
        value.field->data = to;
        value.field->extent = {Container::shard, 0, offset + static_cast<uint64_t>(to - begin),
                               value.length, 0};
      }
      const uint64_t padded = round_up(value.length, 8);
      std::memset(to + value.length, 0, padded - value.length);
      to += padded;
    }
    const uint64_t left = size - static_cast<uint64_t>(to - begin);
    if (left == 0) return;
    std::memset(to, 0, left);
    store(to + 8, left);  // the library counts its head to it
  }

  void seal_chunk(Column& column, Column::Chunk& chunk, ShardOutput& out) {
    const uint64_t bytes = column.out.chunk_rows * column.row_bytes;
    if (bytes > UINT32_MAX) {
      throw Error(ErrorKind::unsupported, fmt::format("a sample of {} bytes in one chunk", bytes));
    }
    if (!column.out.deflated) {
      column.out.chunks.push_back({chunk.row, chunk.offset, static_cast<uint32_t>(bytes)});
      return;
    }
    const std::vector<std::byte> stored = deflated(chunk.memory);
    const uint64_t offset = out.size(0);
    out.append(0, stored);
    column.out.chunks.push_back({chunk.row, offset, static_cast<uint32_t>(stored.size())});
    Block block;
    block.offset = offset;
    block.stored_length = stored.size();
    block.decoded_length = bytes;
    block.codecs = codecs_;
    const uint32_t number = out.block(block);
    const uint64_t first = chunk.row - rows_;
    const auto which = static_cast<uint32_t>(&column - columns_.data());
    for (uint64_t i = first; i < std::min(first + column.out.chunk_rows, samples_.size()); ++i) {
      for (OutField& field : samples_[i].fields) {
        if (field.number != which) continue;
        field.extent = {Container::block, number, (i - first) * column.row_bytes, field.length, 0};
      }
    }
  }

  bool compress_;
  std::vector<Column> columns_;       // by field; the keys come last
  std::vector<std::string> classes_;  // that the type of `label` has no room for
  size_t group_ = 1;
  uint64_t rows_ = 0;  // that are sealed
  std::span<const OutSample> samples_;
  uint32_t codecs_ = 0;
  std::byte nothing_[8] = {};
};

std::unique_ptr<ShardWriter> open(const OutSchema& schema, ShardOutput& out) {
  return std::make_unique<Hdf5Writer>(schema, out);
}

}  // namespace

const WriteFormat kHdf5Write = {.storage = storage,
                                .shard_name = shard_name,
                                .suffix = suffix,
                                .size_of_sample = size_of_sample,
                                .open = open,
                                .unfit_value = unfit_value,
                                .typed = true,
                                .compressions = kCompressions};

}  // namespace stoker
