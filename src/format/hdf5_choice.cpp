// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "dataset/split_words.h"
#include "format/hdf5_rows.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

constexpr size_t kMostShown = 6;
// So many times the bytes of any other is clearly more.
constexpr uint64_t kClearly = 4;
// Of one dataset: their sum is a number of 64 bits.
constexpr uint64_t kMostCounted = uint64_t{1} << 48;
// A split has at least this part of the samples of another.
constexpr uint64_t kSmallestSplit = 50;

/// Takes the blocks that reading a few rows announces.
class NoSink final : public ScanSink {
 public:
  uint32_t shard(const Shard&) override { return 0; }
  uint32_t codecs(std::span<const Codec>) override { return 0; }
  uint32_t block(const Block&) override { return blocks_++; }
  void sample(std::string_view, std::span<const FoundField>) override {}
  void stated(const StatedChecksum&) override {}
  void fault(Fault) override {}

 private:
  uint32_t blocks_ = 0;
};

/// Bytes that the variable-length values in one element refer to.
uint64_t referenced_bytes(const Hdf5Type& type, Bytes element) {
  if (type.kind == Hdf5Class::variable && element.size() >= 4) {
    return uint64_t{load<uint32_t>(element.data())} * type.base.front().size;
  }
  uint64_t bytes = 0;
  for (const Hdf5Member& member : type.members) {
    if (member.offset + member.type.size > element.size()) continue;
    bytes += referenced_bytes(member.type, element.subspan(member.offset, member.type.size));
  }
  return bytes;
}

bool refers(const Hdf5Type& type) {
  return type.kind == Hdf5Class::variable ||
         std::any_of(type.members.begin(), type.members.end(),
                     [](const Hdf5Member& member) { return refers(member.type); });
}

/// About how many bytes a dataset has; values of variable length are estimated from a few rows.
uint64_t volume_of(Hdf5File& file, const Hdf5Dataset& dataset) {
  const uint64_t rows = dataset.space.dims[0];
  const uint64_t stored = rows * dataset.row_bytes;
  if (stored == 0 || !refers(dataset.type)) return stored;
  try {
    constexpr uint64_t kRowsRead = 32;
    NoSink sink;
    Hdf5Rows reader(file, dataset, 0, sink);
    if (reader.pieces() != 1) return stored;
    const uint64_t read = std::min(rows, kRowsRead);
    uint64_t referenced = 0;
    for (uint64_t i = 0; i < read; ++i) {
      referenced += referenced_bytes(dataset.type, reader.read(i, 0, dataset.type.size));
    }
    const uint64_t per_row = std::min(referenced / read, file.bytes().size());
    uint64_t all = 0;
    if (__builtin_mul_overflow(per_row * dataset.row_elements, rows, &all)) return stored;
    return stored + std::min(all, file.bytes().size());
  } catch (const Error&) {
    return stored;
  }
}

std::string path_of(const Hdf5Choice& choice, const Hdf5Named& named) {
  return join_hdf5_path(choice.group, named.name);
}

bool same_rows(const Hdf5Dataset& a, const Hdf5Dataset& b) {
  return a.type.kind == b.type.kind && a.type.size == b.type.size &&
         std::equal(a.space.dims.begin() + 1, a.space.dims.end(), b.space.dims.begin() + 1,
                    b.space.dims.end());
}

/// Whether two datasets look like the same field of two splits.
bool are_splits(const Hdf5Choice& a, const Hdf5Named& x, const Hdf5Choice& b, const Hdf5Named& y) {
  if (differ_in_split(path_of(a, x), path_of(b, y))) return true;
  if (!same_rows(x.dataset, y.dataset)) return false;
  const auto [fewer, more] = std::minmax(a.rows, b.rows);
  const bool enough = fewer > 1 && fewer >= more / kSmallestSplit;
  if (!enough) return false;
  return x.dataset.space.dims.size() > 1 || (a.group != b.group && x.name == y.name);
}

bool are_splits(const Hdf5Choice& a, const Hdf5Choice& b) {
  return std::any_of(a.datasets.begin(), a.datasets.end(), [&](const Hdf5Named& x) {
    return std::any_of(b.datasets.begin(), b.datasets.end(),
                       [&](const Hdf5Named& y) { return are_splits(a, x, b, y); });
  });
}

/// The choice that has more of what is counted than any other; nothing where none has.
template <typename Count>
std::optional<size_t> only_with_most(std::span<const Hdf5Choice> choices, const Count& count) {
  std::vector<size_t> counts;
  for (const Hdf5Choice& choice : choices) {
    counts.push_back(static_cast<size_t>(
        std::count_if(choice.datasets.begin(), choice.datasets.end(),
                      [&](const Hdf5Named& named) { return count(choice, named); })));
  }
  const auto most = std::max_element(counts.begin(), counts.end());
  if (*most == 0 || std::count(counts.begin(), counts.end(), *most) > 1) return std::nullopt;
  return static_cast<size_t>(most - counts.begin());
}

