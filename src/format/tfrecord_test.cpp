// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cerrno>
#include <limits>

#include "base/error.h"
#include "dataset/npy.h"
#include "format/collecting_sink.h"
#include "format/tf_example.h"
#include "format/tfrecord_bytes.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

using namespace std::string_literals;

CollectingSink scan(FakeFileSystem& files, const Part& part) {
  CollectingSink sink;
  const Source source{"/d", part.shard, "", &files};
  scan_tfrecord(source, {}, part, sink);
  return sink;
}

CollectingSink scan(const std::string& contents, const std::string& name = "s.tfrecord",
                    Compression compression = Compression::none) {
  FakeFileSystem files;
  files.add_file("/d/" + name, contents, 99);
  return scan(files, {name, compression, 0, 0});
}

std::string gzip(const std::string& text, int window_bits = 31) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string labelled(int64_t label) {
  return example({{"image", bytes_feature({"pixels of " + std::to_string(label)})},
                  {"label", int64s_feature({label})}});
}

/// The bytes of the shard that a field lies in.
std::string stored(const std::string& shard, const CollectingSink::Sample& sample,
                   const std::string& field) {
  const Extent& extent = sample.fields.at(field).field.extent;
  EXPECT_EQ(extent.container, Container::shard);
  return shard.substr(extent.offset, extent.length);
}

TEST(TfrecordScan, FindsSamplesAndFields) {
  const std::string shard = record(labelled(3)) + record(labelled(-1));
  const CollectingSink found = scan(shard, "train.tfrecord");
  ASSERT_EQ(found.shards.size(), 1u);
  EXPECT_EQ(found.shards[0].path, "train.tfrecord");
  EXPECT_EQ(found.shards[0].size, shard.size());
  EXPECT_EQ(found.shards[0].end, shard.size());
  EXPECT_EQ(found.shards[0].modified_ns, 99);
  EXPECT_TRUE(found.faults.empty());
  ASSERT_EQ(found.samples.size(), 2u);
  EXPECT_EQ(found.samples[0].key, "train-00000000");
  EXPECT_EQ(found.samples[1].key, "train-00000001");
  EXPECT_EQ(stored(shard, found.samples[1], "image"), "pixels of -1");
  const FoundField label = found.samples[1].fields.at("label").field;
  EXPECT_EQ(label.type, FieldType::number);
  EXPECT_EQ(label.encoding, Encoding::tf_int64s);
  EXPECT_EQ(label.dtype, DType::int64);
  EXPECT_EQ(label.integer, -1);
  EXPECT_EQ(stored(shard, found.samples[0], "label"), "\x0A\x01\x03");
  ASSERT_EQ(found.checksums.size(), 2u);
  EXPECT_EQ(found.checksums[0].offset, 12u);
  EXPECT_EQ(found.checksums[0].length, labelled(3).size());
  EXPECT_EQ(found.checksums[0].crc, crc32c(as_bytes(labelled(3))));
  EXPECT_EQ(found.checksums[0].what, "record");
}

