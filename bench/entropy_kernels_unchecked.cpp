// SPDX-License-Identifier: Apache-2.0
// The kernels without what keeps damaged data in its bounds: jpeg_bench_unchecked measures what
// that costs.
#define STOKER_UNCHECKED
#include "image/entropy_kernels.cpp"  // NOLINT(bugprone-suspicious-include)
