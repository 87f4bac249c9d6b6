// SPDX-License-Identifier: Apache-2.0
// The plan as a file: what another process, or a later one, goes on with.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/inner_path.h"
#include "base/text.h"
#include "dataset/schema.h"
#include "format/format.h"
#include "os/file_system.h"
#include "os/output_file.h"
#include "pack/plan.h"

namespace stoker {
namespace {

constexpr uint64_t kMaxPlanSize = 1 << 30;

std::string plan_path(const std::string& directory) { return directory + "/plan.json"; }

Json to_json(const Plan& plan) {
  Json json{{"options", plan.options},         {"source_format", plan.source_format},
            {"fingerprint", plan.fingerprint}, {"filtered", plan.filtered},
            {"hidden", plan.hidden},           {"unlisted", plan.unlisted}};
  json["left_out"] = Json::array();
  for (const Fault& fault : plan.left_out) json["left_out"].push_back(to_json(fault));
  json["endings"] = Json::array();
  for (const std::string& ending : plan.endings) json["endings"].push_back(name_to_json(ending));
  json["lossy"] = plan.lossy;
  json["unused"] = plan.unused;
  json["datasets"] = Json::array();
  for (const PlannedDataset& dataset : plan.datasets) {
    Json shards = Json::array();
    for (const PlannedShard& shard : dataset.shards) {
      shards.push_back({{"name", name_to_json(shard.name)},
                        {"first", shard.first},
                        {"last", shard.last},
                        {"bytes", shard.bytes},
                        {"order_crc", shard.order_crc}});
    }
    json["datasets"].push_back({{"directory", dataset.directory}, {"shards", std::move(shards)}});
  }
  return json;
}

/// A plan comes from whoever can write to the destination: it may name what `pack` would write
/// there, and nothing else.
class NamesInPlan {
 public:
  explicit NamesInPlan(std::string path) : path_(std::move(path)) {}

  void check(const Plan& plan) const {
    if (!plan.options.is_object()) refuse("it has no options");
    if (plan.datasets.empty() || plan.endings.empty()) refuse("it names no files");
    const auto to = plan.options.find("to");
    const Format* format =
        to != plan.options.end() && to->is_string() ? find_format(to->get<std::string>()) : nullptr;
    if (format == nullptr || format->write == nullptr) refuse("it is of no format");
    const auto source = plan.options.find("source");
    const std::string stem = source != plan.options.end() && source->is_string()
                                 ? name_from_json(source->get<std::string>())
                                 : "";
    const Json splits = plan.options.value("split", Json::object());
    for (const PlannedDataset& dataset : plan.datasets) {
      if (!dataset.directory.empty()) check(dataset.directory);
      for (const PlannedShard& shard : dataset.shards) {
        for (const std::string& ending : plan.endings) check(shard.name + ending);
        if (shard.first > shard.last) refuse("a shard ends before it begins");
      }
      if (dataset.directory.empty() ? !splits.empty() : !splits.contains(dataset.directory)) {
        refuse(fmt::format("it has no split '{}'", printable(dataset.directory)));
      }
      for (size_t i = 0; i < dataset.shards.size(); ++i) {
        const std::string& name = dataset.directory.empty() ? stem : dataset.directory;
        if (dataset.shards[i].name != format->write->shard_name(name, i, dataset.shards.size())) {
          refuse(fmt::format("pack does not name a shard '{}'", printable(dataset.shards[i].name)));
        }
      }
    }
    check_endings(*format->write, plan.endings);
  }

 private:
  /// The first is the same for all datasets; where there are more, they differ by a field's name.
  void check_endings(const WriteFormat& write, const std::vector<std::string>& endings) const {
    const std::string first = endings_of(write, {}).front();
    const std::string type = first.substr(std::min(first.rfind('.'), first.size()));
    bool good = endings.front() == first && (write.endings != nullptr || endings.size() == 1);
    for (const std::string& ending : endings) {
      good = good && ending.ends_with(type) && (type.empty() || ending.starts_with('.'));
    }
    if (!good) {
      refuse(fmt::format("pack does not end the names of files in '{}'",
                         printable(fmt::format("{}", fmt::join(endings, "', '")))));
    }
  }

