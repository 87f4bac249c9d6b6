// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_select.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "base/text.h"
#include "format/hdf5_group.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

constexpr size_t kMostDatasets = 4096;
constexpr size_t kMostGroups = 1024;
constexpr size_t kDeepest = 8;
constexpr size_t kMostShown = 6;

/// What a group has: datasets by their first dimension, and groups.
struct Group {
  std::string path;  // "" is the root
  std::map<uint64_t, std::vector<Hdf5Named>> by_rows;
  std::vector<Hdf5Problem> problems;
  std::optional<Hdf5Dataset> classes;
  std::vector<std::pair<std::string, uint64_t>> groups;
};

std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

void add_object(Hdf5File& file, const std::string& name, uint64_t address, Group& group) {
  const Hdf5Messages messages = file.messages(address);
  if (!is_hdf5_dataset(messages)) {
    group.groups.emplace_back(name, address);
    return;
  }
  Hdf5Dataset dataset = parse_hdf5_dataset(file, address, messages);
  if (!dataset.space.simple) return;  // a single value belongs to no sample
  if (name == kHdf5Classes) {
    group.classes = std::move(dataset);
    return;
  }
  const uint64_t rows = dataset.space.dims[0];
  group.by_rows[rows].push_back({name, std::move(dataset)});
}

Group read_group(Hdf5File& file, const std::string& path, const std::vector<Hdf5Link>& links) {
  Group group;
  group.path = path;
  if (links.size() > kMostDatasets) {
    throw Error(ErrorKind::unsupported,
                fmt::format("group /{} has {} members: a dataset for every sample cannot be read; "
                            "datasets whose first dimension counts the samples can",
                            printable(path), links.size()));
  }
  for (const Hdf5Link& link : links) {
    try {
      uint64_t address = link.address;
      if (link.external) {
        throw Hdf5Error(ErrorKind::unsupported, 0, "a link to another file");
      }
      if (address == kNowhere) {
        const bool absolute = link.target.starts_with('/');
        const auto found = find_hdf5_object(file, absolute ? link.target : join(path, link.target));
        if (!found) continue;  // leads nowhere
        address = *found;
      }
      add_object(file, link.name, address, group);
    } catch (const Hdf5Error& error) {
      const bool damaged = error.kind() == ErrorKind::corrupt;
      group.problems.push_back(
          {link.name, error.offset(),
           damaged ? error.what() : fmt::format("left out: {}", error.what())});
    }
  }
  return group;
}

std::string names_of(const std::vector<Hdf5Named>& datasets) {
  std::string text;
  for (size_t i = 0; i < datasets.size() && i < kMostShown; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ",", printable(datasets[i].name));
  }
  return datasets.size() > kMostShown ? text + ",…" : text;
}

std::string without_numbers(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !text.ends_with('#')) text += digit ? '#' : c;
  }
  return text;
}

/// Refuses datasets that are rather samples than fields: three or more of one type and shape whose
/// names differ in a number. Where there are keys, rows are samples for certain; single numbers are
/// columns of a table.
void refuse_samples(const Group& group, const std::vector<Hdf5Named>& datasets,
                    const std::string& name) {
  std::map<std::string, std::vector<const Hdf5Named*>> alike;
  for (const Hdf5Named& named : datasets) {
    if (named.name == kKeyFeature) return;
    const Hdf5Dataset& dataset = named.dataset;
    if (dataset.space.dims.size() == 1) continue;
    alike[fmt::format("{} {} {} {}", name_of(dataset.type.kind), dataset.type.size,
                      fmt::join(dataset.space.dims, ","), without_numbers(named.name))]
        .push_back(&named);
  }
  for (const auto& [kind, members] : alike) {
    if (members.size() < 3) continue;
    const std::string first = printable(join(group.path, members[0]->name));
    const std::string second = printable(join(group.path, members[1]->name));
    throw Error(ErrorKind::usage,
                fmt::format("{} datasets such as {} and {} differ only in their number: they look "
                            "like one per sample, which cannot be read; datasets whose first "
                            "dimension counts the samples can. Where they are fields, name them: "
                            "{}::{},{},…",
                            members.size(), first, second, printable(name), first, second));
  }
}

