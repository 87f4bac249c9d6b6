// SPDX-License-Identifier: Apache-2.0
#include "stage/source_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "index/build_index.h"

namespace stoker {
namespace fs = std::filesystem;

std::string whole_path(const DatasetPaths& paths) {
  std::string path = paths.file.empty() ? paths.root : paths.root + "/" + paths.file;
  return paths.part().empty() ? path : path + "::" + paths.part();
}

std::string copy_name(const DatasetPaths& paths, uint64_t identity) {
  constexpr size_t kLongest = 40;
  std::string name = fs::path(paths.file.empty() ? paths.root : paths.file).filename().string();
  if (!paths.part().empty()) name += "-" + paths.part();
  for (char& letter : name) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '.' || letter == '_';
    if (!plain) letter = '-';
  }
  name.erase(0, name.find_first_not_of(".-"));
  return fmt::format("{}-{:016x}", name.empty() ? "data" : name.substr(0, kLongest), identity);
}

uint64_t identity_of(const DatasetPaths& paths, const std::vector<ShardToStage>& shards) {
  uint64_t hash = hash64(whole_path(paths));
  for (const ShardToStage& shard : shards) {
    hash = mix64(hash ^ hash64(shard.path));
    hash = mix64(hash ^ shard.size);
    for (const ShardToStage::Range& range : shard.ranges) hash = mix64(hash ^ range.crc);
    // Without checksums the time has to say whether it is still the same.
    if (shard.ranges.empty()) hash = mix64(hash ^ static_cast<uint64_t>(shard.modified_ns));
  }
  return hash;
}

bool needs_packing(const DatasetPaths& paths) {
  if (const auto index = paths.existing_index()) {
    return Manifest::read(*index + "/" + kManifestName).format == "folder";
  }
  const Detected detected = detect_format(source_at(paths, "", nullptr));
  const std::vector<Part>& parts = detected.layout.parts;
  return detected.format->name == "folder" ||
         std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.compression != Compression::none; });
}

}  // namespace stoker
