// SPDX-License-Identifier: Apache-2.0
#include "format/tar.h"

#include <string>
#include <utility>

#include "dataset/inflating_file.h"
#include "format/tar_ranges.h"
#include "format/tar_samples.h"

namespace stoker {

void scan_tar(const Source& source, const Layout&, const Part& part, ScanSink& sink) {
  scan_tar_in_ranges(source, part, {sink.threads()}, sink);
}

void scan_tar_in_ranges(const Source& source, const Part& part, const TarRanges& ranges,
                        ScanSink& sink) {
  const std::string path = source.root + "/" + part.shard;
  auto file = source.file_system->open(path);
  const FileInfo info = file->info();
  Shard shard;
  shard.path = part.shard;
  shard.size = shard.end = info.size;
  shard.modified_ns = info.modified_ns;
  shard.compression = part.compression;
  const uint32_t number = sink.shard(shard);
  file = inflate(std::move(file), path, part.compression);
  ByteStream stream(*file, path, part.compression);
  TarSamples samples(sink, part.shard, number);
  const bool compressed = part.compression != Compression::none;
  const uint64_t end = compressed ? ~uint64_t{0} : info.size;
  TarScan scan(stream, part.shard, end, samples, sink);
  if (compressed) {
    scan.run(end);
  } else {
    run_in_ranges(ranges, *file, part.shard, end, scan, samples, sink);
  }
  samples.flush();
}

}  // namespace stoker
