// SPDX-License-Identifier: Apache-2.0
#include "format/parquet_page.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "dataset/codec.h"
#include "format/columnar.h"
#include "format/snappy_parts.h"
#include "format/thrift.h"

namespace stoker {
namespace {

// A header may hold the least and the largest value of its page.
constexpr uint64_t kFirstHeader = 512;
constexpr uint64_t kLargestHeader = 16 << 20;
// What is decoded together where a page is decoded in parts. A value that lies in two of these has
// its own: more would slow down a value by chance, fewer all of them one after the other.
constexpr uint64_t kPartsTogether = 4;
constexpr int kData = 0, kDictionary = 2, kDataV2 = 3;

uint32_t count_of(int32_t value) {
  if (value < 0) corrupt(fmt::format("a page that counts {}", value));
  return static_cast<uint32_t>(value);
}

}  // namespace

struct ParquetPages::Header {
  int type = -1;
  uint64_t size = 0;  // of the header itself
  uint64_t stored = 0, decoded = 0;
  std::optional<uint32_t> crc;
  uint64_t values = 0;
  int encoding = 0;
  bool old_repetition = false, old_definition = false;  // packed without runs
  uint64_t definition_size = 0, repetition_size = 0;    // of version 2
  bool compressed = true;

  void parse(ThriftStruct fields) {
    while (fields.next()) {
      if (fields.id() == 1) type = fields.int32();
      if (fields.id() == 2) decoded = count_of(fields.int32());
      if (fields.id() == 3) stored = count_of(fields.int32());
      if (fields.id() == 4) crc = static_cast<uint32_t>(fields.int32());
      if (fields.id() == 5) parse_data(fields.structure(), false);
      if (fields.id() == 7) parse_data(fields.structure(), true);
      if (fields.id() == 8) parse_data_2(fields.structure());
    }
  }

 private:
  /// Of version 1, or of a dictionary.
  void parse_data(ThriftStruct fields, bool is_dictionary) {
    while (fields.next()) {
      if (fields.id() == 1) values = count_of(fields.int32());
      if (fields.id() == 2) encoding = fields.int32();
      if (is_dictionary || (fields.id() != 3 && fields.id() != 4)) continue;
      const bool old = fields.int32() != static_cast<int>(ParquetEncoding::runs);
      (fields.id() == 3 ? old_definition : old_repetition) = old;
    }
  }

