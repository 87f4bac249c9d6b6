// SPDX-License-Identifier: Apache-2.0
#include "index/segment_builder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "base/crc32c.h"
#include "base/error.h"
#include "dataset/codec.h"
#include "dataset/reader.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

std::string deflated(const std::string& plain) {
  uLongf size = compressBound(plain.size());
  std::string stored(size, '\0');
  compress(reinterpret_cast<Bytef*>(stored.data()), &size,
           reinterpret_cast<const Bytef*>(plain.data()), plain.size());
  stored.resize(size);
  return stored;
}

FoundField number(std::string_view name, DType dtype, Extent extent) {
  FoundField field;
  field.name = name;
  field.type = FieldType::number;
  field.encoding = Encoding::elements;
  field.dtype = dtype;
  field.shape.emplace();
  field.extent = extent;
  return field;
}

/// Plays the part of a format.
class SegmentBuilderTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() +
                 fmt::format("builder-{}-{}", ::getpid(),
                             testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(directory_);
    source_.root = "/data";
    source_.file_system = &files_;
  }
  void TearDown() override { fs::remove_all(directory_); }

  template <typename Scan>
  void build(Depth depth, const Scan& scan, unsigned threads = 2) {
    IndexOptions options;
    options.depth = depth;
    const std::set<std::string> there = names_in(directory_);
    SegmentBuilder builder(source_, directory_, "a", there, options, threads, 0);
    scan(builder);
    builder.finish();
    manifest_ = {};
    manifest_.format = "tar";
    manifest_.depth = depth;
    manifest_.segments = builder.entries;
    faults_.clear();
    for (const SegmentEntry& entry : builder.entries) {
      const Segment segment(directory_ + "/" + entry.file);
      for (const Fault& fault : segment.faults()) faults_.push_back(fault.message());
      if (!manifest_.schema.fields.empty()) continue;
      manifest_.schema.fields = segment.fields();
    }
    manifest_.write(directory_ + "/manifest.json", 0);
  }

  std::shared_ptr<const Reader> reader(unsigned threads = 2) {
    ReaderOptions options;
    options.roots = {"/data"};
    options.threads = threads;
    options.file_system = &files_;
    return std::make_shared<Reader>(std::make_shared<Index>(directory_), options);
  }

  std::string add_file(const std::string& name, const std::string& bytes) {
    files_.add_file("/data/" + name, bytes, 7);
    return name;
  }
  static Shard shard(const std::string& path, uint64_t size) {
    return {path, size, 7, 0, size, 0, Compression::none};
  }

  FakeFileSystem files_;
  Source source_;
  std::string directory_;
  Manifest manifest_;
  std::vector<std::string> faults_;
};

