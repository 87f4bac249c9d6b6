// SPDX-License-Identifier: Apache-2.0
#include "check/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/text.h"

namespace stoker {
namespace {

constexpr size_t kMaxExamples = 20;
constexpr size_t kChunkSamples = 64;

/// Collects differences from many threads.
class Differences {
 public:
  explicit Differences(Comparison& result) : result_(result) {}

  void add(uint64_t& counter, const std::string& what) {
    const std::lock_guard lock(mutex_);
    ++counter;
    examples_.push_back(what);
    // The same few whichever thread was quicker, in bounded memory.
    if (examples_.size() > 16 * kMaxExamples) shorten();
  }
  void compared(uint64_t samples) {
    const std::lock_guard lock(mutex_);
    result_.compared += samples;
  }
  void finish() {
    shorten();
    result_.examples = std::move(examples_);
    result_.equal = result_.only_here == 0 && result_.only_there == 0 && result_.different == 0;
  }

 private:
  void shorten() {
    std::sort(examples_.begin(), examples_.end());
    if (examples_.size() > kMaxExamples) examples_.resize(kMaxExamples);
  }

  Comparison& result_;
  std::mutex mutex_;
  std::vector<std::string> examples_;
};

using NamedValues = std::vector<std::pair<std::string_view, const Value*>>;

NamedValues by_name(const Samples& samples, size_t row, const Schema& schema) {
  NamedValues values;
  for (const auto& [field, value] : samples.rows[row]) {
    values.emplace_back(schema.fields[field].name, &value);
  }
  std::sort(values.begin(), values.end());
  return values;
}

/// How two samples differ, in words; empty when they do not.
std::string difference(const NamedValues& a, const NamedValues& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= b.size() || (i < a.size() && a[i].first < b[i].first)) {
      return fmt::format("field {} is only in the first", printable(a[i].first));
    }
    if (i >= a.size() || b[i].first < a[i].first) {
      return fmt::format("field {} is only in the second", printable(b[i].first));
    }
    if (!equal_values(*a[i].second, *b[i].second)) {
      return fmt::format("field {} differs", printable(a[i].first));
    }
  }
  return {};
}

std::vector<uint64_t> range(uint64_t first, uint64_t last) {
  std::vector<uint64_t> samples(last - first);
  for (uint64_t i = first; i < last; ++i) samples[i - first] = i;
  return samples;
}

void compare_chunk(const Reader& here, const Reader& there, std::span<const uint64_t> samples,
                   Comparison& result, Differences& differences) {
  std::vector<uint64_t> ours;
  std::vector<uint64_t> theirs;
  std::vector<std::string> keys;
  for (const uint64_t sample : samples) {
    std::string key = here.index().key(sample);
    const std::optional<uint64_t> other = there.index().find(key);
    if (!other) {
      differences.add(result.only_here, fmt::format("'{}' is only in the first", printable(key)));
      continue;
    }
    ours.push_back(sample);
    theirs.push_back(*other);
    keys.push_back(std::move(key));
  }
  try {
    const Samples a = read_many(here, ours);
    const Samples b = read_many(there, theirs);
    for (size_t i = 0; i < ours.size(); ++i) {
      const std::string how =
          difference(by_name(a, i, here.index().schema()), by_name(b, i, there.index().schema()));
      if (how.empty()) continue;
      differences.add(result.different, fmt::format("'{}': {}", printable(keys[i]), how));
    }
    differences.compared(ours.size());
  } catch (const Error& error) {
    if (samples.size() > 1) {  // each by itself: which one is it?
      for (size_t i = 0; i < ours.size(); ++i) {
        compare_chunk(here, there, {&ours[i], 1}, result, differences);
      }
      return;
    }
    differences.add(result.different, error.what());
  }
}

void compare_by_key(const Reader& here, const Reader& there, unsigned jobs, Progress* progress,
                    Comparison& result) {
  Differences differences(result);
  const uint64_t size = here.index().size();
  parallel_for((size + kChunkSamples - 1) / kChunkSamples, jobs, [&](size_t chunk) {
    const uint64_t first = chunk * kChunkSamples;
    const std::vector<uint64_t> samples = range(first, std::min(size, first + kChunkSamples));
    compare_chunk(here, there, samples, result, differences);
    if (progress == nullptr) return;
    progress->samples += samples.size();
    progress->check_stop();
  });
  for (uint64_t i = 0; i < there.index().size(); ++i) {
    const std::string key = there.index().key(i);
    if (here.index().find(key)) continue;
    differences.add(result.only_there, fmt::format("'{}' is only in the second", printable(key)));
  }
  differences.finish();
  if (here.index().size() != there.index().size()) result.equal = false;
}

