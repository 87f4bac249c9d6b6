// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dataset/scan.h"
#include "dataset/schema.h"

namespace stoker {

/// Keeps what a scan finds, for tests.
class CollectingSink final : public ScanSink {
 public:
  struct Found {
    FoundField field;  // its views are dead: what they showed is kept below
    std::string suffix, inline_bytes;
    std::vector<Extent> pieces;
  };
  struct Sample {
    std::string key;
    std::map<std::string, Found> fields;  // by name
  };

  std::vector<Shard> shards;
  std::vector<Sample> samples;
  std::vector<Fault> faults;
  std::vector<StatedChecksum> checksums;
  std::vector<std::vector<Codec>> chains;
  std::vector<Block> blocks;
  uint64_t hidden_count = 0;

  uint32_t shard(const Shard& shard) override {
    shards.push_back(shard);
    return static_cast<uint32_t>(shards.size() - 1);
  }
  uint32_t codecs(std::span<const Codec> chain) override {
    chains.emplace_back(chain.begin(), chain.end());
    return static_cast<uint32_t>(chains.size() - 1);
  }
  uint32_t block(const Block& block) override {
    blocks.push_back(block);
    return static_cast<uint32_t>(blocks.size() - 1);
  }
  void sample(std::string_view key, std::span<const FoundField> fields) override {
    Sample& kept = samples.emplace_back();
    kept.key = key;
    for (const FoundField& field : fields) {
      kept.fields[std::string(field.name)] = {field,
                                              std::string(field.suffix),
                                              std::string(field.inline_bytes),
                                              {field.pieces.begin(), field.pieces.end()}};
    }
  }
  void stated(const StatedChecksum& checksum) override { checksums.push_back(checksum); }
  void fault(Fault fault) override { faults.push_back(std::move(fault)); }
  void hidden(uint64_t) override { ++hidden_count; }
};

}  // namespace stoker
