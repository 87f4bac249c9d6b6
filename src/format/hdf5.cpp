// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "base/error.h"
#include "base/text.h"
#include "format/hdf5_columns.h"
#include "format/hdf5_select.h"
#include "format/numbered_name.h"
#include "format/shard_directory.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

constexpr std::string_view kEndings[] = {".h5", ".hdf5", ".hdf", ".h5py", ".he5"};

constexpr size_t kMostLoose = 64;

bool is_shard_name(std::string_view name) {
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](std::string_view ending) {
    return name.size() > ending.size() && name.ends_with(ending);
  });
}

/// What keys of a shard begin with, where there are several.
std::string stem_of(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);
  for (const std::string_view ending : kEndings) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  std::string stem(name);
  std::replace(stem.begin(), stem.end(), '.', '_');
  return stem;
}

class Hdf5Scan {
 public:
  Hdf5Scan(const OpenedShard& shard, const Source& source, const Part& part, const Layout& layout,
           ScanSink& sink)
      : shard_(part.shard),
        number_(shard.number),
        sink_(sink),
        file_(*shard.file),
        heap_(file_.bytes()) {
    if (layout.parts.size() > 1) stem_ = stem_of(part.shard);
    for (const Hdf5Note& note : file_.notes()) fault(note.offset, note.cause);
    selection_ = select_hdf5(file_, source.inner, layout.fields, part.shard);
    for (const Hdf5Problem& problem : selection_.problems) {
      sink_.fault({shard_, problem.offset, "", problem.name,
                   problem.damaged ? problem.cause : fmt::format("left out: {}", problem.cause)});
    }
    for (const Hdf5Named& named : selection_.datasets) add_dataset(named);
  }

  void run() {
    if (columns_.empty()) return;
    // Rows that were never written are in the file on paper alone, and cost nothing there.
    constexpr uint64_t kMostUnwritten = 1 << 20;
    // The best of codecs makes so much of a byte.
    constexpr uint64_t kMostPerByte = 1 << 14;
    uint64_t stored = 0;
    for (const Hdf5Rows& rows : rows_) stored = std::max(stored, rows.stored());
    if (selection_.rows - stored > kMostUnwritten ||
        selection_.rows / kMostPerByte > file_.bytes().size()) {
      return fault(0, fmt::format("states {} samples, of which a file of {} bytes holds {}",
                                  selection_.rows, file_.bytes().size(), stored));
    }
    std::vector<FoundField> fields(columns_.size());
    for (uint64_t row = 0; row < selection_.rows; ++row) {
      if (take(row, fields)) {
        sink_.sample(key_, fields);
      } else {
        sink_.check_stop();
        row = skip_lost(row);
      }
    }
    report();
  }

 private:
  /// Samples in a row that cannot be read for one reason.
  struct Lost {
    std::string field, cause, first, last;
    uint64_t offset = 0, count = 0;
  };

  void fault(uint64_t offset, std::string cause) {
    sink_.fault({shard_, offset, {}, {}, std::move(cause)});
  }

