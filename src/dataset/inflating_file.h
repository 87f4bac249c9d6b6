// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "dataset/extent.h"
#include "dataset/tiled_file.h"
#include "os/file_system.h"

namespace stoker {

/// A compressed file (gzip, zlib or zstd) as the file it holds. Reading forward costs what
/// decompressing costs; reading backward begins again at the front. info().size is that of the
/// compressed file: nobody knows the other before the end. `view` is Shard::view.
std::unique_ptr<ReadableFile> inflate(std::unique_ptr<ReadableFile> file, const std::string& path,
                                      Compression compression, std::string_view view = {},
                                      const ViewLimits& limits = {});

/// What the first bytes of a file say.
Compression compression_of(Bytes begin);

}  // namespace stoker
