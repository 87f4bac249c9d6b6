// SPDX-License-Identifier: Apache-2.0
#include "dataset/reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <filesystem>
#include <numeric>
#include <thread>

#include "base/crc32c.h"
#include "base/error.h"
#include "dataset/codec.h"
#include "dataset/segment_writer.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

/// A dataset of `count` fields of 1,000 bytes each, 24 bytes apart, in one shard.
class ReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() +
                 fmt::format("reader-{}-{}", ::getpid(),
                             testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  static std::string contents(uint64_t i) {
    return std::string(1000, static_cast<char>('a' + i % 26));
  }

  std::shared_ptr<const Index> make(uint64_t count, Depth depth = Depth::full) {
    std::string shard;
    SegmentWriter writer;
    for (uint64_t i = 0; i < count; ++i) {
      shard += std::string(24, '-');
      FoundField field;
      field.name = "data";
      field.extent = {Container::shard, 0, shard.size(), 1000, crc32c(as_bytes(contents(i)))};
      writer.add_sample("k" + std::to_string(i), {&field, 1});
      shard += contents(i);
    }
    writer.add_shard({"a.bin", shard.size(), 7, 0, shard.size(), 0, Compression::none});
    files_.add_file("/data/a.bin", shard, 7);
    return finish(writer, depth);
  }

  std::shared_ptr<const Index> finish(const SegmentWriter& writer, Depth depth) {
    Manifest manifest;
    manifest.format = "tar";
    manifest.depth = depth;
    manifest.schema.fields = writer.fields();
    manifest.segments.push_back(writer.write(directory_, "a", depth, 0));
    manifest.write(directory_ + "/" + kManifestName, 0);
    return std::make_shared<Index>(directory_);
  }

  ReaderOptions options(unsigned threads = 1) {
    ReaderOptions options;
    options.roots = {"/data"};
    options.threads = threads;
    options.file_system = &files_;
    return options;
  }

  static std::string text(const Samples& samples, size_t row) {
    return std::string(as_text(std::get<Bytes>(samples.rows.at(row).at(0).second)));
  }

  FakeFileSystem files_;
  std::string directory_;
};

TEST_F(ReaderTest, ReadsInTheOrderAskedForAndMerges) {
  const Reader reader(make(100), options());
  files_.reset_counts();
  const std::vector<uint64_t> wanted{7, 3, 5, 4, 6, 90, 3};
  const Samples samples = read_many(reader, wanted);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(text(samples, i), contents(wanted[i]));
  // 3 to 7 in one read, 90 in another, and 3 once more.
  EXPECT_EQ(files_.reads(), 3U);
  EXPECT_EQ(files_.opens(), 1U);
}

TEST_F(ReaderTest, FarApartIsNotMerged) {
  const Reader reader(make(100), options());
  files_.reset_counts();
  (void)read_many(reader, std::vector<uint64_t>{0, 50});
  EXPECT_EQ(files_.reads(), 2U);
  EXPECT_EQ(files_.bytes_read(), 2000U);
}

TEST_F(ReaderTest, SampleThatDoesNotExistIsAnError) {
  const Reader reader(make(3), options());
  EXPECT_THROW((void)read_many(reader, std::vector<uint64_t>{3}), Error);
}

TEST_F(ReaderTest, WrongChecksumNamesShardSampleAndOffset) {
  const auto index = make(10);
  std::string shard(10 * 1024, '-');
  files_.add_file("/data/a.bin", shard, 7);
  const Reader reader(index, options());
  try {
    (void)read_many(reader, std::vector<uint64_t>{4});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    const std::string message = error.what();
    EXPECT_NE(message.find("a.bin"), std::string::npos) << message;
    EXPECT_NE(message.find("'k4'"), std::string::npos) << message;
    EXPECT_NE(message.find("4120"), std::string::npos) << message;
  }
}

TEST_F(ReaderTest, OneBadSampleDoesNotCostItsNeighbours) {
  const auto index = make(10);
  files_.fail_read("/data/a.bin", 5 * 1024 + 100, EIO);
  const Reader reader(index, options());
  Batch batch = reader.locate(std::vector<uint64_t>{4, 5, 6});
  std::vector<std::byte> memory(3000);
  for (size_t i = 0; i < 3; ++i) batch.items[i].data = memory.data() + i * 1000;
  const std::vector<ReadFailure> failures = reader.fetch(batch);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].item, 1U);
  EXPECT_EQ(failures[0].fault.sample, "k5");
  EXPECT_EQ(as_text(Bytes(memory).first(1000)), contents(4));
  EXPECT_EQ(as_text(Bytes(memory).subspan(2000)), contents(6));
}

