// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/output.h"
#include "report/report_file.h"
#include "results/document.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {"RUN..."};

constexpr std::array kOptions = {
    Option{"--output", "FILE",
           "where it is written; - is stdout (default: report.html, or with the\n"
           "suffix of --format, in the current directory)",
           'o'},
    Option{"--format", "FORMAT",
           "html, json, csv (figures), steps (CSV of every step), markdown, or\n"
           "tensorboard, which makes a directory (default: by the suffix of FILE)"},
    Option{"--units", "N,N,…",
           "how many cores, GPUs … each RUN had, for the scaling curve\n"
           "(default: its ranks)"},
    Option{"--unit", "NAME", "what --units counts: core, GPU, node"},
    kJsonOption,
    kHelpOption,
};

std::vector<double> units_of(const Arguments& arguments) {
  std::vector<double> units;
  const std::string text = arguments.value("--units").value_or("");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    double number = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + end, number);
    if (read.ec != std::errc() || read.ptr != text.data() + end || !(number > 0)) {
      throw Error(ErrorKind::usage,
                  fmt::format("--units: '{}' is no list of numbers above zero such as 1,2,4",
                              printable(text)));
    }
    units.push_back(number);
    at = end + 1;
  }
  return units;
}

int run_report(const Arguments& arguments, Progress&) {
  ReportOptions options;
  options.runs = arguments.rest();
  if (options.runs.empty()) {
    throw Error(ErrorKind::usage, "a run is missing: stoker report stoker-runs/DATE");
  }
  options.unit = arguments.value("--unit").value_or("");
  options.units = units_of(arguments);
  std::string output = arguments.value("--output").value_or("");
  const bool json = arguments.flag(kJsonOption.name);
  const std::string format = arguments.choice("--format", report_formats()).value_or("");
  const bool written = !json || !output.empty() || !format.empty();
  const ReportForm& form = report_form(format, output == "-" ? "" : output);
  if (output.empty()) output = "report" + std::string(form.suffix);
  if (output == "-" && (json || form.text == nullptr)) {
    throw Error(ErrorKind::usage, json ? "--json and --output -: both go to stdout"
                                       : "--format tensorboard: writes a directory, not stdout");
  }
  const Report report = make_report(options);
  if (output == "-") {
    print(form.text(report));
    return kExitDone;
  }
  const uint64_t bytes = written ? write_report(report, form, output) : 0;
  if (json) {
    print(to_text(written ? report_file_document(report, output, form.name, bytes)
                          : report_file_document(report, "", "", 0)));
    return kExitDone;
  }
  print(fmt::format("wrote {}: {} as {}, {}\n", printable(output),
                    counted(report.runs.size(), "run"), form.name, format_bytes(bytes)));
  if (form.text == nullptr) {
    print(fmt::format("next: tensorboard --logdir {}\n", shell_word(output)));
  }
  return kExitDone;
}

}  // namespace

constinit const Command kReportCommand = {
    .name = "report",
    .summary = "runs as a page for a person: HTML, TensorBoard, Markdown, JSON, CSV",
    .positionals = kPositionals,
    .description =
        "Makes one page of what `stoker time` recorded: the verdict, every figure with where it\n"
        "comes from, and charts of throughput, waiting, CPU and memory. The page needs nothing\n"
        "else and loads nothing. Several runs are shown beside each other and compared with the\n"
        "first; where they differ in ranks, or --units says in what, their scaling is drawn too.\n",
    .options = kOptions,
    .examples =
        "  stoker report stoker-runs/20260501-120000-4711\n"
        "  stoker report runs/a runs/b -o compared.html\n"
        "  stoker report runs/1 runs/2 runs/4 --units 1,2,4 --unit core\n"
        "  stoker report runs/a --format tensorboard -o logs\n"
        "  stoker report runs/a -o runs.csv\n",
    .run = run_report,
};

}  // namespace stoker