  void add_dataset(const Hdf5Named& named) {
    const Hdf5Dataset& dataset = named.dataset;
    try {
      rows_.emplace_back(file_, dataset, number_, sink_);
      const bool alone = selection_.datasets.size() == 1;
      add_columns(named.name, alone, dataset.type, 0);
    } catch (const Hdf5Error& error) {
      sink_.fault({shard_, error.offset(), "", named.name, error.what()});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported && error.kind() != ErrorKind::corrupt) throw;
      const uint64_t offset = file_.bytes().offset_of(dataset.address, 0, "dataset");
      const bool damaged = error.kind() == ErrorKind::corrupt;
      sink_.fault({shard_, offset, "", named.name,
                   damaged ? error.what() : fmt::format("left out: {}", error.what())});
    }
  }

  /// The members of a compound are fields of their own; `bare`: without the dataset's name.
  void add_columns(const std::string& name, bool bare, const Hdf5Type& type, uint64_t offset) {
    if (type.kind != Hdf5Class::compound) {
      try {
        add_column(name, type, offset);
      } catch (const Hdf5Error&) {
        throw;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::unsupported) throw;
        const uint64_t at = rows_.back().dataset().address;
        sink_.fault({shard_, file_.bytes().offset_of(at, 0, "dataset"), "", name,
                     fmt::format("left out: {}", error.what())});
      }
      return;
    }
    for (const Hdf5Member& member : type.members) {
      const std::string full = bare ? member.name : name + "." + member.name;
      add_columns(full, false, member.type, offset + member.offset);
    }
  }

  void add_column(const std::string& name, const Hdf5Type& type, uint64_t offset) {
    Hdf5Column column(name, rows_.back(), heap_, type, offset);
    if (std::any_of(columns_.begin(), columns_.end(),
                    [&](const Hdf5Column& other) { return other.name() == name; })) {
      throw Error(ErrorKind::unsupported, "another field has its name");
    }
    if (column.pieces() > Hdf5Rows::kMostPieces) show(column);
    if (name == kKeyFeature && column.is_text()) {
      keys_.emplace(std::move(column));
    } else {
      columns_.push_back(std::move(column));
    }
  }

  /// Announces a view of what lies in too many pieces to name them.
  void show(Hdf5Column& column) {
    if (!sink_.takes_views()) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("each sample is in {} pieces, because its chunks are cut across "
                              "its inner dimensions: read it through `stoker pack`, or rechunk it "
                              "(h5repack -l CHUNK=…) so that a chunk holds whole samples",
                              column.pieces()));
    }
    const TiledView view = column.view();
    const FileInfo info = file_.bytes().file().info();
    refuse_unfounded(view, info.size);
    Shard shard;
    shard.path = shard_;
    shard.size = info.size;
    shard.modified_ns = info.modified_ns;
    shard.compression = Compression::tiled;
    shard.view = to_bytes(view);
    column.show_in(sink_.shard(shard));
  }

  std::string key_of(uint64_t row) {
    if (keys_) return keys_->value(row, file_, kMaxKey);
    return stem_.empty() ? std::to_string(row) : fmt::format("{}-{:08}", stem_, row);
  }

  /// The last of the rows that are lost with this one, which are not looked at one by one.
  uint64_t skip_lost(uint64_t row) {
    uint64_t end = row + 1;
    for (const Hdf5Rows& rows : rows_) end = std::max(end, rows.lost_until(row));
    if (end == row + 1) return row;
    lost_.count += end - 1 - row;
    try {
      lost_.last = key_of(end - 1);
    } catch (const Hdf5Error&) {
      lost_.last = std::to_string(end - 1);  // the keys are what is lost
    }
    return end - 1;
  }

  /// Finds the fields of a row; false where one of them is lost.
  bool take(uint64_t row, std::vector<FoundField>& fields) {
    const std::string* which = nullptr;
    try {
      if (keys_) {
        which = &keys_->name();
        key_ = std::to_string(row);  // until it is known
      }
      key_ = key_of(row);
      for (size_t i = 0; i < columns_.size(); ++i) {
        which = &columns_[i].name();
        columns_[i].find(row, file_, fields[i]);
      }
      return true;
    } catch (const Hdf5Error& error) {
      lose(*which, error);
      return false;
    }
  }

  void lose(const std::string& field, const Hdf5Error& error) {
    // Beyond the end of a file every row lies elsewhere, but all are lost together.
    const bool same = lost_.count > 0 && lost_.field == field &&
                      (lost_.cause == error.what() || lost_.offset + 1 >= file_.bytes().size() ||
                       error.offset() >= file_.bytes().size());
    if (!same) {
      report();
      lost_ = {field, error.what(), key_, key_, error.offset(), 0};
    }
    lost_.last = key_;
    ++lost_.count;
  }

  void report() {
    if (lost_.count == 0) return;
    std::string cause = lost_.cause;
    if (lost_.count > 1) {
      cause += fmt::format(" (lost: {} samples up to '{}')", lost_.count, printable(lost_.last));
    }
    sink_.fault({shard_, lost_.offset, lost_.first, lost_.field, std::move(cause), lost_.count});
    lost_ = {};
  }

  const std::string& shard_;
  uint32_t number_;
  ScanSink& sink_;
  Hdf5File file_;
  Hdf5GlobalHeap heap_;
  std::string stem_;
  Hdf5Selection selection_;
  std::list<Hdf5Rows> rows_;
  std::vector<Hdf5Column> columns_;
  std::optional<Hdf5Column> keys_;
  std::string key_;
  Lost lost_;
};

/// Texts of fixed width that lie in one chunk, as pack writes them; nothing where they are others.
std::vector<std::string> read_texts(Hdf5File& file, const Hdf5Dataset& dataset) {
  constexpr uint64_t kMost = 64 << 20;
  const uint64_t rows = dataset.space.dims[0], width = dataset.type.size;
  if (dataset.type.kind != Hdf5Class::text || dataset.space.dims.size() != 1 || width == 0 ||
      rows > kMost / width || dataset.layout != Hdf5Dataset::Layout::chunked ||
      !dataset.filters.empty() || dataset.chunks.dims[0] < rows) {
    return {};
  }
  const auto chunk = Hdf5ChunkTable(file, dataset).find(0);
  if (!chunk) return {};
  const uint64_t offset = file.bytes().offset_of(chunk->address, rows * width, "classes");
  std::string bytes(rows * width, '\0');
  bytes.resize(file.bytes().file().read_at(offset, std::as_writable_bytes(std::span(bytes))));
  std::vector<std::string> texts;
  for (std::string_view rest = bytes; rest.size() >= width; rest.remove_prefix(width)) {
    const std::string_view padded = rest.substr(0, width);
    texts.emplace_back(padded.substr(0, padded.find_last_not_of('\0') + 1));
  }
  return texts;
}

