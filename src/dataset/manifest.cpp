// SPDX-License-Identifier: Apache-2.0
#include "dataset/manifest.h"

#include <fmt/format.h>

#include <numeric>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/inner_path.h"
#include "base/json.h"
#include "base/text.h"
#include "os/output_file.h"

namespace stoker {
namespace {

// 400 million samples in segments of 10,000 make a manifest of about 5 MB.
constexpr uint64_t kMaxSize = 1'000'000'000;
constexpr std::string_view kFirstLine = "{\"checksum\": \"crc32c-";

template <typename Get>
uint64_t sum(const std::vector<SegmentEntry>& segments, Get get) {
  return std::accumulate(segments.begin(), segments.end(), uint64_t{0},
                         [&](uint64_t total, const auto& segment) { return total + get(segment); });
}

Json to_json(const Manifest& manifest) {
  Json json;
  json["version"] = Manifest::kVersion;
  json["format"] = manifest.format;
  json["depth"] = name_of(manifest.depth);
  json["faults"] = manifest.faults;
  json["missing"] = Json::array();
  for (const Fault& fault : manifest.missing) json["missing"].push_back(to_json(fault));
  json["fields"] = Json::array();
  for (const Field& field : manifest.schema.fields) json["fields"].push_back(to_json(field));
  json["classes"] = Json::array();
  for (const std::string& name : manifest.schema.classes) {
    json["classes"].push_back(name_to_json(name));
  }
  json["segments"] = Json::array();
  for (const SegmentEntry& segment : manifest.segments) {
    json["segments"].push_back({{"file", name_to_json(segment.file)},
                                {"samples", segment.samples},
                                {"shards", segment.shards},
                                {"bytes", segment.bytes},
                                {"header_crc", segment.header_crc}});
    if (segment.faults) json["segments"].back()["faults"] = *segment.faults;
  }
  json["listed"] = manifest.listed;
  if (!manifest.unused.empty()) json["unused"] = manifest.unused;
  json["origin"] = manifest.origin.empty() ? Json() : parse_json(manifest.origin);
  return json;
}

/// Numbers of samples are added up, and samples found by the sums.
void check_counts(const Manifest& manifest, const std::string& path) {
  constexpr uint64_t kMost = uint64_t{1} << 48;
  uint64_t samples = 0;
  for (const SegmentEntry& segment : manifest.segments) {
    if (segment.samples > kMost || segment.samples > kMost - samples) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("{}: speaks of more samples than there can be: run stoker index",
                              printable(path)));
    }
    samples += segment.samples;
  }
}

Manifest from_json(const Json& json, const std::string& path) {
  Manifest manifest;
  manifest.format = json.at("format").get<std::string>();
  manifest.depth = json.at("depth") == name_of(Depth::full) ? Depth::full : Depth::structure;
  manifest.faults = checked<uint64_t>(json.at("faults"));
  if (json.contains("missing")) {  // not in what earlier versions wrote
    for (const Json& fault : json.at("missing")) manifest.missing.push_back(fault_from_json(fault));
  }
  for (const Json& field : json.at("fields")) {
    manifest.schema.fields.push_back(field_from_json(field, path));
  }
  for (const Json& name : json.at("classes")) {
    manifest.schema.classes.push_back(name_from_json(name.get<std::string>()));
  }
  for (const Json& entry : json.at("segments")) {
    manifest.segments.push_back(
        {inner_name(name_from_json(entry.at("file").get<std::string>()), path),
         checked<uint64_t>(entry.at("samples")), checked<uint64_t>(entry.at("shards")),
         checked<uint64_t>(entry.at("bytes")), checked<uint32_t>(entry.at("header_crc"))});
    if (entry.contains("faults")) {
      manifest.segments.back().faults = checked<uint64_t>(entry.at("faults"));
    }
  }
  check_counts(manifest, path);
  manifest.listed = json.at("listed").get<bool>();
  if (json.contains("unused")) {
    manifest.unused = json["unused"].get<std::vector<std::string>>();
  }
  if (const Json& origin = json.at("origin"); !origin.is_null()) manifest.origin = origin.dump();
  return manifest;
}

}  // namespace

uint64_t Manifest::samples() const {
  return sum(segments, [](const SegmentEntry& segment) { return segment.samples; });
}

uint64_t Manifest::shards() const {
  return sum(segments, [](const SegmentEntry& segment) { return segment.shards; });
}

uint64_t Manifest::bytes() const {
  return sum(segments, [](const SegmentEntry& segment) { return segment.bytes; });
}

void Manifest::write(const std::string& path, const Access& access) const {
  // Valid JSON as a whole; the checksum covers every byte after the first line.
  std::string body = to_json(*this).dump(1);
  body.erase(0, 2);  // "{\n": it continues the object of the first line
  body += "\n";
  const std::string text = fmt::format("{}{:08x}\",\n{}", kFirstLine, crc32c(as_bytes(body)), body);
  write_file(path, as_bytes(text), access);
}

Manifest Manifest::read(const std::string& path) {
  const auto corrupt = [&](const std::string& cause) {
    return Error(ErrorKind::corrupt,
                 fmt::format("{}: {}: run stoker index", printable(path), cause));
  };
  const std::string text = read_file(path, kMaxSize);
  const size_t first_line_end = text.find('\n');
  if (first_line_end == std::string::npos || !text.starts_with(kFirstLine)) {
    throw corrupt("this is not a manifest, or it is truncated");
  }
  const std::string_view body = std::string_view(text).substr(first_line_end + 1);
  const std::string expected = fmt::format("{}{:08x}\",", kFirstLine, crc32c(as_bytes(body)));
  if (std::string_view(text).substr(0, first_line_end) != expected) {
    throw corrupt("its checksum differs: the index is damaged");
  }
  try {
    const Json json = parse_json(text);
    if (json.at("version") != kVersion) {
      throw corrupt(fmt::format("it has version {}, this program reads version {}",
                                json.at("version").dump(), kVersion));
    }
    return from_json(json, path);
  } catch (const Json::exception& error) {
    throw corrupt(fmt::format("it cannot be understood ({})", error.what()));
  }
}

}  // namespace stoker
