// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "format/format.h"
#include "format/tar_scan.h"

namespace stoker {

/// How a tar is walked by several threads at once. Each looks for a header somewhere in the file
/// and notes the members from there on. The notes of a range count only where the walk through all
/// before it has arrived at one of the members noted, with nothing wrong on the way: from there on
/// both would see the same. Everything else is walked again, one header after the other. So what
/// is found is the same for any number of threads and any size of the ranges.
struct TarRanges {
  unsigned threads = 1;
  uint64_t size = uint64_t{8} << 20;
};

/// Does what scan.run() to the end of the archive does. `file` is the one scan reads.
void run_in_ranges(const TarRanges& ranges, ReadableFile& file, const std::string& shard,
                   uint64_t end, TarScan& scan, TarMembers& members, ScanSink& sink);

/// As scan_tar().
void scan_tar_in_ranges(const Source& source, const Part& part, const TarRanges& ranges,
                        ScanSink& sink);

}  // namespace stoker
