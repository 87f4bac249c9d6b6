// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "dataset/manifest.h"
#include "dataset/split_words.h"
#include "dataset/splits.h"
#include "format/arrow.h"
#include "format/folder.h"
#include "format/hdf5.h"
#include "format/lmdb.h"
#include "format/npy.h"
#include "format/parquet.h"
#include "format/tar.h"
#include "format/tfrecord.h"
#include "format/unread.h"

namespace stoker {
namespace {

constexpr Format kFolder = {"folder", detect_folder, scan_folder, nullptr};

constexpr std::array kFormats = {
    Format{"tar", detect_tar, scan_tar, &kTarWrite},
    Format{"tfrecord", detect_tfrecord, scan_tfrecord, &kTfrecordWrite},
    Format{"lmdb", detect_lmdb, scan_lmdb, &kLmdbWrite, true},
    Format{"npy", detect_npy, scan_npy, &kNpyWrite, true},
    Format{"hdf5", detect_hdf5, scan_hdf5, &kHdf5Write, true},
    Format{"arrow", detect_arrow, scan_arrow, &kArrowWrite},
    Format{"feather", detect_feather, scan_arrow, &kFeatherWrite},
    Format{"parquet", detect_parquet, scan_parquet, nullptr},
    kFolder,  // takes any directory
};

using namespace std::string_view_literals;

/// How files of a format begin, whatever their name is.
struct Signature {
  size_t at;
  std::string_view bytes;
  std::string_view format;
};
constexpr std::array kSignatures = {
    Signature{0, "ARROW1"sv, "arrow"},  Signature{0, "ARROW1"sv, "feather"},
    Signature{0, "PAR1"sv, "parquet"},  Signature{0, "\x89HDF\r\n\x1a\n"sv, "hdf5"},
    Signature{0, "\x93NUMPY"sv, "npy"}, Signature{16, "\xde\xc0\xef\xbe"sv, "lmdb"},
};
// A tar archive may begin with the name of a member that is called so.
constexpr Signature kTar = {257, "ustar"sv, "tar"};

bool fits(const Signature& signature, std::string_view begin) {
  return begin.size() > signature.at && begin.substr(signature.at).starts_with(signature.bytes);
}

/// How a file begins; nothing where the source is a folder.
std::string beginning_of(const Source& source) {
  if (source.file.empty()) return {};
  const std::string path = source.root + "/" + source.file;
  const auto info = source.file_system->info(path, true);
  if (!info || info->kind != FileKind::file) return {};
  std::string begin(512, '\0');
  begin.resize(
      source.file_system->open(path)->read_at(0, std::as_writable_bytes(std::span(begin))));
  return begin;
}

/// Whether its first bytes say that a file is of another format.
bool is_another(std::string_view format, std::string_view begin) {
  if (fits(kTar, begin)) return false;
  bool known = false;
  for (const Signature& each : kSignatures) {
    if (!fits(each, begin)) continue;
    if (each.format == format) return false;
    known = true;
  }
  return known;
}

std::string looks_of(std::string_view begin) {
  if (begin.empty()) return "is empty";
  const bool text = std::all_of(begin.begin(), begin.end(), [](unsigned char c) {
    return c >= 0x20 || c == '\t' || c == '\n' || c == '\r';
  });
  if (text) return fmt::format("looks like text: '{}'", printable(begin.substr(0, 24)));
  std::string hex;
  for (const unsigned char c : begin.substr(0, 8)) hex += fmt::format(" {:02x}", c);
  return fmt::format("begins with the bytes{}", hex);
}

std::string known_formats() {
  std::string names;
  for (const Format& format : kFormats) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  return names;
}

[[noreturn]] void refuse_file(const Source& source) {
  const std::string path = source.root + "/" + source.file;
  const auto file = source.file_system->open(path);
  std::array<std::byte, 64> begin{};
  const size_t size = file->read_at(0, begin);
  if (const auto known = describe_unread_file(source.file, as_text(Bytes(begin).first(size)))) {
    throw Error(ErrorKind::unsupported, fmt::format("{}: {}", printable(path), *known));
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("{}: {}; the formats known here are {}", printable(path),
                          looks_of(as_text(Bytes(begin).first(size))), known_formats()));
}

[[noreturn]] void refuse_empty(const Source& source, const Layout& layout) {
  std::string message = fmt::format("{}: no files in it", printable(source.root));
  if (!source.list.empty()) {
    message = fmt::format("{}: none of its files could be found in {}", printable(source.list),
                          printable(source.root));
  } else if (!layout.faults.empty()) {
    message += " that could be read";
  }
  if (layout.hidden > 0) message += fmt::format(" ({} hidden)", layout.hidden);
  if (!layout.faults.empty()) message += fmt::format(": {}", layout.faults.front().message());
  throw Error(ErrorKind::not_found, message);
}

}  // namespace

namespace {

/// Whether `pack` wrote what is there as one dataset, whatever its shards are called.
bool is_packed(const std::string& root) {
  try {
    return !Manifest::read(fmt::format("{}/{}/{}", root, kIndexDirectory, kManifestName))
                .origin.empty();
  } catch (const Error&) {
    return false;
  }
}

/// What to do instead of naming a split that there is not.
std::string advice_about_splits(const Source& source, const std::vector<Split>& splits) {
  if (!splits.empty()) {
    return fmt::format("no such split; there is only {}", names_of_splits(source.root, splits));
  }
  return fmt::format("there are no splits in it: leave ::{0} (in Python split=\"{0}\") away",
                     printable(source.inner));
}

[[noreturn]] void refuse_part(const Format& format, const Source& source,
                              const std::vector<Split>& splits) {
  const bool directory = source.file.empty();
  const std::string path = directory ? source.root : source.root + "/" + source.file;
  throw Error(ErrorKind::usage, fmt::format("{}::{}: is a {}, which has no parts with names; {}",
                                            printable(path), printable(source.inner), format.name,
                                            advice_about_splits(source, splits)));
}

/// Detects a format. Where the part that was named is none that the format knows, the message says
/// what splits there are.
std::optional<Layout> detect_part(const Format& format, const Source& source,
                                  const std::vector<Split>& splits) {
  try {
    return format.detect(source);
  } catch (const Error& error) {
    const bool split = source.file.empty() && is_split_word(source.inner);
    if (!split || error.kind() != ErrorKind::not_found || error.os_error() != 0) throw;
    throw Error(error.kind(),
                fmt::format("{}; {}", error.what(), advice_about_splits(source, splits)));
  }
}

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* find_format(std::string_view name) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const Format& format) { return format.name == name; });
  return found == kFormats.end() ? nullptr : &*found;
}