TEST_F(ReaderTest, ChangedOrVanishedShardIsNamed) {
  const auto index = make(10);
  files_.add_file("/data/a.bin", "short", 7);
  const auto kind_of = [&](const Reader& reader) {
    try {
      (void)read_many(reader, std::vector<uint64_t>{0});
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("a.bin"), std::string::npos);
      return error.kind();
    }
    return ErrorKind::usage;
  };
  EXPECT_EQ(kind_of(Reader(index, options())), ErrorKind::corrupt);
  files_.remove("/data/a.bin");
  EXPECT_EQ(kind_of(Reader(index, options())), ErrorKind::not_found);
}

TEST_F(ReaderTest, ModificationTimeCountsWhereThereAreNoChecksums) {
  const auto full = make(3, Depth::full);
  const std::string shard(3 * 1024, 'x');
  ReaderOptions unverified = options();
  unverified.verify = false;
  files_.add_file("/data/a.bin", shard, 8);
  EXPECT_NO_THROW((void)read_many(Reader(full, unverified), std::vector<uint64_t>{0}));
  const auto structure = make(3, Depth::structure);
  files_.add_file("/data/a.bin", shard, 8);
  EXPECT_THROW((void)read_many(Reader(structure, options()), std::vector<uint64_t>{0}), Error);
}

TEST_F(ReaderTest, RootsAreTriedInTurn) {
  const auto index = make(3);
  ReaderOptions staged = options();
  staged.roots = {"/staged", "/data"};
  EXPECT_EQ(text(read_many(Reader(index, staged), std::vector<uint64_t>{1}), 0), contents(1));
}

/// `count` blocks, each "hello, block N", of which a sample is what follows the comma.
class BlockReaderTest : public ReaderTest {
 protected:
  static std::string plain(uint64_t number) { return fmt::format("hello, block {:04}", number); }

  static std::string stored(uint64_t number) {
    const std::string from = plain(number);
    std::string to(ZSTD_compressBound(from.size()), '\0');
    to.resize(ZSTD_compress(to.data(), to.size(), from.data(), from.size(), 1));
    return to;
  }

  std::shared_ptr<const Index> make_blocks(uint64_t count) {
    SegmentWriter writer;
    const uint32_t chain = writer.add_codecs({{static_cast<uint16_t>(CodecId::zstd), ""}});
    std::string shard;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string block = stored(i);
      writer.add_block(
          {0, shard.size(), block.size(), plain(i).size(), chain, crc32c(as_bytes(block)), true});
      shard += block;
      FoundField field;
      field.name = "data";
      const std::string sample = plain(i).substr(7);
      field.extent = {Container::block, static_cast<uint32_t>(i), 7, sample.size(),
                      crc32c(as_bytes(sample))};
      writer.add_sample("k" + std::to_string(i), {&field, 1});
    }
    writer.add_shard({"b.bin", shard.size(), 7, 0, shard.size(), 0, Compression::none});
    files_.add_file("/data/b.bin", shard, 7);
    return finish(writer, Depth::full);
  }

  std::string read_one(const Reader& reader, uint64_t sample) {
    return text(read_many(reader, std::vector{sample}), 0);
  }
};

TEST_F(BlockReaderTest, BlocksAreDecodedAndChecked) {
  const auto index = make_blocks(1);
  EXPECT_EQ(read_one(Reader(index, options()), 0), "block 0000");
  std::string damaged = stored(0);
  damaged[damaged.size() - 1] ^= 1;
  files_.add_file("/data/b.bin", damaged, 7);
  EXPECT_THROW((void)read_one(Reader(index, options()), 0), Error);
}

TEST_F(BlockReaderTest, ABlockStaysForTheNextRead) {
  const Reader reader(make_blocks(3), options());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read_one(reader, 1), "block 0001");
  EXPECT_EQ(files_.reads(), 1U);
}

TEST_F(BlockReaderTest, WhatWasUsedLongestAgoMakesRoom) {
  ReaderOptions two = options();
  two.block_cache = 2 * plain(0).size();
  const Reader reader(make_blocks(3), two);
  for (const uint64_t sample : {0, 1, 0, 2, 0}) (void)read_one(reader, sample);
  EXPECT_EQ(files_.reads(), 3U);
  (void)read_one(reader, 1);
  EXPECT_EQ(files_.reads(), 4U);
}

