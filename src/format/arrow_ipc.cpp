// SPDX-License-Identifier: Apache-2.0
#include "format/arrow_ipc.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "format/columnar.h"

namespace stoker {
namespace {

constexpr uint32_t kContinuation = 0xFFFFFFFF;
constexpr size_t kFileStart = 8;  // the magic and two bytes that align what follows
constexpr size_t kFooterEnd = sizeof(int32_t) + kArrowMagic.size();
// A column takes some hundred bytes of metadata.
constexpr uint64_t kLargestMetadata = 256 << 20;
constexpr uint8_t kSchema = 1, kDictionary = 2, kRecordBatch = 3;
constexpr int16_t kVersion4 = 3, kVersion5 = 4;
constexpr size_t kBlockSize = 24, kPairSize = 16;
// Buffers lie side by side. Some may be shared, but where many are, a small file makes much of
// little.
constexpr uint64_t kBufferFactor = 4;
// More rows in one batch than any writer has memory for.
constexpr int64_t kMostRows = int64_t{1} << 40;

/// Fills what the table of a record batch says.
void parse_batch(const FlatTable& table, uint64_t body_size, ArrowBatch& batch, uint64_t body) {
  if (!table.there()) corrupt("a batch without its description");
  const auto rows = table.number<int64_t>(0);
  if (rows < 0 || rows > kMostRows) corrupt(fmt::format("a batch of {} rows", rows));
  batch.rows = static_cast<uint64_t>(rows);
  const FlatVector nodes = table.structs(1, kPairSize);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto length = load<int64_t>(nodes.element(i));
    const auto nulls = load<int64_t>(nodes.element(i) + 8);
    if (length < 0 || nulls < 0 || nulls > length || length > kMostRows) {
      corrupt(fmt::format("a column of {} rows, {} of them null", length, nulls));
    }
    batch.nodes.push_back({static_cast<uint64_t>(length), static_cast<uint64_t>(nulls)});
  }
  const FlatVector buffers = table.structs(2, kPairSize);
  uint64_t room = kBufferFactor * body_size;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto offset = load<uint64_t>(buffers.element(i));
    const auto length = load<uint64_t>(buffers.element(i) + 8);
    if (length > body_size || offset > body_size - length) {
      corrupt(fmt::format("a buffer of {} bytes at {} of a body of {}", length, offset, body_size));
    }
    if (length > room) corrupt(fmt::format("buffers overlap in a body of {} bytes", body_size));
    room -= length;
    batch.buffers.push_back({body + offset, length});
  }
  if (const FlatTable compression = table.table(3); compression.there()) {
    const auto codec = compression.number<int8_t>(0);
    if (codec < 0 || codec > 1 || compression.number<int8_t>(1) != 0) {
      throw Error(ErrorKind::unsupported, fmt::format("compression {} is not known", codec));
    }
    batch.compression = codec == 0 ? ArrowCompression::lz4 : ArrowCompression::zstd;
  }
  const FlatVector variadic = table.structs(4, sizeof(int64_t));
  for (size_t i = 0; i < variadic.size(); ++i) {
    batch.variadic.push_back(load<uint64_t>(variadic.element(i)));
  }
}

}  // namespace

ArrowMessages::ArrowMessages(ReadableFile& file, Fault fault)
    : file_(file), fault_(std::move(fault)), size_(file.info().size) {
  std::array<std::byte, kArrowMagic.size()> magic{};
  const size_t got = file.read_at(0, magic);
  if (as_text(Bytes(magic).first(got)) == kArrowMagic) {
    at_ = kFileStart;
    is_file_ = true;
    has_footer_ = read_footer();
  }
  if (!has_footer_) read_first_schema();
  if (schema_.big_endian) {
    throw BigEndianArrow(
        ErrorKind::unsupported,
        fmt::format("is a big-endian Arrow {}, which is not read", is_file_ ? "file" : "stream"));
  }
}

