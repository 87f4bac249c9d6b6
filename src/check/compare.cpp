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
#include "index/duplicates.h"

namespace stoker {
namespace {

constexpr size_t kMaxExamples = 20;
// What a thread reads at once of each side: so many samples, and bytes unless one has more.
constexpr size_t kChunkSamples = 64;
constexpr uint64_t kChunkBytes = 16 << 20;

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

/// How many of the first samples to read at once: at least one.
size_t fitting(const Reader& reader, std::span<const uint64_t> samples) {
  try {
    uint64_t bytes = 0;
    for (const Item& item : reader.locate(samples).items) {
      bytes += item.length;
      if (bytes > kChunkBytes && item.row > 0) return item.row;
    }
    return samples.size();
  } catch (const Error&) {
    return 1;  // which one it is shows when they are read
  }
}

void count_progress(Progress* progress, uint64_t samples) {
  if (progress == nullptr) return;
  progress->samples += samples;
  progress->check_stop();
}

/// The samples whose key an earlier one has, sorted.
std::vector<uint64_t> repeated_keys(const Index& index) {
  std::vector<uint64_t> samples;
  for (const DuplicateKey& twice : find_duplicates(index)) samples.push_back(twice.sample);
  return samples;
}

/// Matches the samples of two datasets by key. Of samples that share one, only the first can be
/// matched: the others count as being on their side alone.
class KeyComparison {
 public:
  KeyComparison(const Reader& here, const Reader& there, Comparison& result)
      : here_(here),
        there_(there),
        result_(result),
        differences_(result),
        repeated_here_(repeated_keys(here.index())),
        repeated_there_(repeated_keys(there.index())) {}

  void run(unsigned jobs, Progress* progress) {
    const uint64_t size = here_.index().size();
    parallel_for((size + kChunkSamples - 1) / kChunkSamples, jobs, [&](size_t chunk) {
      const uint64_t first = chunk * kChunkSamples;
      compare(first, std::min(size, first + kChunkSamples), progress);
    });
    for (uint64_t i = 0; i < there_.index().size(); ++i) find_here(i);
    differences_.finish();
  }

 private:
  void compare(uint64_t first, uint64_t last, Progress* progress) {
    std::vector<uint64_t> ours;
    std::vector<uint64_t> theirs;
    for (uint64_t sample = first; sample < last; ++sample) {
      const std::optional<uint64_t> other = find_there(sample);
      if (!other) continue;
      ours.push_back(sample);
      theirs.push_back(*other);
    }
    count_progress(progress, last - first - ours.size());
    for (size_t at = 0; at < ours.size();) {
      const std::span<const uint64_t> a = std::span(ours).subspan(at);
      const std::span<const uint64_t> b = std::span(theirs).subspan(at);
      const size_t count = std::min(fitting(here_, a), fitting(there_, b));
      compare_contents(a.first(count), b.first(count));
      count_progress(progress, count);
      at += count;
    }
  }

  std::optional<uint64_t> find_there(uint64_t sample) {
    const std::string key = here_.index().key(sample);
    if (std::binary_search(repeated_here_.begin(), repeated_here_.end(), sample)) {
      differences_.add(result_.only_here, repeated(key, "first"));
      return std::nullopt;
    }
    const std::optional<uint64_t> other = there_.index().find(key);
    if (!other) differences_.add(result_.only_here, only_in(key, "first"));
    return other;
  }

  void find_here(uint64_t sample) {
    const std::string key = there_.index().key(sample);
    if (!here_.index().find(key)) {
      differences_.add(result_.only_there, only_in(key, "second"));
    } else if (std::binary_search(repeated_there_.begin(), repeated_there_.end(), sample)) {
      differences_.add(result_.only_there, repeated(key, "second"));
    }
  }

