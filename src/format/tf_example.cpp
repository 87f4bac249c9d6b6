// SPDX-License-Identifier: Apache-2.0
#include "format/tf_example.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "dataset/npy.h"
#include "dataset/protobuf.h"
#include "dataset/tf_list.h"
#include "format/member_name.h"

namespace stoker {
namespace {

// No name or number of features in any known dataset comes near; memory stays bounded.
constexpr uint64_t kMaxName = 65'536;
constexpr size_t kMaxFeatures = 65'536;
// Lists of numbers up to this size are read where they are met, to count their values.
constexpr uint64_t kSmallList = 65'536;

[[noreturn]] void corrupt(const std::string& cause) { throw Error(ErrorKind::corrupt, cause); }

class ExampleReader {
 public:
  ExampleReader(ByteStream& stream, std::vector<Feature>& features)
      : stream_(stream), features_(features) {}

  void example(uint64_t end) {
    while (const auto field = next(end)) {
      if (field->number == 2 && field->type == WireType::bytes) {
        corrupt("it is a tf.train.SequenceExample");
      }
      if (is_message(*field, 1)) {
        features(stream_.offset() + field->payload);
      } else {
        stream_.skip(field->payload);
      }
    }
  }

 private:
  /// The head of the next field of a message that ends at `end`, and the stream behind it;
  /// nothing at the end. The payload lies within the message.
  std::optional<WireHead> next(uint64_t end) {
    const uint64_t left = end - stream_.offset();
    if (left == 0) return std::nullopt;
    const WireHead head =
        read_wire_head(stream_.peek(static_cast<size_t>(std::min<uint64_t>(left, kMaxWireHead))));
    stream_.skip(head.size);
    if (head.payload > left - head.size) {
      corrupt(fmt::format("protobuf field {} at offset {} has {} bytes, but only {} are left",
                          head.number, stream_.offset() - head.size, head.payload,
                          left - head.size));
    }
    return head;
  }

  static bool is_message(const WireHead& head, uint32_t number) {
    if (head.number != number) return false;
    if (head.type != WireType::bytes) corrupt("a number stands where a message should be");
    return true;
  }

  void features(uint64_t end) {
    while (const auto field = next(end)) {
      if (is_message(*field, 1)) {
        entry(stream_.offset() + field->payload);
      } else {
        stream_.skip(field->payload);
      }
    }
  }

  void entry(uint64_t end) {
    if (features_.size() >= kMaxFeatures) corrupt("it has too many features");
    Feature& feature = features_.emplace_back();
    named_ = false;
    while (const auto field = next(end)) {
      if (is_message(*field, 1)) {
        feature.name = bytes(field->payload, kMaxName, "a feature's name");
        named_ = true;
      } else if (field->number == 2) {
        is_message(*field, 2);
        list(feature, stream_.offset() + field->payload);
      } else {
        stream_.skip(field->payload);
      }
    }
  }

  std::string bytes(uint64_t size, uint64_t limit, const char* what) {
    if (size > limit) corrupt(fmt::format("{} has {} bytes", what, size));
    const Bytes found = stream_.peek(size);
    if (found.size() < size) corrupt("the file ends within it");
    std::string text(as_text(found));
    stream_.skip(size);
    return text;
  }

  void list(Feature& feature, uint64_t end) {
    while (const auto field = next(end)) {
      if (field->number > 3) {
        stream_.skip(field->payload);
        continue;
      }
      is_message(*field, field->number);
      const auto kind = static_cast<FeatureKind>(field->number);
      // Such lists would have to be joined, and no serialiser splits one.
      if (feature.kind == kind) corrupt("a feature's list is split in two");
      Feature fresh;
      fresh.name = std::move(feature.name);
      fresh.kind = kind;
      fresh.offset = stream_.offset();
      fresh.length = field->payload;
      feature = std::move(fresh);
      if (kind == FeatureKind::bytes) {
        bytes_list(feature);
      } else {
        number_list(feature);
      }
    }
  }

  void bytes_list(Feature& feature) {
    const uint64_t end = feature.offset + feature.length;
    feature.values = 0;
    while (const auto field = next(end)) {
      if (is_message(*field, 1)) {
        ++*feature.values;
        feature.value_offset = stream_.offset();
        feature.value_length = field->payload;
        const uint64_t size = std::min<uint64_t>(field->payload, interesting(feature));
        feature.begin = size == 0 ? std::string_view() : as_text(stream_.peek(size));
      }
      stream_.skip(field->payload);
    }
  }

  /// How many bytes of a value somebody will look at.
  size_t interesting(const Feature& feature) const {
    if (!named_ || feature.name == kKeyFeature) return kMaxKey;
    if (feature.name == kImageField) return kImageMagic;
    return feature.name.ends_with(kNpyEnding) ? kNpyMagic.size() : 0;
  }

  void number_list(Feature& feature) {
    const uint64_t end = feature.offset + feature.length;
    if (feature.length <= kSmallList) {
      const Bytes body = stream_.peek(feature.length);
      if (body.size() < feature.length) corrupt("the file ends within it");
      const bool integers = feature.kind == FeatureKind::int64s;
      const Array array = integers ? parse_int64_list(body) : parse_float_list(body);
      feature.values = static_cast<uint64_t>(array.shape[0]);
      if (feature.values == 1 && integers) feature.integer = load<int64_t>(array.data.data());
      if (feature.values == 1 && !integers) feature.real = load<float>(array.data.data());
    } else if (feature.kind == FeatureKind::floats) {
      const auto run = next(end);
      const bool alone = stream_.offset() + run->payload == end;
      if (alone && is_message(*run, 1)) feature.values = run->payload / sizeof(float);
    }
    stream_.skip(end - stream_.offset());
  }

  ByteStream& stream_;
  std::vector<Feature>& features_;
  bool named_ = false;  // the name of the current feature is known
};

void sort_features(std::vector<Feature>& features) {
  const auto by_name = [](const Feature& a, const Feature& b) { return a.name < b.name; };
  if (!std::is_sorted(features.begin(), features.end(), by_name)) {
    std::stable_sort(features.begin(), features.end(), by_name);
  }
  size_t kept = 0;
  for (size_t i = 0; i < features.size(); ++i) {
    if (i + 1 < features.size() && features[i].name == features[i + 1].name) continue;
    if (kept != i) features[kept] = std::move(features[i]);
    ++kept;
  }
  features.resize(kept);
}

}  // namespace

void read_example(ByteStream& stream, uint64_t length, std::vector<Feature>& features) {
  features.clear();
  ExampleReader(stream, features).example(stream.offset() + length);
  sort_features(features);
}

}  // namespace stoker
