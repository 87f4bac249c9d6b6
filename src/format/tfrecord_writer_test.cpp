// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "dataset/npy.h"
#include "format/collecting_sink.h"
#include "format/tfrecord.h"
#include "format/tfrecord_bytes.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

struct Given {
  std::string name;
  Encoding encoding;
  std::string bytes;
};

/// Writes one sample; checks that its size was foretold.
std::string write(const std::string& key, const std::vector<Given>& given) {
  ShardOutput out(1);
  const auto writer = kTfrecordWrite.open({}, out);
  std::vector<OutField> fields;
  for (const Given& one : given) {
    OutField field;
    field.name = one.name;
    field.encoding = one.encoding;
    field.length = one.bytes.size();
    fields.push_back(field);
  }
  const uint64_t size = kTfrecordWrite.size_of_sample(key, fields);
  const OutSample one{key, fields};
  writer->place({&one, 1}, out);
  EXPECT_EQ(out.size(0), size);
  const std::byte* begin = out.pending(0).front().data();
  for (size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(fields[i].extent.offset, static_cast<uint64_t>(fields[i].data - begin));
    if (!given[i].bytes.empty()) {
      std::memcpy(fields[i].data, given[i].bytes.data(), given[i].bytes.size());
    }
  }
  writer->seal(out);
  writer->finish(out);
  return std::string(as_text(out.pending(0).front()));
}

Encoding encoding_of(FieldType type, Encoding encoding, DType dtype = DType::unknown) {
  Field field;
  field.type = type;
  field.encoding = encoding;
  field.dtype = dtype;
  return kTfrecordWrite.storage(field, 1).encoding;
}

TEST(TfrecordWriter, ExactBytes) {
  const std::string expected = record(example({{"__key__", bytes_feature({"a/b"})},
                                               {"image", bytes_feature({"pixels"})},
                                               {"label", int64s_feature({300})}}));
  EXPECT_EQ(write("a/b", {{"label", Encoding::tf_int64s, "\x0A\x02\xAC\x02"},
                          {"image", Encoding::raw, "pixels"}}),
            expected);
  EXPECT_EQ(write("k", {}), record(example({{"__key__", bytes_feature({"k"})}})));
}

TEST(TfrecordWriter, EveryEncoding) {
  const std::string npy = write_npy(DType::uint8, {}, as_bytes("x"));
  const std::string list = write_bytes_list(std::vector<Bytes>{as_bytes("p"), as_bytes("q")});
  EXPECT_EQ(write("k", {{"list", Encoding::tf_strings, list},
                        {"floats", Encoding::tf_floats, std::string("\x0A\x04\0\0\0\x3F", 6)},
                        {"array", Encoding::npy, npy},
                        {"empty", Encoding::raw, ""},
                        {"nothing", Encoding::tf_int64s, ""}}),
            record(example({{"__key__", bytes_feature({"k"})},
                            {"array.npy", bytes_feature({npy})},
                            {"empty", bytes_feature({""})},
                            {"floats", floats_feature({0.5F})},
                            {"list", bytes_feature({"p", "q"})},
                            {"nothing", int64s_feature({})}})));
}

TEST(TfrecordWriter, SortsByTheNameOfTheFeature) {
  const std::string npy(kNpyMagic);
  EXPECT_EQ(write("k", {{"x.nqy", Encoding::raw, ""},
                        {"x.npx", Encoding::raw, ""},
                        {"x", Encoding::npy, npy},
                        {"A", Encoding::raw, ""},
                        {"x.", Encoding::raw, ""}}),
            record(example({{"A", bytes_feature({""})},
                            {"__key__", bytes_feature({"k"})},
                            {"x.", bytes_feature({""})},
                            {"x.npx", bytes_feature({""})},
                            {"x.npy", bytes_feature({npy})},
                            {"x.nqy", bytes_feature({""})}})));
}

