// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/member_name.h"
#include "format/tar_header.h"

namespace stoker {

struct TarMember {
  MemberName name;
  uint64_t begin = 0;   // of the first header that speaks of it
  uint64_t header = 0;  // of its own
  uint64_t length = 0;

  uint64_t data() const { return header + kTarBlock; }
};

/// Takes the members of a tar in their order, and what was found in their places.
class TarMembers {
 public:
  virtual ~TarMembers() = default;
  virtual void add(const TarMember& member) = 0;
  /// A member of this key cannot be taken; the caller reports it. Nor can the sample: false where
  /// that is so already.
  virtual bool spoil(std::string_view key) = 0;
  /// The member added last, whose header is there, is not whole: reports that.
  virtual void spoil_last(uint64_t header, std::string cause) = 0;
  /// Members may be lost here. The caller has reported that with `key`, which is probably theirs.
  virtual void damage(std::string_view key) = 0;
};

}  // namespace stoker
