// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "image/decode_path.h"

namespace stoker {

// The row index of a JPEG: where in the entropy-coded bytes the rows of its MCUs begin, and the DC
// predictors there, so that a decoder can begin in the midst of the photo. The photo itself stays
// what it is. docs/formats/jpeg-row-index.md has the layout.

/// Makes row indexes, one after the other; keeps its memory. One per thread.
class RowIndexer {
 public:
  /// An entry at the beginning of each row of MCUs, and every so many MCUs within it. Where `every`
  /// is 0: as many as half a percent of the photo's bytes holds.
  explicit RowIndexer(uint32_t every);
  ~RowIndexer();
  RowIndexer(const RowIndexer&) = delete;
  RowIndexer& operator=(const RowIndexer&) = delete;

  /// Makes the index of a photo, of which `crc` is the CRC-32C, and compares every coefficient on
  /// the way with libjpeg-turbo's. Returns DecodePath::indexed, or why the photo can have no
  /// index; does not throw for what is wrong with a photo.
  DecodePath make(Bytes photo, uint32_t crc);
  /// What the last make() made; empty where the photo can have no index.
  Bytes bytes() const { return bytes_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<std::byte> bytes_;
};

}  // namespace stoker
