// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "dataset/npy.h"
#include "format/byte_stream.h"
#include "format/member_name.h"
#include "format/shard_directory.h"
#include "format/tf_example.h"

namespace stoker {
namespace {

// Bytes looked at in one go where the next record must be searched for.
constexpr size_t kSearchStep = 65'536;
// Where the size of the file is not known, no record is believed to be larger.
constexpr uint64_t kLargestRecord = uint64_t{1} << 40;
constexpr std::string_view kPlainField = "data";

/// Makes the fields of a sample from the features of an Example.
class ExampleFields {
 public:
  /// REQUIRES: `features` sorted by name, and alive as long as what fields() returns.
  ExampleFields(const std::vector<Feature>& features, uint32_t shard) : shard_(shard) {
    for (const Feature& feature : features) {
      if (is_key(feature)) {
        key_ = &feature;
      } else if (feature.kind == FeatureKind::bytes) {
        add_bytes(feature, features);
      } else if (feature.kind != FeatureKind::nothing) {
        add_numbers(feature);
      }
    }
  }

  /// Null where the Example does not say its key.
  const Feature* key() const { return key_; }
  const std::vector<FoundField>& fields() const { return fields_; }

 private:
  static bool is_key(const Feature& feature) {
    return feature.name == kKeyFeature && feature.kind == FeatureKind::bytes &&
           feature.values == 1 && feature.value_length > 0;
  }

  /// "x" for "x.npy" where no other feature is named so.
  static std::optional<std::string_view> without(std::string_view ending, std::string_view name,
                                                 const std::vector<Feature>& features) {
    if (!name.ends_with(ending)) return std::nullopt;
    name.remove_suffix(ending.size());
    const auto same = std::lower_bound(
        features.begin(), features.end(), name,
        [](const Feature& known, std::string_view wanted) { return known.name < wanted; });
    const bool taken = same != features.end() && same->name == name;
    if (taken || name.empty() || name == kKeyFeature) return std::nullopt;
    return name;
  }

  FoundField& add(std::string_view name, uint64_t offset, uint64_t length) {
    FoundField& field = fields_.emplace_back();
    field.name = name;
    field.extent = {Container::shard, shard_, offset, length, 0};
    return field;
  }

  void add_bytes(const Feature& feature, const std::vector<Feature>& features) {
    const auto list = without(kListEnding, feature.name, features);
    if (feature.values != 1 || list) {
      FoundField& field = add(list.value_or(feature.name), feature.offset, feature.length);
      field.type = FieldType::list;
      field.encoding = Encoding::tf_strings;
      if (list) field.suffix = kListSuffix;
      return;
    }
    const auto array = feature.begin.starts_with(kNpyMagic)
                           ? without(kNpyEnding, feature.name, features)
                           : std::nullopt;
    FoundField& field =
        add(array.value_or(feature.name), feature.value_offset, feature.value_length);
    if (array) {
      field.type = FieldType::array;
      field.encoding = Encoding::npy;
    } else if (is_text_suffix(feature.name)) {
      field.type = FieldType::text;  // as in a tar, so that the way there and back changes nothing
    } else if (feature.name == kImageField) {
      field.suffix = image_suffix_of(feature.begin);
    }
  }

  void add_numbers(const Feature& feature) {
    FoundField& field = add(feature.name, feature.offset, feature.length);
    const bool integers = feature.kind == FeatureKind::int64s;
    field.encoding = integers ? Encoding::tf_int64s : Encoding::tf_floats;
    field.dtype = integers ? DType::int64 : DType::float32;
    field.type = feature.values == 1 ? FieldType::number : FieldType::array;
    field.integer = feature.integer;
    field.real = feature.real;
    if (feature.values && feature.values != 1) {
      field.shape = std::vector<int64_t>{static_cast<int64_t>(*feature.values)};
    }
  }

  uint32_t shard_;
  const Feature* key_ = nullptr;
  std::vector<FoundField> fields_;
};

class TfrecordScan {
 public:
  TfrecordScan(ReadableFile& file, const std::string& path, const Part& part, uint32_t number,
               ScanSink& sink)
      : file_(file),
        stream_(file, path, part.compression),
        shard_(part.shard),
        stem_(shard_stem(part.shard.substr(part.shard.rfind('/') + 1))),
        number_(number),
        sink_(sink) {
    if (part.compression == Compression::none) size_ = file.info().size;
  }