TEST_F(SegmentBuilderTest, FieldsInSeveralShardsAreSplitSideBySide) {
  constexpr uint64_t kCount = 150'000;
  std::string a(kCount * 4, '\0');
  std::string b(16 + kCount, '\0');
  for (uint32_t i = 0; i < kCount; ++i) {
    std::memcpy(a.data() + 4 * i, &i, 4);
    b[16 + i] = static_cast<char>(i % 101);
  }
  add_file("a.npy", a);
  add_file("b.npy", b);
  const auto scan = [&](ScanSink& sink) {
    const uint32_t first = sink.shard(shard("a.npy", a.size()));
    const uint32_t second = sink.shard(shard("b.npy", b.size()));
    for (uint64_t i = 0; i < kCount; ++i) {
      const std::array fields = {
          number("a", DType::uint32, {Container::shard, first, 4 * i, 4, 0}),
          number("b", DType::uint8, {Container::shard, second, 16 + i, 1, 0})};
      sink.sample(std::to_string(i), fields);
    }
  };
  for (const Depth depth : {Depth::structure, Depth::full}) {
    build(depth, scan);
    EXPECT_EQ(faults_, std::vector<std::string>());
    ASSERT_EQ(manifest_.segments.size(), 3U);
    EXPECT_EQ(manifest_.shards(), 2U);
    const auto all = reader();
    for (const uint64_t i : {uint64_t{0}, uint64_t{65'535}, uint64_t{65'536}, kCount - 1}) {
      const Samples samples = read_many(*all, std::vector<uint64_t>{i});
      EXPECT_EQ(std::get<int64_t>(samples.rows[0][0].second), static_cast<int64_t>(i));
      EXPECT_EQ(std::get<int64_t>(samples.rows[0][1].second), static_cast<int64_t>(i % 101));
    }
    // What is described covers both files without a gap, and can be used again.
    uint64_t covered = 0;
    for (uint32_t s = 0; s < 3; ++s) {
      const Shard part = all->index().segment(s).shard(1);
      EXPECT_EQ(part.begin, covered);
      covered = part.end;
    }
    EXPECT_EQ(covered, b.size());
    Part part;
    part.shard = "a.npy";
    part.beside = {"b.npy"};
    const auto there = names_in(directory_);
    const auto again = reusable_segments(source_, part, directory_, there, "a", depth, 0);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->size(), 3U);
    part.beside.clear();  // another set of files
    EXPECT_FALSE(reusable_segments(source_, part, directory_, there, "a", depth, 0));
  }
}

TEST_F(SegmentBuilderTest, BlocksAreRenumberedInEverySegment) {
  constexpr uint64_t kBlocks = 300;
  constexpr uint64_t kRows = 500;  // of each block
  std::string file;
  std::vector<Block> blocks;
  for (uint32_t b = 0; b < kBlocks; ++b) {
    std::string plain(kRows * 4, '\0');
    for (uint32_t i = 0; i < kRows; ++i) {
      const uint32_t value = b * kRows + i;
      std::memcpy(plain.data() + 4 * i, &value, 4);
    }
    const std::string stored = deflated(plain);
    blocks.push_back({0, file.size(), stored.size(), plain.size(), 0, 0, false});
    file += stored;
  }
  add_file("a.h5", file);
  const auto scan = [&](ScanSink& sink) {
    sink.shard(shard("a.h5", file.size()));
    const Codec zlib{static_cast<uint16_t>(CodecId::zlib), ""};
    EXPECT_EQ(sink.codecs({&zlib, 1}), 0U);
    EXPECT_EQ(sink.codecs({&zlib, 1}), 0U);
    for (const Block& block : blocks) sink.block(block);
    for (uint32_t i = 0; i < kBlocks * kRows; ++i) {
      const auto at = static_cast<uint64_t>(i % kRows) * 4;
      const FoundField field = number(
          "x", DType::uint32, {Container::block, static_cast<uint32_t>(i / kRows), at, 4, 0});
      sink.sample(std::to_string(i), {&field, 1});
    }
  };
  build(Depth::full, scan);
  EXPECT_EQ(faults_, std::vector<std::string>());
  EXPECT_EQ(manifest_.segments.size(), 3U);
  const auto full = reader();
  EXPECT_TRUE(full->index().segment(2).locate(5, 0).has_scalar);
  build(Depth::structure, scan);
  std::vector<uint64_t> wanted;
  for (uint64_t i = 0; i < kBlocks * kRows; i += 77) wanted.push_back(i);
  const Samples samples = read_many(*reader(), wanted);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(std::get<int64_t>(samples.rows[i][0].second), static_cast<int64_t>(wanted[i]));
  }
  // A block is read once, however many of its neighbours are wanted.
  const uint64_t before = files_.reads();
  std::vector<uint64_t> neighbours;
  for (uint64_t i = 0; i < kRows; ++i) neighbours.push_back(7 * kRows + i);
  (void)read_many(*reader(), neighbours);
  EXPECT_EQ(files_.reads() - before, 1U);
}

