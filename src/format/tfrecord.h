// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/crc32c.h"
#include "format/format.h"

namespace stoker {

// TensorFlow's shards. A file is a run of records, each framed as
//
//   u64 length   u32 masked CRC-32C of the length   data   u32 masked CRC-32C of the data
//
// and nothing marks its end. The data is a tf.train.Example (tf_example.h), whose features are
// the fields of a sample, or anything else, which is then one field `data`.

/// A file is a tfrecord by its first record, or by its name (.tfrecord, .tfrecords, .tfrec, or
/// ending in -00003-of-00128), even when it is empty or damaged. A directory is one where such
/// files lie at its top, unless a sub-directory has something visible in it, or images outnumber
/// them. Other files beside the shards are left alone. A member of a -of-N series that is missing
/// is a fault of the layout.
std::optional<Layout> detect_tfrecord(const Source& source);

/// Whether the records of a shard are Examples is decided by the first one that is undamaged.
void scan_tfrecord(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);

extern const WriteFormat kTfrecordWrite;

// What detect, scan and write share.

inline constexpr size_t kRecordHead = 12;
inline constexpr size_t kRecordFoot = 4;

/// The first twelve bytes of a record.
struct RecordHead {
  uint64_t length = 0;
  uint32_t stated = 0;    // masked checksum as the file has it
  uint32_t computed = 0;  // as it should be
  bool right() const { return stated == computed; }
};
/// REQUIRES: at least kRecordHead bytes.
inline RecordHead parse_record_head(Bytes bytes) {
  return {load<uint64_t>(bytes.data()), load<uint32_t>(bytes.data() + 8),
          crc32c_mask(crc32c(bytes.first(8)))};
}

/// "train" of "train.tfrecord.gz", "train-00000-of-00128" of "train.tfrecord-00000-of-00128":
/// what keys of a shard begin with. Dots become "_".
std::string shard_stem(std::string_view file_name);

}  // namespace stoker
