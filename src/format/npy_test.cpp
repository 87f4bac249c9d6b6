// SPDX-License-Identifier: Apache-2.0
#include "format/npy.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <string>

#include "base/error.h"
#include "dataset/inflating_file.h"
#include "dataset/npy.h"
#include "format/collecting_sink.h"
#include "format/npy_arrays.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

using Texts = std::vector<std::string>;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(as_text(std::as_bytes(std::span(values))));
}

std::string npy_of(DType dtype, const std::vector<int64_t>& shape, const std::string& data) {
  return write_npy(dtype, shape, as_bytes(data));
}

/// A zip archive of stored members, as numpy.savez makes it.
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& members,
                   uint16_t method = 0) {
  const auto number = [](uint64_t value, size_t size) {
    return std::string(reinterpret_cast<const char*>(&value), size);
  };
  std::string archive, directory;
  for (const auto& [name, bytes] : members) {
    const std::string sizes = number(0, 4) + number(bytes.size(), 4) + number(bytes.size(), 4);
    directory += number(0x02014B50, 4) + number(45, 2) + number(45, 2) + number(0, 2) +
                 number(method, 2) + number(0, 4) + sizes + number(name.size(), 2) +
                 std::string(12, '\0') + number(archive.size(), 4) + name;
    archive += number(0x04034B50, 4) + number(45, 2) + number(0, 2) + number(method, 2) +
               number(0, 4) + sizes + number(name.size(), 2) + number(0, 2) + name + bytes;
  }
  const uint64_t begin = archive.size();
  archive += directory;
  return archive + number(0x06054B50, 4) + number(0, 4) + number(members.size(), 2) +
         number(members.size(), 2) + number(directory.size(), 4) + number(begin, 4) + number(0, 2);
}

std::string idx_of(uint8_t type, const std::vector<uint32_t>& shape, const std::string& data) {
  std::string file = {'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  for (const uint32_t dimension : shape) {
    const uint32_t big = __builtin_bswap32(dimension);
    file += std::string(reinterpret_cast<const char*>(&big), 4);
  }
  return file + data;
}

class NpyTest : public testing::Test {
 protected:
  void add(const std::string& name, const std::string& bytes) {
    files_.add_file("/d/" + name, bytes, 7);
    contents_[name] = bytes;
  }

  /// Detects and scans; the fields of the samples as text.
  void scan(const std::string& file = "", const std::string& inner = "") {
    const Source source{"/d", file, "", &files_, inner};
    layout_ = detect_npy(source);
    sink_ = {};
    if (!layout_) return;
    for (const Part& part : layout_->parts) scan_npy(source, *layout_, part, sink_);
  }

  std::string value(size_t sample, const std::string& name) const {
    const CollectingSink::Found& found = sink_.samples.at(sample).fields.at(name);
    const Extent& extent = found.field.extent;
    const std::string& file = contents_.at(sink_.shards.at(extent.number).path);
    Field field;
    field.type = found.field.type;
    field.encoding = found.field.encoding;
    field.dtype = found.field.dtype;
    field.shape = found.field.shape;
    const std::string stored = file.substr(extent.offset, extent.length);
    const Value value = decode_value(field, as_bytes(stored));
    if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
    if (const auto* real = std::get_if<double>(&value)) return std::to_string(*real);
    if (const auto* bytes = std::get_if<Bytes>(&value)) return std::string(as_text(*bytes));
    const Array& array = std::get<Array>(value);
    std::string text = std::string(name_of(array.dtype)) + "[";
    for (const int64_t dimension : array.shape) text += std::to_string(dimension) + ",";
    return text + "]" + std::string(as_text(array.data));
  }
  Texts keys() const {
    Texts keys;
    for (const auto& sample : sink_.samples) keys.push_back(sample.key);
    return keys;
  }
  Texts faults() const {
    Texts texts;
    for (const Fault& fault : sink_.faults) texts.push_back(fault.message());
    return texts;
  }

  FakeFileSystem files_;
  std::map<std::string, std::string> contents_;
  std::optional<Layout> layout_;
  CollectingSink sink_;
};

TEST_F(NpyTest, FilesOfADirectoryAreFields) {
  add("x.npy", npy_of(DType::uint8, {3, 2}, "abcdef"));
  add("y.npy", npy_of(DType::int32, {3}, bytes_of<int32_t>({5, -6, 7})));
  scan();
  EXPECT_EQ(faults(), Texts());
  EXPECT_EQ(keys(), (Texts{"0", "1", "2"}));
  EXPECT_EQ(value(1, "x"), "uint8[2,]cd");
  EXPECT_EQ(value(1, "y"), "-6");
  scan("x.npy");
  EXPECT_EQ(sink_.samples.size(), 3U);
  EXPECT_EQ(sink_.shards.size(), 1U);
}

