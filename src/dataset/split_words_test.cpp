// SPDX-License-Identifier: Apache-2.0
#include "dataset/split_words.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(SplitWords, OfNames) {
  EXPECT_EQ(words_of("imagesTrain_2017"), (Words{"images", "train"}));
  EXPECT_EQ(words_of("XTrain"), (Words{"x", "train"}));
  EXPECT_EQ(words_of("Xtrain"), (Words{"x", "train"}));
  EXPECT_EQ(words_of("ytest"), (Words{"y", "test"}));
  EXPECT_EQ(words_of("XML"), Words{"xml"});
  EXPECT_EQ(split_word_of("bedroom_val_lmdb"), "val");
  EXPECT_EQ(split_word_of("latest"), "");
  EXPECT_TRUE(is_split_name("val2017"));
  EXPECT_FALSE(is_split_name("train_station"));
  EXPECT_FALSE(is_split_name("2017"));
}

TEST(SplitWords, FieldsOfTwoSplits) {
  EXPECT_TRUE(differ_in_split("x_train", "X_test"));
  EXPECT_TRUE(differ_in_split("images", "val_images"));
  EXPECT_TRUE(differ_in_split("train/x", "test/x"));
  EXPECT_TRUE(differ_in_split("train", "test"));
  EXPECT_FALSE(differ_in_split("x_train", "y_test"));
  EXPECT_FALSE(differ_in_split("x_train", "y_train"));
  EXPECT_FALSE(differ_in_split("train", "1"));
}

TEST(SplitWords, Groups) {
  using Groups = std::map<std::string, std::vector<size_t>>;
  const auto groups = [](const std::vector<std::string>& names) { return group_by_split(names); };
  EXPECT_EQ(groups({"x_train", "y_train", "x_test", "y_test"}),
            (Groups{{"test", {2, 3}}, {"train", {0, 1}}}));
  EXPECT_EQ(groups({"images", "labels", "val_images"}), (Groups{{"", {0, 1}}, {"val", {2}}}));
  EXPECT_EQ(groups({"image", "label", "is_train"}), Groups{});
  EXPECT_EQ(groups({"x_train", "y_train"}), Groups{});
  EXPECT_EQ(groups({}), Groups{});
}

}  // namespace
}  // namespace stoker