TEST(TfrecordWriter, SizesAtTheEdgesOfVarints) {
  for (const size_t size :
       {0, 1, 100, 110, 120, 126, 127, 128, 16'370, 16'383, 16'384, 2'097'152}) {
    const std::string bytes(size, 'x');
    EXPECT_EQ(write("k", {{"f", Encoding::raw, bytes}}),
              record(example({{"__key__", bytes_feature({"k"})}, {"f", bytes_feature({bytes})}})));
  }
}

TEST(TfrecordWriter, SealsSeveralRecords) {
  ShardOutput out(1);
  const auto writer = kTfrecordWrite.open({}, out);
  std::vector<OutField> fields(3);
  for (OutField& field : fields) {
    field.name = "f";
    field.length = 1;
  }
  const std::array samples = {OutSample{"a", {&fields[0], 1}}, OutSample{"b", {&fields[1], 1}},
                              OutSample{"c", {&fields[2], 1}}};
  const auto place = [&](size_t first, size_t count) {
    writer->place(std::span(samples).subspan(first, count), out);
    for (size_t i = first; i < first + count; ++i) *fields[i].data = std::byte{'x'};
  };
  const ShardOutput::Mark mark = out.mark();
  place(1, 2);  // does not count
  out.rewind(mark);
  place(0, 2);
  writer->seal(out);
  place(2, 1);
  writer->seal(out);
  std::string expected;
  for (const char* key : {"a", "b", "c"}) {
    expected += record(example({{"__key__", bytes_feature({key})}, {"f", bytes_feature({"x"})}}));
  }
  EXPECT_EQ(as_text(out.pending(0).front()), expected);
}

TEST(TfrecordWriter, WhatIsWrittenIsReadAgain) {
  const std::string npy = write_npy(DType::float32, std::vector<int64_t>{0}, {});
  std::string shard = write("a/b", {{"image", Encoding::raw, "pixels"}, {"x", Encoding::npy, npy}});
  shard += write("c", {{"label", Encoding::tf_int64s, "\x0A\x01\x07"}});
  FakeFileSystem files;
  files.add_file("/d/s", shard);
  CollectingSink found;
  scan_tfrecord({"/d", "s", "", &files}, {}, {"s", Compression::none, 0, 0}, found);
  EXPECT_TRUE(found.faults.empty());
  ASSERT_EQ(found.samples.size(), 2u);
  EXPECT_EQ(found.samples[0].key, "a/b");
  const Extent x = found.samples[0].fields.at("x").field.extent;
  EXPECT_EQ(shard.substr(x.offset, x.length), npy);
  EXPECT_EQ(found.samples[1].fields.at("label").field.integer, 7);
}

TEST(TfrecordWriter, Refuses) {
  EXPECT_THROW(write("k", {{"x", Encoding::decimal, "7"}}), Error);
  EXPECT_THROW(write("k", {{"x", Encoding::npy, ""}, {"x.npy", Encoding::raw, ""}}), Error);
  EXPECT_THROW(write("k", {{"__key__", Encoding::raw, ""}}), Error);
  OutField large;
  large.name = "x";
  large.length = uint64_t{1} << 31;
  ShardOutput out(1);
  const OutSample sample{"k", {&large, 1}};
  try {
    kTfrecordWrite.open({}, out)->place({&sample, 1}, out);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(std::string(error.what()),
              "tfrecord: sample 'k' would be an Example of 2.15 GB; the most is 2 GiB");
  }
}

TEST(TfrecordWriter, Encodings) {
  EXPECT_EQ(encoding_of(FieldType::bytes, Encoding::raw), Encoding::raw);
  EXPECT_EQ(encoding_of(FieldType::text, Encoding::raw), Encoding::raw);
  EXPECT_EQ(encoding_of(FieldType::list, Encoding::tf_strings), Encoding::tf_strings);
  EXPECT_EQ(encoding_of(FieldType::number, Encoding::none, DType::int64), Encoding::tf_int64s);
  EXPECT_EQ(encoding_of(FieldType::number, Encoding::decimal, DType::int64), Encoding::tf_int64s);
  for (const DType small : {DType::uint8, DType::int32, DType::bool8}) {
    EXPECT_EQ(encoding_of(FieldType::number, Encoding::elements, small), Encoding::tf_int64s);
  }
  EXPECT_EQ(encoding_of(FieldType::number, Encoding::elements, DType::uint64), Encoding::npy);
  EXPECT_EQ(encoding_of(FieldType::number, Encoding::decimal, DType::float64), Encoding::npy);
  EXPECT_EQ(encoding_of(FieldType::number, Encoding::decimal), Encoding::npy);
  EXPECT_EQ(encoding_of(FieldType::number, Encoding::tf_floats, DType::float32),
            Encoding::tf_floats);
  EXPECT_EQ(encoding_of(FieldType::array, Encoding::tf_int64s, DType::int64), Encoding::tf_int64s);
  EXPECT_EQ(encoding_of(FieldType::array, Encoding::npy, DType::int64), Encoding::npy);
  EXPECT_EQ(encoding_of(FieldType::number, Encoding::npy, DType::int64), Encoding::npy);
}

TEST(TfrecordWriter, NamesOfShards) {
  EXPECT_EQ(kTfrecordWrite.shard_name("train", 3, 128), "train-00003-of-00128");
  EXPECT_EQ(kTfrecordWrite.shard_name("t", 100'000, 100'001), "t-100000-of-100001");
}

}  // namespace
}  // namespace stoker
