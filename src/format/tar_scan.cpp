// SPDX-License-Identifier: Apache-2.0
#include "format/tar_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/inner_path.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
#include "format/pax.h"

namespace stoker {
namespace {

/// Of the headers that carry a long name or pax records; real ones have a few hundred bytes.
constexpr uint64_t kMaxExtension = 1 << 20;
/// Where the header of a GNU sparse file says that more of its map follows, in prefix; and where
/// each block of the map says so.
constexpr size_t kSparseMore = 482 - offsetof(TarHeader, prefix);
constexpr size_t kSparseMapMore = 504;
/// What is looked at in one go behind the end of an archive.
constexpr size_t kTailStep = 65536;

bool is_extension(char type) {
  return type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
}

bool is_regular(char type) { return type == '0' || type == '\0' || type == '7'; }

/// Links, devices, directories and fifos have no bytes, whatever their size says.
bool has_bytes(char type) { return type < '1' || type > '6'; }

std::string_view kind_of(char type) {
  switch (type) {
    case '1':
      return "a hard link";
    case '2':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a fifo";
    case 'S':
      return "a sparse file";
    case 'M':
      return "the rest of a file from another volume";
    default:
      return "of an unknown type";
  }
}

}  // namespace

bool TarScan::run(uint64_t until) {
  try {
    while (extension_.present || !extension_.damage.empty() || stream_.offset() < until) {
      if (!step()) return false;
    }
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    if (unread_member_) {
      members_.spoil_last(*unread_member_, error.what());
    } else {
      premature_end(error.what());
    }
    return false;
  }
}

/// Takes in one header and what belongs to it; false at the end of the archive.
bool TarScan::step() {
  const Bytes block = stream_.peek(kTarBlock);
  if (block.size() < kTarBlock) {
    premature_end(block.empty()
                      ? std::string("ends without end-of-archive marker: truncated?")
                      : fmt::format("truncated: ends within a header, {} bytes of it are missing",
                                    kTarBlock - block.size()));
    return false;
  }
  const TarHeader& header = as_tar_header(block);
  const TarSum sum = sum_of(header);
  if (sum.zero) {
    if (extension_.present) fault(extension_.offset, "extended header without a member");
    check_tail();
    return false;
  }
  if (!sum.right) return resynchronise(header, sum);
  return is_extension(header.type) ? take_extension(header) : take_member(header);
}

bool TarScan::take_extension(const TarHeader& header) {
  const char type = header.type;
  const auto size = tar_number(header.size, sizeof header.size);
  if (type != 'g') {
    if (!extension_.present) extension_.begin = stream_.offset();
    extension_.present = true;
    extension_.offset = stream_.offset();
  }
  stream_.skip(kTarBlock);
  if (!size) {
    extension_.damage = "size of its extended header is no number";
    return true;
  }
  if (*size > kMaxExtension) {
    extension_.damage = fmt::format("extended header of {} bytes cannot be right", *size);
    return skip_bytes(*size, {});
  }
  const std::string_view body = as_text(stream_.peek(*size));
  if (body.size() == *size) {
    read_extension(type, body);
  } else {
    extension_.damage = "its extended header is truncated";
  }
  return skip_bytes(*size, {});
}

void TarScan::read_extension(char type, std::string_view body) {
  if (type == 'K') return;  // where a link leads
  if (type == 'L') {
    extension_.path = body.substr(0, body.find_last_not_of('\0') + 1);
    extension_.has_path = true;
    return;
  }
  PaxRecords records = parse_pax(body);
  if (type == 'g') {
    if (records.path || records.size || records.sparse) {
      records.damage = "global pax header with a name or size: not heeded";
    }
    if (!records.damage.empty()) fault(stream_.offset() - kTarBlock, records.damage);
    return;
  }
  if (records.path) {
    extension_.path = *records.path;
    extension_.has_path = true;
  }
  if (records.size) extension_.size = records.size;
  extension_.sparse |= records.sparse;
  if (!records.damage.empty()) extension_.damage = std::move(records.damage);
}

std::string_view TarScan::path_of(const TarHeader& header) {
  if (extension_.has_path) return extension_.path;
  const std::string_view name = tar_text(header.name);
  // "ustar" and NUL is POSIX's; GNU's has spaces, and other things in the place of the prefix.
  const bool posix = std::string_view(header.magic, 6) == std::string_view("ustar", 6);
  if (header.prefix[0] == '\0' || !posix) return name;
  path_.assign(tar_text(header.prefix)).append("/").append(name);
  return path_;
}

/// Why a member cannot be taken; empty where it can.
std::string TarScan::objection(char type, std::string_view path,
                               std::optional<uint64_t> size) const {
  if (!extension_.damage.empty()) return extension_.damage;
  if (!size) return "size is no number";
  if (!is_regular(type)) return fmt::format("not a regular file but {}", kind_of(type));
  if (extension_.sparse) return fmt::format("not a plain file but {}", kind_of('S'));
  if (const std::string_view why = unsafe_name(path); !why.empty()) {
    return fmt::format("{}: '{}'", why, printable(path));
  }
  return {};
}

bool TarScan::take_member(const TarHeader& header) {
  const uint64_t begin = stream_.offset();
  const char type = header.type;
  const std::string_view path = path_of(header);
  auto size = extension_.size;
  if (!size) size = tar_number(header.size, sizeof header.size);
  const uint64_t length = has_bytes(type) ? size.value_or(0) : 0;
  // v7 marks directories by their name alone; a volume's label says nothing.
  const bool passed_over = type == '5' || type == 'V' || (is_regular(type) && path.ends_with('/'));
  std::string why = passed_over ? extension_.damage : objection(type, path, size);
  const auto name = split_member_name(path);
  bool added = false;
  if (!why.empty()) {
    leave_out(begin, path, std::move(why));
  } else if (!passed_over && !name) {
    sink_.hidden(extension_.present ? extension_.begin : begin);
  } else if (!passed_over) {
    members_.add({*name, extension_.present ? extension_.begin : begin, begin, length});
    added = true;
  }
  extension_.clear();
  const bool more = type == 'S' && header.prefix[kSparseMore] != 0;
  stream_.skip(kTarBlock);
  if (more) skip_sparse_maps();
  return skip_bytes(length, added ? std::optional(begin) : std::nullopt);
}

void TarScan::leave_out(uint64_t offset, std::string_view path, std::string cause) {
  if (const auto name = split_member_name(path); name && !name->key.empty()) {
    const bool first = members_.spoil(name->key);
    Fault fault{shard_, offset, std::string(name->key), field_of_suffix(name->suffix).name,
                std::move(cause)};
    // What a damaged extension would have said may be another name.
    if (extension_.damage.empty()) fault.samples = first ? 1 : 0;
    sink_.fault(std::move(fault));
  } else {
    fault(offset, std::move(cause));
  }
}

/// Blocks behind the header of a GNU sparse file; in each a flag says whether another follows.
void TarScan::skip_sparse_maps() {
  for (bool more = true; more;) {
    const Bytes block = stream_.peek(kTarBlock);
    more = block.size() == kTarBlock && block[kSparseMapMore] != std::byte{0};
    stream_.skip(block.size());
  }
}

/// Passes over the bytes of a member, and their padding. `added` is the offset of its header
/// where it became part of a sample; the sample is lost where the bytes are not all there.
bool TarScan::skip_bytes(uint64_t length, std::optional<uint64_t> added) {
  const uint64_t begin = stream_.offset();
  unread_member_ = added;
  const uint64_t there = stream_.skip_counting(length);
  unread_member_.reset();
  if (there == length) {
    stream_.skip(-length % kTarBlock);
    return true;
  }
  std::string cause = fmt::format("truncated: the file ends {} bytes before the {} bytes here do",
                                  length - there, length);
  if (added) {
    members_.spoil_last(*added, std::move(cause));
  } else {
    fault(begin, std::move(cause));
  }
  return false;
}

/// Looks for the next header behind one that cannot be right.
bool TarScan::resynchronise(const TarHeader& header, const TarSum& sum) {
  const uint64_t begin = stream_.offset();
  if (begin == 0 && compression_of(as_bytes(tar_text(header.name))) != Compression::none) {
    fault(0, "compressed, although its name does not end in .tar.gz or .tar.zst");
    return false;
  }
  std::string cause =
      sum.is_number ? fmt::format("header checksum is {}, should be {}", sum.stated, sum.computed)
                    : std::string("header checksum is no number");
  extension_.clear();
  if (is_extension(header.type)) extension_.damage = "its extended header is damaged";
  const auto name = split_member_name(tar_text(header.name));
  const std::string key(name && looks_like_ustar(header) ? name->key : std::string_view());
  members_.damage(key);
  for (;;) {
    stream_.skip(kTarBlock);
    const Bytes block = stream_.peek(kTarBlock);
    const uint64_t passed = stream_.offset() + block.size() - begin;
    if (block.size() < kTarBlock) {
      cause += fmt::format("; no header follows in the {} bytes up to the end", passed);
    } else if (looks_like_ustar(as_tar_header(block)) && sum_of(as_tar_header(block)).right) {
      cause += fmt::format("; passed over {} bytes to the next header", passed - kTarBlock);
    } else {
      continue;
    }
    sink_.fault({shard_, begin, key, {}, std::move(cause)});
    return block.size() == kTarBlock;
  }
}

/// Nothing but zeros may follow the end-of-archive marker.
void TarScan::check_tail() {
  stream_.skip(kTarBlock);
  for (;;) {
    const Bytes bytes = stream_.peek(kTailStep);
    const auto found = std::find_if(bytes.begin(), bytes.end(),
                                    [](std::byte byte) { return byte != std::byte{0}; });
    if (found != bytes.end()) {
      return fault(stream_.offset() + (found - bytes.begin()),
                   "bytes after the end-of-archive marker are not zero: what follows is not "
                   "read");
    }
    if (bytes.size() < kTailStep) return;
    stream_.skip(kTailStep);
  }
}

void TarScan::premature_end(std::string cause) {
  members_.damage({});
  fault(std::min(stream_.offset(), end_), std::move(cause));
}

void TarScan::fault(uint64_t offset, std::string cause) {
  sink_.fault({shard_, offset, {}, {}, std::move(cause)});
}

}  // namespace stoker
