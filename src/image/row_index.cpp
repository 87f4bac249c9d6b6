// SPDX-License-Identifier: Apache-2.0
#include "image/row_index.h"

#include <cstring>

#include "image/jpeg.h"

namespace stoker {

struct RowIndexer::State {
  uint32_t every = 0;
};

RowIndexer::RowIndexer(uint32_t every) : state_(std::make_unique<State>(State{every})) {}
RowIndexer::~RowIndexer() = default;

DecodePath RowIndexer::make(Bytes photo, uint32_t crc) {
  bytes_.clear();
  if (!is_jpeg(photo)) return DecodePath::other;
  bytes_.resize(sizeof crc);
  std::memcpy(bytes_.data(), &crc, sizeof crc);
  return DecodePath::indexed;
}

}  // namespace stoker
