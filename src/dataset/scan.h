// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "dataset/extent.h"
#include "dataset/schema.h"

namespace stoker {

/// Something in a dataset that is not as it should be.
struct Fault {
  std::string shard;               // relative path
  std::optional<uint64_t> offset;  // none where the file as a whole is meant
  std::string sample;              // its key, where there is one
  std::string field;               // its field, where there is one
  std::string cause;
  /// How many samples are missing because of it: none where the sample is in the index and fails
  /// when it is read; nothing where nobody can tell.
  std::optional<uint64_t> samples = std::nullopt;
  /// The system failed to read it (see base/transient.h): it may be readable the next time.
  bool transient = false;

  /// "train-000003.tar: offset 512: sample 'a/b', field image: checksum differs …"
  std::string message() const;
  bool operator==(const Fault&) const = default;
};

/// How many of them may be gone the next time; see Fault::transient.
uint64_t count_transient(std::span<const Fault> faults);

Json to_json(const Fault& fault);
Fault fault_from_json(const Json& json);

/// One field of a sample that a scan has found.
struct FoundField {
  std::string_view name;
  FieldType type = FieldType::bytes;
  Encoding encoding = Encoding::raw;
  DType dtype = DType::unknown;
  /// Of an array whose dimensions the scan has seen.
  std::optional<std::vector<int64_t>> shape;
  std::string_view suffix;  // see Field::suffixes
  Extent extent;            // Container::absent with encoding none: the number is all there is
  std::string_view inline_bytes;  // with Container::here: the bytes
  /// With Container::pieces: the extents that are the field, one after the other.
  std::span<const Extent> pieces;
  /// The number itself where the scan came across it: int64 or double by `dtype`.
  std::optional<int64_t> integer;
  std::optional<double> real;
};

enum class ChecksumKind : uint8_t {
  crc32c,
  crc32,  // of zlib: members of zip archives
};

/// Bytes of a shard whose checksum the file itself states; verified at full depth.
struct StatedChecksum {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t crc = 0;
  std::string_view what;  // a literal: "record"
  uint32_t shard = 0;     // what ScanSink::shard() returned
  ChecksumKind kind = ChecksumKind::crc32c;
};

struct FileInfo;

/// Takes what a scan finds, in the order of the bytes.
class ScanSink {
 public:
  virtual ~ScanSink() = default;
  /// Begins a shard; what lies in it names it by the number returned. A scan may announce several,
  /// before its samples, where a sample's fields lie in more than one; and one file several times,
  /// for ranges that follow each other without a gap, where its samples' fields lie in columns.
  virtual uint32_t shard(const Shard& shard) = 0;
  /// A codec chain, in the order of encoding, by the number returned; equal ones share it.
  virtual uint32_t codecs(std::span<const Codec> chain) = 0;
  /// A block of a shard announced before; extents name it by the number returned. Throws
  /// Error(corrupt) where decoded_length is more than decoded_limit() in codec.h allows.
  virtual uint32_t block(const Block& block) = 0;
  virtual void sample(std::string_view key, std::span<const FoundField> fields) = 0;
  virtual void stated(const StatedChecksum& checksum) = 0;
  virtual void fault(Fault fault) = 0;
  /// A field of the next sample is this file, as a whole.
  virtual void whole_file(const FileInfo& /*file*/) {}
  /// Throws where the user has asked to stop; for a scan that goes on without samples. sample()
  /// does it too.
  virtual void check_stop() {}
  /// A member that begins there was left alone because its base name begins with a dot.
  virtual void hidden(uint64_t /*offset*/) {}
  /// Whether shards may be announced that can only be read front to back, beside those that the
  /// layout speaks of: a view of an array, say, whose rows lie in too many pieces to name them.
  virtual bool takes_views() const { return false; }
  /// How many threads the scan of one part may use.
  virtual unsigned threads() const { return 1; }
};

}  // namespace stoker
