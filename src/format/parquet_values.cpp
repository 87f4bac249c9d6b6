// SPDX-License-Identifier: Apache-2.0
#include "format/parquet_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "format/columnar.h"

namespace stoker {
namespace {

size_t width_of(const ParquetNode& node) {
  switch (*node.type) {
    case ParquetType::int32:
    case ParquetType::real32:
      return 4;
    case ParquetType::int64:
    case ParquetType::real64:
      return 8;
    case ParquetType::int96:
      return 12;
    case ParquetType::fixed_byte_array:
      return node.width;
    default:
      return 0;
  }
}

/// Passes over what a DeltaReader reads, to find what follows.
Bytes behind(Bytes bytes, uint64_t most) {
  DeltaReader reader(bytes);
  if (reader.left() > most) corrupt(fmt::format("{} lengths for {} values", reader.left(), most));
  while (reader.left() > 0) reader.next();
  return reader.rest();
}

}  // namespace

ParquetValues::ParquetValues(const ParquetNode& node) : node_(node), width_(width_of(node)) {}

ParquetValue ParquetValues::in_page(const ParquetPage& page, uint64_t begin, uint64_t size) const {
  const Bytes bytes = page.bytes(begin, size);
  return {bytes, page.place(begin, size)};
}

void ParquetValues::take_dictionary(ParquetPage page) {
  if (page.encoding != ParquetEncoding::plain &&
      page.encoding != ParquetEncoding::plain_dictionary) {
    corrupt("a dictionary that is not plain");
  }
  dictionary_ = std::move(page);
  has_dictionary_ = true;
  entries_.clear();
  if (*node_.type != ParquetType::byte_array) return;
  uint64_t at = 0;
  for (uint64_t i = 0; i < dictionary_.values; ++i) {
    const uint64_t size = load<uint32_t>(dictionary_.bytes(at, sizeof(uint32_t)).data());
    at += sizeof(uint32_t);
    dictionary_.bytes(at, size);
    entries_.emplace_back(static_cast<uint32_t>(at), static_cast<uint32_t>(size));
    at += size;
  }
}

void ParquetValues::begin(const ParquetPage& page) {
  page_ = &page;
  at_ = 0;
  last_.clear();
  const bool bytes = *node_.type == ParquetType::byte_array;
  switch (page.encoding) {
    case ParquetEncoding::plain:
      return;
    case ParquetEncoding::plain_dictionary:
    case ParquetEncoding::runs_of_dictionary:
      // A page of nulls alone needs neither.
      runs_ = page.data.empty()
                  ? RunReader({}, 0)
                  : RunReader(page.data.subspan(1), static_cast<unsigned>(page.data[0]));
      return;
    case ParquetEncoding::runs: {
      if (*node_.type != ParquetType::boolean) break;
      const Bytes head = page.bytes(0, std::min<size_t>(page.data.size(), 4));
      runs_ = RunReader(page.data.subspan(head.size()), 1);
      return;
    }
    case ParquetEncoding::delta_binary_packed:
      if (*node_.type != ParquetType::int32 && *node_.type != ParquetType::int64) break;
      deltas_ = page.data.empty() ? DeltaReader() : DeltaReader(page.data);
      return;
    case ParquetEncoding::delta_length_byte_array:
    case ParquetEncoding::delta_byte_array: {
      if (!bytes && *node_.type != ParquetType::fixed_byte_array) break;
      Bytes rest = page.data;
      deltas_ = prefixes_ = DeltaReader();
      if (rest.empty()) return;
      if (page.encoding == ParquetEncoding::delta_byte_array) {
        prefixes_ = DeltaReader(rest);
        rest = behind(rest, page.values);
      }
      deltas_ = DeltaReader(rest);
      rest = behind(rest, page.values);
      at_ = page.data.size() - rest.size();
      return;
    }
    case ParquetEncoding::byte_stream_split:
      if (width_ == 0) break;
      split_count_ = page.data.size() / width_;
      if (split_count_ * width_ != page.data.size() || split_count_ > page.values) {
        corrupt(fmt::format("{} bytes of split values of {} bytes each", page.data.size(), width_));
      }
      return;
    default:
      break;
  }
  throw Error(ErrorKind::unsupported, fmt::format("encoding {} is not read for this type",
                                                  static_cast<int>(page.encoding)));
}

ParquetValue ParquetValues::made(Bytes bytes) const {
  return {bytes, {Container::here, 0, 0, bytes.size(), 0}};
}

ParquetValue ParquetValues::plain() {
  if (*node_.type == ParquetType::boolean) {
    const Bytes byte = page_->bytes(at_ / 8, 1);
    last_.assign(1, static_cast<char>((byte[0] >> (at_ % 8)) & std::byte{1}));
    ++at_;
    return made(as_bytes(last_));
  }
  uint64_t size = width_;
  if (*node_.type == ParquetType::byte_array) {
    size = load<uint32_t>(page_->bytes(at_, sizeof(uint32_t)).data());
    at_ += sizeof(uint32_t);
  }
  const ParquetValue value = in_page(*page_, at_, size);
  at_ += size;
  return value;
}

ParquetValue ParquetValues::from_dictionary() {
  if (!has_dictionary_) corrupt("a page that refers to a dictionary that is missing");
  const uint64_t index = runs_.next();
  if (*node_.type == ParquetType::byte_array) {
    if (index >= entries_.size())
      corrupt(fmt::format("value {} of a dictionary of {}", index, entries_.size()));
    return in_page(dictionary_, entries_[index].first, entries_[index].second);
  }
  if (width_ == 0 || index >= dictionary_.values) {
    corrupt(fmt::format("value {} of a dictionary of {}", index, dictionary_.values));
  }
  return in_page(dictionary_, index * width_, width_);
}

ParquetValue ParquetValues::split() {
  if (at_ >= split_count_) corrupt("a page that ends before its values");
  last_.resize(width_);
  for (size_t i = 0; i < width_; ++i) {
    last_[i] = static_cast<char>(page_->data[i * split_count_ + at_]);
  }
  ++at_;
  return made(as_bytes(last_));
}

ParquetValue ParquetValues::delta() {
  const int64_t value = deltas_.next();
  last_.assign(as_text(std::as_bytes(std::span(&value, 1))).substr(0, width_));
  return made(as_bytes(last_));
}

ParquetValue ParquetValues::delta_bytes() {
  const int64_t size = deltas_.next();
  if (size < 0) corrupt(fmt::format("a value of {} bytes", size));
  ParquetValue value = in_page(*page_, at_, static_cast<uint64_t>(size));
  at_ += static_cast<uint64_t>(size);
  if (page_->encoding == ParquetEncoding::delta_length_byte_array) return value;
  const int64_t prefix = prefixes_.next();
  if (prefix < 0 || static_cast<uint64_t>(prefix) > last_.size()) {
    corrupt(fmt::format("a value that shares {} bytes with one of {}", prefix, last_.size()));
  }
  last_.resize(static_cast<size_t>(prefix));
  last_ += as_text(value.bytes);
  return made(as_bytes(last_));
}

ParquetValue ParquetValues::next() {
  switch (page_->encoding) {
    case ParquetEncoding::plain:
      return plain();
    case ParquetEncoding::plain_dictionary:
    case ParquetEncoding::runs_of_dictionary:
      return from_dictionary();
    case ParquetEncoding::runs:
      last_.assign(1, static_cast<char>(runs_.next()));
      return made(as_bytes(last_));
    case ParquetEncoding::delta_binary_packed:
      return delta();
    case ParquetEncoding::byte_stream_split:
      return split();
    default:
      return delta_bytes();
  }
}

}  // namespace stoker