TEST_F(SegmentBuilderTest, ADamagedBlockIsNamedAndTheOthersAreRead) {
  const std::string plain(1000, 'x');
  const std::string good = deflated(plain);
  add_file("a.h5", good + std::string(good.size(), '?'));
  build(Depth::full, [&](ScanSink& sink) {
    sink.shard(shard("a.h5", 2 * good.size()));
    const Codec zlib{static_cast<uint16_t>(CodecId::zlib), ""};
    (void)sink.codecs({&zlib, 1});
    for (uint32_t b = 0; b < 2; ++b) {
      sink.block({0, b * good.size(), good.size(), plain.size(), 0, 0, false});
      FoundField field;
      field.name = "x";
      field.extent = {Container::block, b, 10, 20, 0};
      sink.sample("k" + std::to_string(b), {&field, 1});
    }
    EXPECT_THROW(sink.block({0, 0, 10, 1 << 20, 0, 0, false}), Error);
  });
  ASSERT_EQ(faults_.size(), 1U);
  EXPECT_NE(faults_[0].find("a.h5: offset"), std::string::npos) << faults_[0];
  EXPECT_NE(faults_[0].find("k1"), std::string::npos) << faults_[0];
  const Samples read = read_many(*reader(), std::vector<uint64_t>{0});
  EXPECT_EQ(as_text(std::get<Bytes>(read.rows[0][0].second)), plain.substr(0, 20));
  EXPECT_THROW((void)read_many(*reader(), std::vector<uint64_t>{0, 1}), Error);
}

TEST_F(SegmentBuilderTest, PiecesMakeOneValue) {
  add_file("a.bin", "..abc..defg");
  const auto scan = [&](ScanSink& sink) {
    const uint32_t file = sink.shard(shard("a.bin", 11));
    (void)sink.codecs({});
    const uint32_t block = sink.block({file, 7, 4, 4, 0, 0, false});
    const std::array pieces = {Extent{Container::shard, file, 2, 3, 0},
                               Extent{Container::shard, file, 0, 0, 0},
                               Extent{Container::block, block, 1, 2, 0}};
    FoundField field;
    field.name = "x";
    field.extent.container = Container::pieces;
    field.pieces = pieces;
    sink.sample("k", {&field, 1});
  };
  for (const Depth depth : {Depth::structure, Depth::full}) {
    build(depth, scan);
    EXPECT_EQ(faults_, std::vector<std::string>());
    const Samples read = read_many(*reader(), std::vector<uint64_t>{0});
    EXPECT_EQ(as_text(std::get<Bytes>(read.rows[0][0].second)), "abcef");
  }
  EXPECT_EQ(reader()->index().segment(0).locate(0, 0).extent.crc, crc32c(as_bytes("abcef")));
}

TEST_F(SegmentBuilderTest, ArraysOfAnotherShapeAreNoSamplesOfTheSameField) {
  add_file("a.bin", std::string(24, '\1'));
  build(Depth::structure, [&](ScanSink& sink) {
    sink.shard(shard("a.bin", 24));
    const std::vector<std::vector<int64_t>> shapes = {{3, 2}, {1, 2}, {2, 3}};
    for (size_t i = 0; i < shapes.size(); ++i) {
      FoundField field = number("x", DType::int8, {Container::shard, 0, 0, 6, 0});
      field.type = FieldType::array;
      field.shape = shapes[i];
      field.extent.length = static_cast<uint64_t>(shapes[i][0] * shapes[i][1]);
      sink.sample(std::to_string(i), {&field, 1});
    }
  });
  ASSERT_EQ(faults_.size(), 1U);
  EXPECT_NE(faults_[0].find("another dtype or shape"), std::string::npos) << faults_[0];
  const Samples read = read_many(*reader(), std::vector<uint64_t>{0, 1});
  EXPECT_EQ(std::get<Array>(read.rows[0][0].second).shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(std::get<Array>(read.rows[1][0].second).shape, (std::vector<int64_t>{1, 2}));
}

}  // namespace
}  // namespace stoker
