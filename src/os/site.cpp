// SPDX-License-Identifier: Apache-2.0
#include "os/site.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "os/node.h"
#include "os/output_file.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMostBytes = 1 << 20;

/// One file, as it is read: where a value is wrong, its line is named.
class SiteFile {
 public:
  SiteFile(std::string path, Site& site) : path_(std::move(path)), site_(site) {}

  void read() {
    const std::string text = read_file(path_, kMostBytes);
    try {
      const toml::table table = toml::parse(text);
      only(table, {"slurm", "transfer", "place", "price"});
      for (const auto& [name, node] : table) {
        if (name == "slurm") read_jobs(table_in(node, "slurm"), site_.slurm);
        if (name == "transfer") read_jobs(table_in(node, "transfer"), site_.transfer);
        if (name == "price") read_prices(table_in(node, "price"));
        if (name == "place") read_places(node);
      }
    } catch (const toml::parse_error& error) {
      wrong(error.source().begin, std::string(error.description()));
    }
  }

 private:
  [[noreturn]] void wrong(const toml::source_position& where, const std::string& what) const {
    throw Error(ErrorKind::corrupt, fmt::format("{}: line {}, column {}: {}", printable(path_),
                                                where.line, where.column, printable(what)));
  }

  void only(const toml::table& table, const std::set<std::string_view>& known) const {
    for (const auto& [name, node] : table) {
      if (known.contains(name.str())) continue;
      wrong(name.source().begin, fmt::format("'{}' means nothing here; known are: {}", name.str(),
                                             fmt::join(known, ", ")));
    }
  }

  const toml::table& table_in(const toml::node& node, std::string_view name) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) wrong(node.source().begin, fmt::format("should be [{}]", name));
    return *table;
  }

  std::string text_in(const toml::node& node) const {
    const auto* text = node.as_string();
    if (text == nullptr) wrong(node.source().begin, "should be a text in quotes");
    return text->get();
  }

  /// More than nothing.
  double number_in(const toml::node& node) const {
    const std::optional<double> number = node.value<double>();
    if (!node.is_number() || !number || !(*number > 0) || !std::isfinite(*number)) {
      wrong(node.source().begin, "should be a number greater than 0");
    }
    return *number;
  }

  void read_jobs(const toml::table& table, SiteJobs& jobs) const {
    only(table, {"partition", "account", "time", "sbatch"});
    for (const auto& [name, node] : table) {
      if (name == "partition") jobs.partition = text_in(node);
      if (name == "account") jobs.account = text_in(node);
      if (name == "time") jobs.time = text_in(node);
      if (name != "sbatch") continue;
      const toml::array* list = node.as_array();
      if (list == nullptr) wrong(node.source().begin, "should be a list: [\"--qos=low\"]");
      jobs.sbatch.clear();
      for (const toml::node& option : *list) jobs.sbatch.push_back(text_in(option));
    }
  }

  void read_prices(const toml::table& table) {
    only(table, {"core_hour", "gpu_hour"});
    for (const auto& [name, node] : table) {
      (name == "core_hour" ? site_.core_hour : site_.gpu_hour) = number_in(node);
    }
  }

  void read_places(const toml::node& node) {
    const toml::array* list = node.as_array();
    if (list == nullptr) wrong(node.source().begin, "should be [[place]], once for each");
    for (const toml::node& each : *list) read_place(table_in(each, "[place]"));
  }

  void read_place(const toml::table& table) {
    only(table, {"path", "local", "purge_days"});
    const toml::node* path = table.get("path");
    if (path == nullptr) wrong(table.source().begin, "the path is missing");
    const std::optional<std::string> there = expanded(*path);
    if (!there) return;
    SitePlace& place = place_at(*there);
    for (const auto& [name, node] : table) {
      if (name == "purge_days") place.purge_days = number_in(node);
      if (name != "local") continue;
      const auto* local = node.as_boolean();
      if (local == nullptr) wrong(node.source().begin, "should be true or false");
      place.local = local->get();
    }
  }

  /// "$SCRATCH/x" with what the variable says; nothing where it is not set.
  std::optional<std::string> expanded(const toml::node& node) const {
    std::string path = text_in(node);
    if (path.starts_with('$')) {
      const size_t slash = std::min(path.find('/'), path.size());
      const std::string value = environment(path.substr(1, slash - 1).c_str());
      if (value.empty()) return std::nullopt;
      path = value + path.substr(slash);
    }
    if (!path.starts_with('/')) {
      wrong(node.source().begin, "should begin with a / or with a variable, as in $SCRATCH");
    }
    path = fs::path(path).lexically_normal().string();
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
  }

  /// The one that the file before has spoken of, or a new one.
  SitePlace& place_at(const std::string& path) {
    for (SitePlace& place : site_.places) {
      if (place.path == path) return place;
    }
    return site_.places.emplace_back(SitePlace{path, false, std::nullopt});
  }

  std::string path_;
  Site& site_;
};

}  // namespace

Site read_site() {
  Site site;
  const std::string named = environment("STOKER_SITE");
  const std::string wide = named.empty() ? "/etc/stoker/site.toml" : named;
  const std::string own = config_directory() + "/stoker/site.toml";
  std::error_code ignored;
  if (!named.empty() || fs::exists(wide, ignored)) SiteFile(wide, site).read();
  if (fs::exists(own, ignored)) SiteFile(own, site).read();
  return site;
}

const SitePlace* place_of(const Site& site, const std::string& path) {
  const SitePlace* best = nullptr;
  size_t longest = 0;
  const auto real = [](const std::string& any) {
    std::error_code failed;
    const std::string found = fs::weakly_canonical(any, failed).string();
    const std::string& known = failed ? any : found;
    return known.ends_with('/') ? known : known + "/";
  };
  const std::string inside = real(path);
  for (const SitePlace& place : site.places) {
    const std::string outside = real(place.path);
    if (outside.size() < longest || !inside.starts_with(outside)) continue;
    longest = outside.size();
    best = &place;
  }
  return best;
}

}  // namespace stoker
