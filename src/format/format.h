// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "dataset/scan.h"
#include "dataset/schema.h"
#include "os/file_system.h"
#include "os/output_file.h"

namespace stoker {

/// A dataset as the user points at it.
struct Source {
  std::string root;  // directory that shard paths are relative to
  std::string file;  // where the dataset is a single file: its name in root
  std::string list;  // folder only: a CSV or JSON-lines file that says which files, and columns
  FileSystem* file_system = nullptr;
};

/// Names of a folder's files, packed: a million of them are held at once.
struct FileNames {
  std::vector<std::string> directories;  // relative to root; "" is root itself
  std::string names;                     // base names, one after the other
  struct Name {
    uint32_t directory = 0;
    uint32_t length = 0;
    uint64_t offset = 0;  // into names
    uint32_t row = ~0U;   // of the list, where there is one
  };
  std::vector<Name> files;
  std::string_view name(size_t file) const {
    return std::string_view(names).substr(files[file].offset, files[file].length);
  }
};

/// A column of a list, its cells packed. Numbers are kept in decimal, class labels as numbers.
struct ListColumn {
  static constexpr uint64_t kAbsent = uint64_t{1} << 63;

  Field field;
  std::string text;            // of all cells, one after the other
  std::vector<uint64_t> ends;  // by row: where its cell ends in text, or'ed with kAbsent
  std::optional<std::string_view> cell(size_t row) const {
    if ((ends[row] & kAbsent) != 0) return std::nullopt;
    const uint64_t begin = row == 0 ? 0 : ends[row - 1] & ~kAbsent;
    return std::string_view(text).substr(begin, ends[row] - begin);
  }
};

/// One piece of a dataset that can be scanned by itself.
struct Part {
  std::string shard;  // relative path of the shard; empty for a group of files
  Compression compression = Compression::none;
  size_t first = 0, last = 0;  // of FileNames::files, for a group of files
  /// Relative paths of its other shards, where a sample's fields lie in several.
  std::vector<std::string> beside = {};
};

/// What a format makes of a source: its parts in the order of the samples.
struct Layout {
  std::vector<Part> parts;
  FileNames files;
  std::vector<ListColumn> list;
  std::vector<std::string> classes;
  std::vector<Fault> faults;  // a missing shard, a link that leads out, a socket
  uint64_t hidden = 0;        // names left alone because they begin with a dot
  uint64_t unlisted = 0;      // files left alone: the list does not name them, or no shards
};

/// Memory that becomes a shard piece by piece. Unlike a vector it neither moves nor clears what is
/// appended: payloads are read straight into it.
class OutBuffer {
 public:
  explicit OutBuffer(size_t capacity)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity) {}

  /// The next `size` bytes, uninitialised: whoever appends them fills them, padding included.
  std::byte* append(size_t size) {
    if (size > capacity_ - size_) throw std::length_error("OutBuffer is full");
    size_ += size;
    return bytes_.get() + size_ - size;
  }
  std::byte* data() { return bytes_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  void shrink(size_t size) { size_ = size; }
  Bytes bytes() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
  size_t capacity_;
};

/// One field to be written: how it is stored, and where its bytes go.
struct OutField {
  std::string_view name;    // Field::name
  std::string_view suffix;  // the ending it had in its source, or empty
  Encoding encoding = Encoding::raw;
  FieldType type = FieldType::bytes;
  uint64_t length = 0;
  std::byte* data = nullptr;  // set by ShardWriter::place
  uint64_t offset = 0;        // in the shard; likewise
};

/// Writes the samples of one shard into memory that becomes the shard.
class ShardWriter {
 public:
  virtual ~ShardWriter() = default;
  /// Appends the frame of a sample to `out` and sets data and offset of each field, which the
  /// caller then fills. `base` is the shard offset of out's first byte; `out` has room for
  /// size_of_sample().
  virtual void place(std::string_view key, std::span<OutField> fields, uint64_t base,
                     OutBuffer& out) = 0;
  /// All fields placed since the last call are filled: completes checksums.
  virtual void seal() = 0;
  /// Appends what ends a shard: at most kMaxShardEnd bytes.
  virtual void finish(OutBuffer& out) = 0;
  static constexpr size_t kMaxShardEnd = 4096;
};

/// How a format is written.
struct WriteFormat {
  /// The encoding in which it stores a field.
  Encoding (*encoding)(const Field& field);
  /// "name-000003.tar"
  std::string (*shard_name)(std::string_view name, uint64_t number, uint64_t count);
  /// The ending under which a scan will meet a field of this encoding that came with the ending
  /// `original`; empty where the format has none.
  std::string (*suffix)(const Field& field, Encoding encoding, std::string_view original);
  /// Bytes that place() appends, at most (exactly, where lengths are final).
  uint64_t (*size_of_sample)(std::string_view key, std::span<const OutField> fields);
  std::unique_ptr<ShardWriter> (*open)();
};

/// A format is three functions and a row in kFormats.
struct Format {
  std::string_view name;
  /// Nothing where the source is something else. Looks at names and first bytes.
  std::optional<Layout> (*detect)(const Source& source);
  /// Finds where the samples of a part lie; reads as little of it as that needs. Reports each
  /// byte that cannot be right with its offset and goes on behind it where the next sample can
  /// still be found. Throws only where the system fails.
  void (*scan)(const Source& source, const Layout& layout, const Part& part, ScanSink& sink);
  const WriteFormat* write;  // null: read-only
};

/// Every format stoker knows, most specific first.
std::span<const Format> formats();
const Format* find_format(std::string_view name);

struct Detected {
  const Format* format = nullptr;
  Layout layout;
};
/// Throws Error(unsupported) where no format fits, Error(not_found) for an empty folder.
Detected detect_format(const Source& source);

}  // namespace stoker