Detected detect_format(const Source& source) {
  const bool listed = !source.list.empty();
  if (listed && !source.file.empty()) {
    throw Error(ErrorKind::usage, fmt::format("{}: a list is for folders, and this is a file",
                                              printable(source.root + "/" + source.file)));
  }
  const bool directory = source.file.empty() && !listed;
  std::vector<Split> splits;
  if (directory) refuse_unread_directory(source);
  if (directory && source.split.empty()) splits = find_splits(*source.file_system, source.root);
  if (splits.size() > 1 && !is_packed(source.root)) {
    const DirectoryContents contents = look_around(*source.file_system, source.root, splits);
    throw SeveralSplits(source.root, std::move(splits), contents);
  }
  const std::string begin = beginning_of(source);
  for (const Format& format : kFormats) {
    if (is_another(format.name, begin)) continue;
    if (listed && format.detect != kFolder.detect) continue;
    auto layout = detect_part(format, source, splits);
    if (!layout) continue;
    const bool only_one = find_split(splits, source.inner) != nullptr;
    if (!source.inner.empty() && !format.has_inner && !only_one) {
      refuse_part(format, source, splits);
    }
    if (layout->parts.empty()) refuse_empty(source, *layout);
    if (format.detect == kFolder.detect) refuse_unread_files(source, *layout);
    return {&format, std::move(*layout)};
  }
  refuse_file(source);
}

}  // namespace stoker