  void run() {
    while (step()) {
    }
  }

  /// The rest cannot be read.
  void break_off(std::string cause) { fault(stream_.offset(), std::move(cause)); }

 private:
  enum class Kind { unknown, examples, plain };

  struct Record {
    uint64_t begin = 0, length = 0;
    uint64_t data() const { return begin + kRecordHead; }
    uint64_t end() const { return data() + length; }
  };

  /// Takes in one record; false at the end of the shard.
  bool step() {
    const uint64_t begin = stream_.offset();
    const Bytes bytes = stream_.peek(kRecordHead);
    if (bytes.empty()) return false;
    if (bytes.size() < kRecordHead) {
      fault(begin, fmt::format("truncated: ends within the head of a record, {} bytes of it are "
                               "missing",
                               kRecordHead - bytes.size()));
      return false;
    }
    const RecordHead head = parse_record_head(bytes);
    if (!head.right()) return resynchronise(head);
    return take_record({begin, head.length});
  }

  bool take_record(const Record& record) {
    if (!fits(record)) return truncated(record, left_behind(record));
    stream_.skip(kRecordHead);
    std::string damage;
    if (kind_ != Kind::plain) damage = parse(record);
    const uint64_t passed = stream_.offset() - record.data();
    const uint64_t there = passed + stream_.skip_counting(record.length - passed);
    if (there < record.length) return truncated(record, there);
    const Bytes foot = stream_.peek(kRecordFoot);
    if (foot.size() < kRecordFoot) return truncated(record, record.length + foot.size());
    const uint32_t stated = crc32c_unmask(load<uint32_t>(foot.data()));
    stream_.skip(kRecordFoot);
    emit(record, stated, damage);
    ++records_;
    return true;
  }

  /// How many bytes of the file lie behind the head; 0 where its size is not known.
  uint64_t left_behind(const Record& record) const {
    return size_ && *size_ > record.data() ? *size_ - record.data() : 0;
  }

  /// Whether a record of that length can be in the file.
  bool fits(const Record& record) const {
    if (!size_) return record.length <= kLargestRecord;
    const uint64_t left = left_behind(record);
    return left >= kRecordFoot && record.length <= left - kRecordFoot;
  }

  /// `there` bytes follow the head.
  bool truncated(const Record& record, uint64_t there) {
    fault(record.begin, fmt::format("truncated: the file ends {} bytes before the record of {} "
                                    "bytes does",
                                    missing(record.length, there), record.length));
    return false;
  }

  static std::string missing(uint64_t length, uint64_t there) {
    // A length that cannot be right may be up to 2^64 - 1, and the checksum comes behind it.
    uint64_t sum = 0;
    if (__builtin_add_overflow(length, kRecordFoot, &sum))
      return fmt::format("over {}", length - there);
    return fmt::format("{}", sum - there);
  }

  /// Why the record is no Example; empty where it is one, in features_.
  std::string parse(const Record& record) {
    try {
      read_example(stream_, record.length, features_);
      return {};
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::corrupt) throw;
      return error.what();
    }
  }

  void emit(const Record& record, uint32_t stated, const std::string& damage) {
    const std::string key = fmt::format("{}-{:08}", stem_, records_);
    if (kind_ == Kind::unknown) {
      const bool example = damage.empty() && !features_.empty();
      // A damaged record says nothing about the others. In a compressed file there is none that
      // went unnoticed, and going back would cost too much.
      if (const uint32_t crc = example || !size_ ? stated : crc_of(record); crc != stated) {
        sink_.fault({shard_,
                     record.data(),
                     key,
                     {},
                     fmt::format("checksum of the record is {:08x}, the file states {:08x}: the "
                                 "data is damaged",
                                 crc, stated),
                     1});
        return;
      }
      kind_ = example ? Kind::examples : Kind::plain;
    }
    if (kind_ == Kind::plain) {
      FoundField field;
      field.name = kPlainField;
      field.extent = {Container::shard, number_, record.data(), record.length, 0};
      sink_.sample(key, {&field, 1});
    } else if (damage.empty()) {
      emit_example(record, key);
    } else {
      sink_.fault({shard_, record.begin, key, {}, "record is no tf.train.Example: " + damage, 1});
    }
    sink_.stated({record.data(), record.length, stated, "record"});
  }