TEST_F(NpyTest, BigEndianElementsAreRead) {
  std::string file = npy_of(DType::int16, {2}, bytes_of<int16_t>({0x0102, 0x0304}));
  file.replace(file.find("'<i2'"), 5, "'>i2'");
  add("x.npy", file);
  scan("x.npy");
  EXPECT_EQ(value(0, "x"), "513");
  EXPECT_EQ(value(1, "x"), "1027");
}

TEST_F(NpyTest, AStoredArchiveHasFieldsToo) {
  add("a.npz", zip_of({{"x.npy", npy_of(DType::uint8, {2, 2}, "abcd")},
                       {"y.npy", npy_of(DType::float64, {2}, bytes_of<double>({0.5, 1.5}))}}));
  scan("a.npz");
  EXPECT_EQ(faults(), Texts());
  EXPECT_EQ(keys(), (Texts{"0", "1"}));
  EXPECT_EQ(value(1, "x"), "uint8[2,]cd");
  EXPECT_EQ(value(1, "y"), "1.500000");
  add("b.npz", contents_["a.npz"]);
  scan();
  EXPECT_EQ(keys(), (Texts{"a/0", "a/1", "b/0", "b/1"}));
}

TEST_F(NpyTest, ACompressedArchiveIsNamed) {
  add("a.npz", zip_of({{"x.npy", "whatever"}}, 8));
  scan("a.npz");
  EXPECT_TRUE(sink_.samples.empty());
  ASSERT_EQ(sink_.faults.size(), 1U);
  EXPECT_NE(faults()[0].find("numpy.savez"), std::string::npos);
}

TEST_F(NpyTest, MnistIsImagesAndLabels) {
  add("train-images-idx3-ubyte", idx_of(8, {3, 2, 2}, "aaaabbbbcccc"));
  add("train-labels-idx1-ubyte", idx_of(8, {3}, std::string("\1\2\3")));
  scan("train-images-idx3-ubyte");
  EXPECT_EQ(faults(), Texts());
  EXPECT_EQ(keys(), (Texts{"0", "1", "2"}));
  EXPECT_EQ(value(1, "image"), "uint8[2,2,]bbbb");
  EXPECT_EQ(value(1, "label"), "2");
  add("t10k-images-idx3-ubyte", idx_of(8, {1, 2, 2}, "dddd"));
  add("t10k-labels-idx1-ubyte", idx_of(8, {1}, std::string("\4")));
  EXPECT_THROW(scan(), Error);  // train and test are two datasets
  scan("", "train");
  EXPECT_EQ(keys(), (Texts{"0", "1", "2"}));
  scan("", "test");
  EXPECT_EQ(keys(), (Texts{"0"}));
  EXPECT_EQ(value(0, "label"), "4");
}

TEST_F(NpyTest, ACompressedOneSaysSo) {
  const std::string plain = idx_of(8, {2}, std::string("\1\2"));
  std::string packed(1000, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string input = plain;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  add("t-labels-idx1-ubyte.gz", packed);
  scan();
  ASSERT_TRUE(layout_);
  EXPECT_EQ(layout_->parts[0].compression, Compression::gzip);
  ASSERT_EQ(sink_.samples.size(), 2U);
  EXPECT_EQ(sink_.samples[1].fields.at("label").field.extent.offset, 9U);
}

TEST_F(NpyTest, CifarHasRecords) {
  std::string batch;
  for (const char label : {'\3', '\7'}) batch += label + std::string(3072, 'a' + label);
  add("data_batch_1.bin", batch);
  add("data_batch_2.bin", batch.substr(0, 3073));
  add("batches.meta.txt", "airplane\nautomobile\n\n");
  scan();
  EXPECT_EQ(faults(), Texts());
  EXPECT_EQ(keys(), (Texts{"data_batch_1/0", "data_batch_1/1", "data_batch_2/0"}));
  EXPECT_EQ(value(1, "label"), "7");
  EXPECT_EQ(value(1, "image"), "uint8[3,32,32,]" + std::string(3072, 'h'));
  EXPECT_EQ(layout_->classes, (Texts{"airplane", "automobile"}));
  scan("data_batch_2.bin");
  EXPECT_EQ(keys(), (Texts{"0"}));
  add("data_batch_2.bin", batch.substr(0, 4000));
  scan();
  EXPECT_EQ(sink_.samples.size(), 3U);
  ASSERT_EQ(sink_.faults.size(), 1U);
  EXPECT_EQ(faults()[0],
            "data_batch_2.bin: offset 4000: the file is cut off: 2146 bytes are missing");
}

TEST_F(NpyTest, FilesThatAreSamplesAreLeftToFolders) {
  for (const char* name : {"s1.npy", "s2.npy", "s3.npy"}) {
    add(name, npy_of(DType::uint8, {2, 2}, "abcd"));
  }
  scan();
  EXPECT_FALSE(layout_);
  contents_.clear();
  files_ = {};
  for (const char* name : {"1.a.npy", "1.b.npy", "2.a.npy", "2.b.npy"}) {
    add(name, npy_of(DType::uint8, {2, 2}, "abcd"));
  }
  scan();
  EXPECT_FALSE(layout_);
  files_ = {};
  add("a.npy", npy_of(DType::uint8, {2}, "ab"));
  for (const char* other : {"b.bin", "a.json", "c.wav"}) {
    add(other, "x");
    scan();
    EXPECT_FALSE(layout_) << other;
    files_ = {};
    add("a.npy", npy_of(DType::uint8, {2}, "ab"));
  }
  add("README.md", "x");
  scan();
  EXPECT_TRUE(layout_);
  files_ = {};
  add("a.npy", npy_of(DType::uint8, {2}, "ab"));
  add("b.npy", npy_of(DType::uint8, {3}, "abc"));
  scan();
  EXPECT_FALSE(layout_);
}

TEST_F(NpyTest, LiesAboutSizesAreNamed) {
  const std::string good = npy_of(DType::uint8, {3, 2}, "abcdef");
  const auto with_shape = [&](const std::string& shape) {
    std::string file = good;
    const size_t at = file.find("(3, 2)");
    file.replace(at, shape.size(), shape);
    return file;
  };
  for (const char* shape :
       {"(4611686018427387904, 2), }", "(99999999999, 4), }", "(9223372036854775807, 0), }"}) {
    add("x.npy", with_shape(shape));
    try {
      scan("x.npy");
      EXPECT_LE(sink_.samples.size(), 3U) << shape;
      EXPECT_FALSE(sink_.faults.empty()) << shape;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("x.npy"), std::string::npos) << error.what();
    }
  }
  for (size_t size = good.size() - 6; size < good.size(); ++size) {
    add("x.npy", good.substr(0, size));
    scan("x.npy");
    EXPECT_EQ(sink_.samples.size(), (size - (good.size() - 6)) / 2);
    EXPECT_EQ(sink_.faults.size(), 1U);
  }
  add("x.npy", good + "more");
  scan("x.npy");
  EXPECT_EQ(sink_.samples.size(), 3U);
  EXPECT_EQ(faults(), Texts{"x.npy: offset 134: 4 bytes behind the last row"});
}

