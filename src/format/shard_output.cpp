// SPDX-License-Identifier: Apache-2.0
#include "format/shard_output.h"

#include <algorithm>
#include <functional>

#include "base/crc32c.h"

namespace stoker {

std::byte* ShardOutput::append(uint32_t file, size_t size) {
  // A group of samples, mostly, so that it is written at once.
  constexpr size_t kSlab = 2 << 20;
  File& to = files_[file];
  if (to.slabs.empty() || size > to.slabs.back().capacity - to.slabs.back().used) {
    const size_t capacity = std::max(files_.size() > 1 ? kSlab / 8 : kSlab, size);
    to.slabs.push_back({std::make_unique_for_overwrite<std::byte[]>(capacity), capacity, 0, 0});
  }
  Slab& slab = to.slabs.back();
  slab.used += size;
  to.size += size;
  return slab.bytes.get() + slab.used - size;
}

void ShardOutput::append(uint32_t file, Bytes bytes) {
  std::copy(bytes.begin(), bytes.end(), append(file, bytes.size()));
}

void ShardOutput::patch(uint32_t file, uint64_t offset, Bytes bytes) {
  patches_.push_back({file, offset, std::string(as_text(bytes))});
}

uint32_t ShardOutput::codecs(std::vector<Codec> chain) {
  const auto known = std::find(chains_.begin(), chains_.end(), chain);
  const auto number = static_cast<uint32_t>(known - chains_.begin());
  if (known == chains_.end()) chains_.push_back(std::move(chain));
  return number;
}

uint32_t ShardOutput::block(const Block& block) {
  blocks_.push_back(block);
  return static_cast<uint32_t>(blocks_.size() - 1);
}

void ShardOutput::sum(std::vector<Known> known) {
  // An empty one lies where another begins, and would go back to there.
  std::erase_if(known, [](const Known& one) { return one.length == 0; });
  const std::less<const std::byte*> before;  // also where they lie in different memory
  std::sort(known.begin(), known.end(),
            [&](const Known& a, const Known& b) { return before(a.data, b.data); });
  for (File& file : files_) {
    for (Slab& slab : file.slabs) {
      const std::byte* at = slab.bytes.get() + slab.summed;
      const std::byte* end = slab.bytes.get() + slab.used;
      auto next = std::lower_bound(known.begin(), known.end(), at,
                                   [&](const Known& a, auto* b) { return before(a.data, b); });
      for (; next != known.end() && before(next->data, end); ++next) {
        file.crc = crc32c({at, next->data}, file.crc);
        file.crc = crc32c_combine(file.crc, next->crc, next->length);
        at = next->data + next->length;
      }
      file.crc = crc32c({at, end}, file.crc);
      slab.summed = slab.used;
    }
  }
}

ShardOutput::Mark ShardOutput::mark() const {
  Mark mark;
  for (const File& file : files_) {
    mark.files.push_back(
        {file.slabs.size(), file.slabs.empty() ? 0 : file.slabs.back().used, file.size});
  }
  mark.blocks = blocks_.size();
  return mark;
}

void ShardOutput::rewind(const Mark& mark) {
  for (size_t i = 0; i < files_.size(); ++i) {
    File& file = files_[i];
    file.slabs.resize(mark.files[i].slabs);
    if (!file.slabs.empty()) file.slabs.back().used = mark.files[i].used;
    file.size = mark.files[i].size;
  }
  blocks_.resize(mark.blocks);
}

uint64_t ShardOutput::pending() const {
  uint64_t bytes = 0;
  for (const File& file : files_) {
    for (const Slab& slab : file.slabs) bytes += slab.used;
  }
  return bytes;
}

std::vector<Bytes> ShardOutput::pending(uint32_t file) const {
  std::vector<Bytes> pieces;
  for (const Slab& slab : files_[file].slabs) pieces.emplace_back(slab.bytes.get(), slab.used);
  return pieces;
}

ShardOutput::Pending ShardOutput::take(Pending spent) {
  spent.resize(files_.size());
  for (size_t i = 0; i < files_.size(); ++i) {
    // The last: the first may be small, as that of a header.
    if (spent[i].size() > 1) spent[i].erase(spent[i].begin(), spent[i].end() - 1);
    for (Slab& slab : spent[i]) slab.used = slab.summed = 0;
    files_[i].slabs.swap(spent[i]);
  }
  return spent;
}

uint32_t ShardOutput::crc(uint32_t file) const {
  uint32_t crc = files_[file].crc;
  for (const Patch& patch : patches_) {
    if (patch.file != file) continue;
    const std::string zeros(patch.bytes.size(), '\0');
    const uint32_t change = crc32c(as_bytes(zeros)) ^ crc32c(as_bytes(patch.bytes));
    const uint64_t behind = files_[file].size - patch.offset - patch.bytes.size();
    crc ^= crc32c_combine(change, 0, behind);
  }
  return crc;
}

}  // namespace stoker
