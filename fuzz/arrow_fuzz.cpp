// SPDX-License-Identifier: Apache-2.0
// An input is a file as it lies on disk. What a scan finds must lie within it, decode or be
// refused.
#include "columnar_fuzz.h"
#include "format/arrow.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::try_columnar({reinterpret_cast<const char*>(data), size}, "s.arrow", stoker::detect_arrow,
                       stoker::scan_arrow);
  return 0;
}