  static std::string only_in(std::string_view key, std::string_view side) {
    return fmt::format("'{}' is only in the {}", printable(key), side);
  }
  static std::string repeated(std::string_view key, std::string_view side) {
    return fmt::format("'{}' is more than once in the {}: a duplicate key has no counterpart",
                       printable(key), side);
  }

  void compare_contents(std::span<const uint64_t> ours, std::span<const uint64_t> theirs) {
    std::string_view side = "first";
    try {
      const Samples a = read_many(here_, ours);
      side = "second";
      const Samples b = read_many(there_, theirs);
      for (size_t i = 0; i < ours.size(); ++i) {
        const std::string how = difference(by_name(a, i, here_.index().schema()),
                                           by_name(b, i, there_.index().schema()));
        if (how.empty()) continue;
        const std::string key = here_.index().key(ours[i]);
        differences_.add(result_.different, fmt::format("'{}': {}", printable(key), how));
      }
      differences_.compared(ours.size());
    } catch (const Error& error) {
      if (ours.size() == 1) {
        differences_.add(result_.different, fmt::format("in the {}: {}", side, error.what()));
        return;
      }
      for (size_t i = 0; i < ours.size(); ++i) {  // each by itself: which one is it?
        compare_contents(ours.subspan(i, 1), theirs.subspan(i, 1));
      }
    }
  }

  const Reader& here_;
  const Reader& there_;
  Comparison& result_;
  Differences differences_;
  const std::vector<uint64_t> repeated_here_, repeated_there_;
};

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

/// Counts the contents of one dataset: `sign` is 1 for the first and -1 for the second.
class ContentCount {
 public:
  ContentCount(const Reader& reader, int64_t sign, Counts& counts, Comparison& result,
               Differences& differences)
      : reader_(reader), sign_(sign), counts_(counts), result_(result), differences_(differences) {}

  void run(unsigned jobs, Progress* progress) {
    const uint64_t size = reader_.index().size();
    parallel_for((size + kChunkSamples - 1) / kChunkSamples, jobs, [&](size_t chunk) {
      const uint64_t first = chunk * kChunkSamples;
      const std::vector<uint64_t> samples = range(first, std::min(size, first + kChunkSamples));
      for (std::span<const uint64_t> rest = samples; !rest.empty();) {
        const size_t some = fitting(reader_, rest);
        count(rest.first(some));
        count_progress(progress, some);
        rest = rest.subspan(some);
      }
    });
    if (sign_ > 0) differences_.compared(size);
  }

 private:
  void count(std::span<const uint64_t> samples) {
    try {
      const Samples read = read_many(reader_, samples);
      for (size_t i = 0; i < samples.size(); ++i) {
        add(samples[i], content_of(by_name(read, i, reader_.index().schema())));
      }
    } catch (const Error& error) {
      if (samples.size() == 1) {
        differences_.add(
            result_.different,
            fmt::format("in the {}: {}", sign_ > 0 ? "first" : "second", error.what()));
        return;
      }
      for (size_t i = 0; i < samples.size(); ++i) count(samples.subspan(i, 1));
    }
  }

  void add(uint64_t sample, const std::pair<uint64_t, uint64_t>& content) {
    const std::lock_guard lock(mutex_);
    Count& known = counts_[content];
    known.more += sign_;
    uint64_t& example = sign_ > 0 ? known.here : known.there;
    example = std::min(example, sample);
  }

  const Reader& reader_;
  const int64_t sign_;
  Counts& counts_;
  Comparison& result_;
  Differences& differences_;
  std::mutex mutex_;
};

void compare_contents(const Reader& here, const Reader& there, unsigned jobs, Progress* progress,
                      Comparison& result) {
  Differences differences(result);
  Counts counts;
  ContentCount(here, 1, counts, result, differences).run(jobs, progress);
  ContentCount(there, -1, counts, result, differences).run(jobs, progress);
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
    KeyComparison(here, there, result).run(jobs, progress);
  }
  return result;
}

}  // namespace stoker
