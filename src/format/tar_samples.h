// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/scan.h"
#include "format/tar_members.h"

namespace stoker {

/// Makes samples of the members of a tar: those in a row that have the same key are one, and a
/// suffix that comes again begins the next. Allocates nothing per sample once it has seen a few.
class TarSamples final : public TarMembers {
 public:
  /// A sample with more members is no sample, and would cost time in the square of their number.
  static constexpr size_t kMaxMembers = 4096;

  TarSamples(ScanSink& sink, const std::string& shard, uint32_t number)
      : sink_(sink), shard_(shard), number_(number) {}

  void add(const TarMember& member) override;
  bool spoil(std::string_view key) override;
  void spoil_last(uint64_t header, std::string cause) override;
  /// Samples beside it are only believed if nothing shows that they lack something.
  void damage(std::string_view key) override;
  /// Ends the current sample.
  void flush();

 private:
  struct Member {
    size_t suffix = 0, suffix_length = 0;  // in suffixes_
    uint64_t offset = 0, length = 0;
  };

  void begin(std::string_view key, uint64_t header);
  void join(std::string_view key, uint64_t header);
  bool has(std::string_view wanted) const;
  std::string_view suffix(const Member& member) const {
    return std::string_view(suffixes_).substr(member.suffix, member.suffix_length);
  }
  void emit();
  void leave_out(uint64_t offset, std::string cause);

  ScanSink& sink_;
  const std::string& shard_;
  uint32_t number_;

  // The current sample.
  bool open_ = false;
  std::string key_;
  std::string suffixes_;  // one after the other, each followed by '/'
  std::vector<Member> members_;
  uint64_t header_ = 0;
  bool spoiled_ = false;
  bool suspect_ = false;  // beside damage
  bool torn_ = false;     // around damage, which nobody knew to be its

  bool damage_ahead_ = false;  // between the member added last and the next one
  std::string damaged_key_;

  // Fields of the sample before: the names need not be found out again where suffixes are equal.
  std::vector<FoundField> fields_;
  std::vector<std::string> names_;
  std::string named_suffixes_;
};

}  // namespace stoker
