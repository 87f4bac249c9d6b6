// SPDX-License-Identifier: Apache-2.0
// What every format that can be written must keep: a new row in the table is tested by being there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <random>

#include "base/parallel.h"
#include "dataset/value.h"
#include "format/format.h"
#include "format/one_shard.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

struct TestField {
  Field field;
  std::string suffix;
  std::shared_ptr<const Value> value;  // arrays cannot be copied
};
struct TestSample {
  std::string key;
  std::vector<TestField> fields;
};

template <typename T>
std::shared_ptr<const Value> shared(T value) {
  return std::make_shared<const Value>(std::move(value));
}

TestField bytes_field(const char* name, std::string_view value, const char* suffix = "") {
  return {{name, FieldType::bytes, Encoding::raw, {}, {}, {}, 0}, suffix, shared(as_bytes(value))};
}
TestField text_field(const char* name, std::string_view value) {
  return {{name, FieldType::text, Encoding::raw, {}, {}, {}, 0}, "", shared(value)};
}
TestField integer_field(const char* name, int64_t value) {
  return {{name, FieldType::number, Encoding::none, DType::int64, {}, {}, 0}, "", shared(value)};
}
TestField real_field(const char* name, double value) {
  return {{name, FieldType::number, Encoding::none, DType::float64, {}, {}, 0}, "", shared(value)};
}
TestField array_field(const char* name) {
  static const std::array<float, 4> elements = {1.5F, -2.0F, 0.0F, 1e30F};
  Array array;
  array.dtype = DType::float32;
  array.shape = {2, 2};
  array.data = std::as_bytes(std::span(elements));
  return {{name, FieldType::array, Encoding::npy, DType::float32, array.shape, {}, 0},
          "",
          shared(std::move(array))};
}
TestField list_field(const char* name) {
  const std::vector<Bytes> values = {as_bytes("one"), as_bytes(""), as_bytes("three")};
  return {{name, FieldType::list, Encoding::tf_strings, {}, {}, {}, 0}, "", shared(values)};
}

std::vector<TestSample> all_kinds() {
  return {{"a/1",
           {bytes_field("image", "\xff\xd8\xff pixels", "jpg"), integer_field("label", -3),
            text_field("caption", "gr\xc3\xbc\xc3\x9f dich"), real_field("weight", 0.1),
            array_field("boxes"), list_field("tags")}},
          {"a/2 b-c", {bytes_field("image", "", "png"), integer_field("label", 0)}},
          {"d\xff\xc3\xa9/3",
           {bytes_field("seg.png", std::string_view("\0\0\0", 3)), text_field("json", "{}"),
            integer_field("label", INT64_MAX)}},
          {std::string(300, 'k'), {bytes_field("image", "x", "jpg")}}};
}

/// Small enough to be damaged at every byte.
std::vector<TestSample> few() {
  return {{"1", {bytes_field("image", "abcdefgh", "jpg"), integer_field("label", 7)}},
          {"2", {bytes_field("image", "ijklmnop", "jpg"), integer_field("label", 8)}},
          {"3", {bytes_field("image", "qrstuvwx", "jpg"), array_field("boxes")}}};
}

/// What a format that knows nothing but numbers and arrays can store.
std::vector<TestSample> numbers() {
  std::vector<TestSample> samples;
  for (int i = 0; i < 3; ++i) {
    samples.push_back(
        {std::to_string(i + 1),
         {integer_field("label", 7 - i), real_field("weight", i / 3.0), array_field("boxes")}});
  }
  return samples;
}

bool key_before(const TestSample& a, const TestSample& b) { return a.key + '.' < b.key + '.'; }

/// How often each field occurs, as a schema has it.
Field counted(Field field, const std::vector<TestSample>& samples) {
  for (const TestSample& sample : samples) {
    for (const TestField& other : sample.fields) {
      if (other.field.name == field.name) ++field.present;
    }
  }
  return field;
}

