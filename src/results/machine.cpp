// SPDX-License-Identifier: Apache-2.0
#include "results/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "results/document.h"

namespace stoker {
namespace {

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json json_of(const Rate& rate) {
  return {{"what", rate.what},       {"unit", rate.unit},       {"block_bytes", rate.block_bytes},
          {"threads", rate.threads}, {"cold", rate.cold},       {"how", rate.how},
          {"per_s", rate.per_s},     {"least", rate.least},     {"most", rate.most},
          {"amount", rate.amount},   {"seconds", rate.seconds}, {"repeats", rate.repeats}};
}

Json json_of(const std::vector<Rate>& rates) {
  Json list = Json::array();
  for (const Rate& rate : rates) list.push_back(json_of(rate));
  return list;
}

Json headline(const Place& place, std::string_view what, uint64_t block_bytes = 0) {
  const Rate* rate = place.best(what, block_bytes);
  return rate == nullptr ? Json(nullptr) : Json(rate->per_s);
}

Json json_of(const Place& place) {
  Json json = {{"path", place.path},
               {"known_as", or_null(place.known_as)},
               {"purpose", place.purpose},
               {"deleted", place.deleted},
               {"type", place.type},
               {"mount", place.mount},
               {"source", place.source},
               {"total_bytes", or_null(place.total_bytes)},
               {"free_bytes", or_null(place.free_bytes)},
               {"total_inodes", or_null(place.total_inodes)},
               {"free_inodes", or_null(place.free_inodes)},
               {"quota", nullptr},
               {"stripe", nullptr},
               {"writable", place.writable},
               {"direct", place.direct},
               {"same_as", or_null(place.same_as)},
               {"problem", or_null(place.problem)}};
  if (place.quota) {
    json["quota"] = {{"used_bytes", place.quota->used_bytes},
                     {"limit_bytes", place.quota->limit_bytes},
                     {"used_files", place.quota->used_files},
                     {"limit_files", place.quota->limit_files}};
  }
  if (place.stripe) {
    json["stripe"] = {{"count", place.stripe->count}, {"bytes", place.stripe->bytes}};
  }
  json["read_bytes_per_s"] = headline(place, "read");
  json["write_bytes_per_s"] = headline(place, "write");
  json["random_reads_per_s"] = headline(place, "random_read", 4096);
  json["random_writes_per_s"] = headline(place, "random_write");
  json["creates_per_s"] = headline(place, "create");
  json["opens_per_s"] = headline(place, "open");
  json["stats_per_s"] = headline(place, "stat");
  json["small_reads_per_s"] = headline(place, "small_read");
  json["file_bytes"] = place.file_bytes;
  json["written_bytes"] = place.written_bytes;
  json["seconds"] = place.seconds;
  json["rates"] = json_of(place.rates);
  return json;
}

// --- and back
// -------------------------------------------------------------------------------------

std::string text_of(const Json& json, const char* name) {
  return json.at(name).is_null() ? "" : json.at(name).get<std::string>();
}

std::optional<uint64_t> count_of(const Json& json, const char* name) {
  if (json.at(name).is_null()) return std::nullopt;
  return checked<uint64_t>(json.at(name));
}

Rate rate_from(const Json& json) {
  Rate rate;
  rate.what = json.at("what");
  rate.unit = json.at("unit");
  rate.block_bytes = json.at("block_bytes");
  rate.threads = json.at("threads");
  rate.cold = json.at("cold");
  rate.how = json.at("how");
  rate.per_s = json.at("per_s");
  rate.least = json.at("least");
  rate.most = json.at("most");
  rate.amount = json.at("amount");
  rate.seconds = json.at("seconds");
  rate.repeats = json.at("repeats");
  return rate;
}

std::vector<Rate> rates_from(const Json& json) {
  std::vector<Rate> rates;
  for (const Json& each : json) rates.push_back(rate_from(each));
  return rates;
}

Place place_from(const Json& json) {
  Place place;
  place.path = json.at("path");
  place.known_as = text_of(json, "known_as");
  place.purpose = json.at("purpose");
  place.deleted = json.at("deleted");
  place.type = json.at("type");
  place.mount = json.at("mount");
  place.source = json.at("source");
  place.total_bytes = count_of(json, "total_bytes");
  place.free_bytes = count_of(json, "free_bytes");
  place.total_inodes = count_of(json, "total_inodes");
  place.free_inodes = count_of(json, "free_inodes");
  if (const Json& quota = json.at("quota"); !quota.is_null()) {
    place.quota = Quota{quota.at("used_bytes"), quota.at("limit_bytes"), quota.at("used_files"),
                        quota.at("limit_files")};
  }
  if (const Json& stripe = json.at("stripe"); !stripe.is_null()) {
    place.stripe = Stripe{stripe.at("count"), stripe.at("bytes")};
  }
  place.writable = json.at("writable");
  place.direct = json.at("direct");
  place.same_as = text_of(json, "same_as");
  place.problem = text_of(json, "problem");
  place.file_bytes = json.at("file_bytes");
  place.written_bytes = json.at("written_bytes");
  place.seconds = json.at("seconds");
  place.rates = rates_from(json.at("rates"));
  return place;
}

Machine members_from(const Json& json) {
  Machine machine;
  machine.host = json.at("host");
  machine.kernel = json.at("kernel");
  machine.version = json.at("version");
  machine.measured_at = json.at("measured_at");
  machine.cpu = json.at("cpu");
  machine.cores = json.at("cores");
  const Json& limits = json.at("core_limits");
  machine.machine_cores = limits.at("machine");
  machine.affinity_cores = limits.at("affinity");
  machine.cgroup_cores = limits.at("cgroup").is_null() ? 0 : limits.at("cgroup").get<double>();
  machine.slurm_cores = limits.at("slurm").is_null() ? 0 : checked<unsigned>(limits.at("slurm"));
  machine.memory_bytes = json.at("memory_bytes");
  machine.memory_available_bytes = json.at("memory_available_bytes");
  machine.memory_limit_bytes = count_of(json, "memory_limit_bytes");
  for (const Json& node : json.at("numa")) {
    machine.numa.push_back({node.at("number"), node.at("cpus"), node.at("memory_bytes")});
  }
  machine.memory = rates_from(json.at("memory"));
  machine.decode = rates_from(json.at("decode"));
  machine.photos = text_of(json, "photos");
  for (const Json& gpu : json.at("gpus")) {
    machine.gpus.push_back({gpu.at("name"), gpu.at("memory_bytes"), rates_from(gpu.at("rates"))});
  }
  for (const Json& place : json.at("places")) machine.places.push_back(place_from(place));
  for (const Json& copy : json.at("copies")) {
    machine.copies.push_back({copy.at("from"), copy.at("to"), rate_from(copy.at("rate"))});
  }
  machine.notes = json.at("notes").get<std::vector<std::string>>();
  machine.written_bytes = json.at("written_bytes");
  machine.seconds = json.at("seconds");
  return machine;
}

}  // namespace

const Rate* Place::best(std::string_view what, uint64_t block_bytes) const {
  const Rate* best = nullptr;
  for (const Rate& rate : rates) {
    if (rate.what != what || (block_bytes != 0 && rate.block_bytes != block_bytes)) continue;
    if (best == nullptr || (rate.cold && !best->cold) ||
        (rate.cold == best->cold && rate.per_s > best->per_s)) {
      best = &rate;
    }
  }
  return best;
}

std::optional<double> Machine::decode_per_core() const {
  const auto one = std::find_if(decode.begin(), decode.end(),
                                [](const Rate& rate) { return rate.threads == 1; });
  if (one == decode.end()) return std::nullopt;
  return one->per_s;
}

Json to_json(const Machine& machine) {
  Json json = {{"host", machine.host},       {"kernel", machine.kernel},
               {"version", machine.version}, {"measured_at", machine.measured_at},
               {"cpu", machine.cpu},         {"cores", machine.cores}};
  json["core_limits"] = {
      {"machine", machine.machine_cores},
      {"affinity", machine.affinity_cores},
      {"cgroup", machine.cgroup_cores > 0 ? Json(machine.cgroup_cores) : Json(nullptr)},
      {"slurm", machine.slurm_cores > 0 ? Json(machine.slurm_cores) : Json(nullptr)}};
  json["memory_bytes"] = machine.memory_bytes;
  json["memory_available_bytes"] = machine.memory_available_bytes;
  json["memory_limit_bytes"] = or_null(machine.memory_limit_bytes);
  json["numa"] = Json::array();
  for (const NumaNode& node : machine.numa) {
    json["numa"].push_back(
        {{"number", node.number}, {"cpus", node.cpus}, {"memory_bytes", node.memory_bytes}});
  }
  json["memory"] = json_of(machine.memory);
  json["decode_per_core_per_s"] = or_null(machine.decode_per_core());
  json["decode"] = json_of(machine.decode);
  json["photos"] = or_null(machine.photos);
  json["gpus"] = Json::array();
  for (const Gpu& gpu : machine.gpus) {
    json["gpus"].push_back(
        {{"name", gpu.name}, {"memory_bytes", gpu.memory_bytes}, {"rates", json_of(gpu.rates)}});
  }
  json["places"] = Json::array();
  for (const Place& place : machine.places) json["places"].push_back(json_of(place));
  json["copies"] = Json::array();
  for (const CopyRate& copy : machine.copies) {
    json["copies"].push_back({{"from", copy.from}, {"to", copy.to}, {"rate", json_of(copy.rate)}});
  }
  json["notes"] = machine.notes;
  json["written_bytes"] = machine.written_bytes;
  json["seconds"] = machine.seconds;
  return json;
}

Machine machine_from_json(const Json& json) {
  try {
    return members_from(json);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::corrupt, fmt::format("no profile of a machine: {}", error.what()));
  }
}

Json probe_document(const Machine& machine, const std::vector<std::string>& profiles) {
  Json json = document_header("probe");
  json.update(to_json(machine));
  json["profiles"] = profiles;
  return json;
}

}  // namespace stoker
