// SPDX-License-Identifier: Apache-2.0
#include "format/tar_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stoker {

void TarSamples::begin(std::string_view key, uint64_t header) {
  flush();
  open_ = true;
  key_ = key;
  suffixes_.clear();
  members_.clear();
  header_ = header;
  suspect_ = damage_ahead_;
  spoiled_ = damage_ahead_ && damaged_key_ == key;
  torn_ = false;
  damage_ahead_ = false;
}

void TarSamples::join(std::string_view key, uint64_t header) {
  if (!open_ || key_ != key) return begin(key, header);
  if (damage_ahead_) torn_ = damaged_key_ != key;
  spoiled_ = spoiled_ || damage_ahead_;
  damage_ahead_ = false;
}

bool TarSamples::has(std::string_view wanted) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const Member& member) { return suffix(member) == wanted; });
}

void TarSamples::add(const TarMember& member) {
  const MemberName& name = member.name;
  join(name.key, member.header);
  if (members_.size() == kMaxMembers) {
    if (!std::exchange(spoiled_, true)) {
      leave_out(member.header, fmt::format("more than {} members have this key", kMaxMembers));
    }
    return;
  }
  if (has(name.suffix)) begin(name.key, member.header);
  members_.push_back({suffixes_.size(), name.suffix.size(), member.data(), member.length});
  suffixes_ += name.suffix;
  suffixes_ += '/';  // in no suffix
}

bool TarSamples::spoil(std::string_view key) {
  join(key, 0);
  return !std::exchange(spoiled_, true);
}

void TarSamples::spoil_last(uint64_t header, std::string cause) {
  const std::string field =
      members_.empty() ? std::string() : field_of_suffix(suffix(members_.back())).name;
  // How much more is missing after it is not known.
  sink_.fault({shard_, header, key_, field, std::move(cause)});
  spoiled_ = true;
}

void TarSamples::damage(std::string_view key) {
  damage_ahead_ = true;
  damaged_key_ = key;
  suspect_ = true;
  if (open_ && key_ == key) spoiled_ = true;
}

void TarSamples::flush() {
  if (!open_) return;
  open_ = false;
  const bool like_before = suffixes_ == named_suffixes_ || named_suffixes_.empty();
  if (torn_) {
    leave_out(header_, "left out: there is damage in the middle of it");
  } else if (!spoiled_ && suspect_ && !like_before) {
    leave_out(header_, "left out: it is next to damage and has other fields than the one before");
  } else if (!spoiled_) {
    emit();
  }
}

void TarSamples::emit() {
  if (suffixes_ != named_suffixes_) {
    fields_.resize(members_.size());
    for (size_t i = 0; i < members_.size(); ++i) fields_[i].suffix = suffix(members_[i]);
    name_fields(fields_, names_);
    named_suffixes_ = suffixes_;
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    fields_[i].suffix = suffix(members_[i]);
    fields_[i].extent = {Container::shard, number_, members_[i].offset, members_[i].length, 0};
  }
  sink_.sample(key_, fields_);
}

void TarSamples::leave_out(uint64_t offset, std::string cause) {
  sink_.fault({shard_, offset, key_, {}, std::move(cause), 1});
}

}  // namespace stoker