/// The fields of the samples as a format stores them; nothing where it cannot store them all.
std::optional<OutSchema> schema_of(const WriteFormat& format,
                                   const std::vector<TestSample>& samples) {
  OutSchema schema;
  schema.samples = samples.size();
  for (const TestSample& sample : samples) {
    for (const TestField& one : sample.fields) {
      const auto known = std::find_if(schema.fields.begin(), schema.fields.end(),
                                      [&](auto& field) { return field.name == one.field.name; });
      if (known != schema.fields.end()) continue;
      Field field = counted(one.field, samples);
      Storage storage = format.storage(field, samples.size());
      if (!storage.refusal.empty()) return std::nullopt;
      field.encoding = storage.encoding;
      if (storage.dtype != DType::unknown) field.dtype = storage.dtype;
      if (storage.shape) field.shape = storage.shape;
      schema.fields.push_back(field);
    }
  }
  return schema;
}

struct WrittenShard {
  std::vector<std::string> names, files;
  /// By sample and file: where what comes after the sample begins, and where its fields end.
  std::vector<std::vector<uint64_t>> sample_ends, payload_ends;

  std::string all() const {
    std::string bytes;
    for (const std::string& file : files) bytes += file;
    return bytes;
  }
};

/// A sample as it is written.
struct Written {
  std::vector<OutField> fields;
  std::vector<std::string> stored;
};

Written prepare(const OutSchema& schema, const TestSample& sample) {
  Written written;
  for (uint32_t number = 0; number < schema.fields.size(); ++number) {
    const Field& as = schema.fields[number];
    for (const auto& [field, suffix, value] : sample.fields) {
      if (field.name != as.name) continue;
      written.stored.push_back(encode_value(*value, as));
      OutField& out = written.fields.emplace_back();
      out.name = as.name;
      out.suffix = suffix;
      out.encoding = as.encoding;
      out.type = as.type;
      out.number = number;
      out.length = written.stored.back().size();
    }
  }
  return written;
}

WrittenShard write_shard(const WriteFormat& format, std::vector<TestSample> samples) {
  if (format.by_key) std::sort(samples.begin(), samples.end(), key_before);
  const OutSchema schema = schema_of(format, samples).value();
  std::vector<std::string> endings = {""};
  if (format.endings != nullptr) endings = format.endings(schema);
  WrittenShard shard;
  shard.files.resize(endings.size());
  for (const std::string& ending : endings) {
    shard.names.push_back(format.shard_name("x", 0, 1) + ending);
  }
  ShardOutput out(endings.size());
  const auto writer = format.open(schema, out);
  std::deque<Written> group;
  std::vector<OutSample> placed;
  for (size_t i = 0; i < samples.size(); ++i) {
    Written& one = group.emplace_back(prepare(schema, samples[i]));
    placed.push_back({samples[i].key, one.fields});
    const size_t wanted = std::max<size_t>(writer->group(), 1);
    if (group.size() < wanted && i + 1 < samples.size()) continue;
    writer->place(placed, out);
    for (Written& written : group) {
      for (size_t k = 0; k < written.fields.size(); ++k) {
        std::memcpy(written.fields[k].data, written.stored[k].data(), written.stored[k].size());
      }
    }
    writer->seal(out);
    for (const Written& written : group) {
      std::vector<uint64_t>& ends = shard.sample_ends.emplace_back(endings.size());
      for (uint32_t file = 0; file < endings.size(); ++file) ends[file] = out.size(file);
      std::vector<uint64_t>& payload = shard.payload_ends.emplace_back(endings.size());
      for (const OutField& field : written.fields) {
        uint64_t& end = payload[field.extent.number];
        end = std::max(end, field.extent.offset + field.extent.length);
      }
    }
    group.clear();
    placed.clear();
  }
  writer->finish(out);
  for (uint32_t file = 0; file < endings.size(); ++file) {
    for (const Bytes piece : out.pending(file)) shard.files[file] += as_text(piece);
  }
  for (const ShardOutput::Patch& patch : out.patches()) {
    shard.files[patch.file].replace(patch.offset, patch.bytes.size(), patch.bytes);
  }
  return shard;
}

