// SPDX-License-Identifier: Apache-2.0
#include "format/npy_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "dataset/inflating_file.h"
#include "dataset/npy.h"
#include "dataset/split_words.h"
#include "format/zip.h"

namespace stoker {
namespace {

[[noreturn]] void corrupt(const std::string& cause) { throw Error(ErrorKind::corrupt, cause); }

constexpr std::string_view kNpyEnding = ".npy";
constexpr std::string_view kNpzEnding = ".npz";

std::string_view without(std::string_view name, std::string_view ending) {
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Where MNIST's "-idx3-ubyte", or ".idx3-ubyte", begins in a name.
size_t find_idx(std::string_view name) {
  const size_t at = name.find("idx");
  const bool named = at != std::string_view::npos && at > 0 &&
                     (name[at - 1] == '-' || name[at - 1] == '.') &&
                     name.substr(at).find("-ubyte") == 4;
  return named ? at - 1 : std::string_view::npos;
}

/// One array from its .npy header, which lies at `offset`.
RowArray array_of(const NpyHeader& header, std::string field, uint64_t offset) {
  if (header.shape.empty()) corrupt("npy: has no dimensions, so no rows");
  RowArray array;
  array.field = std::move(field);
  array.dtype = header.dtype;
  array.big_endian = header.big_endian && size_of(header.dtype) > 1;
  array.rows = static_cast<uint64_t>(header.shape.front());
  array.shape.assign(header.shape.begin() + 1, header.shape.end());
  array.offset = offset + header.size;
  array.length = size_of_elements(header.dtype, array.shape).value_or(0);
  if (header.dtype == DType::unknown) {
    if (!array.shape.empty()) {
      throw Error(ErrorKind::unsupported, "npy: texts in more than one dimension");
    }
    array.length = header.text_width;
  }
  array.stride = array.length;
  return array;
}

NpyHeader header_at(ReadableFile& file, uint64_t offset, uint64_t limit) {
  std::vector<std::byte> begin(std::min<uint64_t>(limit, kLongestNpyHeader));
  begin.resize(file.read_at(offset, begin));
  return parse_npy_header(begin, NpyText::allowed);
}

void read_npy(ReadableFile& file, ArrayFile& found) {
  const NpyHeader header = header_at(file, 0, kLongestNpyHeader);
  RowArray array = array_of(header, array_name(base_name(found.path)).field, 0);
  if (header.fortran_order && header.shape.size() > 1) {
    if (found.compression != Compression::none) {
      throw Error(ErrorKind::unsupported, "npy: is compressed and in Fortran order");
    }
    found.compression = Compression::fortran;
  }
  found.expected_size = array.offset + header.data_size;
  found.arrays.push_back(std::move(array));
}

void read_npz(ReadableFile& file, ArrayFile& found) {
  found.archive = true;
  found.expected_size = found.info.size;
  for (const ZipMember& member : read_zip_directory(file, found.info.size)) {
    const auto refuse = [&](const std::string& cause) {
      found.faults.push_back({found.path, member.offset, "", member.name, cause});
    };
    if (!member.name.ends_with(kNpyEnding)) continue;
    if (!member.stored) {
      refuse(
          "is compressed, so no row can be read without all before it: save it with "
          "numpy.savez or as .npy");
      continue;
    }
    try {
      const NpyHeader header = header_at(file, member.offset, member.length);
      if (header.shape.empty()) continue;  // a single value belongs to no sample
      if (header.fortran_order && header.shape.size() > 1) {
        throw Error(ErrorKind::unsupported,
                    "is in Fortran order within an archive: save it as an .npy file of its own");
      }
      if (header.size + header.data_size != member.length) {
        corrupt(fmt::format("npy: {} bytes of elements where the archive has {}", header.data_size,
                            member.length - header.size));
      }
      found.stated.push_back(
          {member.offset, member.length, member.crc, "member", 0, ChecksumKind::crc32});
      RowArray array =
          array_of(header, std::string(without(member.name, kNpyEnding)), member.offset);
      const auto earlier =
          std::find_if(found.arrays.begin(), found.arrays.end(),
                       [&](const RowArray& one) { return one.field == array.field; });
      if (earlier == found.arrays.end()) {
        found.arrays.push_back(std::move(array));
      } else {
        refuse("another member before it has its name: the last one is taken, as NumPy does");
        *earlier = std::move(array);
      }
    } catch (const Error& error) {
      refuse(error.what());
    }
  }
}

/// Keeps the arrays of an archive that are named, with commas between them.
void keep_named(std::string_view names, ArrayFile& found) {
  std::set<std::string, std::less<>> wanted;
  if (const std::string split(names); is_split_word(split)) {  // ::train of x_train, y_train
    const auto add = [&](std::string_view field) {
      if (split_word_of(field) == split) wanted.emplace(field);
    };
    for (const RowArray& array : found.arrays) add(array.field);
    for (const Fault& fault : found.faults) add(without(fault.field, kNpyEnding));
    if (!wanted.empty()) names = {};
  }
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    wanted.emplace(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  const auto unwanted = [&](std::string_view name) { return !wanted.contains(name); };
  std::erase_if(found.faults,
                [&](const Fault& fault) { return unwanted(without(fault.field, kNpyEnding)); });
  std::erase_if(found.arrays, [&](const RowArray& array) {
    return array.field != kNpyKeys && unwanted(array.field);
  });
  for (const RowArray& array : found.arrays) wanted.erase(array.field);
  for (const Fault& fault : found.faults)
    wanted.erase(std::string(without(fault.field, kNpyEnding)));
  if (!wanted.empty()) {
    throw Error(ErrorKind::not_found, fmt::format("has no array '{}'", printable(*wanted.begin())));
  }
}

/// MNIST's format: two zeros, the dtype, the number of dimensions, each of them, all big-endian.
bool read_idx(ReadableFile& file, ArrayFile& found) {
  constexpr size_t kMostDimensions = 8;
  std::array<std::byte, 4 + 4 * kMostDimensions> begin{};
  const size_t got = file.read_at(0, begin);
  const auto byte = [&](size_t at) { return std::to_integer<uint8_t>(begin[at]); };
  constexpr std::array kTypes = {std::pair{0x08, DType::uint8},   std::pair{0x09, DType::int8},
                                 std::pair{0x0B, DType::int16},   std::pair{0x0C, DType::int32},
                                 std::pair{0x0D, DType::float32}, std::pair{0x0E, DType::float64}};
  const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                 [&](const auto& known) { return known.first == byte(2); });
  const size_t dimensions = byte(3);
  if (got < 8 || byte(0) != 0 || byte(1) != 0 || type == kTypes.end() || dimensions < 1 ||
      dimensions > kMostDimensions || got < 4 + 4 * dimensions) {
    return false;
  }
  NpyHeader header;
  header.dtype = type->second;
  header.big_endian = true;
  header.size = 4 + 4 * dimensions;
  for (size_t i = 0; i < dimensions; ++i) {
    header.shape.push_back(__builtin_bswap32(load<uint32_t>(&begin[4 + 4 * i])));
  }
  const auto size = size_of_elements(header.dtype, header.shape);
  // So little stands in the header that the name or the size must say the same.
  const bool named = find_idx(base_name(found.path)) != std::string_view::npos;
  if (!size || (!named && header.size + *size != found.info.size)) return false;
  found.expected_size = header.size + *size;
  found.arrays.push_back(array_of(header, array_name(base_name(found.path)).field, 0));
  return true;
}

/// A batch of CIFAR-10: records of a label and 3 planes of 32 × 32 pixels.
bool read_batch(ReadableFile& file, ArrayFile& found) {
  constexpr uint64_t kPixels = 3 * 32 * 32;
  constexpr uint64_t kRecord = 1 + kPixels;
  const std::string_view name = base_name(found.path);
  if (found.info.size == 0 || !name.ends_with(".bin")) return false;
  const bool named = name.starts_with("data_batch_") || name == "test_batch.bin";
  if (found.info.size % kRecord != 0 && !named) return false;
  const bool hinted = name.find("batch") != std::string_view::npos;
  const uint64_t rows = (found.info.size + kRecord - 1) / kRecord;
  // Labels are below 10: look at some. A file of zeros has one of them alone.
  std::set<std::byte> labels;
  for (uint64_t row = 0; row < std::min<uint64_t>(rows, 64); ++row) {
    std::byte label{};
    if (file.read_at(row * kRecord, {&label, 1}) != 1 || label >= std::byte{10}) return false;
    labels.insert(label);
  }
  if (!hinted && labels.size() < 2) return false;
  found.batch = true;
  found.group = without(name, ".bin");
  found.expected_size = rows * kRecord;
  found.arrays.push_back(
      {std::string(kImageField), DType::uint8, false, {3, 32, 32}, rows, 1, kPixels, kRecord});
  found.arrays.push_back({std::string(kLabelField), DType::uint8, false, {}, rows, 0, 1, kRecord});
  return true;
}

}  // namespace

ArrayName array_name(std::string_view file_name) {
  std::string_view stem = without(file_name, ".gz");
  if (const size_t idx = find_idx(stem); idx != std::string_view::npos) {
    stem = stem.substr(0, idx);
    for (const auto& [word, field] : {std::pair{"images", kImageField}, {"labels", kLabelField}}) {
      if (stem == word) return {"", std::string(field)};
      if (!stem.ends_with(word)) continue;
      const std::string_view group = without(stem, word);
      if (group.ends_with('-') || group.ends_with('_')) {
        return {std::string(group.substr(0, group.size() - 1)), std::string(field)};
      }
    }
    return {"", std::string(stem)};
  }
  if (stem.ends_with(kNpzEnding)) return {std::string(without(stem, kNpzEnding)), ""};
  stem = without(stem, kNpyEnding);
  const size_t dot = stem.find('.');
  if (dot == std::string_view::npos) return {"", percent_unescape(stem)};
  return {std::string(stem.substr(0, dot)), percent_unescape(stem.substr(dot + 1))};
}

std::optional<ArrayFile> read_array_file(const Source& source, const std::string& path) {
  auto file = source.file_system->open(source.root + "/" + path);
  ArrayFile found;
  found.path = path;
  found.info = file->info();
  if (found.info.kind != FileKind::file) return std::nullopt;
  found.group = array_name(base_name(path)).group;
  std::array<std::byte, 8> begin{};
  size_t got = file->read_at(0, begin);
  found.compression = compression_of(Bytes(begin).first(got));
  if (found.compression != Compression::none) {
    file = inflate(std::move(file), source.root + "/" + path, found.compression);
    got = file->read_at(0, begin);
  }
  const std::string_view magic = as_text(Bytes(begin).first(got));
  if (magic.starts_with(kNpyMagic)) {
    read_npy(*file, found);
    return found;
  }
  const bool plain = found.compression == Compression::none;
  if (plain && magic.starts_with(kZipMagic)) {
    if (!path.ends_with(kNpzEnding)) {
      const auto members = read_zip_directory(*file, found.info.size);
      const bool arrays = std::any_of(members.begin(), members.end(), [](const ZipMember& member) {
        return member.name.ends_with(kNpyEnding);
      });
      if (!arrays) return std::nullopt;
    }
    read_npz(*file, found);
    if (!source.inner.empty()) keep_named(source.inner, found);
    return found;
  }
  if (read_idx(*file, found) || (plain && read_batch(*file, found))) return found;
  if (path.ends_with(kNpyEnding) || path.ends_with(kNpzEnding)) {
    corrupt(got == 0 ? "is empty" : "does not begin like an array of NumPy");
  }
  return std::nullopt;
}

}  // namespace stoker
