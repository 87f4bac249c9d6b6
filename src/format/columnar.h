// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "dataset/scan.h"

namespace stoker {

// What the scans of Arrow and Parquet files share.

// Of a column and batch or row group, so many faults are named one by one.
inline constexpr uint64_t kMostNamed = 8;
// Rows that take next to nothing may be right, but not billions of them in a small file.
inline constexpr uint64_t kRowsForNothing = 1 << 20;
inline constexpr uint64_t kRowsPerByte = 256;
// Names of nested columns repeat those around them: how much longer than the metadata that they
// come from all of them may be.
inline constexpr uint64_t kNamesFactor = 4;

[[noreturn]] inline void corrupt(const std::string& cause) {
  throw Error(ErrorKind::corrupt, cause);
}

/// Whether a scan goes on: something is wrong with the file, and not with the system.
inline bool is_damage(const Error& error) {
  return error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported;
}

/// A column that is left out.
struct RefusedColumn {
  std::string column, cause;
};

/// "data-00000-of-00003" of "train/data-00000-of-00003.arrow": what keys begin with where there is
/// no column of keys.
inline std::string shard_stem(std::string_view shard,
                              std::initializer_list<std::string_view> endings) {
  std::string_view base = shard.substr(shard.rfind('/') + 1);
  for (const std::string_view ending : endings) {
    if (base.ends_with(ending)) {
      base.remove_suffix(ending.size());
      break;
    }
  }
  std::string stem(base);
  std::replace(stem.begin(), stem.end(), '.', '_');
  return stem;
}

// An index has no arrays with more.
inline constexpr size_t kMostDimensions = 32;

/// Whether an array of `outer` times `inner` is one of the shape that is said.
inline bool is_of_shape(std::span<const int64_t> stated, uint64_t outer,
                        std::span<const int64_t> inner) {
  return !stated.empty() && stated[0] > 0 && static_cast<uint64_t>(stated[0]) == outer &&
         std::equal(inner.begin(), inner.end(), stated.begin() + 1, stated.end());
}

/// The shape of an empty list where no row tells the inner dimensions: they may be said.
inline std::vector<int64_t> shape_of_nothing(std::span<const int64_t> stated,
                                             std::vector<int64_t> shape) {
  const bool said = stated.size() == shape.size() &&
                    std::all_of(stated.begin() + 1, stated.end(), [](int64_t d) { return d > 0; });
  if (said) std::copy(stated.begin() + 1, stated.end(), shape.begin() + 1);
  shape[0] = said ? -1 : 0;
  return shape;
}

/// For looking at a column before its rows are taken.
class SilentSink final : public ScanSink {
 public:
  uint32_t shard(const Shard&) override { return 0; }
  uint32_t codecs(std::span<const Codec>) override { return 0; }
  uint32_t block(const Block&) override { return 0; }
  void sample(std::string_view, std::span<const FoundField>) override {}
  void stated(const StatedChecksum&) override {}
  void fault(Fault) override {}
};

}  // namespace stoker