class Conformance : public testing::TestWithParam<const Format*> {
 protected:
  const Format& format() const { return *GetParam(); }
  WrittenShard write(const std::vector<TestSample>& samples) const {
    return write_shard(*format().write, samples);
  }
  OneShard in_memory(const WrittenShard& shard) const {
    return {format(), shard.names, shard.files};
  }
  /// All that the format can store.
  std::vector<TestSample> most() const {
    return schema_of(*format().write, all_kinds()) ? all_kinds() : numbers();
  }
  /// Little of that.
  std::vector<TestSample> little() const {
    return schema_of(*format().write, few()) ? few() : numbers();
  }
};

TEST_P(Conformance, WhatIsWrittenIsFound) {
  std::vector<TestSample> samples = most();
  OneShard shard = in_memory(write(samples));
  const CollectingSink sink = shard.scan();
  for (const Fault& fault : sink.faults) ADD_FAILURE() << fault.message();
  ASSERT_GE(sink.shards.size(), 1U);
  EXPECT_EQ(sink.shards[0].path, shard.name());
  ASSERT_EQ(sink.samples.size(), samples.size());
  if (format().write->by_key) {
    std::sort(samples.begin(), samples.end(), key_before);
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(sink.samples[i].key, samples[i].key);
    EXPECT_EQ(sink.samples[i].fields.size(), samples[i].fields.size());
    for (const auto& [field, suffix, value] : samples[i].fields) {
      const auto found = sink.samples[i].fields.find(field.name);
      ASSERT_NE(found, sink.samples[i].fields.end()) << samples[i].key << ": " << field.name;
      EXPECT_TRUE(equal_values(shard.value_of(sink, found->second), *value)) << field.name;
    }
  }
}

TEST_P(Conformance, TheSameSamplesGiveTheSameBytes) {
  EXPECT_EQ(write(most()).all(), write(most()).all());
}

TEST_P(Conformance, AShardIsDetected) {
  const WrittenShard written = write(little());
  OneShard shard = in_memory(written);
  if (written.files.size() == 1) {
    const auto as_file = shard.detect(shard.name());
    ASSERT_TRUE(as_file.has_value());
    EXPECT_EQ(as_file->parts.at(0).shard, shard.name());
  }
  const auto as_directory = shard.detect("");
  ASSERT_TRUE(as_directory.has_value());
  EXPECT_EQ(as_directory->parts.at(0).shard, shard.name());
  for (const Format& other : formats()) {
    if (&other == &format() || other.write == nullptr) continue;
    FakeFileSystem files;
    files.add_file("/data/" + shard.name(), written.files[0]);
    EXPECT_FALSE(other.detect({"/data", shard.name(), "", &files})) << other.name;
  }
}

/// Whether a file may end there for all that it says itself.
bool may_end(const WrittenShard& whole, size_t file, size_t size) {
  return size == 0 ||
         std::any_of(whole.sample_ends.begin(), whole.sample_ends.end(),
                     [&](const std::vector<uint64_t>& ends) { return ends[file] == size; });
}

TEST_P(Conformance, NoTruncationGoesUnnoticed) {
  const WrittenShard whole = write(little());
  for (size_t file = 0; file < whole.files.size(); ++file) {
    // A format without an end or a count leaves a cut between samples to whoever counts them.
    const bool open = whole.sample_ends.back()[file] == whole.files[file].size();
    for (size_t size = 0; size < whole.files[file].size(); ++size) {
      WrittenShard cut = whole;
      cut.files[file].resize(size);
      OneShard shard = in_memory(cut);
      const CollectingSink sink = shard.scan();
      shard.expect_inside(sink);
      const bool noticed =
          !sink.faults.empty() || sink.samples.size() == 3 || (open && may_end(whole, file, size));
      EXPECT_TRUE(noticed) << "cut at " << size << ", " << sink.samples.size() << " samples";
      const auto complete =
          std::count_if(whole.payload_ends.begin(), whole.payload_ends.end(),
                        [&](const std::vector<uint64_t>& ends) { return ends[file] <= size; });
      // Of the first sample nobody knows which fields it should have: there a fault must do.
      const size_t at_most = std::max<size_t>(static_cast<size_t>(complete), 1);
      EXPECT_LE(sink.samples.size(), at_most) << "cut at " << size;
      for (size_t i = 0; i < sink.samples.size(); ++i) {
        EXPECT_EQ(sink.samples[i].key, little()[i].key);
      }
    }
  }
}

