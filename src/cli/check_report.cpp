// SPDX-License-Identifier: Apache-2.0
#include "cli/check_report.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

std::string what_it_is(const CheckResult& result, const Style& style) {
  std::string text =
      fmt::format("{}: {}, {} in {}, {}\n", style.bold(printable(result.path)), result.format,
                  counted(result.samples, "sample"),
                  counted(result.shards, result.format == "folder" ? "file" : "shard"),
                  format_bytes(result.bytes));
  if (!result.index_depth) return text + "index: none\n";
  const bool full = *result.index_depth == Depth::full;
  return text +
         fmt::format("index: {}, in {}\n",
                     full ? "full (every sample has a checksum)" : "structure (no checksums)",
                     shown_within(result.index_directory, result.path)) +
         row_index_line(result.row_index);
}

std::string type_of(const Field& field) {
  std::string text(name_of(field.type));
  if (field.dtype != DType::unknown) text += fmt::format(" {}", name_of(field.dtype));
  if (!field.shape) return text;
  std::vector<std::string> dimensions;
  for (const int64_t dimension : *field.shape) {
    dimensions.push_back(dimension < 0 ? "?" : std::to_string(dimension));
  }
  return text + fmt::format(" ({})", fmt::join(dimensions, ", "));
}

std::string fields_table(const CheckResult& result, const Style& style) {
  const std::vector<Column> columns = {{"field"},         {"type"},           {"suffixes"},
                                       {"present", true}, {"smallest", true}, {"median", true},
                                       {"largest", true}};
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < result.schema.fields.size(); ++i) {
    const Field& field = result.schema.fields[i];
    std::vector<std::string> suffixes;
    for (const std::string& suffix : field.suffixes) suffixes.push_back(printable(suffix));
    std::vector<std::string> row = {
        printable(field.name), type_of(field), fmt::format("{}", fmt::join(suffixes, " ")),
        field.present == result.samples ? "all" : format_count(field.present)};
    // A number that lies in the index alone has no size.
    const bool stored = i < result.field_sizes.size() && field.encoding != Encoding::none;
    const FieldSizes sizes = stored ? result.field_sizes[i] : FieldSizes{};
    for (const uint64_t size : {sizes.smallest, sizes.median, sizes.largest}) {
      row.push_back(stored ? format_bytes(size) : "");
    }
    rows.push_back(std::move(row));
  }
  return table(columns, rows, style);
}

std::string classes_chart(const CheckResult& result, const Style& style) {
  std::vector<Bar> bars;
  for (const ClassCount& count : result.classes) {
    bars.push_back({printable(count.name), count.samples});
  }
  const std::string title =
      fmt::format("{} {}", format_count(bars.size()), bars.size() == 1 ? "class" : "classes");
  return style.dim(title) + "\n" + bar_chart(bars, style);
}

std::string speed(uint64_t bytes, double seconds, bool compared) {
  std::string text = format_duration(seconds);
  // The time of a comparison is in it as well: no rate then.
  if (seconds > 0 && !compared)
    text += fmt::format(" ({})", format_rate(static_cast<double>(bytes) / seconds));
  return text;
}

std::string verification(const CheckResult& result, const CheckOptions& options,
                         const Style& style) {
  const std::string name = shell_word(result.path);
  std::string text;
  if (result.fault_count > 0) {
    text += style.bad(counted(result.fault_count, "fault")) + "\n" +
            list_faults(result.faults, result.fault_count, style);
  }
  if (options.quick) {
    text += result.fault_count > 0
                ? ""
                : fmt::format("{} in headers, sizes and names, looked at in {}\n",
                              style.good("no fault"), format_duration(result.seconds));
    return text + fmt::format("payload not read: run {} to verify every byte\n",
                              style.bold("stoker check " + name));
  }
  const std::string all = result.fault_count > 0 ? "" : "all ";
  text += fmt::format("{}{} {} in {}", all, format_bytes(result.verified_bytes),
                      result.checksums_compared && result.fault_count == 0 ? "verified" : "read",
                      speed(result.verified_bytes, result.seconds, result.comparison.has_value()));
  if (result.fault_count > 0) return text + "\n";
  if (result.checksums_compared) {
    return text + ": " + style.good("every byte matches its checksum") + "\n";
  }
  return text + fmt::format(": {}, but no checksums on record: run {}\n",
                            style.good("every byte can be read"),
                            style.bold("stoker index --full " + name));
}

std::string comparison(const Comparison& found, const CheckOptions& options, const Style& style) {
  const std::string other = printable(options.compare);
  if (found.equal) {
    return fmt::format("{} as {}: {} compared{}\n", style.good("same samples"), other,
                       counted(found.compared, "sample"),
                       options.ignore_keys ? " by contents" : "");
  }
  const uint64_t differences = found.only_here + found.only_there + found.different;
  std::string text;
  if (differences == 0) {
    text =
        fmt::format("{} {}: {} compared, without a difference\n",
                    style.bad("not proven the same as"), other, counted(found.compared, "sample"));
  } else {
    text = fmt::format("{} {}: {} only here, {} only there, {} different, {} compared\n",
                       style.bad("differs from"), other, format_count(found.only_here),
                       format_count(found.only_there), format_count(found.different),
                       format_count(found.compared));
  }
  for (const std::string& example : found.examples) text += fmt::format("  {}\n", example);
  if (!found.examples.empty() && differences > found.examples.size()) {
    text += fmt::format("  and {} more\n", format_count(differences - found.examples.size()));
  }
  return text;
}

}  // namespace

std::string splits_report(const std::string& path, const std::vector<SplitSize>& splits,
                          std::string_view other_reading, const Style& style) {
  const std::vector<Column> columns = {{"split"}, {"files", true}, {"bytes", true}, {"next"}};
  std::vector<std::vector<std::string>> rows;
  for (const SplitSize& split : splits) {
    rows.push_back({printable(split.name), format_count(split.files), format_bytes(split.bytes),
                    "stoker check " + shell_word(split.path)});
  }
  return fmt::format("{}: {}, one per split\n\n{}\nnothing was verified: check one of them{}\n",
                     style.bold(printable(path)), counted(splits.size(), "dataset"),
                     table(columns, rows, style), other_reading);
}

std::string check_report(const CheckResult& result, const CheckOptions& options,
                         const Style& style) {
  std::string text = what_it_is(result, style);
  if (result.hidden > 0) {
    text += fmt::format("left alone: {}\n", counted(result.hidden, "hidden file"));
  }
  if (result.unlisted > 0) {
    text += fmt::format("left alone: {}\n", unlisted_files(result.unlisted, result.format));
  }
  if (!result.unused.empty()) {
    text += fmt::format("not read: {}\n", unused_datasets(result.unused));
  }
  if (result.left_out > 0) {
    text += fmt::format("left out when it was packed: {}\n", format_count(result.left_out));
  }
  if (!result.schema.fields.empty()) text += "\n" + fields_table(result, style);
  if (!result.classes.empty()) text += "\n" + classes_chart(result, style);
  text += "\n" + verification(result, options, style);
  if (result.comparison) text += comparison(*result.comparison, options, style);
  return text;
}

}  // namespace stoker
