// SPDX-License-Identifier: Apache-2.0
#include "cli/stage_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "os/node.h"

namespace stoker {
namespace {

std::string interval(const Estimate& estimate) {
  return fmt::format("{} ({} to {})", format_duration(estimate.value),
                     format_duration(estimate.least), format_duration(estimate.most));
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
  if (processes > 0)
    users.push_back(processes == 1 ? "1 process" : fmt::format("{} processes", processes));
  if (users.empty()) return item.keep ? "nobody, kept" : "nobody";
  return fmt::format("{}", fmt::join(users, ", "));
}

/// "2 h 03 min ago".
std::string ago(int64_t seconds_since_1970) {
  const double now = static_cast<double>(time_of_day_ns()) * 1e-9;
  const double passed = now - static_cast<double>(seconds_since_1970);
  return passed < 60 ? "less than a minute ago" : format_duration(passed) + " ago";
}

std::string verified_line(const StageResult& result) {
  if (result.trusts) {
    return fmt::format(
        "not verified: {} packed it for the group; that it holds what the folder does is that "
        "user's word\n",
        printable(user_in_words(*result.trusts)));
  }
  if (!result.verified) return "";
  if (!result.verified_now) {
    const bool all = result.reused_bytes == result.staged_bytes;
    return fmt::format("verified: {}when it was staged{}; not read again: --verify reads it\n",
                       all ? "" : "what was copied now; the rest ",
                       result.verified_at == 0 ? "" : ", " + ago(result.verified_at));
  }
  if (result.reused_bytes > 0) return "verified: every sample, read again now\n";
  if (result.target.packed)
    return "verified: every sample, by the checksum it got while it was packed\n";
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
    text += fmt::format("each epoch saves {}: after {:.{}f} epochs",
                        interval(*payoff.epoch_saves_s), epochs, epochs < 10 ? 1 : 0);
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
    text =
        fmt::format("{} {} in {} ({})", style.good(target.packed ? "packed and staged" : "staged"),
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
  if (!result.repaired.empty()) {
    text += fmt::format("repaired: {} at the place, copied again; the first: {}\n",
                        result.repaired.size() == 1
                            ? "1 shard was damaged"
                            : fmt::format("{} shards were damaged", result.repaired.size()),
                        printable(result.repaired.front()));
  }
  if (result.removed_copies > 0) {
    text += fmt::format(
        "removed: {} of jobs or commands that have ended ({})\n",
        result.removed_copies == 1 ? "1 copy" : fmt::format("{} copies", result.removed_copies),
        format_bytes(result.removed_bytes));
  }
  if (!target.packed && copied > 0) text += payoff_line(target.payoff);
  if (!result.faults.empty()) {
    const bool by_sample = std::all_of(result.faults.begin(), result.faults.end(),
                                       [](const Fault& fault) { return !fault.sample.empty(); });
    text += style.bad(by_sample ? fmt::format("{} cannot be staged as indexed:",
                                              counted(result.faults.size(), "sample"))
                                : fmt::format("{} of the source, which the copy has too:",
                                              counted(result.faults.size(), "fault"))) +
            "\n" + list_faults(result.faults, result.faults.size(), style);
  }
  if (!result.complete) {
    return text +
           fmt::format(
               "not there: {} of {} shards; stoker.Loader({}, stage=True) reads them from the "
               "source\n",
               result.missing_shards, result.shards, python_literal(target.source));
  }
  return text + next_steps("stoker check", "verify it again", target.path, style);
}

namespace {

std::string state_of(const Json& node) {
  if (!node.at("faults").empty()) return "damaged";
  if (!node.at("verified").get<bool>()) return "not verified";
  return node.at("verified_now").get<bool>() ? "verified" : "verified when it was staged";
}

}  // namespace

std::string nodes_report(const Json& document, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  std::string failures;
  for (const Json& node : document.at("nodes")) {
    if (node.contains("error")) {
      failures += fmt::format("{}: {}\n", printable(node.value("node", "a node")),
                              style.bad(node["error"].value("message", "failed")));
      continue;
    }
    const bool complete = node.at("complete").get<bool>();
    rows.push_back({node.at("node").get<std::string>(), node.at("path").get<std::string>(),
                    format_bytes(node.at("staged_bytes").get<uint64_t>()),
                    format_duration(node.at("seconds").get<double>()),
                    fmt::format("{}, {}", complete ? "whole" : "a part", state_of(node))});
  }
  if (rows.empty()) return failures;
  return table({{"node"}, {"at"}, {"size", true}, {"took", true}, {"state"}}, rows, style) +
         failures;
}

std::string staged_list_report(const StagedList& list, bool nodes, const Style& style) {
  std::string passed_over;
  for (const PassedOver& one : list.passed_over) {
    passed_over += fmt::format("{}passed over: {} of {}: {}\n",
                               nodes ? printable(one.node) + ": " : "", printable(one.directory),
                               printable(user_in_words(one.owner)), printable(one.why));
  }
  if (list.items.empty()) return "nothing is staged here\n" + passed_over;
  std::vector<std::vector<std::string>> rows;
  for (const StagedItem& item : list.items) {
    rows.push_back({printable(item.node), printable(item.directory),
                    item.source.empty() ? "?" : printable(item.source),
                    item.own ? "yours" : printable(user_in_words(item.owner)),
                    format_bytes(item.bytes), format_duration(item.age_s),
                    item.complete ? "whole" : "a part", users_of(item),
                    item.purged_in_days ? fmt::format("{:.0f} days", *item.purged_in_days) : "-"});
  }
  std::vector<Column> columns = {{"node"},  {"copy"},       {"of"},
                                 {"whose"}, {"size", true}, {"age", true},
                                 {"state"}, {"used by"},    {"deleted in", true}};
  if (!nodes) {
    columns.erase(columns.begin());
    for (std::vector<std::string>& row : rows) row.erase(row.begin());
  }
  return table(columns, rows, style) + passed_over;
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
                            result.removed.size() == 1
                                ? "1 copy"
                                : fmt::format("{} copies", result.removed.size()));
}

std::string cleaned_nodes_report(const std::vector<Json>& documents, const Style& style) {
  std::string text;
  for (const Json& document : documents) {
    const std::string node = printable(document.value("node", "a node"));
    if (document.contains("error")) {
      text +=
          fmt::format("{}: {}\n", node, style.bad(document["error"].value("message", "failed")));
      continue;
    }
    for (const Json& item : document.at("kept")) {
      text += fmt::format("{}: kept {}\n", node, item.at("directory").get<std::string>());
    }
    const size_t copies = document.at("removed").size();
    text += fmt::format("{}: {} {} in {}\n", node, style.good("freed"),
                        format_bytes(document.at("bytes").get<uint64_t>()),
                        copies == 1 ? "1 copy" : fmt::format("{} copies", copies));
  }
  return text;
}

}  // namespace stoker