TEST(TfrecordScan, TypesOfFields) {
  const std::string npy = write_npy(DType::uint8, {}, as_bytes("x"));
  const std::string shard = record(example({{"array.npy", bytes_feature({npy})},
                                            {"both", int64s_feature({1})},
                                            {"both.npy", bytes_feature({npy})},
                                            {"empty", bytes_feature({""})},
                                            {"floats", floats_feature({1, 2, 3})},
                                            {"half", floats_feature({0.5F})},
                                            {"integers", int64s_feature({})},
                                            {"list", bytes_feature({"a", "b"})},
                                            {"none", bytes_feature({})},
                                            {"nothing", ""},
                                            {"not.npy", bytes_feature({"NUMPY"})}}));
  const CollectingSink found = scan(shard);
  ASSERT_TRUE(found.faults.empty());
  ASSERT_EQ(found.samples.size(), 1u);
  const auto& sample = found.samples[0];
  EXPECT_EQ(sample.fields.size(), 10u);
  const auto expect = [&](const char* name, FieldType type, Encoding encoding) {
    ASSERT_TRUE(sample.fields.contains(name)) << name;
    EXPECT_EQ(sample.fields.at(name).field.type, type) << name;
    EXPECT_EQ(sample.fields.at(name).field.encoding, encoding) << name;
  };
  expect("array", FieldType::array, Encoding::npy);
  expect("both", FieldType::number, Encoding::tf_int64s);
  expect("both.npy", FieldType::bytes, Encoding::raw);
  expect("empty", FieldType::bytes, Encoding::raw);
  expect("floats", FieldType::array, Encoding::tf_floats);
  expect("half", FieldType::number, Encoding::tf_floats);
  expect("integers", FieldType::array, Encoding::tf_int64s);
  expect("list", FieldType::list, Encoding::tf_strings);
  expect("none", FieldType::list, Encoding::tf_strings);
  expect("not.npy", FieldType::bytes, Encoding::raw);
  EXPECT_EQ(stored(shard, sample, "array"), npy);
  EXPECT_EQ(stored(shard, sample, "empty"), "");
  EXPECT_EQ(stored(shard, sample, "list"),
            "\x0A\x01"
            "a\x0A\x01"
            "b");
  EXPECT_EQ(sample.fields.at("floats").field.shape, std::vector<int64_t>{3});
  EXPECT_EQ(sample.fields.at("integers").field.shape, std::vector<int64_t>{0});
  EXPECT_EQ(sample.fields.at("half").field.real, 0.5);
  EXPECT_EQ(sample.fields.at("half").field.shape, std::nullopt);
}

TEST(TfrecordScan, KeysFromTheExample) {
  const std::string shard =
      record(example({{"__key__", bytes_feature({"a/b"})}, {"x", bytes_feature({"1"})}})) +
      record(example({{"__key__", bytes_feature({""})}})) +
      record(example({{"__key__", int64s_feature({5})}})) +
      record(example({{"__key__", bytes_feature({std::string(5000, 'k')})}}));
  const CollectingSink found = scan(shard);
  ASSERT_EQ(found.samples.size(), 3u);
  EXPECT_EQ(found.samples[0].key, "a/b");
  EXPECT_EQ(found.samples[0].fields.size(), 1u);
  EXPECT_EQ(found.samples[1].key, "s-00000001");
  EXPECT_EQ(found.samples[2].key, "s-00000002");
  EXPECT_EQ(found.samples[2].fields.at("__key__").field.integer, 5);
  ASSERT_EQ(found.faults.size(), 1u);
  EXPECT_EQ(found.faults[0].cause, "key of 5000 bytes is too long");
  EXPECT_EQ(found.faults[0].sample, "s-00000003");
}

TEST(TfrecordScan, PlainRecords) {
  const std::string shard = record("any bytes") + record(labelled(1)) + record("");
  const CollectingSink found = scan(shard, "deep/er/x.y.tfrec");
  EXPECT_TRUE(found.faults.empty());
  ASSERT_EQ(found.samples.size(), 3u);
  EXPECT_EQ(found.samples[0].key, "x_y-00000000");
  EXPECT_EQ(stored(shard, found.samples[0], "data"), "any bytes");
  EXPECT_EQ(found.samples[0].fields.at("data").field.type, FieldType::bytes);
  EXPECT_EQ(stored(shard, found.samples[1], "data"), labelled(1));
  EXPECT_EQ(stored(shard, found.samples[2], "data"), "");
  EXPECT_EQ(found.checksums.size(), 3u);
  // An Example that holds nothing, and a SequenceExample, are kept whole.
  for (const std::string& first : {""s, message_field(1, ""), labelled(1) + message_field(2, "")}) {
    EXPECT_TRUE(scan(record(first)).samples[0].fields.contains("data"));
  }
}

