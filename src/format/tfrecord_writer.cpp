// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "dataset/protobuf.h"
#include "format/member_name.h"
#include "format/tf_example.h"
#include "format/tfrecord.h"

namespace stoker {
namespace {

// Protocol Buffers refuse larger messages.
constexpr uint64_t kMaxExample = (uint64_t{1} << 31) - 1;

constexpr uint32_t kFirst = wire_tag(1, WireType::bytes);
constexpr uint32_t kSecond = wire_tag(2, WireType::bytes);

/// Bytes of a field with such a payload; all our tags take one byte.
constexpr uint64_t field_size(uint64_t payload) { return 1 + varint_size(payload) + payload; }

/// One feature, and what each message around its payload holds.
struct Layer {
  std::string_view name;
  std::string_view ending;  // kNpyEnding, kListEnding or nothing
  FeatureKind kind = FeatureKind::bytes;
  bool one_value = false;  // the payload is a value of the list, not its body
  uint64_t payload = 0;
  OutField* field = nullptr;  // null: the key

  uint64_t name_size() const { return name.size() + ending.size(); }
  uint64_t list() const { return one_value ? field_size(payload) : payload; }
  uint64_t feature() const { return field_size(list()); }
  uint64_t entry() const { return field_size(name_size()) + field_size(feature()); }

  bool operator<(const Layer& other) const { return compare(other) < 0; }
  /// As if name and ending were one.
  int compare(const Layer& other) const {
    const std::string_view::size_type both = std::min(name.size(), other.name.size());
    const int begin = name.substr(0, both).compare(other.name.substr(0, both));
    if (begin != 0) return begin;
    return (std::string(name.substr(both)) += ending)
        .compare(std::string(other.name.substr(both)) += other.ending);
  }
};

[[noreturn]] void unsupported(const std::string& cause) {
  throw Error(ErrorKind::unsupported, "tfrecord: " + cause);
}

/// Whether its source says that the field is a list also where it has one value. Features of
/// another tfrecord keep their names.
bool is_marked_list(std::string_view suffix) { return suffix.ends_with(kListSuffix); }

Layer layer_of(const OutField& field) {
  Layer layer;
  layer.name = field.name;
  layer.payload = field.length;
  switch (field.encoding) {
    case Encoding::npy:
      layer.ending = kNpyEnding;
      [[fallthrough]];
    case Encoding::raw:
      layer.one_value = true;
      break;
    case Encoding::tf_strings:
      if (is_marked_list(field.suffix)) layer.ending = kListEnding;
      break;
    case Encoding::tf_floats:
      layer.kind = FeatureKind::floats;
      break;
    case Encoding::tf_int64s:
      layer.kind = FeatureKind::int64s;
      break;
    case Encoding::decimal:
    case Encoding::none:
    case Encoding::elements:
    case Encoding::elements_big:
    case Encoding::padded:
      unsupported(fmt::format("field {} cannot be stored in the encoding {}", printable(field.name),
                              name_of(field.encoding)));
  }
  return layer;
}

Layer layer_of_key(std::string_view key) {
  Layer layer;
  layer.name = kKeyFeature;
  layer.one_value = true;
  layer.payload = key.size();
  return layer;
}

uint64_t size_of_features(std::span<const Layer> layers) {
  uint64_t size = 0;
  for (const Layer& layer : layers) size += field_size(layer.entry());
  return size;
}

std::byte* put_head(std::byte* to, uint32_t tag, uint64_t size) {
  return put_varint(put_varint(to, tag), size);
}

std::byte* put_text(std::byte* to, std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return std::copy(bytes.begin(), bytes.end(), to);
}

/// Writes all of a map entry but its payload; returns where that goes.
std::byte* put_entry(std::byte* to, const Layer& layer) {
  to = put_head(to, kFirst, layer.entry());
  to = put_head(to, kFirst, layer.name_size());
  to = put_text(put_text(to, layer.name), layer.ending);
  to = put_head(to, kSecond, layer.feature());
  to = put_head(to, wire_tag(static_cast<uint32_t>(layer.kind), WireType::bytes), layer.list());
  return layer.one_value ? put_head(to, kFirst, layer.payload) : to;
}

/// Whether every such number is an int64.
bool fits_int64(DType dtype) {
  switch (dtype) {
    case DType::bool8:
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
    case DType::uint8:
    case DType::uint16:
    case DType::uint32:
      return true;
    case DType::unknown:
    case DType::uint64:
    case DType::float16:
    case DType::float32:
    case DType::float64:
      return false;
  }
  return false;
}

Encoding encoding(const Field& field) {
  switch (field.type) {
    case FieldType::bytes:
    case FieldType::text:
      return Encoding::raw;
    case FieldType::list:
      return Encoding::tf_strings;
    case FieldType::number:
    case FieldType::array:
      break;
  }
  const bool packed =
      field.encoding == Encoding::tf_int64s || field.encoding == Encoding::tf_floats;
  if (packed || field.encoding == Encoding::npy) return field.encoding;
  const bool integer = field.type == FieldType::number && fits_int64(field.dtype);
  return integer ? Encoding::tf_int64s : Encoding::npy;
}

std::string shard_name(std::string_view name, uint64_t number, uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}", name, number, count);
}

std::string suffix(const Field&, Encoding encoding, std::string_view original) {
  const bool marked = encoding == Encoding::tf_strings && is_marked_list(original);
  return marked ? std::string(kListSuffix) : std::string();
}

uint64_t size_of_sample(std::string_view key, std::span<const OutField> fields) {
  uint64_t size = field_size(layer_of_key(key).entry());
  for (const OutField& field : fields) size += field_size(layer_of(field).entry());
  return kRecordHead + field_size(size) + kRecordFoot;
}

class TfrecordWriter final : public ShardWriter {
 public:
  void place(std::span<const OutSample> samples, ShardOutput& out) override {
    placed_.clear();
    for (const OutSample& sample : samples) place(sample.key, sample.fields, out);
  }