/// Names of the classes that `label` counts, where the file has them.
std::vector<std::string> find_classes(Hdf5File& file, const Hdf5Selection& selection) {
  for (const Hdf5Named& named : selection.datasets) {
    if (named.name != kLabelField) continue;
    return selection.classes ? read_texts(file, *selection.classes) : named.dataset.type.names;
  }
  return {};
}

/// Sees that it is clear what is meant in a file; a damaged one is left to the scan.
void look_into(const Source& source, const std::string& name, Layout& layout) {
  const auto file = source.file_system->open(source.root + "/" + name);
  try {
    Hdf5File opened(*file);
    Hdf5Selection selection = select_hdf5(opened, source.inner, {}, name);
    for (const Hdf5Named& named : selection.datasets) {
      layout.fields.push_back(join_hdf5_path(selection.group, named.name));
    }
    layout.unused = std::move(selection.unused);
    layout.classes = find_classes(opened, selection);
  } catch (const Hdf5Error&) {
    return;
  } catch (const Error& error) {
    const bool asks = error.kind() == ErrorKind::usage ||
                      (error.kind() == ErrorKind::not_found && !source.inner.empty());
    if (!asks) return;
    throw Error(error.kind(),
                fmt::format("{}: {}", printable(source.root + "/" + name), error.what()));
  }
}

bool has_signature(const Source& source, const std::string& name) {
  const auto file = source.file_system->open(source.root + "/" + name);
  return Hdf5File::find_superblock(*file).has_value();
}

std::optional<Layout> detect_file(const Source& source) {
  const auto info = source.file_system->info(source.root + "/" + source.file, true);
  if (!info || info->kind != FileKind::file) return std::nullopt;
  if (!has_signature(source, source.file)) return std::nullopt;
  Layout layout;
  layout.parts.push_back({source.file, Compression::none, 0, 0});
  look_into(source, source.file, layout);
  return layout;
}

std::optional<Layout> detect_directory(const Source& source) {
  ShardDirectory top = look_at_shards(source, is_shard_name, kMostLoose);
  if (top.deep || top.shards.empty() || top.images > top.shards.size() || has_other_contents(top)) {
    return std::nullopt;
  }
  Layout layout;
  layout.hidden = top.hidden;
  layout.unlisted = top.other_files;
  bool any = false;
  for (const std::string& name : top.shards) {
    try {
      if (has_signature(source, name)) {
        if (layout.fields.empty()) look_into(source, name, layout);
        any = true;
        layout.parts.push_back({name, Compression::none, 0, 0});
      } else {
        layout.faults.push_back({name,
                                 0,
                                 {},
                                 {},
                                 "no HDF5 signature: the file is no HDF5 file, "
                                 "or its beginning is damaged"});
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::usage || error.kind() == ErrorKind::not_found) throw;
      layout.faults.push_back({name, {}, {}, {}, error.what()});
    }
  }
  if (!any) return std::nullopt;
  find_series_gaps(top.shards, layout.faults);
  layout.faults.insert(layout.faults.end(), top.faults.begin(), top.faults.end());
  return layout;
}

}  // namespace

std::optional<Layout> detect_hdf5(const Source& source) {
  if (!source.list.empty()) return std::nullopt;  // a list names the files of a folder
  return source.file.empty() ? detect_directory(source) : detect_file(source);
}

void scan_hdf5(const Source& source, const Layout& layout, const Part& part, ScanSink& sink) {
  const OpenedShard shard = open_shard(source, part, sink);
  try {
    Hdf5Scan(shard, source, part, layout, sink).run();
  } catch (const Hdf5Error& error) {
    sink.fault({part.shard, error.offset(), {}, {}, error.what()});
  } catch (const Error& error) {
    const bool of_the_file = error.kind() == ErrorKind::usage ||
                             error.kind() == ErrorKind::not_found ||
                             error.kind() == ErrorKind::unsupported;
    if (!of_the_file) throw;
    sink.fault({part.shard, {}, {}, {}, error.what()});
  }
}

}  // namespace stoker
