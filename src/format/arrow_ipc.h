// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "format/arrow_schema.h"
#include "os/file_system.h"

namespace stoker {

// Arrow's inter-process format. A stream is a run of messages
//
//   u32 0xFFFFFFFF   i32 length of the metadata   metadata (a FlatBuffer)   body
//
// the first of which is the schema; the others are record batches and the dictionaries that these
// refer to. Length 0 is the end. Files of before Arrow 0.15 have no 0xFFFFFFFF. A file is
// "ARROW1", two bytes, a stream, a footer that lists its messages, i32 length of the footer,
// "ARROW1".

inline constexpr std::string_view kArrowMagic = "ARROW1";

struct ArrowNode {
  uint64_t rows = 0;
  uint64_t nulls = 0;
};

/// A range of the file; lies within its message.
struct ArrowRange {
  uint64_t offset = 0, length = 0;
};

enum class ArrowCompression : uint8_t { none, lz4, zstd };

/// A record batch, or a dictionary. Nothing of its body is read.
struct ArrowBatch {
  uint64_t begin = 0, end = 0;  // of the message in the file
  uint64_t rows = 0;
  std::vector<ArrowNode> nodes;
  std::vector<ArrowRange> buffers;
  std::vector<uint64_t> variadic;  // how many buffers the views have
  ArrowCompression compression = ArrowCompression::none;
  std::optional<int64_t> dictionary;  // its id, where it is one
  bool delta = false;                 // to be appended to the dictionary that is there
  bool old_unions = false;            // they have a buffer more
};

/// Walks through the messages of a file or stream.
class ArrowMessages {
 public:
  using Fault = std::function<void(uint64_t offset, std::string cause)>;

  /// Reads the schema. Throws Error(corrupt) or Error(unsupported) with the cause alone. Whatever
  /// goes wrong later goes to `fault`.
  ArrowMessages(ReadableFile& file, Fault fault);

  const ArrowSchema& schema() const { return schema_; }
  /// The next batch, dictionaries before what refers to them; nothing at the end.
  std::optional<ArrowBatch> next();

 private:
  struct Message {
    uint64_t begin = 0, body = 0, end = 0;
    FlatTable table;  // in metadata_
    uint8_t type = 0;
    int16_t version = 0;
  };
  enum class Outcome { message, end_mark, end_of_file };

  Outcome read_message(uint64_t offset, Message& message);
  static ArrowBatch to_batch(const Message& message);
  bool read_footer();
  void read_first_schema();
  std::optional<ArrowBatch> next_in_footer();
  std::optional<ArrowBatch> next_in_stream();

  ReadableFile& file_;
  Fault fault_;
  uint64_t size_;
  std::vector<std::byte> schema_bytes_, metadata_;
  ArrowSchema schema_;
  bool is_file_ = false, has_footer_ = false;
  /// A message that the footer lists, and where the next one of its kind begins.
  struct Block {
    uint64_t begin = 0, end = 0;
  };
  std::vector<Block> blocks_;  // dictionaries, then batches
  size_t next_block_ = 0;
  uint64_t at_ = 0;  // in the stream
  bool ended_ = false;
};

/// Error(unsupported): what the file is, "is a big-endian Arrow stream, which is not read".
class BigEndianArrow : public Error {
 public:
  using Error::Error;
};

/// Whether bytes that a file begins with can be those of a stream.
bool begins_arrow_stream(ReadableFile& file);

}  // namespace stoker
