// SPDX-License-Identifier: Apache-2.0
#include "cli/stage_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "results/document.h"

namespace stoker {
namespace {

std::string interval(const Estimate& estimate) {
  return fmt::format("{} ({} to {})", format_duration(estimate.value),
                     format_duration(estimate.least), format_duration(estimate.most));
}

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
    list.push_back({{"place", name_to_json(item.place)},
                    {"directory", name_to_json(item.directory)},
                    {"path", item.path.empty() ? Json() : Json(name_to_json(item.path))},
                    {"source", item.source.empty() ? Json() : Json(name_to_json(item.source))},
                    {"owner", item.owner},
                    {"own", item.own},
                    {"bytes", item.bytes},
                    {"complete", item.complete},
                    {"age_s", item.age_s},
                    {"references", item.references},
                    {"purged_in_days", item.purged_in_days ? Json(*item.purged_in_days) : Json()}});
  }
  return list;
}

/// "job 1234, 2 processes".
std::string users_of(const StagedItem& item) {
  std::vector<std::string> users;
  uint64_t processes = 0;
  for (const std::string& who : item.references) {
    if (who.starts_with("job,")) {
      users.push_back("job " + printable(who.substr(4)));
    } else {
      ++processes;
    }
  }
  if (processes > 0) users.push_back(processes == 1 ? "1 process" : fmt::format("{} processes", processes));
  return users.empty() ? "nobody" : fmt::format("{}", fmt::join(users, ", "));
}

std::string verified_line(const StageResult& result) {
  if (!result.verified) return "";
  if (result.target.packed) return "verified: every sample, by the checksum it got while it was packed\n";
  return result.checksums_made
             ? "verified: every byte read back; the index had no checksums, the copy's has\n"
             : "verified: every sample, by the checksums of the index\n";
}

}  // namespace

std::string payoff_line(const Payoff& payoff) {
  if (!payoff.copy_s) return fmt::format("does it pay: {}\n", payoff.known_from);
  std::string text = fmt::format("does it pay: copying takes {}, ", interval(*payoff.copy_s));
  if (!payoff.pays_after) {
    text += "reading there saves nothing: it does not";
  } else {
    const double epochs = payoff.pays_after->value;
    text += fmt::format("each epoch saves {}: after {:.{}f} epochs", interval(*payoff.epoch_saves_s),
                        epochs, epochs < 10 ? 1 : 0);
  }
  return fmt::format("{}\n  (by {}, read front to back)\n", text, payoff.known_from);
}

std::string stage_report(const StageResult& result, const Style& style) {
  const StageTarget& target = result.target;
  const uint64_t copied = result.staged_bytes - std::min(result.staged_bytes, result.reused_bytes);
  std::string text;
  if (copied == 0 && result.complete) {
    text = fmt::format("{}: {} in {}, {}\n", style.good("already staged"),
                       counted(result.samples, "sample"),
                       counted_shards(result.shards, result.format), format_bytes(result.bytes));
  } else {
    text = fmt::format("{} {} in {} ({})", style.good(target.packed ? "packed and staged" : "staged"),
                       format_bytes(copied), format_duration(result.seconds),
                       format_rate(static_cast<double>(copied) / result.seconds));
    if (result.reused_bytes > 0) {
      text += fmt::format("; {} were there", format_bytes(result.reused_bytes));
    }
    text += "\n";
  }
  text += fmt::format("at: {}\n", printable(target.path));
  if (!target.why.empty()) text += fmt::format("why there: {}\n", target.why);
  text += verified_line(result);
  if (!target.packed && copied > 0) text += payoff_line(target.payoff);
  if (!result.faults.empty()) {
    text += style.bad(fmt::format("{} cannot be staged as indexed:", counted(result.faults.size(), "sample"))) +
            "\n" + list_faults(result.faults, result.faults.size(), style);
  }
  if (!result.complete) {
    return text + fmt::format("not there: {} of {} shards; stoker.Loader({}, stage=True) reads them from the "
                              "source\n",
                              result.missing_shards, result.shards, python_literal(target.source));
  }
  return text + next_steps("stoker check", "verify it again", target.path, style);
}

Json stage_document(const StageResult& result) {
  Json json = document_header("stage");
  const StageTarget& target = result.target;
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
  json["checksums_made"] = result.checksums_made;
  json["faults"] = Json::array();
  for (const Fault& fault : result.faults) json["faults"].push_back(to_json(fault));
  json["payoff"] = payoff_object(target.payoff);
  json["seconds"] = result.seconds;
  return json;
}

std::string staged_list_report(const std::vector<StagedItem>& items, const Style& style) {
  if (items.empty()) return "nothing is staged here\n";
  std::vector<std::vector<std::string>> rows;
  for (const StagedItem& item : items) {
    rows.push_back({printable(item.directory), item.source.empty() ? "?" : printable(item.source),
                    item.own ? "yours" : fmt::format("user {}", item.owner), format_bytes(item.bytes),
                    format_duration(item.age_s), item.complete ? "whole" : "a part", users_of(item),
                    item.purged_in_days ? fmt::format("{:.0f} days", *item.purged_in_days) : "-"});
  }
  return table({{"copy"}, {"of"}, {"whose"}, {"size", true}, {"age", true}, {"state"}, {"used by"}, {"deleted in", true}},
               rows, style);
}

Json staged_list_document(const std::vector<StagedItem>& items) {
  Json json = document_header("stage");
  json["staged"] = items_list(items);
  return json;
}

std::string clean_report(const CleanResult& result, const Style& style) {
  std::string text;
  for (const StagedItem& item : result.removed) {
    text += fmt::format("removed {} ({})\n", printable(item.directory), format_bytes(item.bytes));
  }
  for (const StagedItem& item : result.kept) {
    text += fmt::format("kept {}: {}\n", printable(item.directory),
                        item.references.empty() ? "not old enough" : "used by " + users_of(item));
  }
  return text + fmt::format("{} {} in {}\n", style.good("freed"), format_bytes(result.bytes),
                            result.removed.size() == 1 ? "1 copy" : fmt::format("{} copies", result.removed.size()));
}

Json clean_document(const CleanResult& result) {
  Json json = document_header("stage");
  json["removed"] = items_list(result.removed);
  json["kept"] = items_list(result.kept);
  json["bytes"] = result.bytes;
  return json;
}

}  // namespace stoker