/// False, and a fault, where the footer cannot be read: then the stream before it must do.
bool ArrowMessages::read_footer() {
  std::array<std::byte, kFooterEnd> end{};
  const bool whole = size_ >= kFileStart + kFooterEnd &&
                     file_.read_at(size_ - kFooterEnd, end) == kFooterEnd &&
                     as_text(end).substr(sizeof(int32_t)) == kArrowMagic;
  if (!whole) {
    fault_(size_, "truncated: the footer is missing; read front to back as far as it goes");
    return false;
  }
  const uint64_t footer_end = size_ - kFooterEnd;
  try {
    const auto length = load<int32_t>(end.data());
    if (length <= 0 || static_cast<uint64_t>(length) > footer_end - kFileStart) {
      corrupt(fmt::format("a footer of {} bytes", length));
    }
    schema_bytes_.resize(static_cast<size_t>(length));
    read_exactly(file_, "footer", footer_end - schema_bytes_.size(), schema_bytes_);
    const FlatTable footer = FlatTable::root(schema_bytes_);
    schema_ = parse_arrow_schema(footer.table(1));
    for (const unsigned list : {2U, 3U}) {
      const FlatVector blocks = footer.structs(list, kBlockSize);
      uint64_t before = 0;
      for (size_t i = 0; i < blocks.size(); ++i) {
        const auto offset = load<uint64_t>(blocks.element(i));
        const auto metadata = load<uint32_t>(blocks.element(i) + 8);
        const auto body = load<uint64_t>(blocks.element(i) + 16);
        // What lists the same bytes twice would make much of little.
        if (offset < kFileStart || offset < before || offset > footer_end ||
            metadata > footer_end - offset || body > footer_end - offset - metadata) {
          corrupt(fmt::format("a batch of {} + {} bytes at {}", metadata, body, offset));
        }
        before = offset + metadata + body;
        if (i > 0) blocks_.back().end = offset;
        blocks_.push_back({offset, footer_end});
      }
    }
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    fault_(footer_end, fmt::format("the footer cannot be read ({}); read front to back as far as "
                                   "it goes",
                                   error.what()));
    blocks_.clear();
    return false;
  }
}

void ArrowMessages::read_first_schema() {
  Message message;
  if (read_message(at_, message) != Outcome::message) corrupt("ends before the schema");
  if (message.type != kSchema) corrupt("does not begin with a schema");
  std::swap(schema_bytes_, metadata_);  // the table keeps pointing into it
  schema_ = parse_arrow_schema(message.table.table(2));
  at_ = message.end;
}

ArrowMessages::Outcome ArrowMessages::read_message(uint64_t offset, Message& message) {
  std::array<std::byte, 8> head{};
  const size_t got = offset < size_ ? file_.read_at(offset, head) : 0;
  if (got == 0) return Outcome::end_of_file;
  size_t head_size = sizeof(uint32_t);
  if (got < head_size) corrupt("truncated: ends within the head of a message");
  auto length = load<int32_t>(head.data());
  if (load<uint32_t>(head.data()) == kContinuation) {
    head_size = head.size();
    if (got < head_size) corrupt("truncated: ends within the head of a message");
    length = load<int32_t>(head.data() + sizeof(uint32_t));
  }
  if (length == 0) {
    message.end = offset + head_size;
    return Outcome::end_mark;
  }
  const uint64_t left = size_ - offset - head_size;
  if (length < 0) corrupt(fmt::format("a message with metadata of {} bytes", length));
  const auto metadata_size = static_cast<uint64_t>(length);
  if (metadata_size > left) {
    corrupt(fmt::format("truncated: ends {} bytes before the metadata of a message does",
                        metadata_size - left));
  }
  if (metadata_size > kLargestMetadata) {
    corrupt(fmt::format("a message with metadata of {} bytes", length));
  }
  metadata_.resize(metadata_size);
  read_exactly(file_, "metadata", offset + head_size, metadata_);
  message.begin = offset;
  message.body = offset + head_size + metadata_size;
  message.table = FlatTable::root(metadata_);
  message.version = message.table.number<int16_t>(0);
  if (message.version != kVersion4 && message.version != kVersion5) {
    throw Error(ErrorKind::unsupported,
                fmt::format("metadata of version {}; 4 and 5 are known", message.version + 1));
  }
  message.type = message.table.number<uint8_t>(1);
  const auto body = message.table.number<int64_t>(3);
  const uint64_t room = size_ - message.body;
  if (body < 0) corrupt(fmt::format("a message with a body of {} bytes", body));
  if (static_cast<uint64_t>(body) > room) {
    corrupt(fmt::format("truncated: ends {} bytes before the body of a batch does",
                        static_cast<uint64_t>(body) - room));
  }
  message.end = message.body + static_cast<uint64_t>(body);
  return Outcome::message;
}

