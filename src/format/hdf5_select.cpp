// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_select.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "dataset/split_words.h"
#include "format/hdf5_group.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

constexpr size_t kMostDatasets = 4096;
constexpr size_t kMostGroups = 1024;
constexpr size_t kDeepest = 8;
// The dataset that numbers the rows of a frame of pandas.
constexpr std::string_view kPandasRows = "axis1";

/// What a group has: datasets by their first dimension, and groups.
struct Group {
  std::string path;  // "" is the root
  std::map<uint64_t, std::vector<Hdf5Named>> by_rows;
  std::vector<Hdf5Problem> problems;
  std::optional<Hdf5Dataset> classes;
  std::vector<std::pair<std::string, uint64_t>> groups;
  std::optional<uint64_t> rows = {};  // of its samples, where they are known
  bool sparse = false;                // it is a sparse matrix
};

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

Hdf5Problem problem_of(const std::string& name, const Hdf5Error& error) {
  return {name, error.offset(), error.what(), error.kind() == ErrorKind::corrupt};
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
        const auto found =
            find_hdf5_object(file, absolute ? link.target : join_hdf5_path(path, link.target));
        if (!found) continue;  // leads nowhere
        address = *found;
      }
      add_object(file, link.name, address, group);
    } catch (const Hdf5Error& error) {
      group.problems.push_back(problem_of(link.name, error));
    }
  }
  return group;
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
/// columns of a table, and pandas numbers its blocks of columns.
void refuse_samples(const Hdf5Choice& choice, const std::string& name) {
  std::map<std::string, std::vector<const Hdf5Named*>> alike;
  for (const Hdf5Named& named : choice.datasets) {
    if (named.name == kKeyFeature || named.name == kPandasRows) return;
    const Hdf5Dataset& dataset = named.dataset;
    if (dataset.space.dims.size() == 1) continue;
    alike[fmt::format("{} {} {} {}", name_of(dataset.type.kind), dataset.type.size,
                      fmt::join(dataset.space.dims, ","), without_numbers(named.name))]
        .push_back(&named);
  }
  for (const auto& [kind, members] : alike) {
    if (members.size() < 3) continue;
    const std::string first = printable(join_hdf5_path(choice.group, members[0]->name));
    const std::string second = printable(join_hdf5_path(choice.group, members[1]->name));
    throw Error(ErrorKind::usage,
                fmt::format("{} datasets such as {} and {} differ only in their number: they look "
                            "like one per sample, which cannot be read; datasets whose first "
                            "dimension counts the samples can. Where they are fields, name them: "
                            "{}::{},{},…",
                            members.size(), first, second, printable(name), first, second));
  }
}

bool has(const Group& group, std::string_view name) {
  return std::any_of(group.by_rows.begin(), group.by_rows.end(), [&](const auto& entry) {
    return std::any_of(entry.second.begin(), entry.second.end(),
                       [&](const Hdf5Named& named) { return named.name == name; });
  });
}

bool is_pickled(uint64_t rows, const Hdf5Named& named) {
  return rows == 1 && named.dataset.type.kind == Hdf5Class::variable &&
         named.name.ends_with("values");
}

/// What pandas wrote is known by its names. Of a frame the rows are those of its index, `axis1`;
/// columns of Python objects, text among them, are one pickle, which is no value of a row.
void settle_pandas(Hdf5File& file, Group& group) {
  const bool frame = has(group, "axis0") && has(group, kPandasRows) && has(group, "block0_items");
  const bool series = has(group, "index") && has(group, "values") && group.by_rows.size() <= 2;
  if (!frame && !series) return;
  const std::string_view index = frame ? kPandasRows : "index";
  uint64_t rows = 0;
  for (const auto& [each, datasets] : group.by_rows) {
    for (const Hdf5Named& named : datasets) rows = named.name == index ? each : rows;
    for (const Hdf5Named& named : datasets) {
      if (!is_pickled(each, named)) continue;
      group.problems.push_back({named.name,
                                file.bytes().offset_of(named.dataset.address, 0, "dataset"),
                                "columns that pandas pickled (text, or other Python objects), "
                                "which are not read: write them with to_hdf(…, format=\"table\") "
                                "or to_parquet()"});
    }
  }
  for (auto& [each, datasets] : group.by_rows) {
    std::erase_if(datasets, [&, here = each](const Hdf5Named& n) { return is_pickled(here, n); });
  }
  std::erase_if(group.by_rows, [](const auto& entry) { return entry.second.empty(); });
  if (frame) group.rows = rows;
}

/// A matrix of which only the elements other than zero are stored, as SciPy and AnnData write it.
bool is_sparse(const Group& group) {
  return has(group, "data") && has(group, "indices") && has(group, "indptr");
}

/// Groups in which libraries keep what is not for users: PyTables its indexes of tables, MATLAB the
/// contents of cells.
bool is_internal(const std::string& name) {
  return name.starts_with("_i_") || name.starts_with("#");
}

