// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/byte_stream.h"

namespace stoker {

// A tf.train.Example, message by message:
//
//   Example    1: Features
//   Features   1: map entry, any number of times
//   map entry  1: name   2: Feature
//   Feature    1: BytesList or 2: FloatList or 3: Int64List; none of them: nothing is there
//   the lists  1: value, any number of times; numbers usually packed into one run
//
// Serialisers write the name before the Feature, but a reader must take either order; of names
// and lists that occur twice the last one counts.

enum class FeatureKind : uint8_t { nothing = 0, bytes = 1, floats = 2, int64s = 3 };

/// One feature, and where its bytes lie in the file.
struct Feature {
  std::string name;
  FeatureKind kind = FeatureKind::nothing;
  uint64_t offset = 0, length = 0;  // of the list's body
  /// How many values it holds; nothing where that would take reading a large payload.
  std::optional<uint64_t> values;
  uint64_t value_offset = 0, value_length = 0;  // of the last value of a BytesList
  /// The first bytes of that value, where the name makes them interesting.
  std::string begin;
  std::optional<int64_t> integer;  // the only value of an Int64List
  std::optional<double> real;      // the only value of a FloatList
};

/// The feature that holds a sample's key.
inline constexpr std::string_view kKeyFeature = "__key__";
/// How the name of a feature ends that holds an .npy file.
inline constexpr std::string_view kNpyEnding = ".npy";
/// Of a feature that is a list also where it has one value. Others are one if they have several.
inline constexpr std::string_view kListEnding = ".byteslist";

/// Longest key that is read: as many bytes as a path may have.
inline constexpr size_t kMaxKey = 4096;

/// Reads the Example that is the next `length` bytes of the stream, without the payload of its
/// bytes. Features come sorted by name, each once. Throws Error(corrupt) with the cause alone; the
/// stream then stands anywhere within the message.
void read_example(ByteStream& stream, uint64_t length, std::vector<Feature>& features);

}  // namespace stoker