  /// A shard's file or a split's directory: one component that is not hidden.
  void check(const std::string& name) const {
    std::string_view why = unsafe_path(name);
    if (why.empty() && name.find('/') != std::string::npos) why = "name is a path";
    if (why.empty() && name.starts_with('.')) why = "name begins with a dot";
    if (!why.empty()) refuse(fmt::format("it names '{}': {}", printable(name), why));
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(ErrorKind::corrupt, damaged_plan(path_, why));
  }

  std::string path_;
};

}  // namespace

std::vector<std::string> endings_of(const WriteFormat& write, const OutSchema& schema) {
  return write.endings != nullptr ? write.endings(schema) : std::vector<std::string>{""};
}

std::string damaged_plan(const std::string& path, std::string_view why) {
  return fmt::format(
      "{}: the plan of an unfinished pack is damaged ({}): remove the destination and run again",
      printable(path), why);
}

std::string Plan::order_path(const std::string& directory, size_t dataset) {
  return fmt::format("{}/order-{}", directory, dataset);
}

void Plan::write(const std::string& directory, const Access& access) const {
  write_file(plan_path(directory), as_bytes(to_json(*this).dump(1) + "\n"), access);
}

std::optional<Plan> Plan::read(const std::string& directory) {
  if (!std::filesystem::exists(plan_path(directory))) return std::nullopt;
  try {
    const Json json = parse_json(read_file(plan_path(directory), kMaxPlanSize));
    Plan plan;
    plan.options = json.at("options");
    plan.source_format = json.at("source_format").get<std::string>();
    plan.fingerprint = checked<uint64_t>(json.at("fingerprint"));
    plan.filtered = checked<uint64_t>(json.at("filtered"));
    plan.hidden = checked<uint64_t>(json.at("hidden"));
    plan.unlisted = checked<uint64_t>(json.at("unlisted"));
    for (const Json& fault : json.at("left_out")) plan.left_out.push_back(fault_from_json(fault));
    for (const Json& ending : json.at("endings")) {
      plan.endings.push_back(name_from_json(ending.get<std::string>()));
    }
    plan.lossy = json.at("lossy").get<std::vector<std::string>>();
    plan.unused = json.value("unused", Json::array()).get<std::vector<std::string>>();
    for (const Json& dataset : json.at("datasets")) {
      PlannedDataset& planned = plan.datasets.emplace_back();
      planned.directory = dataset.at("directory").get<std::string>();
      for (const Json& shard : dataset.at("shards")) {
        planned.shards.push_back(
            {name_from_json(shard.at("name").get<std::string>()),
             checked<uint64_t>(shard.at("first")), checked<uint64_t>(shard.at("last")),
             checked<uint64_t>(shard.at("bytes")), checked<uint32_t>(shard.at("order_crc"))});
      }
    }
    NamesInPlan(plan_path(directory)).check(plan);
    return plan;
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::corrupt, damaged_plan(plan_path(directory), error.what()));
  }
}

std::vector<uint64_t> Plan::order(const std::string& directory, size_t dataset,
                                  const PlannedShard& shard) {
  const std::string path = order_path(directory, dataset);
  const auto file = real_file_system().open(path);
  if (shard.last > file->info().size / sizeof(uint64_t)) {
    throw Error(ErrorKind::corrupt, damaged_plan(path, "it is truncated"));
  }
  std::vector<uint64_t> samples(shard.last - shard.first);
  const MutableBytes bytes = std::as_writable_bytes(std::span(samples));
  if (file->read_at(shard.first * sizeof(uint64_t), bytes) != bytes.size() ||
      crc32c(bytes) != shard.order_crc) {
    throw Error(ErrorKind::corrupt, damaged_plan(path, "its checksum differs"));
  }
  return samples;
}

}  // namespace stoker
