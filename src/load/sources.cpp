// SPDX-License-Identifier: Apache-2.0
#include "load/sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace stoker {
namespace {

/// The names that the fields of a dataset have here.
std::vector<std::string> names_of(const Schema& schema, const std::vector<RenamedField>& renamed) {
  std::vector<std::string> names;
  for (const Field& field : schema.fields) {
    const auto change = std::find_if(renamed.begin(), renamed.end(), [&](const RenamedField& each) {
      return each.from == field.name;
    });
    names.push_back(change == renamed.end() ? field.name : change->to);
    if (std::count(names.begin(), names.end(), names.back()) > 1) {
      throw Error(ErrorKind::usage,
                  fmt::format("rename: a sample would have two fields '{}'; rename the other one "
                              "as well",
                              printable(names.back())));
    }
  }
  return names;
}

void check_renamed(const std::vector<LoadSource>& sources,
                   const std::vector<RenamedField>& renamed) {
  for (const RenamedField& change : renamed) {
    const bool is_known = std::any_of(
        sources.begin(), sources.end(),
        [&](const LoadSource& source) { return source.index->schema().find(change.from); });
    if (is_known) continue;
    std::vector<std::string> known;
    for (const Field& field : sources.front().index->schema().fields) {
      known.push_back(printable(field.name));
    }
    throw Error(ErrorKind::usage, fmt::format("rename: there is no field '{}', only: {}",
                                              printable(change.from), fmt::join(known, ", ")));
  }
}

}  // namespace

Sources::Sources(const std::vector<LoadSource>& sources, const std::vector<RenamedField>& renamed) {
  if (sources.empty()) throw Error(ErrorKind::usage, "no dataset to load");
  check_renamed(sources, renamed);
  uint64_t samples = 0;
  std::vector<std::vector<std::string>> names;  // by source and its own field
  for (const LoadSource& source : sources) {
    paths_.push_back(source.path);
    const std::vector<std::string>& own =
        names.emplace_back(names_of(source.index->schema(), renamed));
    ReaderOptions options;
    options.roots = source.roots;
    options.staged = source.staged;
    options.threads = 1;
    readers_.push_back(std::make_unique<Reader>(source.index, options));
    samples += source.index->size();
    ends_.push_back(samples);
    for (size_t i = 0; i < own.size(); ++i) {
      Field field = source.index->schema().fields[i];
      field.name = own[i];
      const std::optional<uint32_t> known = find(field.name);
      if (!known) {
        fields_.push_back(field);
      } else if (!merge_field(fields_[*known], field)) {
        throw Error(
            ErrorKind::usage,
            fmt::format("field '{}' is {} in one dataset and {} in another", printable(field.name),
                        name_of(fields_[*known].type), name_of(field.type)));
      }
    }
  }
  for (const std::vector<std::string>& there : names) {
    std::vector<std::optional<uint32_t>>& own = own_fields_.emplace_back();
    for (const Field& field : fields_) {
      const auto found = std::find(there.begin(), there.end(), field.name);
      own.push_back(found == there.end()
                        ? std::nullopt
                        : std::optional(static_cast<uint32_t>(found - there.begin())));
    }
  }
}

std::optional<uint32_t> Sources::find(std::string_view field) const {
  for (uint32_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == field) return i;
  }
  return std::nullopt;
}

Sources::Place Sources::place(uint64_t sample) const {
  if (ends_.size() == 1) return {0, sample};
  const auto source =
      static_cast<uint32_t>(std::upper_bound(ends_.begin(), ends_.end(), sample) - ends_.begin());
  return {source, sample - first(source)};
}

std::string Sources::key(uint64_t sample) const {
  const Place at = place(sample);
  return readers_[at.source]->index().key(at.sample);
}

namespace {

constexpr uint64_t kLooks = 64;

}  // namespace

uint64_t Sources::fingerprint() const {
  uint64_t hash = mix64(size());
  const uint64_t looks = std::min(size(), kLooks);
  for (uint64_t i = 0; i < looks; ++i) hash = mix64(hash + hash64(key(i * (size() / looks))));
  return hash;
}

uint64_t Sources::bytes_per_sample(const std::vector<uint32_t>& fields) const {
  const uint64_t looks = std::min(size(), kLooks);
  if (looks == 0) return 1;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < looks; ++i) {
    const Place at = place(i * (size() / looks));
    std::vector<uint32_t> own;
    for (const uint32_t field : fields) {
      if (const auto number = field_in(at.source, field)) own.push_back(*number);
    }
    if (own.empty()) continue;
    const Batch batch = readers_[at.source]->locate({&at.sample, 1}, own);
    for (const Item& item : batch.items) bytes += item.length;
  }
  return std::max<uint64_t>(1, bytes / looks);
}

}  // namespace stoker
