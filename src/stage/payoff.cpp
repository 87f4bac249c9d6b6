// SPDX-License-Identifier: Apache-2.0
#include "stage/payoff.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "os/node.h"
#include "os/output_file.h"
#include "probe/measurements.h"
#include "results/machine.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMostProfile = 16 << 20;

struct Profile {
  Place place;
  std::string measured_at;
};

/// What `probe` has measured on this host on the file system where `path` lies; the latest.
std::optional<Profile> profile_of(const std::string& path, const std::string& profiles) {
  Place facts;
  facts.path = path;
  find_facts(facts);
  std::optional<Profile> found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(profiles, failed)) {
    if (entry.path().extension() != ".json") continue;
    try {
      const Machine machine =
          machine_from_json(parse_json(read_file(entry.path().string(), kMostProfile)));
      if (machine.host != host_name()) continue;
      for (const Place& place : machine.places) {
        const bool same = place.mount == facts.mount && place.type == facts.type;
        if (!same || place.best("read") == nullptr || place.best("write") == nullptr) continue;
        if (!found || machine.measured_at > found->measured_at) {
          found = Profile{place, machine.measured_at};
        }
      }
    } catch (const Error&) {  // not a profile, or of a version that this one does not know
    } catch (const Json::exception&) {
    }
  }
  return found;
}

Estimate time_of(uint64_t bytes, const Rate& rate) {
  const auto seconds = [&](double per_s) {
    return per_s > 0 ? static_cast<double>(bytes) / per_s : 0.0;
  };
  return {seconds(rate.per_s), seconds(rate.most), seconds(rate.least)};
}

Estimate slower(const Estimate& a, const Estimate& b) {
  return {std::max(a.value, b.value), std::max(a.least, b.least), std::max(a.most, b.most)};
}

}  // namespace

Payoff estimate_payoff(const std::string& source, const std::string& place, uint64_t copy_bytes,
                       uint64_t epoch_bytes, const std::string& profiles) {
  Payoff payoff;
  const std::optional<Profile> from = profile_of(source, profiles),
                               to = profile_of(place, profiles);
  if (!from || !to) {
    payoff.known_from =
        fmt::format("not known: run stoker probe {}{}{}", from ? "" : printable(source),
                    from || to ? "" : " ", to ? "" : printable(place));
    return payoff;
  }
  const Estimate here = time_of(epoch_bytes, *from->place.best("read"));
  const Estimate there = time_of(epoch_bytes, *to->place.best("read"));
  payoff.copy_s = slower(time_of(copy_bytes, *from->place.best("read")),
                         time_of(copy_bytes, *to->place.best("write")));
  payoff.epoch_saves_s = Estimate{here.value - there.value, std::max(0.0, here.least - there.most),
                                  std::max(0.0, here.most - there.least)};
  payoff.epoch_saves_s->value = std::max(0.0, payoff.epoch_saves_s->value);
  payoff.known_from =
      fmt::format("stoker probe of {} ({}) and {} ({})", printable(from->place.path),
                  from->measured_at, printable(to->place.path), to->measured_at);
  const Estimate& saves = *payoff.epoch_saves_s;
  if (saves.value > 0) {
    const auto epochs = [](double copy, double saved) { return saved > 0 ? copy / saved : -1.0; };
    payoff.pays_after = Estimate{epochs(payoff.copy_s->value, saves.value),
                                 epochs(payoff.copy_s->least, saves.most),
                                 epochs(payoff.copy_s->most, saves.least)};
  }
  return payoff;
}

}  // namespace stoker
