// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "dataset/codec.h"
#include "dataset/value.h"
#include "format/collecting_sink.h"
#include "format/format.h"
#include "os/fake_file_system.h"

namespace stoker {

/// The files of a shard in memory, as a dataset of its own, for tests.
class OneShard {
 public:
  OneShard(const Format& format, std::vector<std::string> names, std::vector<std::string> contents)
      : format_(format), names_(std::move(names)), contents_(std::move(contents)) {
    for (size_t i = 0; i < names_.size(); ++i) files_.add_file("/data/" + names_[i], contents_[i]);
  }

  CollectingSink scan() {
    const Source source{"/data", names_.size() == 1 ? name() : "", "", &files_};
    CollectingSink sink;
    const std::optional<Layout> layout = format_.detect(source);
    if (layout && !layout->parts.empty()) {
      sink.faults = layout->faults;
      for (const Part& part : layout->parts) format_.scan(source, *layout, part, sink);
    } else if (names_.size() == 1) {
      format_.scan(source, {}, {name(), Compression::none, 0, 0, {}}, sink);
    } else {
      sink.faults.push_back({name(), {}, "", "", "is not detected"});
    }
    return sink;
  }
  std::optional<Layout> detect(const std::string& file) {
    return format_.detect({"/data", file, "", &files_});
  }
  const std::string& name() const { return names_[0]; }

  /// What a field holds, as a reader would have it.
  Value value_of(const CollectingSink& sink, const CollectingSink::Found& found) {
    Field field;
    field.type = found.field.type;
    field.encoding = found.field.encoding;
    field.dtype = found.field.dtype;
    field.shape = found.field.shape;
    if (found.field.extent.container == Container::absent) {
      return found.field.integer ? Value(*found.field.integer) : Value(found.field.real.value());
    }
    std::string& bytes = kept_.emplace_back();
    if (found.field.extent.container == Container::here) {
      bytes = found.inline_bytes;
    } else if (found.field.extent.container == Container::pieces) {
      for (const Extent& piece : found.pieces) bytes += bytes_of(sink, piece);
    } else {
      bytes = bytes_of(sink, found.field.extent);
    }
    return decode_value(field, as_bytes(bytes));
  }

  /// Whatever was done to the shard, nobody is sent to bytes it has not got.
  void expect_inside(const CollectingSink& sink) const {
    for (const Block& block : sink.blocks) {
      expect_inside(sink, block.shard, block.offset, block.stored_length);
    }
    for (const auto& sample : sink.samples) {
      for (const auto& [name, found] : sample.fields) {
        expect_inside(sink, found.field.extent);
        for (const Extent& piece : found.pieces) expect_inside(sink, piece);
      }
    }
  }

 private:
  const std::string& file(const CollectingSink& sink, uint32_t shard) const {
    const std::string& path = sink.shards.at(shard).path;
    const auto found = std::find(names_.begin(), names_.end(), path);
    return contents_.at(static_cast<size_t>(found - names_.begin()));
  }

  std::string bytes_of(const CollectingSink& sink, const Extent& extent) const {
    if (extent.container == Container::shard) {
      return file(sink, extent.number).substr(extent.offset, extent.length);
    }
    const Block& block = sink.blocks.at(extent.number);
    const Bytes stored = as_bytes(file(sink, block.shard));
    const auto decoded = decode_block(stored.subspan(block.offset, block.stored_length),
                                      sink.chains.at(block.codecs), block.decoded_length);
    return std::string(as_text(Bytes(decoded).subspan(extent.offset, extent.length)));
  }

  void expect_inside(const CollectingSink& sink, uint32_t shard, uint64_t offset,
                     uint64_t length) const {
    ASSERT_LT(shard, sink.shards.size());
    ASSERT_LE(offset, file(sink, shard).size());
    ASSERT_LE(length, file(sink, shard).size() - offset);
  }
  void expect_inside(const CollectingSink& sink, const Extent& extent) const {
    if (extent.container == Container::shard) {
      expect_inside(sink, extent.number, extent.offset, extent.length);
    } else if (extent.container == Container::block) {
      ASSERT_LT(extent.number, sink.blocks.size());
      const uint64_t size = sink.blocks[extent.number].decoded_length;
      ASSERT_LE(extent.offset, size);
      ASSERT_LE(extent.length, size - extent.offset);
    } else {
      ASSERT_NE(extent.container, Container::file);
    }
  }

  const Format& format_;
  const std::vector<std::string> names_, contents_;
  FakeFileSystem files_;
  std::deque<std::string> kept_;  // what values point into
};

}  // namespace stoker
