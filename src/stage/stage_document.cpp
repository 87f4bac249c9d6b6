// SPDX-License-Identifier: Apache-2.0
#include "stage/stage_document.h"

#include "base/json.h"
#include "dataset/schema.h"
#include "os/node.h"
#include "results/document.h"

namespace stoker {
namespace {

Json to_json(const std::optional<Estimate>& estimate) {
  if (!estimate) return nullptr;
  const auto number = [](double value) { return value < 0 ? Json() : Json(value); };
  return {{"value", number(estimate->value)},
          {"least", number(estimate->least)},
          {"most", number(estimate->most)}};
}

Json payoff_object(const Payoff& payoff) {
  return {{"copy_s", to_json(payoff.copy_s)},
          {"epoch_saves_s", to_json(payoff.epoch_saves_s)},
          {"pays_after_epochs", to_json(payoff.pays_after)},
          {"known_from", payoff.known_from}};
}

Json items_list(const std::vector<StagedItem>& items) {
  Json list = Json::array();
  for (const StagedItem& item : items) {
    list.push_back({{"node", item.node},
                    {"place", name_to_json(item.place)},
                    {"directory", name_to_json(item.directory)},
                    {"path", item.path.empty() ? Json() : Json(name_to_json(item.path))},
                    {"source", item.source.empty() ? Json() : Json(name_to_json(item.source))},
                    {"owner", item.owner},
                    {"own", item.own},
                    {"bytes", item.bytes},
                    {"complete", item.complete},
                    {"keep", item.keep},
                    {"age_s", item.age_s},
                    {"references", item.references},
                    {"purged_in_days", item.purged_in_days ? Json(*item.purged_in_days) : Json()}});
  }
  return list;
}

}  // namespace

Json stage_document(const StageResult& result) {
  Json json = document_header("stage");
  const StageTarget& target = result.target;
  json["node"] = node_name();
  json["source"] = name_to_json(target.source);
  json["place"] = name_to_json(target.place);
  json["why"] = target.why;
  json["path"] = name_to_json(target.path);
  json["format"] = result.format;
  json["packed"] = target.packed;
  json["samples"] = result.samples;
  json["shards"] = result.shards;
  json["bytes"] = result.bytes;
  json["staged_bytes"] = result.staged_bytes;
  json["reused_bytes"] = result.reused_bytes;
  json["missing_shards"] = result.missing_shards;
  json["complete"] = result.complete;
  json["verified"] = result.verified;
  json["verified_now"] = result.verified_now;
  json["verified_at"] = result.verified_at == 0 ? Json() : Json(result.verified_at);
  json["repaired"] = Json::array();
  for (const std::string& shard : result.repaired) json["repaired"].push_back(name_to_json(shard));
  json["trusts"] = result.trusts ? Json(*result.trusts) : Json();
  json["checksums_made"] = result.checksums_made;
  json["faults"] = Json::array();
  for (const Fault& fault : result.faults) json["faults"].push_back(to_json(fault));
  json["removed_copies"] = result.removed_copies;
  json["removed_bytes"] = result.removed_bytes;
  json["payoff"] = payoff_object(target.payoff);
  json["seconds"] = result.seconds;
  return json;
}

Json staged_list_document(const StagedList& list) {
  Json json = document_header("stage");
  json["staged"] = items_list(list.items);
  json["passed_over"] = Json::array();
  for (const PassedOver& one : list.passed_over) {
    json["passed_over"].push_back({{"node", one.node},
                                   {"directory", name_to_json(one.directory)},
                                   {"owner", one.owner},
                                   {"why", name_to_json(one.why)}});
  }
  return json;
}

void add_listed(const Json& document, StagedList& list) {
  const auto name_in = [](const Json& object, const char* member) {
    const Json& value = object.at(member);
    return value.is_null() ? std::string() : name_from_json(value.get<std::string>());
  };
  for (const Json& one : document.at("staged")) {
    StagedItem& item = list.items.emplace_back();
    item.node = one.at("node").get<std::string>();
    item.place = name_in(one, "place");
    item.directory = name_in(one, "directory");
    item.path = name_in(one, "path");
    item.source = name_in(one, "source");
    item.owner = one.at("owner").get<uid_t>();
    item.own = one.at("own").get<bool>();
    item.bytes = one.at("bytes").get<uint64_t>();
    item.complete = one.at("complete").get<bool>();
    item.keep = one.at("keep").get<bool>();
    item.age_s = one.at("age_s").get<double>();
    item.references = one.at("references").get<std::vector<std::string>>();
    if (const Json& days = one.at("purged_in_days"); !days.is_null()) {
      item.purged_in_days = days.get<double>();
    }
  }
  for (const Json& one : document.at("passed_over")) {
    list.passed_over.push_back({one.at("node").get<std::string>(), name_in(one, "directory"),
                                one.at("owner").get<uid_t>(), name_in(one, "why")});
  }
}

Json clean_document(const CleanResult& result) {
  Json json = document_header("stage");
  json["node"] = node_name();
  json["removed"] = items_list(result.removed);
  json["kept"] = items_list(result.kept);
  json["bytes"] = result.bytes;
  return json;
}

}  // namespace stoker
