// SPDX-License-Identifier: Apache-2.0
// What every format that can be written must keep: a new row in the table is tested by being there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>

#include "base/parallel.h"
#include "dataset/value.h"
#include "format/collecting_sink.h"
#include "format/format.h"
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
  return {{name, FieldType::array, Encoding::npy, DType::float32, {}, {}, 0},
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

struct WrittenShard {
  std::string bytes;
  std::vector<uint64_t> sample_ends, payload_ends;
};

WrittenShard write_shard(const WriteFormat& format, const std::vector<TestSample>& samples) {
  WrittenShard shard;
  OutBuffer out(1 << 20);
  const auto writer = format.open();
  for (const TestSample& sample : samples) {
    std::vector<OutField> fields;
    std::vector<std::string> stored;
    for (const auto& [field, suffix, value] : sample.fields) {
      const Encoding encoding = format.encoding(field);
      stored.push_back(encode_value(*value, encoding));
      fields.push_back({field.name, suffix, encoding, field.type, stored.back().size()});
    }
    const size_t before = out.size();
    writer->place(sample.key, fields, 0, out);
    EXPECT_LE(out.size() - before, format.size_of_sample(sample.key, fields));
    for (size_t i = 0; i < fields.size(); ++i) {
      EXPECT_EQ(fields[i].data, out.data() + fields[i].offset);
      std::memcpy(fields[i].data, stored[i].data(), stored[i].size());
    }
    writer->seal();
    shard.sample_ends.push_back(out.size());
    uint64_t& payload_end = shard.payload_ends.emplace_back(before);
    for (const OutField& field : fields) {
      payload_end = std::max(payload_end, field.offset + field.length);
    }
  }
  writer->finish(out);
  shard.bytes = as_text(out.bytes());
  return shard;
}

/// A shard in memory, as a dataset of one file.
class OneShard {
 public:
  OneShard(const Format& format, std::string bytes)
      : format_(format), bytes_(std::move(bytes)), name_(format.write->shard_name("x", 0, 1)) {
    files_.add_file("/data/" + name_, bytes_);
  }

  CollectingSink scan() {
    const Source source{"/data", name_, "", &files_};
    CollectingSink sink;
    format_.scan(source, {}, {name_, Compression::none, 0, 0}, sink);
    return sink;
  }
  std::optional<Layout> detect(const std::string& file) {
    return format_.detect({"/data", file, "", &files_});
  }
  const std::string& name() const { return name_; }

  /// What a field holds, as a reader would have it.
  Value value_of(const CollectingSink::Found& found) const {
    const Extent& extent = found.field.extent;
    Field field;
    field.type = found.field.type;
    field.encoding = found.field.encoding;
    field.dtype = found.field.dtype;
    return decode_value(field, as_bytes(bytes_).subspan(extent.offset, extent.length));
  }

  /// Whatever was done to the shard, nobody is sent to bytes it has not got.
  void expect_inside(const CollectingSink& sink) const {
    for (const auto& sample : sink.samples) {
      for (const auto& [name, found] : sample.fields) {
        const Extent& extent = found.field.extent;
        ASSERT_EQ(extent.container, Container::shard);
        ASSERT_LE(extent.offset, bytes_.size());
        ASSERT_LE(extent.length, bytes_.size() - extent.offset);
      }
    }
  }

 private:
  const Format& format_;
  std::string bytes_, name_;
  FakeFileSystem files_;
};

class Conformance : public testing::TestWithParam<const Format*> {
 protected:
  const Format& format() const { return *GetParam(); }
  WrittenShard write(const std::vector<TestSample>& samples) const {
    return write_shard(*format().write, samples);
  }
};

TEST_P(Conformance, WhatIsWrittenIsFound) {
  const std::vector<TestSample> samples = all_kinds();
  OneShard shard(format(), write(samples).bytes);
  const CollectingSink sink = shard.scan();
  for (const Fault& fault : sink.faults) ADD_FAILURE() << fault.message();
  ASSERT_EQ(sink.shards.size(), 1U);
  EXPECT_EQ(sink.shards[0].path, shard.name());
  ASSERT_EQ(sink.samples.size(), samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(sink.samples[i].key, samples[i].key);
    EXPECT_EQ(sink.samples[i].fields.size(), samples[i].fields.size());
    for (const auto& [field, suffix, value] : samples[i].fields) {
      const auto found = sink.samples[i].fields.find(field.name);
      ASSERT_NE(found, sink.samples[i].fields.end()) << samples[i].key << ": " << field.name;
      EXPECT_TRUE(equal_values(shard.value_of(found->second), *value)) << field.name;
    }
  }
}

TEST_P(Conformance, TheSameSamplesGiveTheSameBytes) {
  EXPECT_EQ(write(all_kinds()).bytes, write(all_kinds()).bytes);
}

TEST_P(Conformance, AShardIsDetected) {
  const std::string bytes = write(few()).bytes;
  OneShard shard(format(), bytes);
  const auto as_file = shard.detect(shard.name());
  ASSERT_TRUE(as_file.has_value());
  EXPECT_EQ(as_file->parts.at(0).shard, shard.name());
  const auto as_directory = shard.detect("");
  ASSERT_TRUE(as_directory.has_value());
  EXPECT_EQ(as_directory->parts.at(0).shard, shard.name());
  for (const Format& other : formats()) {
    if (&other == &format() || other.write == nullptr) continue;
    FakeFileSystem files;
    files.add_file("/data/" + shard.name(), bytes);
    EXPECT_FALSE(other.detect({"/data", shard.name(), "", &files})) << other.name;
  }
}

TEST_P(Conformance, NoTruncationGoesUnnoticed) {
  const WrittenShard whole = write(few());
  const bool has_end = whole.sample_ends.back() < whole.bytes.size();
  for (size_t size = 0; size < whole.bytes.size(); ++size) {
    OneShard shard(format(), whole.bytes.substr(0, size));
    const CollectingSink sink = shard.scan();
    shard.expect_inside(sink);
    const bool between_samples =
        size == 0 || std::find(whole.sample_ends.begin(), whole.sample_ends.end(), size) !=
                         whole.sample_ends.end();
    // A format without an end leaves a cut between samples to whoever counts them.
    const bool noticed =
        !sink.faults.empty() || sink.samples.size() == 3 || (!has_end && between_samples);
    EXPECT_TRUE(noticed) << "cut at " << size << ", " << sink.samples.size() << " samples";
    const auto& ends = whole.payload_ends;
    const auto complete = std::upper_bound(ends.begin(), ends.end(), size) - ends.begin();
    // Of the first sample nobody knows which fields it should have: there a fault must do.
    const size_t most = std::max<size_t>(static_cast<size_t>(complete), 1);
    EXPECT_LE(sink.samples.size(), most) << "cut at " << size;
    for (size_t i = 0; i < sink.samples.size(); ++i) {
      EXPECT_EQ(sink.samples[i].key, few()[i].key);
    }
  }
}

/// In the middle of zeros one place is like another: every 16th will do.
bool is_dull(std::string_view bytes, size_t at) {
  const std::string_view around = bytes.substr(at < 8 ? 0 : at - 8, 16);
  return at % 16 != 0 && around.find_first_not_of('\0') == around.npos;
}

TEST_P(Conformance, FlippedBitsAreSurvived) {
  const std::string whole = write(few()).bytes;
  for (size_t at = 0; at < whole.size(); ++at) {
    if (is_dull(whole, at)) continue;
    for (const int flip : {1 << (at % 8), 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      OneShard shard(format(), damaged);
      shard.expect_inside(shard.scan());
    }
  }
}

TEST_P(Conformance, AbsurdNumbersAreSurvived) {
  const std::string whole = write(few()).bytes;
  for (size_t at = 0; at + 8 <= whole.size(); ++at) {
    if (is_dull(whole, at)) continue;
    for (const char filler : {'\xff', '\0', '7'}) {
      std::string damaged = whole;
      damaged.replace(at, 8, 8, filler);
      OneShard shard(format(), damaged);
      shard.expect_inside(shard.scan());
    }
  }
}

TEST_P(Conformance, AnythingElseIsSurvived) {
  std::mt19937 random(1);
  const std::string whole = write(few()).bytes;
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 5000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    // Something it knows, with noise in its middle, behind it, or nothing but noise.
    if (round % 3 == 0) bytes.insert(random() % (bytes.size() + 1), whole);
    if (round % 3 == 1) bytes = whole.substr(0, random() % whole.size()) + bytes;
    OneShard shard(format(), bytes);
    const CollectingSink sink = shard.scan();
    shard.expect_inside(sink);
    EXPECT_TRUE(bytes.empty() || !sink.faults.empty());
  }
}

TEST_P(Conformance, ScansAtTheSameTimeThreaded) {
  OneShard shard(format(), write(all_kinds()).bytes);
  std::vector<CollectingSink> sinks(16);
  parallel_for(sinks.size(), 8, [&](size_t i) { sinks[i] = shard.scan(); });
  for (const CollectingSink& sink : sinks) {
    EXPECT_TRUE(sink.faults.empty());
    ASSERT_EQ(sink.samples.size(), 4U);
    for (size_t i = 0; i < 4; ++i) {
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
