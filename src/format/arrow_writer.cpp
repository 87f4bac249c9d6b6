// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "format/arrow.h"
#include "format/arrow_ipc.h"
#include "format/arrow_output.h"
#include "format/flat_builder.h"
#include "format/member_name.h"

namespace stoker {
namespace {

using Kind = ArrowOutColumn::Kind;

// Bytes of a record batch: enough that what surrounds them does not count, few enough to be held.
constexpr uint64_t kGroupBytes = 16 << 20;
constexpr int16_t kVersion5 = 4;
constexpr uint8_t kSchemaMessage = 1, kBatchMessage = 3;
constexpr uint32_t kContinuation = 0xFFFFFFFF;
constexpr uint64_t kLongestOffset = std::numeric_limits<int32_t>::max();

[[noreturn]] void unsupported(const std::string& cause) {
  throw Error(ErrorKind::unsupported, cause);
}

/// "1.jpg" of the key "cat/1" and the suffix "jpg": how `datasets` names images.
std::string path_of(std::string_view key, std::string_view suffix) {
  return fmt::format("{}.{}", key.substr(key.rfind('/') + 1), suffix);
}

/// Lays the buffers of a batch one after the other; without memory it only counts.
class Body {
 public:
  explicit Body(std::byte* base = nullptr) : base_(base) {}

  /// Null when only counting.
  std::byte* buffer(uint64_t length) {
    buffers_.push_back(size_);
    buffers_.push_back(length);
    const uint64_t begin = size_;
    size_ = round_up(size_ + length, 8);
    if (base_ == nullptr) return nullptr;
    std::memset(base_ + begin + length, 0, size_ - begin - length);
    return base_ + begin;
  }
  void node(uint64_t rows, uint64_t nulls) {
    nodes_.push_back(rows);
    nodes_.push_back(nulls);
  }
  uint64_t size() const { return size_; }
  /// Where a place in a buffer lies in the body.
  uint64_t offset(const std::byte* place) const { return static_cast<uint64_t>(place - base_); }

  /// The message that describes it.
  std::string message(uint64_t rows) const {
    FlatBuilder batch;
    batch.number(0, static_cast<int64_t>(rows));
    batch.child(1, FlatBuilder::structs(std::as_bytes(std::span(nodes_)), 16));
    batch.child(2, FlatBuilder::structs(std::as_bytes(std::span(buffers_)), 16));
    FlatBuilder message;
    message.number(3, static_cast<int64_t>(size_));
    message.child(2, std::move(batch));
    message.number(0, kVersion5);
    message.number(1, kBatchMessage);
    return message.build();
  }

 private:
  std::byte* base_;
  uint64_t size_ = 0;
  std::vector<uint64_t> nodes_, buffers_;
};

std::string framed(const std::string& metadata) {
  std::string frame(8, '\0');
  std::byte* const head = std::as_writable_bytes(std::span(frame)).data();
  store(head, kContinuation);
  store(head + 4, static_cast<int32_t>(metadata.size()));
  return frame + metadata;
}

/// A value of variable length: a field that the caller fills, or bytes that are known.
struct Cell {
  OutField* field = nullptr;
  std::optional<std::string> known;
  bool there() const { return field != nullptr || known.has_value(); }
  uint64_t length() const { return field != nullptr ? field->length : known->size(); }
};

class ArrowWriter final : public ShardWriter {
 public:
  ArrowWriter(const OutSchema& schema, ShardOutput& out, bool is_file)
      : schema_(schema), columns_(arrow_columns(schema)), is_file_(is_file) {
    if (is_file) out.append(0, as_bytes(std::string(kArrowMagic).append(2, '\0')));
    FlatBuilder message;
    message.number<int64_t>(3, 0);
    message.child(2, arrow_schema_table(schema_, columns_));
    message.number(0, kVersion5);
    message.number(1, kSchemaMessage);
    out.append(0, as_bytes(framed(message.build())));
  }

  uint64_t group_bytes() const override { return kGroupBytes; }

  void place(std::span<const OutSample> samples, ShardOutput& out) override {
    placed_.reset();
    bits_.clear();
    if (samples.empty()) return;
    Body counted;
    lay_out(samples, counted);
    const std::string head = framed(counted.message(samples.size()));
    const uint64_t begin = out.size(0);
    std::byte* const to = out.append(0, head.size() + counted.size());
    std::memcpy(to, head.data(), head.size());
    Body body(to + head.size());
    body_begin_ = begin + head.size();
    lay_out(samples, body);
    placed_ = Batch{begin, static_cast<uint32_t>(head.size()), 0, counted.size()};
  }

