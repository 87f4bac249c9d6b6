// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "dataset/value.h"

namespace stoker {

// The bodies of tf.train.Int64List, FloatList and BytesList: the message alone, without what
// stands in front of it in an Example. What is parsed throws Error(corrupt) with the cause alone.

/// One dimension of int64; packed or not, or in several runs.
Array parse_int64_list(Bytes body);
/// One dimension of float32; lies in `body` where it is packed, in one run and aligned.
Array parse_float_list(Bytes body);
/// The values point into `body`.
std::vector<Bytes> parse_bytes_list(Bytes body);

/// Elements as an Array holds them; packed, as TensorFlow writes them.
std::string write_int64_list(Bytes elements);
std::string write_float_list(Bytes elements);
std::string write_bytes_list(std::span<const Bytes> values);

}  // namespace stoker