  void seal(ShardOutput&) override {
    for (const Placed& record : placed_) {
      store(record.data + record.length, crc32c_mask(crc32c({record.data, record.length})));
    }
    placed_.clear();
  }

  void finish(ShardOutput&) override {}

 private:
  struct Placed {
    std::byte* data;
    uint64_t length;
  };

  void place(std::string_view key, std::span<OutField> fields, ShardOutput& out) {
    sort_layers(key, fields);
    const uint64_t features = size_of_features(layers_);
    const uint64_t length = field_size(features);
    if (length > kMaxExample) {
      unsupported(fmt::format("sample '{}' would be an Example of {}; the most is 2 GiB",
                              printable(key), format_bytes(length)));
    }
    const uint64_t offset = out.size(0);
    std::byte* const begin = out.append(0, kRecordHead + length + kRecordFoot);
    std::byte* to = begin;
    store(to, length);
    store(to + 8, crc32c_mask(crc32c({to, 8})));
    placed_.push_back({to + kRecordHead, length});
    to = put_head(to + kRecordHead, kFirst, features);
    for (const Layer& layer : layers_) {
      to = put_entry(to, layer);
      if (layer.field == nullptr) {
        to = put_text(to, key);
        continue;
      }
      layer.field->data = to;
      layer.field->extent = {Container::shard, 0, offset + static_cast<uint64_t>(to - begin),
                             layer.payload, 0};
      to += layer.payload;
    }
  }

  void sort_layers(std::string_view key, std::span<OutField> fields) {
    layers_.clear();
    layers_.push_back(layer_of_key(key));
    for (OutField& field : fields) {
      layers_.push_back(layer_of(field));
      layers_.back().field = &field;
    }
    std::sort(layers_.begin(), layers_.end());
    for (size_t i = 1; i < layers_.size(); ++i) {
      if (layers_[i - 1].compare(layers_[i]) == 0) {
        unsupported(fmt::format("sample '{}' has two fields that would be the feature {}{}",
                                printable(key), printable(layers_[i].name), layers_[i].ending));
      }
    }
  }

  std::vector<Layer> layers_;
  std::vector<Placed> placed_;
};

std::unique_ptr<ShardWriter> open(const OutSchema&, ShardOutput&) {
  return std::make_unique<TfrecordWriter>();
}

Storage storage(const Field& field, uint64_t) {
  const Encoding stored = encoding(field);
  return {stored, stored == Encoding::tf_int64s ? DType::int64 : DType::unknown, {}};
}

WriteFormat tfrecord_format() {
  WriteFormat format{storage, shard_name, suffix, size_of_sample, open};
  format.empty_samples = true;
  return format;
}

}  // namespace

const WriteFormat kTfrecordWrite = tfrecord_format();

}  // namespace stoker