  void seal(ShardOutput&) override {
    for (const Bits& column : bits_) {
      for (size_t i = 0; i < column.fields.size(); ++i) {
        if (column.fields[i] == nullptr) continue;
        if (column.values[i] != std::byte{0}) column.to[i / 8] |= std::byte{1} << (i % 8);
        column.fields[i]->encoding = Encoding::none;  // a bit has no place of its own
      }
    }
    bits_.clear();
    if (placed_) batches_.push_back(*placed_);
    placed_.reset();
  }

  void finish(ShardOutput& out) override {
    std::string end(8, '\0');
    store(std::as_writable_bytes(std::span(end)).data(), kContinuation);
    if (is_file_) {
      FlatBuilder footer;
      footer.child(1, arrow_schema_table(schema_, columns_));
      footer.child(2, FlatBuilder::structs({}, sizeof(Batch)));
      footer.child(3, FlatBuilder::structs(std::as_bytes(std::span(batches_)), sizeof(Batch)));
      footer.number(0, kVersion5);
      const std::string bytes = footer.build();
      const auto size = static_cast<int32_t>(bytes.size());
      end += bytes;
      end += as_text(std::as_bytes(std::span(&size, 1)));
      end += kArrowMagic;
    }
    out.append(0, as_bytes(end));
  }

 private:
  /// As the footer lists it.
  struct Batch {
    uint64_t offset;
    uint32_t metadata;
    uint32_t padding;
    uint64_t body;
  };

  /// A column of bools: each takes a byte until all of the group are known.
  struct Bits {
    std::byte* to = nullptr;
    std::vector<OutField*> fields;
    std::vector<std::byte> values;
  };

  /// The cells of a column.
  std::vector<OutField*> cells(std::span<const OutSample> samples, uint32_t field) {
    std::vector<OutField*> found(samples.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      for (OutField& each : samples[i].fields) {
        if (each.number == field) found[i] = &each;
      }
    }
    return found;
  }

  void lay_out(std::span<const OutSample> samples, Body& body) {
    for (const ArrowOutColumn& column : columns_) {
      if (column.kind == Kind::bits) {
        lay_out_bits(samples, column, body);
      } else if (column.kind == Kind::elements) {
        lay_out_elements(samples, column, body);
      } else if (column.kind == Kind::media) {
        lay_out_media(samples, column, body);
      } else {
        std::vector<Cell> values(samples.size());
        const auto fields = column.kind == Kind::key ? std::vector<OutField*>(samples.size())
                                                     : cells(samples, column.field);
        for (size_t i = 0; i < samples.size(); ++i) {
          values[i].field = fields[i];
          if (column.kind == Kind::key) values[i].known = samples[i].key;
        }
        lay_out_bytes(values, column.name, body);
      }
    }
  }

  /// Validity, a bit per row; none where all are there.
  template <typename There>
  static void lay_out_validity(size_t rows, Body& body, There&& there) {
    uint64_t nulls = 0;
    for (size_t i = 0; i < rows; ++i) nulls += there(i) ? 0 : 1;
    body.node(rows, nulls);
    std::byte* const bits = body.buffer(nulls == 0 ? 0 : (rows + 7) / 8);
    if (bits == nullptr || nulls == 0) return;
    std::memset(bits, 0, (rows + 7) / 8);
    for (size_t i = 0; i < rows; ++i) {
      if (there(i)) bits[i / 8] |= std::byte{1} << (i % 8);
    }
  }

  void set(OutField& field, std::byte* to, const Body& body) {
    field.data = to;
    field.extent = {Container::shard, 0, body_begin_ + body.offset(to), field.length, 0};
  }

  void lay_out_bytes(const std::vector<Cell>& values, const std::string& name, Body& body) {
    lay_out_validity(values.size(), body, [&](size_t i) { return values[i].there(); });
    uint64_t total = 0;
    for (const Cell& value : values) total += value.there() ? value.length() : 0;
    if (total > kLongestOffset) {
      unsupported(fmt::format("field {}: a value of more than 2 GiB", printable(name)));
    }
    std::byte* const offsets = body.buffer((values.size() + 1) * sizeof(int32_t));
    std::byte* const data = body.buffer(total);
    if (offsets == nullptr) return;
    uint64_t at = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      store(offsets + i * sizeof(int32_t), static_cast<int32_t>(at));
      if (!values[i].there()) continue;
      if (values[i].field != nullptr) {
        set(*values[i].field, data + at, body);
      } else if (!values[i].known->empty()) {
        std::memcpy(data + at, values[i].known->data(), values[i].known->size());
      }
      at += values[i].length();
    }
    store(offsets + values.size() * sizeof(int32_t), static_cast<int32_t>(at));
  }

