// SPDX-License-Identifier: Apache-2.0
#include "dataset/codec.h"

#include <fmt/format.h>

#include "base/error.h"
#include "dataset/inflating_file.h"

namespace stoker {
namespace {

/// A block in memory as a file, so that the decoders of whole files serve blocks too.
class BlockFile final : public ReadableFile {
 public:
  explicit BlockFile(Bytes bytes) : bytes_(bytes) {}

  size_t read_at(uint64_t offset, MutableBytes into) override {
    if (offset >= bytes_.size()) return 0;
    const size_t count = std::min<uint64_t>(into.size(), bytes_.size() - offset);
    std::memcpy(into.data(), bytes_.data() + offset, count);
    return count;
  }
  size_t read_at(uint64_t offset, std::span<const MutableBytes> into) override {
    size_t done = 0;
    for (const MutableBytes piece : into) done += read_at(offset + done, piece);
    return done;
  }
  FileInfo info() override { return {FileKind::file, bytes_.size(), 0, 0, 0, 0}; }

 private:
  Bytes bytes_;
};

std::vector<std::byte> decode_one(Bytes stored, uint16_t id, uint64_t limit) {
  Compression compression = Compression::none;
  if (id == static_cast<uint16_t>(CodecId::zlib)) compression = Compression::gzip;
  if (id == static_cast<uint16_t>(CodecId::zstd)) compression = Compression::zstd;
  if (compression == Compression::none) {
    throw Error(ErrorKind::unsupported, fmt::format("codec {} is not known", id));
  }
  const auto file = inflate(std::make_unique<BlockFile>(stored), "block", compression);
  // One byte more than expected, so that too much is noticed without decoding all of it.
  std::vector<std::byte> decoded(limit + 1);
  decoded.resize(file->read_at(0, decoded));
  return decoded;
}

}  // namespace

std::vector<std::byte> decode_block(Bytes stored, std::span<const Codec> chain,
                                    uint64_t decoded_length) {
  constexpr uint64_t kMaxBlock = uint64_t{1} << 32;
  if (decoded_length > kMaxBlock) {
    throw Error(ErrorKind::corrupt, fmt::format("a block of {} bytes", decoded_length));
  }
  std::vector<std::byte> bytes(stored.begin(), stored.end());
  for (size_t i = chain.size(); i-- > 0;) {
    bytes = decode_one(bytes, chain[i].id, i == 0 ? decoded_length : kMaxBlock);
  }
  if (bytes.size() != decoded_length) {
    throw Error(ErrorKind::corrupt,
                fmt::format("block decodes to {} bytes{}, should be {}", bytes.size(),
                            bytes.size() > decoded_length ? " or more" : "", decoded_length));
  }
  return bytes;
}

}  // namespace stoker
