// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataset/reader.h"

namespace stoker {

/// A dataset that is loaded from.
struct LoadSource {
  std::shared_ptr<const Index> index;
  std::vector<std::string> roots;
  std::optional<StagedRoot> staged = std::nullopt;
  std::string path = {};  // as it was given; for messages
};

/// Another name for a field, in every dataset that has it.
struct RenamedField {
  std::string from, to;
};

/// One or several datasets as one: their samples are counted through, fields go by their names.
class Sources {
 public:
  /// Throws Error(usage) where fields of one name cannot be one, or nothing has a name that is
  /// changed.
  explicit Sources(const std::vector<LoadSource>& sources,
                   const std::vector<RenamedField>& renamed = {});

  uint64_t size() const { return ends_.back(); }
  const std::vector<Field>& fields() const { return fields_; }
  std::optional<uint32_t> find(std::string_view field) const;

  struct Place {
    uint32_t source = 0;
    uint64_t sample = 0;  // within it
  };
  Place place(uint64_t sample) const;
  uint64_t first(uint32_t source) const { return source == 0 ? 0 : ends_[source - 1]; }
  const Reader& reader(uint32_t source) const { return *readers_[source]; }
  std::string key(uint64_t sample) const;
  /// Number in the source's own schema; nothing where it has no such field.
  std::optional<uint32_t> field_in(uint32_t source, uint32_t field) const {
    return own_fields_[source][field];
  }
  size_t count() const { return readers_.size(); }
  /// Of a source, as a person knows it.
  const std::string& path(uint32_t source) const { return paths_[source]; }
  /// The same for the same samples in the same order, by a few that are looked at.
  uint64_t fingerprint() const;
  /// Bytes of a sample, about: by a few that are looked at.
  uint64_t bytes_per_sample(const std::vector<uint32_t>& fields) const;

 private:
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<uint64_t> ends_;
  std::vector<std::string> paths_;
  std::vector<Field> fields_;
  std::vector<std::vector<std::optional<uint32_t>>> own_fields_;  // by source and field
};

}  // namespace stoker
