// SPDX-License-Identifier: Apache-2.0
#include "format/flatbuffer.h"

#include "base/error.h"

namespace stoker {
namespace {

template <typename T>
T load_at(Bytes buffer, size_t at) {
  if (at > buffer.size() || sizeof(T) > buffer.size() - at) {
    corrupt_flatbuffer("metadata refers to bytes behind its end");
  }
  return load<T>(buffer.data() + at);
}

/// Where the distance that lies at `at` leads to.
size_t follow(Bytes buffer, size_t at) {
  const size_t distance = load_at<uint32_t>(buffer, at);
  if (distance == 0) corrupt_flatbuffer("metadata refers to itself");
  return at + distance;
}

}  // namespace

void corrupt_flatbuffer(const char* cause) { throw Error(ErrorKind::corrupt, cause); }

FlatTable::FlatTable(Bytes buffer, size_t at) : buffer_(buffer), at_(at) {
  const auto back = load_at<int32_t>(buffer, at);
  const int64_t vtable = static_cast<int64_t>(at) - back;
  if (vtable < 0 || vtable > static_cast<int64_t>(buffer.size())) {
    corrupt_flatbuffer("metadata has a table without its vtable");
  }
  vtable_ = static_cast<size_t>(vtable);
  vtable_size_ = load_at<uint16_t>(buffer, vtable_);
  table_size_ = load_at<uint16_t>(buffer, vtable_ + 2);
  if (vtable_size_ < 4 || vtable_size_ > buffer.size() - vtable_ || table_size_ < 4 ||
      table_size_ > buffer.size() - at) {
    corrupt_flatbuffer("metadata has a table that reaches behind its end");
  }
}

FlatTable FlatTable::root(Bytes buffer) { return {buffer, follow(buffer, 0)}; }

size_t FlatTable::place(unsigned field, size_t size) const {
  const size_t entry = 4 + 2 * size_t{field};
  if (!there() || entry + 2 > vtable_size_) return 0;
  const auto offset = load<uint16_t>(buffer_.data() + vtable_ + entry);
  if (offset == 0) return 0;
  if (offset + size > table_size_) corrupt_flatbuffer("metadata has a field outside of its table");
  return at_ + offset;
}

FlatTable FlatTable::table(unsigned field) const {
  const size_t at = place(field, sizeof(uint32_t));
  return at == 0 ? FlatTable() : FlatTable(buffer_, follow(buffer_, at));
}

FlatVector FlatTable::vector(unsigned field, size_t element_size) const {
  const size_t at = place(field, sizeof(uint32_t));
  if (at == 0) return {};
  const size_t begin = follow(buffer_, at);
  const size_t count = load_at<uint32_t>(buffer_, begin);
  if (count > (buffer_.size() - begin - sizeof(uint32_t)) / element_size) {
    corrupt_flatbuffer("metadata has a vector that reaches behind its end");
  }
  return {buffer_, begin + sizeof(uint32_t), count, element_size};
}

std::string_view FlatTable::text(unsigned field) const {
  const FlatVector bytes = vector(field, 1);
  return bytes.size() == 0 ? std::string_view() : as_text({bytes.element(0), bytes.size()});
}

FlatTable FlatVector::table(size_t i) const {
  return {buffer_, follow(buffer_, begin_ + i * sizeof(uint32_t))};
}

}  // namespace stoker