  void lay_out_media(std::span<const OutSample> samples, const ArrowOutColumn& column, Body& body) {
    std::vector<Cell> bytes(samples.size());
    std::vector<Cell> paths(samples.size());
    const auto images = cells(samples, column.field);
    const auto given =
        column.path ? cells(samples, *column.path) : std::vector<OutField*>(samples.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      bytes[i].field = images[i];
      paths[i].field = given[i];
      // Where the dataset has paths, one that is made up would be taken for one of them.
      if (column.path || images[i] == nullptr) continue;
      if (!is_image_suffix(images[i]->suffix)) continue;
      paths[i].known = path_of(samples[i].key, images[i]->suffix);
      if (!is_utf8(*paths[i].known)) paths[i].known.reset();
    }
    lay_out_validity(samples.size(), body,
                     [&](size_t i) { return bytes[i].there() || paths[i].there(); });
    lay_out_bytes(bytes, column.name, body);
    lay_out_bytes(paths, column.name, body);
  }

  void lay_out_bits(std::span<const OutSample> samples, const ArrowOutColumn& column, Body& body) {
    Bits bits{nullptr, cells(samples, column.field), std::vector<std::byte>(samples.size())};
    lay_out_validity(samples.size(), body, [&](size_t i) { return bits.fields[i] != nullptr; });
    const uint64_t size = (samples.size() + 7) / 8;
    bits.to = body.buffer(size);
    if (bits.to == nullptr) return;
    std::memset(bits.to, 0, size);
    for (size_t i = 0; i < bits.fields.size(); ++i) {
      if (bits.fields[i] != nullptr) bits.fields[i]->data = &bits.values[i];
    }
    bits_.push_back(std::move(bits));
  }

  void lay_out_elements(std::span<const OutSample> samples, const ArrowOutColumn& column,
                        Body& body) {
    const Field& field = schema_.fields[column.field];
    const std::vector<int64_t>& shape = *field.shape;
    const auto fields = cells(samples, column.field);
    const bool open = !shape.empty() && shape[0] < 0;
    const std::vector<int64_t> inner(shape.begin() + (open ? 1 : 0), shape.end());
    const uint64_t unit = size_of_elements(field.dtype, inner).value();
    uint64_t total = 0;
    for (const OutField* each : fields) {
      const uint64_t length = each != nullptr ? each->length : 0;
      if (each != nullptr && (open ? length % unit != 0 : length != unit)) {
        unsupported(fmt::format("field {}: {} bytes for an array of {}", printable(field.name),
                                length, unit));
      }
      total += open ? length : unit;
    }
    lay_out_validity(samples.size(), body, [&](size_t i) { return fields[i] != nullptr; });
    std::byte* offsets = nullptr;
    if (open) {
      if (total / unit > kLongestOffset) {
        unsupported(fmt::format("field {}: more than 2^31 elements", printable(field.name)));
      }
      offsets = body.buffer((samples.size() + 1) * sizeof(int32_t));
    }
    // What lies inside is never null.
    uint64_t rows = open ? total / unit : samples.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i > 0 || !open) rows *= static_cast<uint64_t>(shape[i]);
      body.node(rows, 0);
      body.buffer(0);
    }
    std::byte* to = body.buffer(total);
    if (to == nullptr) return;
    uint64_t at = 0;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (open) store(offsets + i * sizeof(int32_t), static_cast<int32_t>(at / unit));
      if (fields[i] != nullptr) {
        set(*fields[i], to + at, body);
      } else if (!open) {
        std::memset(to + at, 0, unit);
      }
      at += open ? (fields[i] != nullptr ? fields[i]->length : 0) : unit;
    }
    if (open) store(offsets + fields.size() * sizeof(int32_t), static_cast<int32_t>(at / unit));
  }

  const OutSchema& schema_;
  std::vector<ArrowOutColumn> columns_;
  bool is_file_;
  uint64_t body_begin_ = 0;
  std::optional<Batch> placed_;
  std::vector<Bits> bits_;  // of the group that is placed
  std::vector<Batch> batches_;
};