TEST(TfrecordScan, ARecordThatIsNoExample) {
  const std::string shard = record(labelled(1)) + record("not one") + record(labelled(2)) +
                            record(labelled(3) + message_field(2, ""));
  const CollectingSink found = scan(shard);
  ASSERT_EQ(found.samples.size(), 2u);
  EXPECT_EQ(found.samples[1].key, "s-00000002");
  ASSERT_EQ(found.faults.size(), 2u);
  EXPECT_EQ(found.faults[0].shard, "s.tfrecord");
  EXPECT_EQ(found.faults[0].offset, record(labelled(1)).size());
  EXPECT_EQ(found.faults[0].sample, "s-00000001");
  EXPECT_EQ(found.faults[0].cause,
            "record is no tf.train.Example: protobuf field 13 has wire type 6, which is not used");
  EXPECT_EQ(found.faults[1].cause,
            "record is no tf.train.Example: it is a tf.train.SequenceExample");
  EXPECT_EQ(found.checksums.size(), 4u);
}

TEST(TfrecordScan, ADamagedFirstRecordDecidesNothing) {
  std::string shard = record(labelled(1)) + record(labelled(2));
  shard[12] ^= 0x40;
  const CollectingSink found = scan(shard);
  ASSERT_EQ(found.samples.size(), 1u);
  EXPECT_EQ(found.samples[0].fields.at("label").field.integer, 2);
  ASSERT_EQ(found.faults.size(), 1u);
  EXPECT_EQ(found.faults[0].sample, "s-00000000");
  EXPECT_TRUE(found.faults[0].cause.starts_with("checksum of the record is "))
      << found.faults[0].cause;
}

TEST(TfrecordScan, EmptyFile) {
  const CollectingSink found = scan("");
  EXPECT_EQ(found.shards.size(), 1u);
  EXPECT_TRUE(found.samples.empty());
  EXPECT_TRUE(found.faults.empty());
}

TEST(TfrecordScan, TruncatedAnywhere) {
  const std::string first = record(labelled(1)), second = record(labelled(2));
  for (size_t cut = 1; cut < second.size(); ++cut) {
    const CollectingSink found = scan(first + second.substr(0, cut));
    ASSERT_EQ(found.samples.size(), 1u) << cut;
    ASSERT_EQ(found.faults.size(), 1u) << cut;
    EXPECT_EQ(found.faults[0].offset, first.size());
    const std::string missing = std::to_string((cut < 12 ? 12 : second.size()) - cut);
    EXPECT_TRUE(found.faults[0].cause.starts_with("truncated: ")) << found.faults[0].cause;
    EXPECT_NE(found.faults[0].cause.find(" " + missing + " bytes"), std::string::npos)
        << cut << ": " << found.faults[0].cause;
  }
}

TEST(TfrecordScan, AbsurdLengths) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  for (const uint64_t length : {most, most - 3, most - 4, uint64_t{1} << 63, uint64_t{1} << 32}) {
    for (const Compression compression : {Compression::none, Compression::gzip}) {
      const std::string shard = record(labelled(1)) + record_head(length) + "some more bytes";
      const bool compressed = compression != Compression::none;
      const CollectingSink found =
          scan(compressed ? gzip(shard) : shard, "s.tfrecord", compression);
      EXPECT_EQ(found.samples.size(), 1u);
      ASSERT_EQ(found.faults.size(), 1u);
      EXPECT_EQ(found.faults[0].offset, record(labelled(1)).size());
      EXPECT_TRUE(found.faults[0].cause.starts_with("truncated: ")) << found.faults[0].cause;
    }
  }
  EXPECT_EQ(scan(record_head(most) + "12345").faults[0].cause,
            "truncated: the file ends over 18446744073709551610 bytes before the record of "
            "18446744073709551615 bytes does");
}

