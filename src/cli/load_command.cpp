// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/parallel.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/output.h"
#include "cli/progress_bar.h"
#include "load/load.h"
#include "os/open_file_limit.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 1> kPositionals = {"DATASET"};

constexpr std::array kOptions = {
    Option{"--crop", "PIXELS", "side of the square that each photo becomes (default: 224)"},
    Option{"--image", "FIELD", "the field that holds the photos (default: image)"},
    Option{"--raw", "", "read all fields and decode nothing: how fast is the storage?"},
    Option{"--batch", "N", "samples in a batch (default: 256)"},
    Option{"--epochs", "N", "how often all samples are loaded (default: 2)"},
    Option{"--order", "ORDER",
           "shuffled, sequential, or blocks, mixed in memory (default: shuffled)"},
    Option{"--cold", "", "make the kernel forget the dataset before every epoch"},
    Option{"--skip-bad", "", "leave out samples that cannot be read, name them, and go on"},
    Option{"--threads", "N", "threads that decode (default: as many of the usable cores as help)"},
    kJsonOption,
    kHelpOption,
};

LoadOptions options_of(const Arguments& arguments) {
  using Kind = OrderOptions::Kind;
  constexpr std::array<std::string_view, 3> kOrders = {"shuffled", "sequential", "blocks"};
  LoadOptions options;
  constexpr uint64_t kLargest = 16'384;
  const uint64_t crop = arguments.number("--crop", 1).value_or(options.crop);
  if (crop > kLargest) {
    throw Error(ErrorKind::usage, fmt::format("--crop {}: {} is the most", crop, kLargest));
  }
  options.crop = static_cast<uint32_t>(crop);
  options.batch_size = arguments.number("--batch", 1).value_or(options.batch_size);
  options.epochs = arguments.number("--epochs", 1).value_or(options.epochs);
  const std::optional<std::string> order = arguments.choice("--order", kOrders);
  if (order == kOrders[1]) options.order = Kind::sequential;
  if (order == kOrders[2]) options.order = Kind::blocks;
  options.raw = arguments.flag("--raw");
  options.cold = arguments.flag("--cold");
  if (options.raw && arguments.number("--crop", 1)) {
    throw Error(ErrorKind::usage, "--crop and --raw: raw samples are not decoded, so not cropped");
  }
  if (options.raw && arguments.value("--image")) {
    throw Error(ErrorKind::usage, "--image and --raw: raw samples are not decoded");
  }
  options.image = arguments.value("--image").value_or(options.image);
  options.skip_bad = arguments.flag("--skip-bad");
  options.threads = static_cast<unsigned>(
      std::min<uint64_t>(arguments.number("--threads", 1).value_or(0), 1U << 20));
  return options;
}

std::string stage_line(std::string_view name, const StageTime& time) {
  if (time.threads == 0) return "";
  const double all = time.busy + time.waiting_for_input + time.waiting_for_room;
  const auto share = [&](double part) { return fmt::format("{:.0f} %", 100 * part / all); };
  return fmt::format("{:<7} {:>7} {:>6} {:>18} {:>17}\n", name, time.threads, share(time.busy),
                     share(time.waiting_for_input), share(time.waiting_for_room));
}

/// Which decoders took the photos; empty where none were decoded.
std::string decoder_line(const DecodeCounts& decoders) {
  const uint64_t all = std::accumulate(decoders.begin(), decoders.end(), uint64_t{0});
  std::vector<std::string> parts;
  for (size_t i = 0; i < decoders.size(); ++i) {
    if (decoders[i] == 0) continue;
    parts.push_back(fmt::format("{} {:.1f} %", kDecodePathNames[i],
                                100 * static_cast<double>(decoders[i]) / static_cast<double>(all)));
  }
  return parts.empty() ? "" : fmt::format("\ndecoded by: {}\n", fmt::join(parts, "; "));
}

/// How many samples, as far as that is known.
std::string left_out(const std::vector<Fault>& bad) {
  uint64_t known = 0;
  bool more = false;
  for (const Fault& fault : bad) {
    known += fault.samples.value_or(0);
    more = more || !fault.samples;
  }
  if (known == 0) return "an unknown number of samples";
  return counted(known, "sample") + (more ? ", and an unknown number more" : "");
}

std::string summary(const LoadResult& result, const Style& style) {
  std::string text;
  for (size_t i = 0; i < result.epochs.size(); ++i) {
    const EpochRate& epoch = result.epochs[i];
    text += fmt::format("epoch {}: {} in {}, {} samples/s, {}\n", i + 1,
                        counted(epoch.samples, "sample"), format_duration(epoch.seconds),
                        format_count(static_cast<uint64_t>(epoch.samples_per_s())),
                        format_rate(epoch.bytes_per_s()));
  }
  const LoaderStats& last = result.last;
  text += "\nstage   threads   busy  waiting for input  waiting for room\n";
  text += stage_line("fetch", last.fetch);
  text += stage_line("decode", last.decode);
  text += decoder_line(last.decoders);
  if (result.mixing > 0 && result.mixing < 1) {
    text += fmt::format(
        "\nmixing {:.2f}: at worst, batches are as varied as fully shuffled ones of "
        "{:.0f} % of their size\n",
        result.mixing, 100 * result.mixing);
  }
  if (result.kept_in_memory > 0.01) {
    text += fmt::format(
        "\nnot quite cold: {:.0f} % stayed in memory (a file system in memory, or "
        "somebody else reads it)\n",
        100 * result.kept_in_memory);
  }
  text += "\n" + verdict_of(last, usable_cores()) + "\n";
  text += "next: " + result.next_step(usable_cores()) + "\n";
  if (!result.bad.empty()) {
    text += "left out: " + style.bad(left_out(result.bad)) + ":\n" +
            list_faults(result.bad, result.bad.size(), style);
  }
  return text;
}

int run_load(const Arguments& arguments, Progress& progress) {
  LoadOptions options = options_of(arguments);
  options.progress = &progress;
  const LoadResult result = [&] {
    const ProgressBar bar(progress);
    const MoreOpenFiles more;
    return load(arguments.positional(0), options);
  }();
  print(arguments.flag(kJsonOption.name) ? to_text(load_document(result))
                                         : summary(result, Style::of_stdout()));
  return result.bad.empty() || options.skip_bad ? kExitDone : kExitFailed;
}

}  // namespace

constinit const Command kLoadCommand = {
    .name = "load",
    .summary = "run the loader without a model: samples/s, and which stage limits",
    .positionals = kPositionals,
    .description =
        "Loads the photos of DATASET as training would (RandomResizedCrop, flip, in batches), or\n"
        "any samples with --raw, and says how fast that is and what holds it up. Without an "
        "index,\n"
        "one is made first. The first epoch may read from the disk, later ones from memory.\n",
    .options = kOptions,
    .examples =
        "  stoker load train\n"
        "  stoker load faces.h5 --image photos\n"
        "  stoker load train --batch 64 --threads 4 --epochs 3\n"
        "  stoker load train --raw --cold --order blocks\n"
        "  stoker load train --order sequential --json\n",
    .run = run_load,
};

}  // namespace stoker
