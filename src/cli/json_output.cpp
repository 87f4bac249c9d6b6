// SPDX-License-Identifier: Apache-2.0
#include "cli/json_output.h"

#include <utility>

#include "base/parallel.h"
#include "os/node.h"

namespace stoker {
namespace {

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::not_found:
      return "not_found";
    case ErrorKind::permission:
      return "permission";
    case ErrorKind::corrupt:
      return "corrupt";
    case ErrorKind::io:
      return "io";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::interrupted:
      return "interrupted";
  }
  return "io";
}

Json name_or_null(std::string_view name) {
  return name.empty() ? Json(nullptr) : Json(name_to_json(name));
}

Json faults_list(const std::vector<Fault>& faults) {
  Json list = Json::array();
  for (const Fault& fault : faults) {
    list.push_back({{"shard", name_or_null(fault.shard)},
                    {"offset", fault.offset.value_or(0)},
                    {"sample", name_or_null(fault.sample)},
                    {"field", name_or_null(fault.field)},
                    {"cause", fault.cause},
                    {"samples", fault.samples ? Json(*fault.samples) : Json(nullptr)}});
  }
  return list;
}

Json field_object(const Field& field, const FieldSizes* sizes) {
  Json json = {{"name", name_to_json(field.name)}, {"type", name_of(field.type)}};
  json["dtype"] = field.dtype == DType::unknown ? Json(nullptr) : Json(name_of(field.dtype));
  json["shape"] = field.shape ? Json(*field.shape) : Json(nullptr);
  json["suffixes"] = Json::array();
  for (const std::string& suffix : field.suffixes) json["suffixes"].push_back(name_to_json(suffix));
  json["present"] = field.present;
  json["sizes"] = nullptr;
  if (sizes != nullptr) {
    json["sizes"] = {{"total", sizes->total},
                     {"smallest", sizes->smallest},
                     {"median", sizes->median},
                     {"largest", sizes->largest}};
  }
  return json;
}

Json comparison_object(const Comparison& comparison) {
  return {{"equal", comparison.equal},         {"compared", comparison.compared},
          {"only_here", comparison.only_here}, {"only_there", comparison.only_there},
          {"different", comparison.different}, {"examples", comparison.examples}};
}

Json row_index_object(const RowIndexSummary& summary) {
  Json json = {{"photos", summary.all()},
               {"indexed", summary.indexed()},
               {"bytes", summary.bytes},
               {"percent", summary.percent()}};
  json["left"] = Json::array();
  for (size_t i = 0; i < summary.photos.size(); ++i) {
    if (i == static_cast<size_t>(DecodePath::indexed) || summary.photos[i] == 0) continue;
    json["left"].push_back({{"to", kDecodePathNames[i]}, {"photos", summary.photos[i]}});
  }
  return json;
}

}  // namespace

Json pack_document(const PackResult& result) {
  Json json = document_header("pack");
  json["source_format"] = result.source_format;
  json["format"] = result.format;
  json["samples"] = result.samples;
  json["shards"] = result.shards;
  json["bytes"] = result.bytes;
  json["payload_bytes"] = result.payload_bytes;
  json["datasets"] = Json::array();
  for (const std::string& path : result.datasets) json["datasets"].push_back(name_to_json(path));
  json["shards_reused"] = result.shards_reused;
  json["already_complete"] = result.already_complete;
  json["filtered"] = result.filtered;
  json["hidden"] = result.hidden;
  json["unlisted"] = result.unlisted;
  json["unused"] = result.unused;
  json["left_out"] = faults_list(result.left_out);
  json["lossy"] = result.lossy;
  json["row_index"] = row_index_object(result.row_index);
  json["seconds"] = result.seconds;
  return json;
}

Json index_document(const IndexResult& result, double seconds) {
  Json json = document_header("index");
  json["format"] = result.format;
  json["depth"] = name_of(result.depth);
  json["directory"] = name_to_json(result.directory);
  json["in_cache"] = result.in_cache;
  json["samples"] = result.samples;
  json["shards"] = result.shards;
  json["bytes"] = result.bytes;
  json["segments_reused"] = result.segments_reused;
  json["hidden"] = result.hidden;
  json["unlisted"] = result.unlisted;
  json["unused"] = result.unused;
  json["faults"] = faults_list(result.faults);
  json["row_index"] = row_index_object(result.row_index);
  json["seconds"] = seconds;
  return json;
}