TEST_F(BlockReaderTest, ABlockThatIsTooLargeIsNotKept) {
  ReaderOptions none = options();
  none.block_cache = plain(0).size() - 1;
  const Reader reader(make_blocks(1), none);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read_one(reader, 0), "block 0000");
  EXPECT_EQ(files_.reads(), 3U);
}

/// Labels that the index holds, whose bytes are in blocks, as in a compressed column.
class InlineReaderTest : public BlockReaderTest {
 protected:
  std::shared_ptr<const Index> make_labels(uint64_t count) {
    SegmentWriter writer;
    const uint32_t chain = writer.add_codecs({{static_cast<uint16_t>(CodecId::zstd), ""}});
    std::string shard;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string label = plain(i).substr(13);
      FoundField field;
      field.name = "label";
      field.type = FieldType::number;
      field.encoding = Encoding::decimal;
      field.dtype = DType::int64;
      field.integer = static_cast<int64_t>(i);
      field.extent = {Container::block, static_cast<uint32_t>(i), 13, label.size(),
                      crc32c(as_bytes(label))};
      const std::string block = stored(i);
      writer.add_block({0, shard.size(), block.size(), plain(i).size(), chain, 0, false});
      shard += block;
      writer.add_sample("k" + std::to_string(i), {&field, 1});
    }
    writer.add_shard({"b.bin", shard.size(), 7, 0, shard.size(), 0, Compression::none});
    files_.add_file("/data/b.bin", shard, 7);
    return finish(writer, Depth::full);
  }

  int64_t label(const Reader& reader, uint64_t sample) {
    const Samples samples = read_many(reader, std::vector{sample});
    return std::get<int64_t>(samples.rows.at(0).at(0).second);
  }
};

TEST_F(InlineReaderTest, EachFetchLooksAtAShardOnce) {
  const Reader reader(make_labels(100), options());
  std::vector<uint64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  (void)read_many(reader, all);
  files_.reset_counts();
  (void)read_many(reader, all);
  EXPECT_EQ(files_.infos(), 1U);
  EXPECT_EQ(files_.opens(), 0U);
  EXPECT_EQ(files_.reads(), 0U);
}

TEST_F(InlineReaderTest, ABlockThatWasDecodedBeforeAnEditIsDecodedAgain) {
  const auto index = make_labels(3);
  std::string shard;
  for (uint64_t i = 0; i < 3; ++i) shard += stored(i);
  files_.add_file("/data/b.bin", shard, 8);  // a copy without its times: labels are compared
  const Reader reader(index, options());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(label(reader, 1), 1);
  EXPECT_EQ(files_.reads(), 1U);
  const std::string edited = stored(0) + stored(2) + stored(2);
  ASSERT_EQ(edited.size(), shard.size());
  files_.add_file("/data/b.bin", edited, 9);
  EXPECT_EQ(label(reader, 0), 0);
  EXPECT_THROW((void)label(reader, 1), Error);
  files_.add_file("/data/b.bin", shard, 10);
  EXPECT_EQ(label(reader, 1), 1);
}

TEST_F(BlockReaderTest, ThreadedReadsShareBlocks) {
  ReaderOptions some = options(4);
  some.block_cache = 50 * plain(0).size();
  const Reader reader(make_blocks(200), some);
  std::vector<std::jthread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 2000; ++i) {
        const uint64_t sample = (i * 37 + t) % 200;
        EXPECT_EQ(read_one(reader, sample), fmt::format("block {:04}", sample));
      }
    });
  }
}

TEST_F(ReaderTest, ThreadedReadsGiveTheSame) {
  const Reader reader(make(3000), options(4));
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::vector<uint64_t> wanted;
      for (uint64_t i = 0; i < 1000; ++i)
        wanted.push_back((i * 17 + static_cast<uint64_t>(t)) % 3000);
      const Samples samples = read_many(reader, wanted);
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(text(samples, i), contents(wanted[i]));
    });
  }
}

TEST_F(ReaderTest, WorksInAForkedChild) {
  const Reader reader(make(3000), options(2));
  std::vector<uint64_t> wanted;
  for (uint64_t i = 0; i < 3000; i += 2) wanted.push_back(i);
  (void)read_many(reader, wanted);  // threads and files are open
  const pid_t child = ::fork();
  if (child == 0) {
    const Samples samples = read_many(reader, wanted);
    ::_exit(text(samples, 700) == contents(1400) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace stoker
