// SPDX-License-Identifier: Apache-2.0
// Files that other programs wrote, and what is left of them when they are damaged: also of the
// formats that are only read, and of what ours do not write.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "base/bytes.h"
#include "base/error.h"
#include "format/format.h"
#include "format/one_shard.h"

namespace stoker {
namespace {

struct Golden {
  const char* format;
  const char* path;  // below tests/data
  size_t samples;
};

constexpr Golden kGolden[] = {
    {"arrow", "arrow/file.arrow", 6},
    {"arrow", "arrow/stream.arrow", 6},
    {"parquet", "parquet/pages1.parquet", 6},
    {"parquet", "parquet/pages2.parquet", 6},
    {"hdf5", "hdf5/golden.h5", 4},
    {"hdf5", "hdf5/layout5.h5", 5},  // by HDF5 2.0
    {"hdf5", "hdf5/written.h5", 4},
    {"lmdb", "lmdb/golden.lmdb", 6},
    {"npy", "npy/boxes.npy", 3},
};

// So many places of a file are damaged, evenly spread: the fuzzers see the others.
constexpr size_t kPlaces = 250;

std::string contents_of(const std::string& path) {
  std::ifstream file(std::string(STOKER_TEST_DATA) + "/" + path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Sample and field -> the value as text that only equal ones have; how the reading failed
/// otherwise.
using Values = std::map<std::string, std::string>;

std::string text_of(const Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return std::to_string(*real);
  if (const auto* bytes = std::get_if<Bytes>(&value)) return std::string(as_text(*bytes));
  if (const auto* text = std::get_if<std::string_view>(&value)) return std::string(*text);
  std::string all;
  if (const auto* array = std::get_if<Array>(&value)) {
    for (const int64_t dimension : array->shape) all += std::to_string(dimension) + ",";
    all += as_text(array->data);
  }
  if (const auto* list = std::get_if<std::vector<Bytes>>(&value)) {
    for (const Bytes one : *list)
      all += std::to_string(one.size()) + ":" + std::string(as_text(one));
  }
  return all;
}

class GoldenFile : public testing::TestWithParam<Golden> {
 protected:
  struct Found {
    size_t samples = 0, faults = 0;
    Values values;
  };

  /// Scans and reads all that is found; whatever the contents are, that ends and stays within them.
  static Found read(const std::string& contents) {
    const std::string path = GetParam().path;
    const Format& format = *find_format(GetParam().format);
    OneShard shard(format, {path.substr(path.find('/') + 1)}, {contents});
    CollectingSink sink;
    try {
      sink = shard.scan();
    } catch (const Error&) {
      return {0, 1, {}};
    }
    shard.expect_inside(sink);
    Found found{sink.samples.size(), sink.faults.size(), {}};
    for (const CollectingSink::Sample& sample : sink.samples) {
      for (const auto& [name, field] : sample.fields) {
        try {
          found.values[sample.key + " " + name] = text_of(shard.value_of(sink, field));
        } catch (const Error&) {
          ++found.faults;
        }
      }
    }
    return found;
  }
  static std::string whole() { return contents_of(GetParam().path); }
  static size_t step(const std::string& contents) {
    return std::max<size_t>(1, contents.size() / kPlaces) | 1;  // odd: no layout is
  }
};

TEST_P(GoldenFile, IsRead) {
  const Found found = read(whole());
  EXPECT_EQ(found.faults, 0U);
  EXPECT_EQ(found.samples, GetParam().samples);
  EXPECT_GE(found.values.size(), found.samples);
}

TEST_P(GoldenFile, NoTruncationGoesUnnoticed) {
  const std::string contents = whole();
  const Found good = read(contents);
  for (size_t size = 0; size < contents.size(); size += step(contents)) {
    const Found cut = read(contents.substr(0, size));
    EXPECT_TRUE(cut.faults > 0 || cut.values == good.values) << "cut at " << size;
    for (const auto& [name, value] : cut.values) {
      const auto same = good.values.find(name);
      ASSERT_NE(same, good.values.end()) << name << ", cut at " << size;
      EXPECT_EQ(value, same->second) << name << ", cut at " << size;
    }
  }
}

TEST_P(GoldenFile, FlippedBitsAreSurvived) {
  const std::string contents = whole();
  for (size_t at = 0; at < contents.size(); at += step(contents)) {
    for (const int flip : {1 << (at % 8), 0xFF}) {
      std::string damaged = contents;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      (void)read(damaged);
    }
  }
}

TEST_P(GoldenFile, SwappedAndAbsurdLengthsAreSurvived) {
  const std::string contents = whole();
  // Eight ways each: fewer places.
  for (size_t at = 0; at + 16 <= contents.size(); at += 2 * step(contents) + 1) {
    for (const size_t width : {size_t{4}, size_t{8}}) {
      std::string swapped = contents;
      std::swap_ranges(swapped.begin() + static_cast<ptrdiff_t>(at),
                       swapped.begin() + static_cast<ptrdiff_t>(at + width),
                       swapped.begin() + static_cast<ptrdiff_t>(at + width));
      (void)read(swapped);
      for (const char filler : {'\xff', '\x7f', '\0'}) {
        std::string absurd = contents;
        absurd.replace(at, width, width, filler);
        (void)read(absurd);
      }
    }
  }
}

std::string name_of_test(const testing::TestParamInfo<Golden>& info) {
  std::string name = info.param.path;
  for (char& letter : name) {
    if (letter == '/' || letter == '.') letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenFile, testing::ValuesIn(kGolden), name_of_test);

}  // namespace
}  // namespace stoker
