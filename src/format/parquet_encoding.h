// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace stoker {

// How Parquet packs integers. What these readers throw is Error(corrupt) with the cause alone.

/// Runs of one value, and groups of eight packed bit by bit: levels and indices of a dictionary.
class RunReader {
 public:
  RunReader() = default;
  /// A width of 0 needs no bytes: all values are 0.
  RunReader(Bytes bytes, unsigned width);
  uint32_t next();

 private:
  void begin_run();

  Bytes rest_;
  unsigned width_ = 0;
  uint64_t repeats_ = 0;  // of value_ that are left
  uint32_t value_ = 0;
  Bytes packed_;
  uint64_t packed_left_ = 0;
  uint64_t packed_at_ = 0;  // in bits
};

/// DELTA_BINARY_PACKED.
class DeltaReader {
 public:
  DeltaReader() = default;
  explicit DeltaReader(Bytes bytes);
  uint64_t left() const { return left_; }
  int64_t next();
  /// What follows the last value. REQUIRES: left() == 0.
  Bytes rest() const { return rest_; }

 private:
  void begin_miniblock();

  Bytes rest_;
  uint64_t left_ = 0;           // values still to come
  uint64_t per_miniblock_ = 0;  // values
  uint64_t miniblocks_ = 0;     // per block
  int64_t value_ = 0;           // the next one
  int64_t least_delta_ = 0;
  Bytes widths_;  // of the miniblocks still to come in this block
  Bytes packed_;
  unsigned width_ = 0;
  uint64_t in_miniblock_ = 0;  // values left
  uint64_t at_ = 0;            // in bits
};

}  // namespace stoker
