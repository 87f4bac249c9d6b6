// SPDX-License-Identifier: Apache-2.0
#include "dataset/splits.h"

#include <gtest/gtest.h>

#include "os/fake_file_system.h"

namespace stoker {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<Split>& splits) {
  Names names;
  for (const Split& split : splits) names.push_back(split.name);
  return names;
}

Names of_files(const Names& names) { return names_of(splits_of_files(names)); }
Names of_directories(const Names& names) { return names_of(splits_of_directories(names)); }

TEST(Splits, NamesOfShards) {
  const Names both = {"test", "train"};
  EXPECT_EQ(of_files({"train-00000-of-00002.parquet", "train-00001-of-00002.parquet",
                      "test-00000-of-00001.parquet", "README.md"}),
            both);
  EXPECT_EQ(of_files({"train-00000-of-00001-a09b74b3ef9c3b56.parquet",
                      "test-00000-of-00001-b46c9f1d39aa0b52.parquet"}),
            both);
  EXPECT_EQ(of_files({"mnist-train.tfrecord-00000-of-00008", "mnist-test.tfrecord-00000-of-00001",
                      "dataset_info.json"}),
            both);
  EXPECT_EQ(of_files({"train-000000.tar", "train-000001.tar", "val-000000.tar"}),
            (Names{"train", "val"}));
  EXPECT_EQ(of_files({"train.h5", "test.h5"}), both);
  EXPECT_EQ(of_files({"shard-0001-train.tar.gz", "shard-0002-train.tar.gz", "shard-3-test.tar.gz"}),
            both);
  EXPECT_EQ(of_files({"training-set_Train.npz", "training-set_Test.npz"}), both);
  EXPECT_EQ(of_files({"squad-train.arrow", "squad-validation.arrow"}),
            (Names{"train", "validation"}));
}

TEST(Splits, SeveralSeriesOfOneWord) {
  const std::vector<Split> splits =
      splits_of_files({"train_sft-00000-of-00002.parquet", "train_sft-00001-of-00002.parquet",
                       "train_gen-00000-of-00001.parquet", "test_gen-00000-of-00001.parquet"});
  EXPECT_EQ(names_of(splits), (Names{"test", "train_gen", "train_sft"}));
  EXPECT_EQ(splits[2].files.size(), 2u);
  EXPECT_EQ(find_split(splits, "train"), nullptr);
  EXPECT_EQ(find_split(splits, "test_gen"), &splits[0]);
  EXPECT_EQ(find_split(splits, "train_sft"), &splits[2]);
}

