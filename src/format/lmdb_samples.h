// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/scan.h"
#include "format/lmdb_file.h"
#include "format/member_name.h"

namespace stoker {

/// Makes samples of the entries of a database, which come in the order of their keys: those of one
/// sample, "a.cls" and "a.jpg", side by side. Values under keys without an ending are looked at.
class LmdbSamples {
 public:
  /// `number` is what the sink has called the file, `shard` its name.
  LmdbSamples(ReadableFile& file, const std::string& shard, uint32_t number, bool integer_keys,
              ScanSink& sink)
      : file_(file), shard_(shard), number_(number), integer_keys_(integer_keys), sink_(sink) {}

  void add(const LmdbEntry& entry);
  /// Entries are lost here: a sample next to them may lack some.
  void damage() { damage_ahead_ = suspect_ = true; }
  /// The last entry was added.
  void finish();

 private:
  /// Of the sample that is open.
  struct Member {
    size_t suffix, suffix_length;  // in suffixes_
    uint64_t offset, length;
  };
  /// Entries that are left out for one reason: the first of them stands for all.
  struct LeftOut {
    std::string first;
    uint64_t offset = 0, count = 0;
    void add(std::string_view key, uint64_t at);
  };
  /// "image-000000001", "label-000000001" … "num-samples", as text recognition has it: what belongs
  /// to one sample lies far apart, and is gathered first.
  struct Numbered {
    uint32_t sample;
    uint32_t length;
    uint64_t offset;
  };

  std::string_view suffix(size_t member) const;
  void begin(std::string_view key);
  void push(std::string_view suffix, uint64_t offset, uint64_t length);
  void flush();
  /// Keys that are no names (numbers as bytes, say) are taken as they are.
  std::optional<MemberName> split(std::string_view key);
  bool gather(const LmdbEntry& entry);
  void emit_gathered();
  /// The first bytes of a value; valid until the next call.
  std::string_view look(uint64_t offset, uint64_t length);
  bool is_pickle(std::string_view begin, uint64_t offset, uint64_t length) const;
  bool leave_out(const LmdbEntry& entry, std::string_view suffix);
  void report(const LeftOut& left_out, std::string_view cause);
  void fault(uint64_t offset, std::string_view key, std::string cause);

  ReadableFile& file_;
  const std::string& shard_;
  uint32_t number_;
  bool integer_keys_;
  ScanSink& sink_;

  bool open_ = false;
  bool suspect_ = false, damage_ahead_ = false;
  std::string key_, number_text_;
  std::string suffixes_;  // one after the other, each followed by '/'
  std::vector<Member> members_;
  std::array<std::byte, 16> looked_{};
  size_t looks_ = 0;  // at values under keys with an ending
  LeftOut pickles_, many_values_;

  bool any_ = false;
  std::map<std::string, std::vector<Numbered>, std::less<>> gathered_;  // by what precedes '-'
  bool counted_ = false;                                                // "num-samples" was met

  // Of the sample before: the names need not be found out again where suffixes are equal.
  std::vector<FoundField> fields_;
  std::vector<std::string> names_;
  std::string named_suffixes_;
};

}  // namespace stoker