Json load_document(const LoadResult& result) {
  Json json = document_header("load");
  json["epochs"] = Json::array();
  for (const EpochRate& epoch : result.epochs) {
    json["epochs"].push_back({{"samples", epoch.samples},
                              {"seconds", epoch.seconds},
                              {"samples_per_s", epoch.samples_per_s()},
                              {"bytes_per_s", epoch.bytes_per_s()}});
  }
  json["stages"] = Json::array();
  const auto add = [&](std::string_view name, const StageTime& time) {
    if (time.threads == 0) return;
    json["stages"].push_back({{"name", name},
                              {"threads", time.threads},
                              {"busy_s", time.busy},
                              {"computing_s", time.computing},
                              {"waiting_for_input_s", time.waiting_for_input},
                              {"waiting_for_room_s", time.waiting_for_room}});
  };
  add("fetch", result.last.fetch);
  add("decode", result.last.decode);
  json["decoders"] = Json::array();
  for (size_t i = 0; i < result.last.decoders.size(); ++i) {
    if (result.last.decoders[i] == 0) continue;
    json["decoders"].push_back(
        {{"name", kDecodePathNames[i]}, {"photos", result.last.decoders[i]}});
  }
  json["limit"] = limit_of(result.last);
  json["verdict"] = verdict_of(result.last, usable_cores());
  json["next"] = result.next_step(usable_cores());
  json["mixing"] = result.mixing;
  json["kept_in_memory"] = result.kept_in_memory;
  json["bad"] = faults_list(result.bad);
  return json;
}

Json check_document(const CheckResult& result) {
  Json json = document_header("check");
  json["good"] = result.good();
  json["path"] = name_to_json(result.path);
  json["format"] = result.format;
  json["samples"] = result.samples;
  json["shards"] = result.shards;
  json["bytes"] = result.bytes;
  json["index"] = nullptr;
  if (result.index_depth) {
    json["index"] = {{"depth", name_of(*result.index_depth)},
                     {"directory", name_to_json(result.index_directory)}};
  }
  json["fields"] = Json::array();
  for (size_t i = 0; i < result.schema.fields.size(); ++i) {
    const FieldSizes* sizes = i < result.field_sizes.size() ? &result.field_sizes[i] : nullptr;
    json["fields"].push_back(field_object(result.schema.fields[i], sizes));
  }
  json["classes"] = Json::array();
  for (const ClassCount& count : result.classes) {
    json["classes"].push_back({{"name", name_to_json(count.name)}, {"samples", count.samples}});
  }
  json["hidden"] = result.hidden;
  json["unlisted"] = result.unlisted;
  json["unused"] = result.unused;
  json["left_out"] = result.left_out;
  json["row_index"] = row_index_object(result.row_index);
  json["verified_bytes"] = result.verified_bytes;
  json["checksums_compared"] = result.checksums_compared;
  json["fault_count"] = result.fault_count;
  json["faults"] = faults_list(result.faults);
  json["comparison"] = result.comparison ? comparison_object(*result.comparison) : Json(nullptr);
  json["seconds"] = result.seconds;
  return json;
}

Json splits_document(std::string_view message, const std::vector<SplitSize>& splits) {
  Json json = error_document("check", ErrorKind::usage, message);
  json["splits"] = Json::array();
  for (const SplitSize& split : splits) {
    json["splits"].push_back({{"name", name_to_json(split.name)},
                              {"path", name_to_json(split.path)},
                              {"files", split.files},
                              {"bytes", split.bytes}});
  }
  return json;
}

Json error_document(std::string_view command, ErrorKind kind, std::string_view message) {
  Json json = document_header(command);
  json["node"] = node_name();
  json["error"] = {{"kind", name_of(kind)}, {"message", message}};
  return json;
}

}  // namespace stoker
