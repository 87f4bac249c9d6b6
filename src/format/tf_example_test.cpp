// SPDX-License-Identifier: Apache-2.0
#include "format/tf_example.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "format/tfrecord_bytes.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

using namespace std::string_literals;

/// What read_example() makes of a message; the file has a few bytes before and behind it.
std::vector<Feature> features_of(const std::string& message) {
  constexpr size_t kBefore = 5;
  FakeFileSystem files;
  files.add_file("/x", std::string(kBefore, 'b') + message + "behind");
  const auto file = files.open("/x");
  ByteStream stream(*file, "/x");
  stream.skip(kBefore);
  std::vector<Feature> features;
  read_example(stream, message.size(), features);
  EXPECT_EQ(stream.offset(), kBefore + message.size());
  for (Feature& feature : features) {
    if (feature.kind == FeatureKind::nothing) continue;
    feature.offset -= kBefore;
    if (feature.kind == FeatureKind::bytes && feature.values != 0) feature.value_offset -= kBefore;
  }
  return features;
}

std::string error_of(const std::string& message) {
  try {
    features_of(message);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    return error.what();
  }
  return "no error";
}

TEST(TfExample, LocatesFeatures) {
  const std::string message = example({{"label", int64s_feature({7})},
                                       {"image", bytes_feature({"pixels"})},
                                       {"box", floats_feature({0.5F, 1.5F})}});
  const std::vector<Feature> features = features_of(message);
  ASSERT_EQ(features.size(), 3u);
  const Feature &box = features[0], &image = features[1], &label = features[2];
  EXPECT_EQ(box.name, "box");
  EXPECT_EQ(box.kind, FeatureKind::floats);
  EXPECT_EQ(box.values, 2u);
  EXPECT_EQ(message.substr(box.offset, box.length).substr(0, 2), "\x0A\x08");
  EXPECT_EQ(image.kind, FeatureKind::bytes);
  EXPECT_EQ(image.values, 1u);
  EXPECT_EQ(message.substr(image.value_offset, image.value_length), "pixels");
  EXPECT_EQ(message.substr(image.offset, image.length), "\x0A\x06pixels");
  EXPECT_EQ(image.begin, "pixels") << "enough to tell what kind of image it is";
  EXPECT_EQ(label.kind, FeatureKind::int64s);
  EXPECT_EQ(label.integer, 7);
  EXPECT_EQ(message.substr(label.offset, label.length), "\x0A\x01\x07");
}

TEST(TfExample, TakesEitherOrderAndUnknownFields) {
  const std::string unknown =
      "\x28\x05\x31"
      "12345678\x3D"
      "1234"s +
      message_field(9, "ignored");
  const std::string entry =
      message_field(1, unknown + message_field(2, unknown + bytes_feature({"v"}) + unknown) +
                           unknown + message_field(1, std::string(kKeyFeature)));
  const std::vector<Feature> features = features_of(unknown + message_field(1, unknown + entry));
  ASSERT_EQ(features.size(), 1u);
  EXPECT_EQ(features[0].name, kKeyFeature);
  EXPECT_EQ(features[0].begin, "v");
}

TEST(TfExample, TheLastOfEqualNamesCounts) {
  const std::string message =
      example({{"a", int64s_feature({1})}, {"b", int64s_feature({2})}, {"a", int64s_feature({3})}});
  std::vector<Feature> features = features_of(message);
  ASSERT_EQ(features.size(), 2u);
  EXPECT_EQ(features[0].integer, 3);
  EXPECT_EQ(features[1].integer, 2);
  // Two Features messages are joined.
  features =
      features_of(example({{"a", int64s_feature({1})}}) + example({{"b", int64s_feature({2})}}));
  EXPECT_EQ(features.size(), 2u);
}

TEST(TfExample, TheLastListOfAFeatureCounts) {
  const std::string message =
      example({{"a", bytes_feature({"x", "y"}) + int64s_feature({3})}, {"b", ""}});
  const std::vector<Feature> features = features_of(message);
  ASSERT_EQ(features.size(), 2u);
  EXPECT_EQ(features[0].kind, FeatureKind::int64s);
  EXPECT_EQ(features[0].integer, 3);
  EXPECT_EQ(features[1].kind, FeatureKind::nothing);
  EXPECT_EQ(error_of(example({{"a", int64s_feature({1}) + int64s_feature({2})}})),
            "a feature's list is split in two");
}

