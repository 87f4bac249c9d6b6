// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dataset/scan.h"
#include "format/byte_stream.h"
#include "format/tar_header.h"
#include "format/tar_members.h"

namespace stoker {

/// What headers in front of a member say about it.
struct TarExtension {
  bool present = false;
  uint64_t begin = 0;   // of the first of them
  uint64_t offset = 0;  // of the last of them
  bool has_path = false;
  std::string path;
  std::optional<uint64_t> size;
  bool sparse = false;
  std::string damage;  // why it cannot be believed

  void clear() {
    present = has_path = sparse = false;
    size.reset();
    damage.clear();
  }
};

/// Walks from header to header of a tar and hands on the members it finds.
class TarScan {
 public:
  /// `end` is where the file ends, as far as that is known. Begins where the stream is.
  TarScan(ByteStream& stream, const std::string& shard, uint64_t end, TarMembers& members,
          ScanSink& sink)
      : stream_(stream), shard_(shard), end_(end), sink_(sink), members_(members) {}

  /// Takes in whole members until the next one begins at or behind `until`; false where the archive
  /// ends before. What cannot be read ends it as well.
  bool run(uint64_t until);
  /// Where the next member begins.
  uint64_t offset() const { return stream_.offset(); }
  /// Goes on at the member that begins there.
  void continue_at(uint64_t offset) { stream_.skip(offset - stream_.offset()); }

 private:
  bool step();
  bool take_extension(const TarHeader& header);
  void read_extension(char type, std::string_view body);
  std::string_view path_of(const TarHeader& header);
  std::string objection(char type, std::string_view path, std::optional<uint64_t> size) const;
  bool take_member(const TarHeader& header);
  void leave_out(uint64_t offset, std::string_view path, std::string cause);
  void skip_sparse_maps();
  bool skip_bytes(uint64_t length, std::optional<uint64_t> added);
  bool resynchronise(const TarHeader& header, const TarSum& sum);
  void check_tail();
  void premature_end(std::string cause);
  void fault(uint64_t offset, std::string cause);

  ByteStream& stream_;
  const std::string& shard_;
  const uint64_t end_;
  ScanSink& sink_;
  TarMembers& members_;
  TarExtension extension_;
  std::string path_;
  std::optional<uint64_t> unread_member_;  // header of a sample's member whose bytes are being read
};

}  // namespace stoker
