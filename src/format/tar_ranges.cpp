// SPDX-License-Identifier: Apache-2.0
#include "format/tar_ranges.h"

#include <algorithm>
#include <deque>
#include <future>
#include <limits>
#include <vector>

#include "base/error.h"

namespace stoker {
namespace {

constexpr uint64_t kToTheEnd = std::numeric_limits<uint64_t>::max();
/// Where members are larger, looking for a header costs more than going from one to the next.
constexpr uint64_t kFarthestHeader = 256 * 1024;

/// The members of one range, as long as nothing is wrong with them.
class MemberLog final : public TarMembers, public ScanSink {
 public:
  void add(const TarMember& member) override {
    entries_.push_back({member.begin, member.header, member.length, names_.size(),
                        static_cast<uint32_t>(member.name.key.size()),
                        static_cast<uint32_t>(member.name.suffix.size()), false});
    names_.append(member.name.key).append(member.name.suffix);
  }
  void hidden(uint64_t begin) override { entries_.push_back({begin, 0, 0, 0, 0, 0, true}); }
  bool spoil(std::string_view) override {
    usable = false;
    return true;
  }
  void spoil_last(uint64_t, std::string) override { usable = false; }
  void damage(std::string_view) override { usable = false; }
  uint32_t shard(const Shard&) override { return 0; }
  uint32_t codecs(std::span<const Codec>) override { return 0; }
  uint32_t block(const Block&) override { return 0; }
  void sample(std::string_view, std::span<const FoundField>) override {}
  void stated(const StatedChecksum&) override {}
  void fault(Fault) override { usable = false; }

  /// Hands on the members from `begin` on; false where none begins exactly there.
  bool replay(uint64_t begin, TarMembers& members, ScanSink& sink) const {
    if (!found || !usable) return false;
    auto entry = std::lower_bound(entries_.begin(), entries_.end(), begin,
                                  [](const Entry& a, uint64_t b) { return a.begin < b; });
    if (entry == entries_.end() || entry->begin != begin) return false;
    for (; entry != entries_.end(); ++entry) {
      if (entry->hidden) {
        sink.hidden(entry->begin);
        continue;
      }
      const std::string_view name = std::string_view(names_).substr(entry->name);
      members.add({{name.substr(0, entry->key), name.substr(entry->key, entry->suffix)},
                   entry->begin,
                   entry->header,
                   entry->length});
    }
    return true;
  }

  bool found = false;  // a header to begin with
  bool usable = true;
  bool ended = false;  // the archive does
  uint64_t stop = 0;   // where the next member begins, where it does not

 private:
  struct Entry {
    uint64_t begin, header, length;
    uint64_t name;  // in names_: the key, then the suffix
    uint32_t key, suffix;
    bool hidden;
  };
  std::vector<Entry> entries_;
  std::string names_;
};

/// Moves to the first header that looks right; false where none is near.
bool find_header(ByteStream& stream, uint64_t begin) {
  stream.skip(round_up(begin, kTarBlock));
  while (stream.offset() - begin <= kFarthestHeader) {
    const Bytes block = stream.peek(kTarBlock);
    if (block.size() < kTarBlock) return false;
    const TarHeader& header = as_tar_header(block);
    if (looks_like_ustar(header) && sum_of(header).right) return true;
    stream.skip(kTarBlock);
  }
  return false;
}

MemberLog walk(ReadableFile& file, const std::string& shard, uint64_t file_end, uint64_t begin,
               uint64_t end) {
  MemberLog log;
  ByteStream stream(file, shard);
  try {
    log.found = find_header(stream, begin);
    if (!log.found) return log;
    TarScan scan(stream, shard, file_end, log, log);
    log.ended = !scan.run(end);
    log.stop = scan.offset();
  } catch (const Error&) {
    log.usable = false;  // whoever walks here again meets it at its turn
  }
  return log;
}

}  // namespace

void run_in_ranges(const TarRanges& ranges, ReadableFile& file, const std::string& shard,
                   uint64_t end, TarScan& scan, TarMembers& members, ScanSink& sink) {
  const uint64_t count = end / ranges.size;  // the last one takes the rest
  if (ranges.threads < 2 || count < 2) {
    scan.run(kToTheEnd);
    return;
  }
  const auto end_of = [&](uint64_t range) {
    return range + 1 == count ? kToTheEnd : (range + 1) * ranges.size;
  };
  std::deque<std::future<MemberLog>> logs;
  uint64_t begun = 0;
  bool members_are_small = true;
  for (uint64_t range = 0; range < count; ++range) {
    for (; begun < count && members_are_small && logs.size() < ranges.threads; ++begun) {
      logs.push_back(std::async(std::launch::async, walk, std::ref(file), shard, end,
                                begun * ranges.size, end_of(begun)));
    }
    if (logs.empty()) {
      scan.run(kToTheEnd);
      return;
    }
    const MemberLog log = logs.front().get();
    logs.pop_front();
    members_are_small &= log.found;
    if (log.replay(scan.offset(), members, sink)) {
      if (log.ended) return;
      scan.continue_at(log.stop);
    } else if (!scan.run(end_of(range))) {
      return;
    }
  }
}

}  // namespace stoker