  void parse_data_2(ThriftStruct fields) {
    while (fields.next()) {
      if (fields.id() == 1) values = count_of(fields.int32());
      if (fields.id() == 4) encoding = fields.int32();
      if (fields.id() == 5) definition_size = count_of(fields.int32());
      if (fields.id() == 6) repetition_size = count_of(fields.int32());
      if (fields.id() == 7) compressed = fields.boolean();
    }
  }
};

std::string refusal_of(ParquetCodec codec) {
  switch (codec) {
    case ParquetCodec::lzo:
      return "it is compressed with LZO, which is not read";
    case ParquetCodec::brotli:
      return "it is compressed with Brotli, which is not read";
    default:
      return {};
  }
}

ParquetPages::ParquetPages(ReadableFile& file, const ParquetChunk& chunk, const ParquetPlan& plan,
                           uint32_t shard, ScanSink& sink)
    : file_(file),
      chunk_(chunk),
      has_repetition_(plan.most_repetition > 0),
      has_definition_(plan.most_definition > 0),
      placed_(plan.use != ParquetUse::number),
      large_(plan.use == ParquetUse::bytes),
      shard_(shard),
      sink_(sink),
      at_(chunk.begin) {}

std::vector<Codec> ParquetPages::chain() const {
  CodecId id = CodecId::snappy;
  if (chunk_.codec == ParquetCodec::gzip) id = CodecId::zlib;
  if (chunk_.codec == ParquetCodec::zstd) id = CodecId::zstd;
  if (chunk_.codec == ParquetCodec::lz4_hadoop) id = CodecId::lz4_hadoop;
  if (chunk_.codec == ParquetCodec::lz4_raw) id = CodecId::lz4_block;
  return {{static_cast<uint16_t>(id), {}}};
}

ParquetPages::Header ParquetPages::read_header() {
  std::vector<std::byte> bytes;
  const uint64_t left = chunk_.end - at_;
  for (uint64_t size = kFirstHeader;; size *= 8) {
    const bool last = size >= left || size >= kLargestHeader;
    bytes.resize(std::min({size, left, kLargestHeader}));
    read_exactly(file_, "page", at_, bytes);
    try {
      ThriftBytes thrift(bytes);
      Header header;
      header.parse(ThriftStruct(thrift));
      header.size = thrift.taken();
      return header;
    } catch (const Error&) {
      if (last) throw;
    }
  }
}

bool ParquetPages::next(ParquetPage& page) {
  page = {};
  while (at_ < chunk_.end) {
    page.begin = at_;
    const Header header = read_header();
    const uint64_t left = chunk_.end - at_ - header.size;
    if (header.stored > left) {
      corrupt(fmt::format("a page of {} bytes where {} are left", header.stored, left));
    }
    const bool wanted =
        header.type == kData || header.type == kDataV2 || header.type == kDictionary;
    page.dictionary = header.type == kDictionary;
    if (wanted && !page.dictionary) {
      values_ += header.values;
      if (values_ > chunk_.values) corrupt("pages have more values than their column");
    }
    const uint64_t begin = at_ + header.size;
    at_ = begin + header.stored;
    if (!wanted) continue;
    page.values = header.values;
    read_page(header, page);
    return true;
  }
  return false;
}

/// Whether the values of a page are compressed. Arrow before 3.0 says of compressed pages of
/// version 2 that they are not (ARROW-17100): there the lengths tell.
bool ParquetPages::is_compressed(const Header& header) const {
  if (chunk_.codec != ParquetCodec::none) {
    return header.type != kDataV2 || header.compressed || header.stored != header.decoded ||
           chunk_.flags_lie;
  }
  if (header.stored != header.decoded) {
    corrupt(fmt::format("a page that is not compressed has {} bytes and states {}", header.stored,
                        header.decoded));
  }
  return false;
}

bool ParquetPages::can_stay_unread(const Header& header) const {
  constexpr uint64_t kLarge = 16 << 10;
  const bool data = header.type == kData || header.type == kDataV2;
  const bool levels_known = !has_repetition_ && !(header.old_definition && has_definition_);
  return data && levels_known && large_ && chunk_.codec == ParquetCodec::none && !header.crc &&
         header.stored == header.decoded &&
         header.encoding == static_cast<int>(ParquetEncoding::plain) && header.values > 0 &&
         header.stored / header.values >= kLarge;
}

/// The levels alone; the values stay where they are.
void ParquetPages::read_levels(const Header& header, ParquetPage& page) const {
  const uint64_t begin = page.begin + header.size;
  const bool counted = header.type != kDataV2;  // each kind has its length in front
  uint64_t at = 0;
  const auto take = [&](uint64_t size) {
    if (size > header.stored - at) {
      corrupt(fmt::format("levels of {} bytes where {} are left", size, header.stored - at));
    }
    std::vector<std::byte> bytes(size);
    read_exactly(file_, "page", begin + at, bytes);
    at += size;
    return bytes;
  };
  const auto take_counted = [&] { return take(load<uint32_t>(take(sizeof(uint32_t)).data())); };
  if (counted && has_definition_) page.decoded = take_counted();
  if (!counted) {
    take(header.repetition_size);
    page.decoded = take(header.definition_size);
  }
  page.definition = page.decoded;
  page.encoding = ParquetEncoding::plain;
  page.first = {Container::shard, shard_, begin + at, 0, 0};
  page.unread = std::make_unique<UnreadValues>(file_, begin + at, header.stored - at);
}

Bytes UnreadValues::head(uint64_t begin, uint64_t size) {
  const uint64_t wanted = std::min(size, kHead);
  const bool there = begin >= window_begin_ && begin + wanted <= window_begin_ + window_.size();
  if (!there) {
    window_begin_ = begin;
    window_.resize(std::min(2 * kHead, size_ - begin));
    read_exactly(file_, "page", offset_ + begin, window_);
  }
  return Bytes(window_).subspan(begin - window_begin_, wanted);
}

Bytes ParquetPage::bytes(uint64_t begin, uint64_t size) const {
  const uint64_t all = unread ? unread->size() : data.size();
  if (begin > all || size > all - begin) corrupt("a page that ends before its values");
  return unread ? unread->head(begin, size) : data.subspan(begin, size);
}

void ParquetPages::read_page(const Header& header, ParquetPage& page) {
  if (can_stay_unread(header)) return read_levels(header, page);
  const uint64_t begin = page.begin + header.size;
  std::vector<std::byte> stored(header.stored);
  read_exactly(file_, "page", begin, stored);
  if (header.crc) {
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(stored.data()), stored.size());
    if (crc != *header.crc) {
      corrupt(
          fmt::format("checksum of the page is {:08x}, the file states {:08x}", crc, *header.crc));
    }
  }
  if (header.encoding < 0 || header.encoding > 9) {
    throw Error(ErrorKind::unsupported, fmt::format("encoding {} is not known", header.encoding));
  }
  page.encoding = static_cast<ParquetEncoding>(header.encoding);
  const bool compressed = is_compressed(header);
  if (header.type != kDataV2) {
    if (!compressed) {
      page.decoded = std::move(stored);
      page.first = {Container::shard, shard_, begin, 0, 0};
    } else {
      decode(stored, begin, header.decoded, page.decoded, page);
    }
    // Where there are none, some writers say that they are packed so.
    if ((header.old_repetition && has_repetition_) || (header.old_definition && has_definition_)) {
      throw Error(ErrorKind::unsupported, "levels in the encoding BIT_PACKED are not read");
    }
    Bytes rest = page.decoded;
    if (!page.dictionary) find_levels(rest, page);
    page.first.offset += page.decoded.size() - rest.size();
    page.data = rest;
    return;
  }
  // The levels lie in front, never compressed.
  const uint64_t levels = header.repetition_size + header.definition_size;
  if (levels > stored.size() || levels > header.decoded) {
    corrupt(fmt::format("levels of {} bytes in a page of {}", levels, stored.size()));
  }
  std::vector<std::byte> values;
  const Bytes rest = Bytes(stored).subspan(levels);
  if (compressed) {
    decode(rest, begin + levels, header.decoded - levels, values, page);
  } else {
    values.assign(rest.begin(), rest.end());
    page.first = {Container::shard, shard_, begin + levels, 0, 0};
  }
  page.decoded.assign(stored.begin(), stored.begin() + static_cast<ptrdiff_t>(levels));
  page.decoded.insert(page.decoded.end(), values.begin(), values.end());
  const Bytes all = page.decoded;
  page.repetition = all.first(header.repetition_size);
  page.definition = all.subspan(header.repetition_size, header.definition_size);
  page.data = all.subspan(levels);
}