/// What is written after "::" to choose it, with what other groups have of the same length.
std::string selector_of(const Hdf5Choice& choice, std::span<const Hdf5Choice> choices) {
  const auto as_long = std::count_if(choices.begin(), choices.end(), [&](const Hdf5Choice& other) {
    return other.rows == choice.rows && !are_splits(choice, other);
  });
  const auto of_group = std::count_if(choices.begin(), choices.end(), [&](const Hdf5Choice& other) {
    return other.group == choice.group;
  });
  if (of_group == 1 && as_long == 0 && !choice.group.empty()) return choice.group;
  std::string names;
  for (const Hdf5Choice& other : choices) {
    const bool same =
        &other == &choice || (other.rows == choice.rows && !are_splits(choice, other));
    for (size_t i = 0; same && i < other.datasets.size(); ++i) {
      names += (names.empty() ? "" : ",") + path_of(other, other.datasets[i]);
    }
  }
  return names;
}

[[noreturn]] void ask(std::span<const Hdf5Choice> choices, std::span<const size_t> order,
                      const std::string& name) {
  const bool one_group = std::all_of(choices.begin(), choices.end(), [&](const Hdf5Choice& choice) {
    return choice.group == choices[0].group;
  });
  std::string text;
  for (size_t i = 0; i < order.size() && i < kMostShown; ++i) {
    const Hdf5Choice& choice = choices[order[i]];
    const std::string names = hdf5_names(choice.datasets);
    const std::string group = choice.group.empty() ? "/" : printable(choice.group);
    text += text.empty() ? "" : "; ";
    text += one_group ? fmt::format("{} ({})", names, choice.rows)
                      : fmt::format("{} ({}: {})", group, choice.rows, names);
  }
  if (order.size() > kMostShown) text += fmt::format("; … {} in all", order.size());
  const bool one_length = std::all_of(choices.begin(), choices.end(), [&](const auto& choice) {
    return choice.rows == choices[0].rows;
  });
  const std::string_view why = !one_group   ? "several of its groups hold samples"
                               : one_length ? "its datasets are of several splits"
                                            : "its datasets differ in length";
  throw Error(ErrorKind::usage, fmt::format("{}: {}; say which: {}::{}", why, text, printable(name),
                                            printable(selector_of(choices[order[0]], choices))));
}

}  // namespace

void add_hdf5_choices(const std::string& group, uint64_t rows, std::vector<Hdf5Named> datasets,
                      std::vector<Hdf5Choice>& choices) {
  std::vector<std::string> names;
  for (const Hdf5Named& named : datasets) names.push_back(named.name);
  const auto by_split = group_by_split(names);
  if (by_split.empty()) {
    choices.push_back({group, rows, std::move(datasets)});
    return;
  }
  for (const auto& [split, members] : by_split) {
    Hdf5Choice& choice = choices.emplace_back(Hdf5Choice{group, rows, {}});
    for (const size_t member : members) choice.datasets.push_back(std::move(datasets[member]));
  }
}

std::string join_hdf5_path(const std::string& group, const std::string& name) {
  return group.empty() ? name : group + "/" + name;
}

std::string hdf5_names(std::span<const Hdf5Named> datasets) {
  std::string text;
  for (size_t i = 0; i < datasets.size() && i < kMostShown; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ",", printable(datasets[i].name));
  }
  return datasets.size() > kMostShown ? text + ",…" : text;
}

size_t choose_hdf5(Hdf5File& file, std::span<const Hdf5Choice> choices, const std::string& asked,
                   std::span<const std::string> fields, const std::string& name) {
  if (choices.size() == 1) return 0;
  const auto with_fields =
      only_with_most(choices, [&](const Hdf5Choice& choice, const auto& named) {
        return std::find(fields.begin(), fields.end(), path_of(choice, named)) != fields.end();
      });
  if (with_fields) return *with_fields;
  const auto with_keys = only_with_most(
      choices, [](const Hdf5Choice&, const auto& named) { return named.name == kKeyFeature; });
  if (with_keys) return *with_keys;

  std::vector<uint64_t> bytes;
  std::vector<size_t> order;
  for (const Hdf5Choice& choice : choices) {
    uint64_t sum = 0;
    for (const Hdf5Named& named : choice.datasets) {
      sum += std::min(volume_of(file, named.dataset), kMostCounted);
    }
    order.push_back(bytes.size());
    bytes.push_back(sum);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  const Hdf5Choice& first = choices[order[0]];
  const bool clear = bytes[order[0]] > 0 && bytes[order[0]] / kClearly >= bytes[order[1]];
  const bool split = std::any_of(order.begin() + 1, order.end(), [&](size_t other) {
    const bool as_long = choices[other].rows == first.rows && first.rows > 1;
    return are_splits(first, choices[other]) || (as_long && first.group != asked);
  });
  if (!clear || split) ask(choices, order, name);
  return order[0];
}

}  // namespace stoker