ArrowBatch ArrowMessages::to_batch(const Message& message) {
  ArrowBatch batch;
  batch.begin = message.begin;
  batch.end = message.end;
  batch.old_unions = message.version == kVersion4;
  FlatTable table = message.table.table(2);
  if (message.type == kDictionary) {
    batch.dictionary = table.number<int64_t>(0);
    batch.delta = table.number<uint8_t>(2) != 0;
    table = table.table(1);
  }
  parse_batch(table, message.end - message.body, batch, message.body);
  return batch;
}

std::optional<ArrowBatch> ArrowMessages::next_in_footer() {
  while (next_block_ < blocks_.size()) {
    const auto [offset, end] = blocks_[next_block_++];
    try {
      Message message;
      if (read_message(offset, message) != Outcome::message ||
          (message.type != kDictionary && message.type != kRecordBatch)) {
        corrupt("no batch where the footer says that one is");
      }
      if (message.end > end) corrupt("a batch that reaches into the next one");
      return to_batch(message);
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      fault_(offset, error.what());
    }
  }
  return std::nullopt;
}

std::optional<ArrowBatch> ArrowMessages::next_in_stream() {
  while (!ended_) {
    const uint64_t offset = at_;
    bool passed = false;
    try {
      Message message;
      const Outcome outcome = read_message(offset, message);
      ended_ = outcome != Outcome::message;
      if (outcome == Outcome::end_of_file) {
        fault_(offset,
               "the stream has no end mark: it was cut off, or is still being written; the batches "
               "before are whole");
      }
      if (outcome == Outcome::end_mark && !is_file_ && message.end < size_) {
        fault_(message.end,
               fmt::format("{} bytes follow the end mark of the stream", size_ - message.end));
      }
      if (ended_) return std::nullopt;
      at_ = message.end;
      passed = true;
      if (message.type == kDictionary || message.type == kRecordBatch) return to_batch(message);
      fault_(offset, fmt::format("a message of type {}, which is no batch", message.type));
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      fault_(offset, error.what());
      ended_ = !passed;  // where the next message begins is not known
    }
  }
  return std::nullopt;
}

std::optional<ArrowBatch> ArrowMessages::next() {
  return has_footer_ ? next_in_footer() : next_in_stream();
}

bool begins_arrow_stream(ReadableFile& file) {
  try {
    std::array<std::byte, 8> head{};
    if (file.read_at(0, head) != head.size()) return false;
    const auto first = load<uint32_t>(head.data());
    // Before 0.15 a stream began with the length of its schema, as other files may by chance.
    constexpr uint32_t kLargestOldSchema = 1 << 20;
    const bool old = first > 0 && first <= kLargestOldSchema && first % 4 == 0;
    if (first != kContinuation && !old) return false;
    const ArrowMessages messages(file, [](uint64_t, const std::string&) {});
    return !old || !messages.schema().fields.empty();
  } catch (const BigEndianArrow&) {
    return true;
  } catch (const Error& error) {
    if (!is_damage(error)) throw;
    return false;
  }
}

}  // namespace stoker
