// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataset/npy.h"
#include "format/npy.h"
#include "format/npy_arrays.h"

namespace stoker {
namespace {

Storage storage(const Field& field, uint64_t samples) {
  const auto refused = [](std::string why) { return Storage{{}, {}, {}, std::move(why)}; };
  if (field.type != FieldType::number && field.type != FieldType::array) {
    return refused("it holds numbers and arrays of one shape only");
  }
  if (field.name == kNpyKeys) return refused("the keys have this name there");
  if (field.present < samples) return refused("not every sample has it");
  if (field.dtype == DType::unknown) return refused("its dtype varies");
  if (field.type == FieldType::number) {
    return {Encoding::elements, field.dtype, std::vector<int64_t>{}};
  }
  const bool fixed = field.shape && std::all_of(field.shape->begin(), field.shape->end(),
                                                [](int64_t dimension) { return dimension >= 0; });
  if (!fixed) return refused("its shape varies");
  return {Encoding::elements, field.dtype, field.shape};
}

std::string shard_name(std::string_view name, uint64_t number, uint64_t) {
  // What comes behind the first dot is the field.
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '.', '_');
  return fmt::format("{}-{:06}", plain, number);
}

std::string suffix(const Field&, Encoding, std::string_view) { return {}; }

uint64_t size_of_sample(std::string_view key, std::span<const OutField> fields) {
  constexpr size_t kLongestKey = 4096;  // each takes as much as the longest
  if (key.ends_with('\0') || key.size() > kLongestKey) {
    throw Error(ErrorKind::unsupported,
                fmt::format("key '{}' cannot be stored in an array: it {}", printable(key),
                            key.ends_with('\0') ? "ends with a NUL byte" : "is too long"));
  }
  uint64_t size = key.size();
  for (const OutField& field : fields) size += field.length;
  return size;
}

/// The keys come first, then the fields in the order of the schema.
std::vector<std::string> endings(const OutSchema& schema) {
  std::vector<std::string> all = {fmt::format(".{}.npy", kNpyKeys)};
  for (const Field& field : schema.fields) {
    all.push_back(fmt::format(".{}.npy", percent_escape(field.name, "/")));
  }
  return all;
}

class NpyWriter final : public ShardWriter {
 public:
  NpyWriter(const OutSchema& schema, ShardOutput& out) {
    for (uint32_t i = 0; i < schema.fields.size(); ++i) {
      const Field& field = schema.fields[i];
      std::vector<int64_t> shape{0};
      if (field.shape && field.type == FieldType::array) {
        shape.insert(shape.end(), field.shape->begin(), field.shape->end());
      }
      const size_t header = write_npy_header(field.dtype, shape).size();
      std::fill_n(out.append(i + 1, header), header, std::byte{0});
      columns_.push_back({field.dtype, std::move(shape)});
    }
  }

  void place(std::span<const OutSample> samples, ShardOutput& out) override {
    placed_ = samples;
    for (const OutSample& sample : samples) {
      for (OutField& field : sample.fields) {
        const uint32_t file = field.number + 1;
        field.extent = {Container::shard, file, out.size(file), field.length, 0};
        field.data = out.append(file, field.length);
      }
    }
  }

  void seal(ShardOutput&) override {
    for (const OutSample& sample : placed_) {
      keys_ += sample.key;
      key_ends_.push_back(keys_.size());
      longest_key_ = std::max<uint64_t>(longest_key_, sample.key.size());
    }
    placed_ = {};
  }

  void finish(ShardOutput& out) override {
    // NumPy has no texts of width 0.
    const uint64_t width = std::max<uint64_t>(longest_key_, 1);
    out.append(0, as_bytes(write_npy_text_header(width, key_ends_.size())));
    uint64_t begin = 0;
    for (const uint64_t end : key_ends_) {
      std::byte* to = out.append(0, width);
      std::memcpy(to, keys_.data() + begin, end - begin);
      std::memset(to + (end - begin), 0, width - (end - begin));
      begin = end;
    }
    for (uint32_t i = 0; i < columns_.size(); ++i) {
      columns_[i].shape[0] = static_cast<int64_t>(key_ends_.size());
      const std::string header = write_npy_header(columns_[i].dtype, columns_[i].shape);
      out.patch(i + 1, 0, as_bytes(header));
    }
  }

 private:
  struct Column {
    DType dtype;
    std::vector<int64_t> shape;  // the first dimension counts the samples
  };

  std::vector<Column> columns_;
  std::span<const OutSample> placed_;
  std::string keys_;  // one after the other: how wide they are is known at the end
  std::vector<uint64_t> key_ends_;
  uint64_t longest_key_ = 0;
};

std::unique_ptr<ShardWriter> open(const OutSchema& schema, ShardOutput& out) {
  return std::make_unique<NpyWriter>(schema, out);
}

}  // namespace

const WriteFormat kNpyWrite = {.storage = storage,
                               .shard_name = shard_name,
                               .suffix = suffix,
                               .size_of_sample = size_of_sample,
                               .open = open,
                               .endings = endings,
                               .typed = true};

}  // namespace stoker
