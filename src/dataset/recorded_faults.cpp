// SPDX-License-Identifier: Apache-2.0
#include "dataset/recorded_faults.h"

#include <algorithm>
#include <filesystem>

#include "base/hash.h"

namespace stoker {
namespace {

/// Whether the sample, and its field where one is named, are in the segment all the same.
bool is_there(const Segment& segment, const Fault& fault) {
  if (fault.sample.empty()) return false;
  if (fault.samples == 0) return true;
  const std::vector<Field>& fields = segment.fields();
  const auto field = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& one) { return one.name == fault.field; });
  if (field == fields.end()) return false;
  std::vector<uint64_t> found;
  segment.find_hash(hash64(fault.sample), found);
  return std::any_of(found.begin(), found.end(), [&](uint64_t sample) {
    return segment.key(sample) == fault.sample &&
           segment.locate(sample, static_cast<uint32_t>(field - fields.begin())).present;
  });
}

void add(Fault fault, std::vector<Fault>& faults) {
  if (fault.sample.empty() && !fault.samples && loses_data(fault)) {
    fault.cause += "; an unknown number of samples is missing";
  }
  faults.push_back(std::move(fault));
}

}  // namespace

bool loses_data(const Fault& fault) {
  if (fault.samples == 0) return false;
  return !fault.sample.empty() || fault.field.empty() || !fault.cause.starts_with("left out: ");
}

std::vector<Fault> recorded_faults(const Index& index) {
  std::vector<Fault> faults;
  const Manifest& manifest = index.manifest();
  for (const Fault& fault : manifest.missing) add(fault, faults);
  if (manifest.faults == manifest.missing.size() || !manifest.origin.empty()) return faults;
  for (const SegmentEntry& entry : manifest.segments) {
    if (entry.faults == 0) continue;
    // Each is closed again: there may be more than files can be open.
    const Segment segment((std::filesystem::path(index.directory()) / entry.file).string());
    for (Fault fault : segment.faults()) {
      if (is_there(segment, fault)) fault.samples = 0;
      add(std::move(fault), faults);
    }
  }
  return faults;
}

}  // namespace stoker
