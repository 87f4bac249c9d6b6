// SPDX-License-Identifier: Apache-2.0
#include "format/unread.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/splits.h"
#include "format/shard_directory.h"

namespace stoker {
namespace {

using namespace std::string_view_literals;

/// A kind of file. It is known by its first bytes; where there are none, by its ending alone.
struct Kind {
  std::string_view begin;
  std::string_view what;
  std::string_view advice;  // what can be done; {0} is the file, {1} its name without the ending
  std::string_view endings = {};  // of names, each with a space after it
  bool many = true;               // such a file is never one sample of a folder
  bool often_one = false;         // it is one sample as often as many
};

constexpr std::string_view kTable =
    "`--list` takes such a table for the files of a folder; to train on its rows, write them as "
    "Parquet (pandas and datasets do)";
constexpr std::string_view kArrays = "store its arrays as .npy, .npz or HDF5, which are read";

constexpr std::string_view kPickles = ".pkl .pickle .pt .pth ";

// Most specific first.
constexpr std::array kKinds = {
    Kind{"FEA1"sv, "a Feather file of version 1"sv,
         "pyarrow.feather reads it and writes version 2"sv, ".feather "sv},
    Kind{"PARE"sv, "an encrypted Parquet file"sv, ""sv, ".parquet "sv},
    Kind{"hsqs"sv, "a squashfs image"sv,
         "mount it (squashfuse {0} DIRECTORY) and name the directory"sv,
         ".sqsh .squashfs .sqfs "sv},
    Kind{"\x0a\x23\xd7\xce"sv, "a RecordIO file of MXNet"sv,
         "mxnet.recordio reads its images: write them as files, or into a tar"sv, ".rec "sv},
    Kind{"SQLite format 3"sv, "an SQLite database"sv, ""sv, ".sqlite .sqlite3 .db "sv, false},
    Kind{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive"sv,
         "unpack it (7z x {0} -oDIRECTORY) and name the directory"sv, ".7z "sv},
    Kind{"Rar!\x1a\x07"sv, "a rar archive"sv,
         "unpack it (unrar x {0} DIRECTORY/) and name the directory"sv, ".rar "sv},
    Kind{"\xfd"
         "7zXZ\0"sv,
         "an xz file"sv,
         "decompress it first: xz -dk {0}, then {1} is read if it is a tar archive"sv,
         ".tar.xz .txz "sv},
    Kind{"BZh"sv, "a bzip2 file"sv,
         "decompress it first: bzip2 -dk {0}, then {1} is read if it is a tar archive"sv,
         ".tar.bz2 .tbz2 .tbz "sv},
    Kind{"\x04\x22\x4d\x18"sv, "an LZ4 file"sv,
         "decompress it first: lz4 -d {0} {1}, then {1} is read if it is a tar archive"sv,
         ".tar.lz4 .lz4 "sv},
    Kind{"\x1f\x8b"sv, "a gzip file"sv,
         "tar archives and TFRecords are read that are compressed so; others: gzip -dk {0}"sv},
    Kind{"\x28\xb5\x2f\xfd"sv, "a zstd file"sv,
         "tar archives and TFRecords are read that are compressed so; others: zstd -d {0}"sv},
    Kind{"MATLAB 5.0 MAT-file"sv, "a MATLAB file of version 5"sv,
         "save it with -v7.3, which is HDF5 and is read"sv, ".mat "sv, false, true},
    Kind{"Obj\x01"sv, "an Avro file"sv, "write its rows as Parquet"sv, ".avro "sv},
    Kind{"ORC"sv, "an ORC file"sv, "write its rows as Parquet (pyarrow.orc reads it)"sv, ".orc "sv},
    Kind{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv, "a file of torch.save"sv,
         kArrays, ".pt .pth "sv, false, true},
    Kind{"\x80\x02}q"sv, "a Python pickle"sv, kArrays, kPickles, false, true},
    Kind{"\x80\x03}q"sv, "a Python pickle"sv, kArrays, kPickles, false, true},
    Kind{"\x80\x04\x95"sv, "a Python pickle"sv, kArrays, kPickles, false, true},
    Kind{"\x80\x05\x95"sv, "a Python pickle"sv, kArrays, kPickles, false, true},
    Kind{"\x80"sv, "a Python pickle"sv, kArrays, kPickles, false, true},
    Kind{"\x02\x00"sv, "an FFCV file"sv, "pack the dataset that it was written from"sv,
         ".beton "sv},
    Kind{""sv, "a shard of MosaicML's StreamingDataset (MDS)"sv,
         "pack the dataset that it was written from"sv, ".mds "sv},
    Kind{""sv, "a table of text"sv, kTable, ".csv .tsv .jsonl .ndjson "sv, false},
    Kind{"\xff\xd8\xff"sv, "a JPEG image"sv, "a dataset is a directory of images"sv},
    Kind{"\x89PNG"sv, "a PNG image"sv, "a dataset is a directory of images"sv},
    Kind{"%PDF"sv, "a PDF file"sv, ""sv},
    Kind{"\x7f"
         "ELF"sv,
         "a program"sv, ""sv},
};
constexpr Kind kZip{"PK\x03\x04"sv, "a zip archive"sv,
                    "unpack it (unzip {0} -d DIRECTORY) and name the directory"sv, ".zip "sv,
                    false};
constexpr Kind kTorchZip{
    "PK\x03\x04"sv, "a file of torch.save"sv, kArrays, ".pt .pth "sv, false, true};
constexpr Kind kZarrZip{"PK\x03\x04"sv, "a Zarr store in a zip archive"sv,
                        "write its arrays as HDF5 or .npy, which are read"sv, ".zip "sv};

bool has_ending(const Kind& kind, std::string_view name) {
  for (std::string_view rest = kind.endings; !rest.empty();) {
    const size_t end = rest.find(' ');
    const std::string_view ending = rest.substr(0, end);
    if (name.size() > ending.size() && name.ends_with(ending)) return true;
    rest.remove_prefix(end + 1);
  }
  return false;
}

/// What is in a zip archive, by the name of its first member.
const Kind& kind_of_zip(std::string_view begin) {
  constexpr size_t kLengthAt = 26, kNameAt = 30;
  if (begin.size() < kNameAt) return kZip;
  const size_t length = static_cast<unsigned char>(begin[kLengthAt]) +
                        (static_cast<unsigned char>(begin[kLengthAt + 1]) << 8);
  const std::string_view member = begin.substr(kNameAt, length);
  if (member.ends_with("/data.pkl")) return kTorchZip;
  if (member.ends_with(".zgroup") || member.ends_with(".zarray") || member.ends_with("zarr.json")) {
    return kZarrZip;
  }
  return kZip;
}

const Kind* kind_of(std::string_view name, std::string_view begin) {
  if (begin.starts_with(kZip.begin)) return &kind_of_zip(begin);
  for (const Kind& kind : kKinds) {
    if (!begin.starts_with(kind.begin)) continue;
    // Two bytes, or none, say too little without a name.
    const bool short_magic = kind.begin.size() < 2 || kind.begin == "\x02\x00"sv;
    if (!short_magic || has_ending(kind, name)) return &kind;
  }
  return nullptr;
}

std::string describe(const Kind& kind, std::string_view name) {
  std::string text = fmt::format("is {}, which is not read", kind.what);
  if (kind.advice.empty()) return text;
  const std::string file = printable(name);
  const std::string plain = printable(name.substr(0, std::max<size_t>(1, name.rfind('.'))));
  return text + ": " + fmt::format(fmt::runtime(kind.advice), file, plain);
}

std::string read_beginning(const Source& source, const std::string& name, size_t most) {
  const std::string path = source.root + "/" + name;
  const auto info = source.file_system->info(path, true);
  if (!info || info->kind != FileKind::file) return {};
  std::string begin(std::min<uint64_t>(most, info->size), '\0');
  begin.resize(
      source.file_system->open(path)->read_at(0, std::as_writable_bytes(std::span(begin))));
  return begin;
}

bool has_directory(const Source& source, const std::string& name) {
  const auto info = source.file_system->info(source.root + "/" + name, true);
  return info && info->kind == FileKind::directory;
}

[[noreturn]] void refuse(const Source& source, std::string_view what) {
  throw Error(ErrorKind::unsupported, fmt::format("{}: {}", printable(source.root), what));
}

/// index.json of MosaicML's streaming, and of Lightning's.
void refuse_streaming(const Source& source) {
  constexpr size_t kLargest = 64 << 20;
  const Json json = parse_json_or_discard(read_beginning(source, "index.json", kLargest));
  if (!json.is_object()) return;
  const auto list = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_array() && !found->empty() && found->front().is_object()
               ? &found->front()
               : nullptr;
  };
  constexpr std::string_view kAdvice = ", which is not read yet: pack what it was written from";
  if (const Json* shard = list("shards"); shard != nullptr && shard->contains("raw_data")) {
    refuse(source, fmt::format("is a StreamingDataset of MosaicML (MDS){}", kAdvice));
  }
  if (const Json* chunk = list("chunks");
      chunk != nullptr && json.contains("config") && chunk->contains("filename")) {
    refuse(source, fmt::format("is an optimized dataset of Lightning (LitData){}", kAdvice));
  }
}

/// CIFAR-10 and CIFAR-100 as Python's pickles.
void refuse_cifar(const Source& source) {
  const auto pickled = [&](const std::string& name) {
    return read_beginning(source, name, 1).starts_with('\x80');
  };
  const bool ten = pickled("data_batch_1") && pickled("batches.meta");
  if (ten || (pickled("train") && pickled("test") && pickled("meta"))) {
    refuse(source,
           fmt::format("is CIFAR-{0} as Python pickles, which are not read: take the binary "
                       "version (cifar-{0}-binary.tar.gz){1}",
                       ten ? "10" : "100",
                       ten ? ", which is read" : " or torchvision, and store it as .npy"));
  }
}

/// Whether files are one sample each, rather than all samples of a split or a batch of them.
bool are_samples(const Kind& kind, const Source& source, std::vector<std::string> names) {
  constexpr size_t kMostBatches = 8;  // of one split; CIFAR-10 has five
  if (source.split == kAllSplits) return true;
  for (std::string& name : names) name.replace(name.rfind('.'), name.npos, ".tar");
  const std::vector<Split> splits = splits_of_files(names);
  return splits.empty() ||
         (kind.often_one && std::any_of(splits.begin(), splits.end(), [](const Split& s) {
            return s.files.size() > kMostBatches;
          }));
}

}  // namespace

