// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "format/hdf5_rows.h"

namespace stoker {
namespace {

/// Where a chunk lies. One that is not in the file is left to whoever reads it, who loses the rows
/// that it cuts through and no others.
uint64_t offset_or_beyond(Hdf5File& file, uint64_t address, uint64_t length) {
  try {
    return file.bytes().offset_of(address, length, "chunk");
  } catch (const Hdf5Error&) {
    return file.bytes().size();
  }
}

}  // namespace

TiledView Hdf5Rows::view(uint64_t from, uint64_t length) const {
  TiledView view;
  const auto& dims = dataset_.space.dims;
  view.rows = dims[0];
  view.dims.assign(dims.begin() + 1, dims.end());
  view.stored_element = dataset_.type.size;
  view.begin = from;
  view.element = length;
  const std::string_view fill = as_text(dataset_.fill);
  if (fill.size() == view.stored_element) view.fill = fill;
  if (table_)
    add_chunks(view);
  else
    add_stretches(view);
  return view;
}

void Hdf5Rows::add_chunks(TiledView& view) const {
  view.chunk = dataset_.chunks.dims;
  view.chunk.resize(dataset_.space.dims.size());
  std::unordered_map<uint32_t, uint32_t> chains;  // by mask
  table_->each([&](uint64_t number, const Hdf5Chunk& chunk) {
    if (chunk.address == kNowhere) return;
    const auto [chain, is_new] = chains.try_emplace(chunk.mask, view.chains.size());
    if (is_new) view.chains.push_back(hdf5_codecs(dataset_, chunk.mask));
    const uint64_t offset = offset_or_beyond(file_, chunk.address, chunk.length);
    view.chunks.push_back({number, offset, chunk.length, chain->second});
  });
}

/// What lies together is cut between rows, so that no more than some of it is read at a time.
void Hdf5Rows::add_stretches(TiledView& view) const {
  constexpr uint64_t kStretch = 1 << 20;
  constexpr uint64_t kMostStretches = 1 << 20;
  view.chunk = dataset_.space.dims;
  view.chunk[0] =
      std::max<uint64_t>({kStretch / dataset_.row_bytes, view.rows / kMostStretches, 1});
  view.chains.resize(1);
  if (dataset_.data == kNowhere) return;
  for (uint64_t row = 0; row < view.rows; row += view.chunk[0]) {
    const uint64_t length = std::min(view.chunk[0], view.rows - row) * dataset_.row_bytes;
    const uint64_t address = dataset_.data + row * dataset_.row_bytes;
    view.chunks.push_back(
        {view.chunks.size(), offset_or_beyond(file_, address, length), length, 0});
  }
}

}  // namespace stoker