/// The group and those below it.
std::vector<Group> groups_from(Hdf5File& file, Group first, uint64_t address) {
  std::vector<Group> found;
  std::set<uint64_t> seen = {address};
  found.push_back(std::move(first));
  for (size_t next = 0; next < found.size() && seen.size() < kMostGroups; ++next) {
    const std::string path = found[next].path;
    if (static_cast<size_t>(std::count(path.begin(), path.end(), '/')) >= kDeepest) continue;
    const auto children = found[next].groups;
    for (const auto& [child, child_address] : children) {
      if (is_internal(child) || !seen.insert(child_address).second) continue;
      const std::string child_path = join_hdf5_path(path, child);
      try {
        const auto links = read_hdf5_links(file, file.messages(child_address));
        if (links) found.push_back(read_group(file, child_path, *links));  // else a named type
      } catch (const Hdf5Error& error) {
        found[next].problems.push_back(problem_of(child, error));
      } catch (const Error& error) {  // too many members
        if (error.kind() != ErrorKind::unsupported) throw;
        found[next].problems.push_back({child, 0, error.what(), false});
      }
    }
  }
  return found;
}

void name_unused(std::span<const Hdf5Choice> choices, size_t chosen, Hdf5Selection& selection) {
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i == chosen) continue;
    for (const Hdf5Named& named : choices[i].datasets) {
      selection.unused.push_back(fmt::format(
          "{} ({})", printable(join_hdf5_path(choices[i].group, named.name)), choices[i].rows));
    }
  }
}

/// Those of the chosen group, and damage anywhere: what is lost there may have been the samples.
/// The rest is only named.
void take_problems(std::span<Group> groups, const Group* chosen, Hdf5Selection& selection) {
  for (Group& group : groups) {
    for (Hdf5Problem& problem : group.problems) {
      if (chosen == nullptr || &group == chosen || problem.damaged) {
        if (&group != chosen) problem.name = join_hdf5_path(group.path, problem.name);
        selection.problems.push_back(std::move(problem));
      } else {
        selection.unused.push_back(fmt::format(
            "{} ({})", printable(join_hdf5_path(group.path, problem.name)), problem.cause));
      }
    }
  }
}

/// Leaves out datasets that a group before this one has too, under a link.
void forget_links(Group& group, std::set<uint64_t>& known) {
  std::set<uint64_t> here;
  for (auto& [rows, datasets] : group.by_rows) {
    std::erase_if(datasets,
                  [&](const Hdf5Named& named) { return known.contains(named.dataset.address); });
    for (const Hdf5Named& named : datasets) here.insert(named.dataset.address);
  }
  std::erase_if(group.by_rows, [](const auto& entry) { return entry.second.empty(); });
  known.merge(here);
}

/// The datasets of these groups, the one that was asked for in front, that are the fields.
Hdf5Selection choose_among(Hdf5File& file, std::vector<Group> groups,
                           std::span<const std::string> fields, const std::string& name) {
  std::vector<Hdf5Choice> choices, aside;
  std::vector<size_t> group_of;
  std::set<uint64_t> known;
  Hdf5Selection selection;
  for (size_t i = 0; i < groups.size(); ++i) {
    forget_links(groups[i], known);
    settle_pandas(file, groups[i]);
    groups[i].sparse = is_sparse(groups[i]);
    for (auto& [rows, datasets] : groups[i].by_rows) {
      const bool counts = !groups[i].rows || *groups[i].rows == rows;
      add_hdf5_choices(groups[i].path, rows, std::move(datasets), counts ? choices : aside);
      group_of.resize(choices.size(), i);
    }
  }
  if (choices.empty()) {
    take_problems(groups, nullptr, selection);
    if (!selection.problems.empty()) return selection;
    throw Error(ErrorKind::not_found, "no dataset in it that could hold samples");
  }
  const size_t chosen = choose_hdf5(file, choices, groups[0].path, fields, name);
  Hdf5Choice& choice = choices[chosen];
  Group& group = groups[group_of[chosen]];
  refuse_samples(choice, name);
  if (group.sparse) {
    throw Error(ErrorKind::usage,
                fmt::format("group /{} is a sparse matrix (data, indices, indptr), which is not "
                            "read yet: store it as a dense dataset",
                            printable(group.path)));
  }
  name_unused(choices, chosen, selection);
  name_unused(aside, aside.size(), selection);
  take_problems(groups, &group, selection);
  selection.rows = choice.rows;
  selection.group = choice.group;
  selection.datasets = std::move(choice.datasets);
  selection.classes = std::move(group.classes);
  return selection;
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

/// Names of the datasets at the root that are of a split: "x_train,y_train".
std::string datasets_of_split(Hdf5File& file, std::string_view split) {
  std::string names;
  const auto address = is_split_word(split) ? find_hdf5_object(file, "") : std::nullopt;
  const auto links = address ? read_hdf5_links(file, file.messages(*address)) : std::nullopt;
  if (!links) return names;
  for (const Hdf5Link& link : *links) {
    if (split_word_of(link.name) == split) names += (names.empty() ? "" : ",") + link.name;
  }
  return names;
}

}  // namespace

Hdf5Selection select_hdf5(Hdf5File& file, std::string_view inner,
                          std::span<const std::string> fields, const std::string& name) {
  const bool one = inner.find(',') == inner.npos;
  const auto address = one ? find_hdf5_object(file, inner) : std::nullopt;
  if (one && !address) {
    if (const std::string names = datasets_of_split(file, inner); !names.empty()) {
      return named_datasets(file, names);
    }
    throw Error(ErrorKind::not_found, fmt::format("has no group or dataset {}", printable(inner)));
  }
  const auto links = address ? read_hdf5_links(file, file.messages(*address)) : std::nullopt;
  if (!links) return named_datasets(file, inner);
  Group group = read_group(file, std::string(inner), *links);
  return choose_among(file, groups_from(file, std::move(group), *address), fields, name);
}

}  // namespace stoker