std::optional<std::string> describe_unread_file(std::string_view name, std::string_view begin) {
  const Kind* kind = kind_of(name, begin);
  return kind == nullptr ? std::nullopt : std::optional(describe(*kind, name));
}

void refuse_unread_directory(const Source& source) {
  constexpr size_t kFirst = 1 << 20;  // attributes may come before what is looked for
  for (const char* name : {"zarr.json", ".zgroup", ".zarray"}) {
    if (read_beginning(source, name, kFirst).find("\"zarr_format\"") == std::string::npos) continue;
    refuse(source, fmt::format("is a Zarr store ({}), which is not read yet: write its arrays as "
                               "HDF5 or .npy, which are read",
                               name));
  }
  refuse_streaming(source);
  if (read_beginning(source, "CURRENT", kFirst).starts_with("MANIFEST-")) {
    refuse(source,
           "is a LevelDB database, as Caffe writes it, which is not read: convert it to LMDB");
  }
  if (has_directory(source, "_delta_log")) {
    // Files of rows that were deleted or replaced are next to those that count.
    refuse(source, "is a Delta Lake table, which is not read: write its rows as Parquet");
  }
  if (has_directory(source, "_versions") && has_directory(source, "data")) {
    bool lance = false;
    source.file_system->list(source.root + "/data", [&](std::string_view name, FileKind) {
      lance = lance || name.ends_with(".lance");
    });
    if (lance) refuse(source, "is a Lance dataset, which is not read: write its rows as Parquet");
  }
  refuse_cifar(source);
}