  void emit_example(const Record& record, const std::string& generated_key) {
    const ExampleFields example(features_, number_);
    const Feature* const key = example.key();
    if (key != nullptr && key->value_length > kMaxKey) {
      sink_.fault({shard_,
                   record.begin,
                   generated_key,
                   {},
                   fmt::format("key of {} bytes is too long", key->value_length),
                   1});
      return;
    }
    // With a key it is a row of nulls that `pack` wrote; without one it says nothing at all.
    if (key == nullptr && example.fields().empty()) {
      sink_.fault({shard_, record.begin, generated_key, {}, "has no fields", 1});
      return;
    }
    sink_.sample(key != nullptr ? key->begin : generated_key, example.fields());
  }

  uint32_t crc_of(const Record& record) {
    std::vector<std::byte> buffer(std::min<uint64_t>(record.length, kSearchStep));
    uint32_t crc = 0;
    for (uint64_t at = record.data(); at < record.end();) {
      const MutableBytes into =
          MutableBytes(buffer).first(std::min<uint64_t>(record.end() - at, buffer.size()));
      const size_t got = file_.read_at(at, into);
      crc = crc32c(into.first(got), crc);
      if (got < into.size()) break;
      at += got;
    }
    return crc;
  }

  /// Looks for the next record behind a head that cannot be right: its length is not known.
  bool resynchronise(const RecordHead& head) {
    const uint64_t begin = stream_.offset();
    std::string cause =
        fmt::format("checksum of a record's length is {:08x}, the file states {:08x}",
                    crc32c_unmask(head.computed), crc32c_unmask(head.stated));
    stream_.skip(1);
    bool found = false;
    while (!found) {
      const Bytes window = stream_.peek(kSearchStep);
      if (window.size() < kRecordHead) {
        stream_.skip(window.size());
        break;
      }
      size_t at = 0;
      const size_t last = window.size() - kRecordHead;
      while (at <= last && !begins_record(window.subspan(at, kRecordHead), stream_.offset() + at)) {
        ++at;
      }
      found = at <= last;
      stream_.skip(at);
    }
    const uint64_t passed = stream_.offset() - begin;
    cause += found ? fmt::format("; passed over {} bytes to the next record", passed)
                   : fmt::format("; no record follows in the {} bytes up to the end", passed);
    fault(begin, std::move(cause));
    ++records_;  // most likely one was lost: those behind it keep their numbers
    return found;
  }

  bool begins_record(Bytes bytes, uint64_t offset) {
    const Record record{offset, load<uint64_t>(bytes.data())};
    if (!fits(record) || !parse_record_head(bytes).right()) return false;
    // Twelve bytes may be right by chance or by design; where it can be had, more is asked for.
    if (!size_) return true;
    const uint64_t next = record.end() + kRecordFoot;
    if (next == *size_) return true;
    std::array<std::byte, kRecordHead> head;
    if (file_.read_at(next, head) == head.size() && parse_record_head(head).right()) return true;
    std::array<std::byte, kRecordFoot> foot;
    return file_.read_at(record.end(), foot) == foot.size() &&
           crc_of(record) == crc32c_unmask(load<uint32_t>(foot.data()));
  }

  void fault(uint64_t offset, std::string cause) {
    sink_.fault({shard_, offset, {}, {}, std::move(cause)});
  }

  ReadableFile& file_;
  ByteStream stream_;
  const std::string& shard_;
  std::string stem_;
  uint32_t number_;
  ScanSink& sink_;
  std::optional<uint64_t> size_;  // of the file, where it is not compressed
  Kind kind_ = Kind::unknown;
  uint64_t records_ = 0;
  std::vector<Feature> features_;
};

}  // namespace

void scan_tfrecord(const Source& source, const Layout&, const Part& part, ScanSink& sink) {
  const OpenedShard shard = open_shard(source, part, sink);
  TfrecordScan scan(*shard.file, shard.path, part, shard.number, sink);
  try {
    scan.run();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt) throw;
    scan.break_off(error.what());
  }
}

}  // namespace stoker