/// The datasets of a group that are the fields.
Hdf5Selection choose_in(Group group, const std::string& name) {
  std::vector<std::pair<uint64_t, std::vector<Hdf5Named>*>> choices;
  for (auto& [rows, datasets] : group.by_rows) choices.emplace_back(rows, &datasets);
  std::stable_sort(choices.begin(), choices.end(), [](const auto& a, const auto& b) {
    return a.second->size() > b.second->size();
  });
  // Where most of them agree, the others (a mean, names of classes) are no fields.
  const bool clear = choices.size() == 1 || choices[0].second->size() > choices[1].second->size();
  if (!clear) {
    std::string text;
    for (const auto& [rows, datasets] : choices) {
      text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", names_of(*datasets), rows);
    }
    std::string first;
    for (const Hdf5Named& each : *choices[0].second) {
      first += fmt::format("{}{}", first.empty() ? "" : ",", join(group.path, each.name));
    }
    throw Error(ErrorKind::usage,
                fmt::format("its datasets differ in length: {}; say which ones: {}::{}", text,
                            printable(name), printable(first)));
  }
  refuse_samples(group, *choices[0].second, name);
  return {choices[0].first, std::move(*choices[0].second), std::move(group.problems),
          std::move(group.classes)};
}

/// Groups below the root that have datasets.
Hdf5Selection search(Hdf5File& file, Group root, const std::string& name) {
  std::deque<Group> open;
  std::vector<Group> found;
  std::set<uint64_t> seen = {file.root()};
  std::vector<Hdf5Problem> problems = root.problems;
  open.push_back(std::move(root));
  while (!open.empty() && seen.size() < kMostGroups) {
    const Group group = std::move(open.front());
    open.pop_front();
    if (static_cast<size_t>(std::count(group.path.begin(), group.path.end(), '/')) >= kDeepest) {
      continue;
    }
    for (const auto& [child, address] : group.groups) {
      if (!seen.insert(address).second) continue;
      const auto links = read_hdf5_links(file, file.messages(address));
      if (!links) continue;  // a type with a name
      Group below = read_group(file, join(group.path, child), *links);
      if (below.by_rows.empty()) {
        problems.insert(problems.end(), below.problems.begin(), below.problems.end());
        open.push_back(std::move(below));
      } else {
        found.push_back(std::move(below));
      }
    }
  }
  if (found.size() == 1) return choose_in(std::move(found.front()), name);
  if (found.empty()) {
    if (!problems.empty()) return {0, {}, std::move(problems)};
    throw Error(ErrorKind::not_found, "no dataset in it that could hold samples");
  }
  std::string text;
  for (size_t i = 0; i < found.size() && i < kMostShown; ++i) {
    const auto& [rows, datasets] = *found[i].by_rows.rbegin();
    text += fmt::format("{}{} ({}: {})", i == 0 ? "" : "; ", printable(found[i].path), rows,
                        names_of(datasets));
  }
  if (found.size() > kMostShown) text += fmt::format("; … {} in all", found.size());
  throw Error(ErrorKind::usage, fmt::format("several of its groups hold samples: {}; say which "
                                            "one: {}::{}",
                                            text, printable(name), printable(found[0].path)));
}

/// Datasets that were named one by one.
Hdf5Selection named_datasets(Hdf5File& file, std::string_view inner) {
  Hdf5Selection selection;
  bool first = true;
  while (!inner.empty()) {
    const size_t comma = inner.find(',');
    const std::string_view path = inner.substr(0, comma);
    inner.remove_prefix(comma == inner.npos ? inner.size() : comma + 1);
    const auto address = find_hdf5_object(file, path);
    if (!address) {
      throw Error(ErrorKind::not_found, fmt::format("has no group or dataset {}", printable(path)));
    }
    Group group;
    add_object(file, std::string(path.substr(path.rfind('/') + 1)), *address, group);
    if (group.by_rows.empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("{} is no dataset that could hold samples", printable(path)));
    }
    auto& [rows, datasets] = *group.by_rows.begin();
    if (!first && rows != selection.rows) {
      throw Error(ErrorKind::usage, fmt::format("{} has {} rows, those before it {}",
                                                printable(path), rows, selection.rows));
    }
    first = false;
    selection.rows = rows;
    selection.datasets.push_back(std::move(datasets.front()));
  }
  return selection;
}

}  // namespace

Hdf5Selection select_hdf5(Hdf5File& file, std::string_view inner, const std::string& name) {
  const bool one = inner.find(',') == inner.npos;
  const auto address = one ? find_hdf5_object(file, inner) : std::nullopt;
  if (one && !address) {
    throw Error(ErrorKind::not_found, fmt::format("has no group or dataset {}", printable(inner)));
  }
  const auto links = address ? read_hdf5_links(file, file.messages(*address)) : std::nullopt;
  if (!links) return named_datasets(file, inner);
  Group group = read_group(file, std::string(inner), *links);
  if (!group.by_rows.empty()) return choose_in(std::move(group), name);
  return search(file, std::move(group), name);
}

}  // namespace stoker
