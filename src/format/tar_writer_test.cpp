// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "format/tar.h"
#include "format/tar_test_data.h"

namespace stoker::tar_test {
namespace {

using Texts = std::vector<std::string>;

struct Value {
  std::string name, suffix, contents;
  FieldType type = FieldType::bytes;
  Encoding encoding = Encoding::raw;
};
struct Sample {
  std::string key;
  std::vector<Value> values;
};

std::vector<OutField> fields_of(const Sample& sample) {
  std::vector<OutField> fields;
  for (const Value& value : sample.values) {
    OutField field;
    field.name = value.name;
    field.suffix = value.suffix;
    field.type = value.type;
    field.encoding = value.encoding;
    field.length = value.contents.size();
    fields.push_back(field);
  }
  return fields;
}

/// Writes a shard as pack does, in two buffers; checks what the writer promises on the way.
std::string write(const std::vector<Sample>& samples) {
  ShardOutput out(1);
  const auto writer = kTarWrite.open({}, out);
  std::string shard;
  const auto flush = [&] {
    for (const Bytes piece : out.pending(0)) shard += as_text(piece);
    (void)out.take();
  };
  for (const Sample& sample : samples) {
    if (out.pending() > 5000) flush();
    std::vector<OutField> fields = fields_of(sample);
    const uint64_t before = out.size(0);
    const uint64_t size = kTarWrite.size_of_sample(sample.key, fields);
    const OutSample one{sample.key, fields};
    writer->place({&one, 1}, out);
    EXPECT_EQ(out.size(0) - before, size) << sample.key;
    for (size_t i = 0; i < fields.size(); ++i) {
      std::memcpy(fields[i].data, sample.values[i].contents.data(), fields[i].length);
    }
    writer->seal(out);
    std::string there;
    for (const Bytes piece : out.pending(0)) there += as_text(piece);
    for (size_t i = 0; i < fields.size(); ++i) {
      const Extent& extent = fields[i].extent;
      EXPECT_EQ(there.substr(extent.offset - shard.size(), extent.length),
                sample.values[i].contents);
    }
  }
  writer->finish(out);
  flush();
  return shard;
}

const Value kImage{"image", "JPEG", "pixels"};
const Value kLabel{"label", "", "12", FieldType::number, Encoding::decimal};

TEST(TarWriter, RoundTrip) {
  std::vector<Sample> samples;
  for (int i = 0; i < 50; ++i) {
    samples.push_back({fmt::format("dir.{}/{:04}", i / 10, i),
                       {{"image", "jpg", std::string(i * 37, 'x')}, kLabel}});
  }
  const std::string shard = write(samples);
  EXPECT_EQ(shard.size() % 512, 0U);
  const Recorder found = scan(shard);
  EXPECT_EQ(found.faults_text(), "");
  ASSERT_EQ(found.samples.size(), samples.size());
  EXPECT_EQ(found.samples[2], "dir.0/0002: image(jpg)=" + std::string(74, 'x') + " label(cls)=12");
}

TEST(TarWriter, NamesOfEveryLength) {
  for (const size_t directory : {0, 50, 99, 150, 155, 156, 200}) {
    for (size_t base = 90; base < 110; ++base) {
      const std::string key =
          (directory == 0 ? "" : std::string(directory, 'd') + "/") + std::string(base, 'b');
      const std::string shard = write({{key, {kImage}}});
      const Recorder found = scan(shard);
      EXPECT_EQ(found.samples, (Texts{key + ": image(JPEG)=pixels"}));
      EXPECT_EQ(found.faults_text(), "");
      // Only names that do not fit have a pax header.
      const bool fits = key.size() + 5 <= 100 || (directory <= 155 && base + 5 <= 100);
      EXPECT_EQ(shard.size(), fits ? 2048U : 3072U) << key.size();
    }
  }
}

TEST(TarWriter, NamesOfAnyBytes) {
  const std::string keys[] = {"\xff\xfe", std::string(300, '\xff'), "new\nline",
                              std::string(300, 'k'), std::string(600, 'k') + "/x"};
  for (const std::string& key : keys) {
    const std::string shard = write({{key, {kImage, kLabel}}});
    EXPECT_EQ(scan(shard).samples, (Texts{key + ": image(JPEG)=pixels label(cls)=12"}));
    EXPECT_EQ(shard.find("hdrcharset=BINARY") != std::string::npos, key == keys[1]);
  }
}

TEST(TarWriter, FieldsKeepTheirNames) {
  const std::vector<Value> values = {{"jpg", "", "1"},
                                     {"image", "", "2"},
                                     {"caption", "caption.json", "{}", FieldType::text},
                                     {"x/y", "", "[]", FieldType::text},
                                     {"a", "", "npy", FieldType::array, Encoding::npy},
                                     {"n", "", "npy", FieldType::number, Encoding::npy},
                                     {"words", "", "list", FieldType::list, Encoding::tf_strings},
                                     {"data", "", "3"},
                                     {"", "", "4"}};
  const Recorder found = scan(write({{"k", values}}));
  EXPECT_EQ(found.samples,
            (Texts{"k: jpg(%6Apg)=1 image(image)=2 caption(caption.json)={} x/y(x%2Fy.txt)=[] "
                   "a(a.npy)=npy n(n.npy)=npy words(words.byteslist)=list data(data)=3 (%)=4"}));
  EXPECT_EQ(found.faults_text(), "");
}

TEST(TarWriter, SuffixesOfTheSourceAreKeptWhereTheyMeanTheSameTogether) {
  const Recorder found = scan(write(
      {{"a", {{"image", "jpg", "1"}, {"png", "png", "2"}}},
       {"b",
        {{"x.txt", "x.txt", "3", FieldType::text}, {"x.json", "x.json", "4", FieldType::text}}},
       {"c", {{"png", "png", "5"}}},
       {"d", {{"image", "png", "6"}, {"jpg", "jpg", "7"}}}}));
  EXPECT_EQ(found.samples,
            (Texts{"a: image(jpg)=1 png(png)=2", "b: x.txt(x.txt)=3 x.json(x.json)=4",
                   "c: png(%70ng)=5", "d: image(png)=6 jpg(%6Apg)=7"}));
}

TEST(TarWriter, SuffixIsToldInAdvance) {
  Field field;
  field.name = "image";
  EXPECT_EQ(kTarWrite.suffix(field, Encoding::raw, "jpeg"), "jpeg");
  EXPECT_EQ(kTarWrite.suffix(field, Encoding::raw, ""), "image");
  field.name = "png";
  EXPECT_EQ(kTarWrite.suffix(field, Encoding::raw, "png"), "png");
  EXPECT_EQ(kTarWrite.suffix(field, Encoding::raw, ""), "%70ng");
}

TEST(TarWriter, LargeMembersHaveAPaxHeader) {
  const Sample sample{"k", {kImage}};
  std::vector<OutField> fields = fields_of(sample);
  const uint64_t limit = uint64_t{1} << 33;
  fields[0].length = limit - 1;
  EXPECT_EQ(kTarWrite.size_of_sample("k", fields), 512 + limit);
  fields[0].length = limit;
  EXPECT_EQ(kTarWrite.size_of_sample("k", fields), 1024 + 512 + limit);
}

TEST(TarWriter, KeysThatWouldNotComeBackAreRefused) {
  const Sample sample{"k", {kImage}};
  const std::vector<OutField> fields = fields_of(sample);
  for (const char* key : {"", "a.b", "/a", "../a", "a/", "./a", ".a"}) {
    EXPECT_THROW(kTarWrite.size_of_sample(key, fields), Error) << key;
  }
}

TEST(TarWriter, EncodingsThatNoFileHasAreConverted) {
  Field field;
  const auto target = [&](FieldType type, Encoding encoding, DType dtype) {
    field.type = type;
    field.encoding = encoding;
    field.dtype = dtype;
    return kTarWrite.storage(field, 1).encoding;
  };
  EXPECT_EQ(target(FieldType::bytes, Encoding::raw, DType::unknown), Encoding::raw);
  EXPECT_EQ(target(FieldType::number, Encoding::none, DType::int64), Encoding::decimal);
  EXPECT_EQ(target(FieldType::number, Encoding::none, DType::float64), Encoding::npy);
  EXPECT_EQ(target(FieldType::number, Encoding::tf_int64s, DType::int64), Encoding::decimal);
  EXPECT_EQ(target(FieldType::number, Encoding::tf_floats, DType::float32), Encoding::npy);
  EXPECT_EQ(target(FieldType::array, Encoding::tf_int64s, DType::int64), Encoding::npy);
  EXPECT_EQ(target(FieldType::array, Encoding::npy, DType::int64), Encoding::npy);
  EXPECT_EQ(target(FieldType::list, Encoding::tf_strings, DType::unknown), Encoding::tf_strings);
}

TEST(TarWriter, SameBytesEveryTime) {
  const std::string shard = write({{"a", {kImage}}});
  const TarHeader& header = as_tar_header(as_bytes(shard));
  EXPECT_EQ(tar_text(header.name), "a.JPEG");
  EXPECT_EQ(tar_text(header.mode), "0000644");
  EXPECT_EQ(tar_text(header.uid), "0000000");
  EXPECT_EQ(tar_text(header.size), "00000000006");
  EXPECT_EQ(tar_text(header.mtime), "00000000000");
  EXPECT_EQ(tar_text(header.uname), "");
  EXPECT_EQ(shard.substr(512), padded("pixels") + kEnd);
  EXPECT_EQ(write({}), kEnd);
  EXPECT_EQ(kTarWrite.shard_name("train", 3, 10), "train-000003.tar");
}

}  // namespace
}  // namespace stoker::tar_test