/// Of version 1: each kind of level has its length in front.
void ParquetPages::find_levels(Bytes& rest, ParquetPage& page) const {
  const auto take = [&] {
    if (rest.size() < sizeof(uint32_t)) corrupt("a page that ends before its levels");
    const uint64_t size = load<uint32_t>(rest.data());
    rest = rest.subspan(sizeof(uint32_t));
    if (size > rest.size())
      corrupt(fmt::format("levels of {} bytes where {} are left", size, rest.size()));
    const Bytes levels = rest.first(size);
    rest = rest.subspan(size);
    return levels;
  };
  if (has_repetition_) page.repetition = take();
  if (has_definition_) page.definition = take();
}

void ParquetPages::decode(Bytes stored, uint64_t offset, uint64_t decoded_length,
                          std::vector<std::byte>& into, ParquetPage& page) {
  const std::vector<Codec> chain = this->chain();
  if (decoded_length == 0) return;
  if (decoded_length > decoded_limit(chain, stored.size())) {
    corrupt(fmt::format("a page of {} bytes claims to hold {}", stored.size(), decoded_length));
  }
  into = decode_block(stored, chain, decoded_length);
  if (!placed_) return;
  Block block;
  block.shard = shard_;
  block.offset = offset;
  block.stored_length = stored.size();
  block.decoded_length = decoded_length;
  if (large_ && chunk_.codec == ParquetCodec::snappy &&
      decoded_length > kPartsTogether * kSnappyPart) {
    std::vector<uint64_t> cuts = cut_snappy(stored, decoded_length);
    if (!cuts.empty()) {
      const Codec part{static_cast<uint16_t>(CodecId::snappy_part), {}};
      block.codecs = sink_.codecs({&part, 1});
      page.parts = std::make_unique<SnappyPage>(sink_, block, std::move(cuts));
      return;
    }
  }
  block.codecs = sink_.codecs(chain);
  page.first = {Container::block, sink_.block(block), 0, 0, 0};
}

SnappyPage::SnappyPage(ScanSink& sink, const Block& block, std::vector<uint64_t> cuts)
    : sink_(sink), block_(block), cuts_(std::move(cuts)) {}

Extent SnappyPage::place(uint64_t begin, uint64_t size) {
  const uint64_t parts = cuts_.size() - 1;
  uint64_t first = std::min(begin / kSnappyPart, parts - 1);
  uint64_t end = size == 0 ? first + 1 : (begin + size - 1) / kSnappyPart + 1;
  const uint64_t group = first / kPartsTogether * kPartsTogether;
  if (end <= group + kPartsTogether) {  // shared with its neighbours
    first = group;
    end = std::min(group + kPartsTogether, parts);
  }
  const auto [known, is_new] = known_.try_emplace({first, end}, 0);
  if (is_new) {
    Block block = block_;
    block.offset += cuts_[first];
    block.stored_length = cuts_[end] - cuts_[first];
    block.decoded_length = std::min(end * kSnappyPart, block_.decoded_length) - first * kSnappyPart;
    known->second = sink_.block(block);
  }
  return {Container::block, known->second, begin - first * kSnappyPart, size, 0};
}

Extent ParquetPage::place(uint64_t begin, uint64_t size) const {
  if (parts) return parts->place(first.offset + begin, size);
  Extent extent = first;
  extent.offset += begin;
  extent.length = size;
  return extent;
}

}  // namespace stoker
