// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "format/member_name.h"
#include "format/pax.h"
#include "format/tar.h"
#include "format/tar_header.h"

namespace stoker {
namespace {

/// The largest size that eleven octal digits hold.
constexpr uint64_t kMaxUstarSize = (uint64_t{1} << 33) - 1;

/// What every header has in common: the same bytes whoever packs, and whenever.
constexpr TarHeader make_blank() {
  TarHeader header{};
  const auto put = [](auto& field, std::string_view text) {
    std::copy(text.begin(), text.end(), std::begin(field));
  };
  put(header.mode, "0000644");
  put(header.uid, "0000000");
  put(header.gid, "0000000");
  put(header.size, "00000000000");
  put(header.mtime, "00000000000");
  put(header.checksum, "        ");
  header.type = '0';
  put(header.magic, "ustar");
  put(header.version, "00");
  put(header.devmajor, "0000000");
  put(header.devminor, "0000000");
  return header;
}
constexpr TarHeader kBlank = make_blank();

template <size_t kSize>
void put_octal(char (&field)[kSize], size_t digits, uint64_t value) {
  for (size_t i = digits; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

/// Where a path is cut into prefix and name: the length of the prefix, 0 where none is needed;
/// nothing where it does not fit.
std::optional<size_t> find_cut(std::string_view path) {
  constexpr size_t kName = sizeof kBlank.name;
  constexpr size_t kPrefix = sizeof kBlank.prefix;
  if (path.size() <= kName) return 0;
  if (path.size() > kPrefix + 1 + kName) return std::nullopt;
  const size_t cut = path.find('/', path.size() - kName - 1);
  if (cut == std::string_view::npos || cut == 0 || cut > kPrefix || cut + 1 == path.size()) {
    return std::nullopt;
  }
  return cut;
}

/// A member before it is written.
struct Plan {
  std::optional<size_t> cut;
  std::string pax;  // body of its pax header; empty: none is needed
  uint64_t size = 0;
};

Plan plan_member(std::string_view path, uint64_t length) {
  Plan plan;
  plan.cut = find_cut(path);
  if (!plan.cut) {
    if (!is_utf8(path)) append_pax(plan.pax, "hdrcharset", "BINARY");
    append_pax(plan.pax, "path", path);
  }
  if (length > kMaxUstarSize) append_pax(plan.pax, "size", fmt::format_int(length).c_str());
  plan.size = kTarBlock + round_up(length, kTarBlock);
  if (!plan.pax.empty()) plan.size += kTarBlock + round_up(plan.pax.size(), kTarBlock);
  return plan;
}

void write_header(std::byte* to, std::string_view path, size_t cut, char type, uint64_t length) {
  TarHeader header = kBlank;
  const std::string_view name = path.substr(cut == 0 ? 0 : cut + 1);
  std::memcpy(header.prefix, path.data(), cut);
  std::memcpy(header.name, name.data(), std::min(name.size(), sizeof header.name));
  header.type = type;
  // Where it does not fit the pax header has it.
  if (length <= kMaxUstarSize) put_octal(header.size, 11, length);
  const uint32_t sum = plain_sum(reinterpret_cast<const std::byte*>(&header));
  put_octal(header.checksum, 6, sum);
  header.checksum[6] = '\0';
  std::memcpy(to, &header, sizeof header);
}

/// A suffix may say something else by itself than among the others of its sample ("png" beside
/// "jpg", "x.txt" beside "x.json"): keeps those of the source where together they say the same.
void keep_suffixes(std::span<const OutField> fields, std::vector<std::string>& suffixes) {
  std::vector<FoundField> found(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    found[i].suffix = fields[i].suffix.empty() ? suffixes[i] : fields[i].suffix;
  }
  std::vector<std::string> names;
  name_fields(found, names);
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool same_type = found[i].type == fields[i].type || (found[i].encoding == Encoding::npy &&
                                                               fields[i].type == FieldType::number);
    const bool same = found[i].name == fields[i].name && found[i].encoding == fields[i].encoding;
    if (!same || !same_type) return;
  }
  for (size_t i = 0; i < fields.size(); ++i) suffixes[i] = std::string(found[i].suffix);
}

/// The suffixes that say which field is which. Those of the source, where these say the same when
/// they are read back.
std::vector<std::string> choose_suffixes(std::span<const OutField> fields) {
  std::vector<std::string> suffixes;
  bool kept = true;
  for (const OutField& field : fields) {
    suffixes.push_back(suffix_of_field(field.name, field.type, field.encoding, field.suffix));
    kept = kept && (field.suffix.empty() || suffixes.back() == field.suffix);
  }
  if (!kept) keep_suffixes(fields, suffixes);
  return suffixes;
}

/// The same; remembers the last answer, because most samples have the fields of the one before.
const std::vector<std::string>& suffixes_of(std::span<const OutField> fields) {
  thread_local std::string asked;
  thread_local std::string last_asked;
  thread_local std::vector<std::string> last;
  asked.clear();
  for (const OutField& field : fields) {
    // Lengths first, so that no two lists of fields look alike.
    const uint64_t lengths[] = {field.name.size(), field.suffix.size()};
    asked.append(reinterpret_cast<const char*>(lengths), sizeof lengths);
    asked.append(field.name).append(field.suffix);
    asked += static_cast<char>(field.type);
    asked += static_cast<char>(field.encoding);
  }
  if (asked != last_asked || last.size() != fields.size()) {
    last_asked.clear();
    last = choose_suffixes(fields);
    last_asked = asked;
  }
  return last;
}

void check_key(std::string_view key) {
  if (const std::string_view why = unfit_key(key); !why.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("key '{}' cannot be stored in a tar: {}", printable(key), why));
  }
}

class TarWriter final : public ShardWriter {
 public:
  void place(std::span<const OutSample> samples, ShardOutput& out) override {
    for (const OutSample& sample : samples) {
      check_key(sample.key);
      const std::vector<std::string>& suffixes = suffixes_of(sample.fields);
      for (size_t i = 0; i < sample.fields.size(); ++i) {
        path_.assign(sample.key).append(".").append(suffixes[i]);
        place_member(sample.fields[i], out);
      }
    }
  }