/// In the middle of zeros one place is like another: every 16th will do.
bool is_dull(std::string_view bytes, size_t at) {
  const std::string_view around = bytes.substr(at < 8 ? 0 : at - 8, 16);
  return at % 16 != 0 && around.find_first_not_of('\0') == around.npos;
}

TEST_P(Conformance, FlippedBitsAreSurvived) {
  const WrittenShard whole = write(little());
  for (size_t file = 0; file < whole.files.size(); ++file) {
    for (size_t at = 0; at < whole.files[file].size(); ++at) {
      if (is_dull(whole.files[file], at)) continue;
      for (const int flip : {1 << (at % 8), 0xFF}) {
        WrittenShard damaged = whole;
        damaged.files[file][at] = static_cast<char>(damaged.files[file][at] ^ flip);
        OneShard shard = in_memory(damaged);
        shard.expect_inside(shard.scan());
      }
    }
  }
}

TEST_P(Conformance, AbsurdNumbersAreSurvived) {
  const WrittenShard whole = write(little());
  for (size_t file = 0; file < whole.files.size(); ++file) {
    for (size_t at = 0; at + 8 <= whole.files[file].size(); ++at) {
      if (is_dull(whole.files[file], at)) continue;
      for (const char filler : {'\xff', '\0', '7'}) {
        WrittenShard damaged = whole;
        damaged.files[file].replace(at, 8, 8, filler);
        OneShard shard = in_memory(damaged);
        shard.expect_inside(shard.scan());
      }
    }
  }
}

TEST_P(Conformance, AnythingElseIsSurvived) {
  std::mt19937 random(1);
  const WrittenShard whole = write(little());
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 5000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const size_t file = random() % whole.files.size();
    const std::string& good = whole.files[file];
    // Something it knows, with noise in its middle, behind it, or nothing but noise.
    if (round % 3 == 0) bytes.insert(random() % (bytes.size() + 1), good);
    if (round % 3 == 1) bytes = good.substr(0, random() % good.size()) + bytes;
    const bool empty = bytes.empty();
    WrittenShard damaged = whole;
    damaged.files[file] = std::move(bytes);
    OneShard shard = in_memory(damaged);
    const CollectingSink sink = shard.scan();
    shard.expect_inside(sink);
    EXPECT_TRUE(empty || !sink.faults.empty());
  }
}

TEST_P(Conformance, ScansAtTheSameTimeThreaded) {
  const size_t count = most().size();
  OneShard shard = in_memory(write(most()));
  std::vector<CollectingSink> sinks(16);
  parallel_for(sinks.size(), 8, [&](size_t i) { sinks[i] = shard.scan(); });
  for (const CollectingSink& sink : sinks) {
    EXPECT_TRUE(sink.faults.empty());
    ASSERT_EQ(sink.samples.size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(sink.samples[i].key, sinks[0].samples[i].key);
      for (const auto& [name, found] : sinks[0].samples[i].fields) {
        EXPECT_EQ(sink.samples[i].fields.at(name).field.extent, found.field.extent);
      }
    }
  }
}

std::vector<const Format*> writable_formats() {
  std::vector<const Format*> writable;
  for (const Format& format : formats()) {
    if (format.write != nullptr) writable.push_back(&format);
  }
  return writable;
}

INSTANTIATE_TEST_SUITE_P(Formats, Conformance, testing::ValuesIn(writable_formats()),
                         [](const auto& row) { return std::string(row.param->name); });

}  // namespace
}  // namespace stoker