TEST(Splits, FieldsInFilesOfTheirOwn) {
  const std::vector<Split> splits =
      splits_of_files({"x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"});
  EXPECT_EQ(names_of(splits), (Names{"test", "train"}));
  EXPECT_EQ(splits[1].files, (Names{"x_train.npy", "y_train.npy"}));
  EXPECT_EQ(of_files({"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                      "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"}),
            (Names{"test", "train"}));
  EXPECT_EQ(of_files({"data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"}),
            (Names{"test", "train"}));
}

TEST(Splits, OneWordAndOthers) {
  EXPECT_EQ(of_files({"train-0.tar", "extra-0.tar"}), (Names{"extra", "train"}));
  EXPECT_EQ(of_files({"photos-0.tar", "photos-1.tar", "photos-test-0.tar"}),
            (Names{"photos", "test"}));
  // Of classes, one may be called so.
  EXPECT_EQ(of_files({"bus.tar", "car.tar", "plane.tar", "ship.tar", "train.tar"}), Names{});
  EXPECT_EQ(of_files({"a-train-b.tar", "stats.tar"}), Names{});
}

TEST(Splits, OneDataset) {
  EXPECT_EQ(of_files({"shard-000.tar", "shard-001.tar"}), Names{});
  EXPECT_EQ(of_files({"train-000.tar", "train-001.tar"}), Names{"train"});
  EXPECT_EQ(of_files({"train_a.tar", "train_b.tar"}), Names{"train"});
  EXPECT_EQ(of_files({"latest-0.tar", "contest-0.tar", "trains-0.tar"}), Names{});
  EXPECT_EQ(of_files({"train.csv", "test.csv", "train_1.jpg", "test_1.jpg"}), Names{});
  EXPECT_EQ(of_files({"train-test-000.tar", "train-test-001.tar"}), Names{"train"});
  EXPECT_EQ(of_files({}), Names{});
}

TEST(Splits, NumberedParquetFilesAreWholeByThemselves) {
  EXPECT_EQ(of_files({"en-00000-of-00001.parquet", "de-00000-of-00001.parquet"}),
            (Names{"de", "en"}));
}

TEST(Splits, NamesOfDirectories) {
  EXPECT_EQ(of_directories({"test", "train", "annotations"}), (Names{"test", "train"}));
  EXPECT_EQ(of_directories({"train2017", "val2017"}), (Names{"train2017", "val2017"}));
  EXPECT_EQ(of_directories({"images_train", "images_val"}), (Names{"images_train", "images_val"}));
  EXPECT_EQ(of_directories({"trainA", "trainB", "testA", "testB"}),
            (Names{"testA", "testB", "trainA", "trainB"}));
  EXPECT_EQ(of_directories({"bus", "car", "train"}), Names{});
  EXPECT_EQ(of_directories({"train_station", "test_tube"}), Names{});
  EXPECT_EQ(of_directories({"train"}), Names{});
  const std::vector<Split> years = splits_of_directories({"train2017", "val2017", "val2014"});
  EXPECT_EQ(find_split(years, "train")->directory, "train2017");
  EXPECT_EQ(find_split(years, "val"), nullptr);
}

TEST(Splits, OfADirectory) {
  FakeFileSystem files;
  files.add_file("/d/train/a.jpg", "");
  files.add_directory("/d/test");
  EXPECT_TRUE(find_splits(files, "/d").empty());
  files.add_file("/d/test/b.jpg", "");
  EXPECT_EQ(names_of(find_splits(files, "/d")), (Names{"test", "train"}));

  files.add_file("/links/all/x", "");
  files.add_link("/links/train", "/links/all");
  files.add_link("/links/test", "/links/all");
  EXPECT_EQ(find_splits(files, "/links").size(), 2u);

  files.add_file("/hub/README.md", "");
  files.add_file("/hub/data/train-00000-of-00001.parquet", "");
  files.add_file("/hub/data/test-00000-of-00001.parquet", "");
  EXPECT_TRUE(find_splits(files, "/hub").empty());
  EXPECT_EQ(only_data_directory(files, "/hub"), "data");
  EXPECT_EQ(find_splits(files, "/hub/data").size(), 2u);

  files.add_file("/dict/dataset_dict.json", R"({"splits": ["a", "../b", ".c", "d"]})");
  EXPECT_EQ(names_of(find_splits(files, "/dict")), (Names{"a", "d"}));
}

TEST(Splits, PhotosAndTheirListsAreNone) {
  FakeFileSystem files;
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg", "train.npz", "test.npz"}) {
    files.add_file(std::string("/d/") + name, "");
  }
  EXPECT_TRUE(find_splits(files, "/d").empty());
  files.add_file("/e/photos/a.jpg", "");
  files.add_file("/e/train.npz", "");
  files.add_file("/e/test.npz", "");
  EXPECT_TRUE(find_splits(files, "/e").empty());
  files.add_file("/e/train-0.tar", "");
  files.add_file("/e/test-0.tar", "");
  EXPECT_EQ(find_splits(files, "/e").size(), 2u);
}

TEST(Splits, Message) {
  const SeveralSplits error("/d", splits_of_files({"train-0.tar", "train-1.tar", "val-0.tar"}));
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_STREQ(error.what(),
               "/d: holds 2 datasets, one per split: /d::train (2 files), /d::val (1 file); name "
               "one of them (in Python also with split=\"train\"); /d::all takes all of them as "
               "one dataset");
}

}  // namespace
}  // namespace stoker