TEST(TfExample, EmptyMessages) {
  EXPECT_TRUE(features_of("").empty());
  EXPECT_TRUE(features_of(message_field(1, "")).empty());
  std::vector<Feature> features = features_of(message_field(1, message_field(1, "")));
  ASSERT_EQ(features.size(), 1u);
  EXPECT_EQ(features[0].name, "");
  features = features_of(example({{"a", bytes_feature({})}, {"b", int64s_feature({})}}));
  EXPECT_EQ(features[0].values, 0u);
  EXPECT_EQ(features[1].values, 0u);
}

TEST(TfExample, CountsUnpackedNumbers) {
  const std::string message = example({{"a", message_field(3, "\x08\x05\x08\x06")},
                                       {"b", message_field(2, "\x0D\0\0\0\x3F"s)},
                                       {"c", message_field(3, "\x08\x09")}});
  const std::vector<Feature> features = features_of(message);
  EXPECT_EQ(features[0].values, 2u);
  EXPECT_EQ(features[1].real, 0.5);
  EXPECT_EQ(features[2].integer, 9);
}

TEST(TfExample, DoesNotReadPayload) {
  const std::string big(10'000'000, 'x');
  const std::string message =
      example({{"floats", floats_feature(std::vector<float>(1'000'000))},
               {"image", bytes_feature({big})},
               {"integers", int64s_feature(std::vector<int64_t>(1'000'000))},
               {"z", bytes_feature({big, big})}});
  FakeFileSystem files;
  files.add_file("/x", message);
  const auto file = files.open("/x");
  ByteStream stream(*file, "/x");
  std::vector<Feature> features;
  read_example(stream, message.size(), features);
  ASSERT_EQ(features.size(), 4u);
  EXPECT_EQ(features[0].values, 1'000'000u);
  EXPECT_EQ(features[1].value_length, big.size());
  EXPECT_EQ(features[2].values, std::nullopt);
  EXPECT_EQ(features[3].values, 2u);
  EXPECT_LT(files.bytes_read(), 200'000u);
}

TEST(TfExample, KeepsTheBeginningOfArrays) {
  const std::vector<Feature> features =
      features_of(example({{"x.npy", bytes_feature({"\x93NUMPY and more"})}}));
  EXPECT_EQ(features[0].begin, "\x93NUMPY");
}

TEST(TfExample, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(message_field(2, "")), "it is a tf.train.SequenceExample");
  EXPECT_EQ(error_of("\x08\x05"), "a number stands where a message should be");
  EXPECT_EQ(error_of(message_field(1, "\x08\x05")), "a number stands where a message should be");
  EXPECT_EQ(error_of("\x0A\x05"
                     "abc"),
            "protobuf field 1 at offset 5 has 5 bytes, but only 3 are left");
  EXPECT_EQ(error_of("\x0A"), "protobuf field 1 is cut off or too long");
  EXPECT_EQ(error_of(example({{std::string(70'000, 'n'), ""}})),
            "a feature's name has 70000 bytes");
  EXPECT_EQ(error_of(example({{"a", message_field(2,
                                                  "\x0A\x03"
                                                  "abc")}})),
            "a float of the list is cut off");
  std::string many;
  for (int i = 0; i < 65'537; ++i) many += message_field(1, "");
  EXPECT_EQ(error_of(message_field(1, many)), "it has too many features");
}

// Every message within has an end; none may be believed to reach beyond that around it.
TEST(TfExample, LengthsThatLie) {
  const std::string good = example({{"ab", bytes_feature({"value", "more"})},
                                    {"cd", int64s_feature({1, 2, 3})},
                                    {"ef", floats_feature({1, 2, 3})}});
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      try {
        for (const Feature& feature : features_of(bad)) {
          ASSERT_LE(feature.offset + feature.length, bad.size());
          ASSERT_LE(feature.value_offset + feature.value_length, bad.size());
        }
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace stoker