void refuse_unread_files(const Source& source, const Layout& layout) {
  const FileNames& files = layout.files;
  if (!source.list.empty() || files.directories.size() != 1 || !files.directories[0].empty()) {
    return;
  }
  const Kind* kind = nullptr;
  std::string first;
  std::vector<std::string> names;
  for (size_t i = 0; i < files.files.size(); ++i) {
    const std::string name(files.name(i));
    // RecordIO's lists, which are not samples either.
    if (name.ends_with(".idx") || name.ends_with(".lst")) continue;
    if (kind != nullptr && has_ending(*kind, name)) {
      names.push_back(name);
      continue;
    }
    const bool table = name.ends_with(".csv") || name.ends_with(".jsonl");
    if (may_describe(name) && !table) continue;
    if (kind != nullptr) return;
    kind = kind_of(name, read_beginning(source, name, 64));
    if (kind == nullptr || !has_ending(*kind, name)) return;
    first = name;
    names.push_back(name);
  }
  if (kind == nullptr) return;
  // One file per sample is what a folder is; tables and pickles of all of them have other names.
  if (!kind->many && are_samples(*kind, source, names)) return;
  std::string text =
      fmt::format("holds {} file{} such as {}, which {}", names.size(),
                  names.size() == 1 ? "" : "s", printable(first), describe(*kind, first));
  if (!kind->many) {
    text += fmt::format("; if each of them is a sample: {}::{} reads them as bytes",
                        printable(source.root), kAllSplits);
  }
  refuse(source, text);
}

}  // namespace stoker