TEST_F(NpyTest, ADamagedArchiveIsNamed) {
  const std::string good = zip_of({{"x.npy", npy_of(DType::uint8, {2, 2}, "abcd")}});
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char filler : {'\xff', '\0'}) {
      std::string damaged = good;
      damaged.replace(at, std::min<size_t>(4, good.size() - at), 4, filler);
      add("a.npz", damaged);
      try {
        scan("a.npz");
        for (const auto& sample : sink_.samples) {
          for (const auto& [name, found] : sample.fields) {
            const Extent& extent = found.field.extent;
            ASSERT_LE(extent.offset + extent.length, damaged.size());
          }
        }
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("a.npz"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(FortranFile, IsReadAsIfInCOrder) {
  // Element (i, j, k) of a 3 × 2 × 4 array is 100 i + 10 j + k.
  std::vector<int16_t> in_c, in_fortran;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int k = 0; k < 4; ++k) in_c.push_back(static_cast<int16_t>(100 * i + 10 * j + k));
    }
  }
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 2; ++j) {
      for (int i = 0; i < 3; ++i) in_fortran.push_back(static_cast<int16_t>(100 * i + 10 * j + k));
    }
  }
  std::string file = npy_of(DType::int16, {3, 2, 4}, bytes_of(in_fortran));
  file.replace(file.find("False"), 5, "True ");
  FakeFileSystem files;
  files.add_file("/x.npy", file);
  const auto view = inflate(files.open("/x.npy"), "/x.npy", Compression::fortran);
  std::string got(file.size(), '\0');
  EXPECT_EQ(view->read_at(0, std::as_writable_bytes(std::span(got))), file.size());
  EXPECT_EQ(got.substr(128), bytes_of(in_c));
  std::string part(6, '\0');
  EXPECT_EQ(view->read_at(128 + 10, std::as_writable_bytes(std::span(part))), 6U);
  EXPECT_EQ(part, bytes_of(in_c).substr(10, 6));
  EXPECT_EQ(view->read_at(file.size(), std::as_writable_bytes(std::span(part))), 0U);
  files.add_file("/x.npy", file.substr(0, file.size() - 1));
  const auto cut = inflate(files.open("/x.npy"), "/x.npy", Compression::fortran);
  EXPECT_LT(cut->read_at(0, std::as_writable_bytes(std::span(got))), file.size());
}

TEST_F(NpyTest, FortranOrderIsForPack) {
  std::string file = npy_of(DType::uint8, {2, 3}, "abcdef");
  file.replace(file.find("False"), 5, "True ");
  add("x.npy", file);
  scan("x.npy");
  ASSERT_TRUE(layout_);
  EXPECT_EQ(layout_->parts[0].compression, Compression::fortran);
  EXPECT_EQ(sink_.shards[0].compression, Compression::fortran);
  EXPECT_EQ(sink_.samples.size(), 2U);
}

}  // namespace
}  // namespace stoker
