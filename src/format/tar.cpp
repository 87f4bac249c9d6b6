// SPDX-License-Identifier: Apache-2.0
#include "format/tar.h"

#include "format/shard_directory.h"
#include "format/tar_ranges.h"
#include "format/tar_samples.h"

namespace stoker {

void scan_tar(const Source& source, const Layout&, const Part& part, ScanSink& sink) {
  scan_tar_in_ranges(source, part, {sink.threads()}, sink);
}

void scan_tar_in_ranges(const Source& source, const Part& part, const TarRanges& ranges,
                        ScanSink& sink) {
  const OpenedShard shard = open_shard(source, part, sink);
  ByteStream stream(*shard.file, shard.path, part.compression);
  TarSamples samples(sink, part.shard, shard.number);
  const bool compressed = part.compression != Compression::none;
  const uint64_t end = compressed ? ~uint64_t{0} : shard.size;
  TarScan scan(stream, part.shard, end, samples, sink);
  if (compressed) {
    scan.run(end);
  } else {
    run_in_ranges(ranges, *shard.file, part.shard, end, scan, samples, sink);
  }
  samples.flush();
}

}  // namespace stoker