/// Whether an array can be a list of lists of numbers.
bool fits_lists(const Field& field) {
  if (field.dtype == DType::unknown || field.dtype == DType::bool8 || !field.shape) return false;
  const std::vector<int64_t>& shape = *field.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool open = i == 0 && shape[i] == -1;
    if (!open && (shape[i] <= 0 || shape[i] > std::numeric_limits<int32_t>::max())) return false;
  }
  const std::vector<int64_t> inner(shape.begin() + (!shape.empty() && shape[0] < 0 ? 1 : 0),
                                   shape.end());
  return size_of_elements(field.dtype, inner).has_value();
}

Storage storage(const Field& field, uint64_t /*samples*/) {
  if (field.name == "__key__") return {{}, {}, {}, "the key has this name"};
  switch (field.type) {
    case FieldType::bytes:
    case FieldType::text:
      return {Encoding::raw, {}, {}, {}};
    case FieldType::list:
      return {Encoding::tf_strings, {}, {}, {}};
    case FieldType::number:
      if (field.dtype == DType::unknown) return {Encoding::npy, {}, {}, {}};
      return {Encoding::elements, field.dtype, std::vector<int64_t>(), {}};
    case FieldType::array:
      if (fits_lists(field)) return {Encoding::elements, field.dtype, field.shape, {}};
      return {Encoding::npy, {}, {}, {}};
  }
  return {{}, {}, {}, "its type is not known"};
}

std::string stream_name(std::string_view name, uint64_t number, uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.arrow", name, number, count);
}

std::string file_name(std::string_view name, uint64_t number, uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.feather", name, number, count);
}

std::string suffix(const Field& field, Encoding, std::string_view original) {
  const bool kept = field.name == kImageField && is_image_suffix(original);
  return std::string(kept ? original : std::string_view());
}

uint64_t size_of_sample(std::string_view key, std::span<const OutField> fields) {
  constexpr uint64_t kAround = 16;  // offsets, validity, padding and its share of the batch's head
  uint64_t size = 2 * key.size() + kAround;
  for (const OutField& field : fields) size += field.length + field.suffix.size() + kAround;
  return size;
}

std::unique_ptr<ShardWriter> open_stream(const OutSchema& schema, ShardOutput& out) {
  return std::make_unique<ArrowWriter>(schema, out, false);
}

std::unique_ptr<ShardWriter> open_file(const OutSchema& schema, ShardOutput& out) {
  return std::make_unique<ArrowWriter>(schema, out, true);
}

constexpr std::string_view kCompanionNames[] = {"dataset_info.json", "state.json"};

/// What `datasets.load_from_disk` needs beside the shards.
std::vector<Companion> companions(const OutSchema& schema, std::span<const std::string> shards) {
  const std::string features = hugging_face_features(schema, arrow_columns(schema));
  Json info;
  info["citation"] = info["description"] = "";
  info["features"] = parse_json(features);
  info["homepage"] = info["license"] = "";
  Json state;
  state["_data_files"] = Json::array();
  uint64_t fingerprint = hash64(features);
  for (const std::string& shard : shards) {
    state["_data_files"].push_back({{"filename", shard}});
    fingerprint = hash64(fmt::format("{:016x}{}", fingerprint, shard));
  }
  state["_fingerprint"] = fmt::format("{:016x}", fingerprint);
  state["_format_columns"] = nullptr;
  state["_format_kwargs"] = Json::object();
  state["_format_type"] = nullptr;
  state["_output_all_columns"] = false;
  state["_split"] = nullptr;
  return {{"dataset_info.json", info.dump(2)}, {"state.json", state.dump(2)}};
}

WriteFormat stream_format() {
  WriteFormat format{storage, stream_name, suffix, size_of_sample, open_stream};
  format.typed = format.utf8 = true;
  format.empty_samples = true;
  format.companions = companions;
  format.companion_names = kCompanionNames;
  return format;
}

WriteFormat file_format() {
  WriteFormat format{storage, file_name, suffix, size_of_sample, open_file};
  format.typed = format.utf8 = true;
  format.empty_samples = true;
  return format;
}

}  // namespace

const WriteFormat kArrowWrite = stream_format();
const WriteFormat kFeatherWrite = file_format();

}  // namespace stoker
