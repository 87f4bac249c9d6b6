// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "dataset/scan.h"
#include "dataset/schema.h"
#include "format/shard_output.h"
#include "os/file_system.h"

namespace stoker {

/// A dataset as the user points at it.
struct Source {
  std::string root;  // directory that shard paths are relative to
  std::string file;  // where the dataset is a single file: its name in root
  std::string list;  // folder only: a CSV or JSON-lines file that says which files, and columns
  FileSystem* file_system = nullptr;
  std::string inner = {};  // what of a file is meant that holds several datasets: "x.h5::train"
  std::string split = {};  // which of the splits in root is meant; "all"; empty: there is just one
  std::set<std::string, std::less<>> of_other_splits = {};  // names in root that are left alone
  std::shared_ptr<FileSystem> own_file_system = {};         // what file_system is, where it is ours
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
  /// HDF5: paths of the datasets that are the fields in the first shard; the others follow it.
  std::vector<std::string> fields = {};
  /// What the shards hold and nothing reads, in words: "mean (3)".
  std::vector<std::string> unused = {};
  /// Samples are rows of a table or records: one whose values are all null is one as well.
  bool table = false;
};

/// How a format stores a field: as what elements, and in which encoding.
struct Storage {
  Encoding encoding = Encoding::raw;
  DType dtype = DType::unknown;
  std::optional<std::vector<int64_t>> shape;
  /// Why the format cannot store it, "its shape varies"; empty where it can.
  std::string refusal = {};
};

/// What is written: the fields as the format stores them.
struct OutSchema {
  std::vector<Field> fields;  // encoding, dtype and shape are those of Storage
  uint64_t samples = 0;       // of the source: a field that is present in fewer is absent somewhere
  std::vector<std::string> classes;  // names of what `label` counts
  std::string compress;              // one of WriteFormat::compressions, or empty
};

/// One field to be written: how it is stored, and where its bytes go.
struct OutField {
  std::string_view name;    // Field::name
  std::string_view suffix;  // the ending it had in its source, or empty
  Encoding encoding = Encoding::raw;
  FieldType type = FieldType::bytes;
  uint32_t number = 0;  // of OutSchema::fields
  uint64_t length = 0;
  std::byte* data = nullptr;  // set by ShardWriter::place
  Extent extent;              // set by ShardWriter::place or seal; number is that of the file
};

/// One sample to be written. Fields that it does not have are left out; the others are in the order
/// of OutSchema::fields.
struct OutSample {
  std::string_view key;
  std::span<OutField> fields;
};

/// Writes the samples of one shard, group by group, into memory that becomes its files. The same
/// samples give the same bytes.
class ShardWriter {
 public:
  virtual ~ShardWriter() = default;
  /// Appends the frames of a group of samples to `out` and sets `data` of each field, which the
  /// caller then fills: in `out`, or in memory of the writer where bytes are encoded. Where a
  /// sample turns out to be unreadable the output is rewound and place() called again without it:
  /// only seal() makes a group count. `samples` stay where they are until then.
  virtual void place(std::span<const OutSample> samples, ShardOutput& out) = 0;
  /// All fields of the group placed last are filled: completes checksums, encodes blocks and
  /// appends them. Every field's extent is now set.
  virtual void seal(ShardOutput& out) = 0;
  /// Appends what ends the shard, and patches what begins it.
  virtual void finish(ShardOutput& out) = 0;
  /// How many samples a group has, the last of a shard excepted; 0: any number.
  virtual size_t group() const { return 0; }
  /// How many bytes of fields make a group large enough, where group() is 0.
  virtual uint64_t group_bytes() const { return 1 << 20; }
  /// Before the first group, where it has a number: the bytes of the shard's largest sample. All of
  /// a group are in memory together.
  virtual void expect(uint64_t /*largest_sample*/) {}

  /// What a shard has beside its samples, at most, where formats do not count it to them.
  static constexpr size_t kMaxShardEnd = 4096;
};

/// A small file that belongs to a dataset and describes it to others.
struct Companion {
  std::string name, contents;
};

/// How a format is written.
struct WriteFormat {
  /// How it stores a field that `field.present` of `samples` samples have.
  Storage (*storage)(const Field& field, uint64_t samples);
  /// "name-000003.tar"
  std::string (*shard_name)(std::string_view name, uint64_t number, uint64_t count);
  /// The ending under which a scan will meet a field of this encoding that came with the ending
  /// `original`; empty where the format has none.
  std::string (*suffix)(const Field& field, Encoding encoding, std::string_view original);
  /// Bytes that a sample adds to a shard, at most (for tar and tfrecord exactly, where lengths are
  /// final). Throws Error(unsupported) for one that cannot be stored.
  uint64_t (*size_of_sample)(std::string_view key, std::span<const OutField> fields);
  std::unique_ptr<ShardWriter> (*open)(const OutSchema& schema, ShardOutput& out);
  /// Why the bytes that a field has been filled with cannot be stored, or empty; null: any can.
  std::string_view (*unfit_value)(const OutField& field) = nullptr;

  /// Endings that make shard_name() the names of a shard's files; null: one file without ending.
  std::vector<std::string> (*endings)(const OutSchema& schema) = nullptr;
  /// Whether dtype and shape of arrays must be known, which can mean to read the source twice.
  bool typed = false;
  /// Whether the samples of a shard come in the order of their keys' bytes, each followed by a dot:
  /// that of the names that members have.
  bool by_key = false;
  /// Names that `--compress` takes.
  std::span<const std::string_view> compressions = {};
  /// Files that describe the whole dataset, `shards` being the names of its files in order. Their
  /// names are those of `companion_names`, always.
  std::vector<Companion> (*companions)(const OutSchema& schema,
                                       std::span<const std::string> shards) = nullptr;
  std::span<const std::string_view> companion_names = {};
  /// Whether a sample without any field leaves a trace.
  bool empty_samples = false;
  /// Whether text must be UTF-8: a sample with another is left out, and named.
  bool utf8 = false;
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
  bool has_inner = false;    // understands Source::inner
};

/// Every format stoker knows, most specific first.
std::span<const Format> formats();
const Format* find_format(std::string_view name);

struct Detected {
  const Format* format = nullptr;
  Layout layout;
};
/// Throws Error(unsupported) where no format fits, Error(not_found) for an empty folder, and
/// SeveralSplits where it is not said which one is meant.
Detected detect_format(const Source& source);

}  // namespace stoker