TEST(TfrecordScan, GoesOnBehindAWrongLength) {
  const std::string first = record(labelled(1)), bad = record(labelled(2)),
                    last = record(labelled(3));
  for (size_t byte = 0; byte < 12; ++byte) {
    std::string shard = first + bad + last;
    shard[first.size() + byte] ^= 0x10;
    const CollectingSink found = scan(shard);
    ASSERT_EQ(found.samples.size(), 2u) << byte;
    EXPECT_EQ(found.samples[1].fields.at("label").field.integer, 3);
    EXPECT_EQ(found.samples[1].key, "s-00000002");
    ASSERT_EQ(found.faults.size(), 1u);
    EXPECT_EQ(found.faults[0].offset, first.size());
    EXPECT_TRUE(found.faults[0].cause.starts_with("checksum of a record's length is "));
    EXPECT_TRUE(found.faults[0].cause.ends_with("; passed over " + std::to_string(bad.size()) +
                                                " bytes to the next record"))
        << found.faults[0].cause;
  }
}

TEST(TfrecordScan, FindsNothingBehindAWrongLength) {
  std::string shard = record(labelled(1)) + std::string(200'000, '\0');
  CollectingSink found = scan(shard);
  EXPECT_EQ(found.samples.size(), 1u);
  ASSERT_EQ(found.faults.size(), 1u);
  EXPECT_TRUE(
      found.faults[0].cause.ends_with("; no record follows in the 200000 bytes up to the end"))
      << found.faults[0].cause;
  found = scan("no tfrecord at all");
  EXPECT_TRUE(found.samples.empty());
  EXPECT_EQ(found.faults.size(), 1u);
}

TEST(TfrecordScan, SearchesAcrossWindows) {
  for (const size_t gap : {65'524, 65'530, 65'536, 65'540, 131'061}) {
    const std::string shard =
        record(labelled(1)) + std::string(gap, '\0') + record(labelled(2)) + record(labelled(3));
    const CollectingSink found = scan(shard);
    EXPECT_EQ(found.samples.size(), 3u) << gap;
    EXPECT_EQ(found.faults.size(), 1u) << gap;
  }
}

TEST(TfrecordScan, AHeadByChanceIsNotBelieved) {
  // A right head whose record is followed by no other, and whose data has another checksum.
  const std::string junk = std::string(20, '\1') + record_head(5) + std::string(50, '\2');
  const std::string shard = record(labelled(1)) + junk + record(labelled(2)) + record(labelled(3));
  const CollectingSink found = scan(shard);
  EXPECT_EQ(found.samples.size(), 3u);
  ASSERT_EQ(found.faults.size(), 1u);
  EXPECT_TRUE(found.faults[0].cause.ends_with("passed over 82 bytes to the next record"));
}

TEST(TfrecordScan, TwoDamagedHeadsWithOneRecordBetween) {
  std::string bad = record(labelled(2));
  bad[0] ^= 1;
  const std::string shard =
      record(labelled(1)) + bad + record(labelled(3)) + bad + record(labelled(5));
  const CollectingSink found = scan(shard);
  EXPECT_EQ(found.samples.size(), 3u);
  EXPECT_EQ(found.faults.size(), 2u);
}

TEST(TfrecordScan, Compressed) {
  const std::string shard = record(labelled(1)) + record(labelled(2)) + record(labelled(3));
  for (const int window_bits : {31, 15}) {
    const std::string file = gzip(shard, window_bits);
    const CollectingSink found = scan(file, "s.tfrecord.gz", Compression::gzip);
    EXPECT_TRUE(found.faults.empty());
    EXPECT_EQ(found.shards[0].compression, Compression::gzip);
    EXPECT_EQ(found.shards[0].size, file.size());
    ASSERT_EQ(found.samples.size(), 3u);
    EXPECT_EQ(found.samples[2].key, "s-00000002");
    EXPECT_EQ(stored(shard, found.samples[2], "image"), "pixels of 3");
  }
}

TEST(TfrecordScan, CompressedAndTruncated) {
  const std::string shard = record(labelled(1)) + record(labelled(2));
  for (size_t cut = record(labelled(1)).size() + 1; cut < shard.size(); ++cut) {
    const CollectingSink found = scan(gzip(shard.substr(0, cut)), "s.gz", Compression::gzip);
    EXPECT_EQ(found.samples.size(), 1u) << cut;
    ASSERT_EQ(found.faults.size(), 1u) << cut;
    EXPECT_TRUE(found.faults[0].cause.starts_with("truncated: ")) << found.faults[0].cause;
  }
  const std::string file = gzip(shard);
  for (size_t cut = 0; cut < file.size(); ++cut) {
    const CollectingSink found = scan(file.substr(0, cut), "s.gz", Compression::gzip);
    EXPECT_EQ(found.faults.size(), cut == 0 ? 0u : 1u) << cut;
  }
}

TEST(TfrecordScan, CompressedWithAWrongLength) {
  std::string shard = record(labelled(1)) + record(labelled(2)) + record(labelled(3));
  shard[record(labelled(1)).size()] ^= 1;
  const CollectingSink found = scan(gzip(shard), "s.gz", Compression::gzip);
  EXPECT_EQ(found.samples.size(), 2u);
  EXPECT_EQ(found.faults.size(), 1u);
}

TEST(TfrecordScan, ReadsLittleOfLargeRecords) {
  const std::string big(4'000'000, 'x');
  FakeFileSystem files;
  std::string shard;
  for (int i = 0; i < 5; ++i) {
    shard += record(example({{"image", bytes_feature({big})}, {"label", int64s_feature({i})}}));
  }
  files.add_file("/d/s", shard);
  const CollectingSink found = scan(files, {"s", Compression::none, 0, 0});
  EXPECT_EQ(found.samples.size(), 5u);
  EXPECT_TRUE(found.faults.empty());
  EXPECT_LT(files.bytes_read(), 100'000u);
}

TEST(TfrecordScan, AFileThatIsTruncatedMeanwhile) {
  const std::string shard = record(labelled(1)) + record(labelled(2));
  for (size_t cut = 1; cut < shard.size(); ++cut) {
    FakeFileSystem files;
    files.add_file("/d/s", shard);
    files.end_reads_at("/d/s", cut);
    const CollectingSink found = scan(files, {"s", Compression::none, 0, 0});
    EXPECT_LE(found.samples.size(), 1u);
    if (cut != record(labelled(1)).size()) {
      EXPECT_EQ(found.faults.size(), 1u) << cut;
    }
  }
}

TEST(TfrecordScan, SystemErrorsAreThrown) {
  FakeFileSystem files;
  files.add_file("/d/s", record(labelled(1)));
  files.fail_read("/d/s", 20, EIO);
  EXPECT_THROW(scan(files, {"s", Compression::none, 0, 0}), Error);
  EXPECT_THROW(scan(files, {"missing", Compression::none, 0, 0}), Error);
}

// Whatever byte changes: the other samples are found, and nothing lies outside the file.
TEST(TfrecordScan, EveryBitFlip) {
  const std::string good = record(labelled(1)) + record(labelled(2)) + record(labelled(3));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1 << bit);
      const CollectingSink found = scan(bad);
      ASSERT_GE(found.samples.size(), 2u) << i;
      for (const auto& sample : found.samples) {
        for (const auto& [name, field] : sample.fields) {
          ASSERT_LE(field.field.extent.offset + field.field.extent.length, bad.size());
        }
      }
      if (found.faults.empty()) {
        bool noticed = false;
        for (const StatedChecksum& checksum : found.checksums) {
          const std::string data = bad.substr(checksum.offset, checksum.length);
          noticed = noticed || crc32c(as_bytes(data)) != checksum.crc;
        }
        ASSERT_TRUE(noticed) << i;
      }
    }
  }
}

}  // namespace
}  // namespace stoker
