// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string_view>

#include "format/hdf5_bytes.h"

namespace stoker {

/// Calls `leaf` for every entry of the lowest level of a version 1 B-tree, in its order: its key,
/// of `key_size` bytes, and the address of what it points at. `kind`: 0 links, 1 chunks.
using Hdf5Leaf1 = std::function<void(Hdf5Cursor key, uint64_t address)>;
void walk_btree1(Hdf5Bytes& bytes, uint64_t root, unsigned kind, uint64_t key_size,
                 const Hdf5Leaf1& leaf);

/// Calls `record` for every record of a version 2 B-tree, in its order.
using Hdf5Record2 = std::function<void(Hdf5Cursor record)>;
/// `kind` is the type that the header must state.
void walk_btree2(Hdf5Bytes& bytes, uint64_t header, unsigned kind, const Hdf5Record2& record);

/// Bytes that numbers up to `limit` take, as the library stores them.
unsigned hdf5_bytes_for(uint64_t limit);

}  // namespace stoker