void append_number(std::string& text, const Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) text += fmt::format("n{};", *integer);
  if (const auto* real = std::get_if<double>(&value)) {
    // Equal to an integer, it reads like one.
    const bool whole = *real == std::floor(*real) && std::abs(*real) < 0x1p53;
    text += whole ? fmt::format("n{};", static_cast<int64_t>(*real)) : fmt::format("n{};", *real);
  }
}

void append_bytes(std::string& text, Bytes bytes) {
  text += fmt::format("b{}:{:016x}{:08x};", bytes.size(), hash64(as_text(bytes)), crc32c(bytes));
}

/// 128 bits that stand for the contents of a sample, whatever order its fields are in and
/// whichever of the equal forms of a value a format has.
std::pair<uint64_t, uint64_t> content_of(const NamedValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    text += fmt::format("{}:{};", name.size(), name);
    append_number(text, *value);
    if (const auto* b = std::get_if<Bytes>(value)) append_bytes(text, *b);
    if (const auto* t = std::get_if<std::string_view>(value)) append_bytes(text, as_bytes(*t));
    if (const auto* list = std::get_if<std::vector<Bytes>>(value)) {
      for (const Bytes element : *list) append_bytes(text, element);
    }
    if (const auto* array = std::get_if<Array>(value)) {
      const Value alone = only_element(*array);
      append_number(text, alone);
      if (!std::holds_alternative<std::monostate>(alone)) continue;
      text += fmt::format("a{}[{}]", name_of(array->dtype), fmt::join(array->shape, ","));
      append_bytes(text, array->data);
    }
  }
  return {hash64(text), hash64(text + "#")};
}

/// How often some contents occur here less there, and the first sample on each side that has them.
struct Count {
  int64_t more = 0;
  uint64_t here = ~uint64_t{0}, there = ~uint64_t{0};
};
using Counts = std::map<std::pair<uint64_t, uint64_t>, Count>;

void count_contents(const Reader& reader, int64_t sign, unsigned jobs, Progress* progress,
                    Counts& counts, Comparison& result, Differences& differences) {
  std::mutex mutex;
  const uint64_t size = reader.index().size();
  parallel_for((size + kChunkSamples - 1) / kChunkSamples, jobs, [&](size_t chunk) {
    const uint64_t first = chunk * kChunkSamples;
    const std::vector<uint64_t> samples = range(first, std::min(size, first + kChunkSamples));
    const auto count = [&](std::span<const uint64_t> some) {
      const Samples read = read_many(reader, some);
      for (size_t i = 0; i < some.size(); ++i) {
        const auto content = content_of(by_name(read, i, reader.index().schema()));
        const std::lock_guard lock(mutex);
        Count& known = counts[content];
        known.more += sign;
        uint64_t& example = sign > 0 ? known.here : known.there;
        example = std::min(example, some[i]);
      }
    };
    try {
      count(samples);
    } catch (const Error&) {
      for (const uint64_t& sample : samples) {  // each by itself: which one is it?
        try {
          count({&sample, 1});
        } catch (const Error& error) {
          differences.add(result.different, error.what());
        }
      }
    }
    if (progress == nullptr) return;
    progress->samples += samples.size();
    progress->check_stop();
  });
  if (sign > 0) differences.compared(size);
}

void compare_contents(const Reader& here, const Reader& there, unsigned jobs, Progress* progress,
                      Comparison& result) {
  Differences differences(result);
  Counts counts;
  count_contents(here, 1, jobs, progress, counts, result, differences);
  count_contents(there, -1, jobs, progress, counts, result, differences);
  for (const auto& [content, found] : counts) {
    for (int64_t i = 0; i < found.more; ++i) {
      differences.add(result.only_here, fmt::format("contents of '{}' are more often in the first",
                                                    printable(here.index().key(found.here))));
    }
    for (int64_t i = 0; i > found.more; --i) {
      differences.add(result.only_there,
                      fmt::format("contents of '{}' are more often in the second",
                                  printable(there.index().key(found.there))));
    }
  }
  differences.finish();
}

}  // namespace

Comparison compare_datasets(const Reader& here, const Reader& there, bool ignore_keys,
                            unsigned jobs, Progress* progress) {
  Comparison result;
  const uint64_t both = here.index().size() + there.index().size();
  if (progress != nullptr) {
    progress->begin("comparing", ignore_keys ? both : here.index().size(), 0);
  }
  if (ignore_keys) {
    compare_contents(here, there, jobs, progress, result);
  } else {
    compare_by_key(here, there, jobs, progress, result);
  }
  return result;
}

}  // namespace stoker