  void seal(ShardOutput&) override {}
  void finish(ShardOutput& out) override {
    std::memset(out.append(0, 2 * kTarBlock), 0, 2 * kTarBlock);
  }

 private:
  /// Zeros from `size` bytes behind `begin` to the end of the block.
  static std::byte* pad(std::byte* begin, uint64_t size) {
    const uint64_t padded = round_up(size, kTarBlock);
    std::memset(begin + size, 0, padded - size);
    return begin + padded;
  }

  void place_member(OutField& field, ShardOutput& out) {
    const Plan plan = plan_member(path_, field.length);
    const uint64_t offset = out.size(0);
    std::byte* const begin = out.append(0, plan.size);
    std::byte* at = begin;
    if (!plan.pax.empty()) {
      write_header(at, "././@PaxHeader", 0, 'x', plan.pax.size());
      std::memcpy(at + kTarBlock, plan.pax.data(), plan.pax.size());
      at = pad(at + kTarBlock, plan.pax.size());
    }
    write_header(at, path_, plan.cut.value_or(0), '0', field.length);
    field.data = at + kTarBlock;
    field.extent = {Container::shard, 0, offset + static_cast<uint64_t>(field.data - begin),
                    field.length, 0};
    pad(field.data, field.length);
  }

  std::string path_;
};

Encoding encoding_of(const Field& field) {
  switch (field.encoding) {
    case Encoding::raw:
    case Encoding::decimal:
    case Encoding::npy:
    case Encoding::tf_strings:
      return field.encoding;
    case Encoding::none:
    case Encoding::tf_int64s:
    case Encoding::tf_floats:
    case Encoding::elements:
    case Encoding::elements_big:
      break;
    case Encoding::padded:
      return Encoding::raw;
  }
  // What lies beyond int64 is no decimal number here.
  const bool other = field.dtype == DType::float16 || field.dtype == DType::float32 ||
                     field.dtype == DType::float64 || field.dtype == DType::uint64;
  return field.type == FieldType::number && !other ? Encoding::decimal : Encoding::npy;
}

std::string name_shard(std::string_view name, uint64_t number, uint64_t) {
  return fmt::format("{}-{:06}.tar", name, number);
}

/// As choose_suffixes() has it: a field that is named like its suffix owes that to others of its
/// sample.
std::string suffix_of(const Field& field, Encoding encoding, std::string_view original) {
  if (!original.empty() && original == field.name) return std::string(original);
  return suffix_of_field(field.name, field.type, encoding, original);
}

uint64_t size_of_sample(std::string_view key, std::span<const OutField> fields) {
  check_key(key);
  const std::vector<std::string>& suffixes = suffixes_of(fields);
  std::string path;
  uint64_t size = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    path.assign(key).append(".").append(suffixes[i]);
    size += plan_member(path, fields[i].length).size;
  }
  return size;
}

std::unique_ptr<ShardWriter> open_writer(const OutSchema&, ShardOutput&) {
  return std::make_unique<TarWriter>();
}

Storage storage_of(const Field& field, uint64_t) { return {encoding_of(field), {}, {}}; }

}  // namespace

const WriteFormat kTarWrite = {storage_of, name_shard, suffix_of, size_of_sample, open_writer};

}  // namespace stoker
