// SPDX-License-Identifier: Apache-2.0
#include "dataset/inflating_file.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "dataset/fortran_file.h"

namespace stoker {
namespace {

/// Turns compressed bytes into plain ones, piece by piece.
class Inflater {
 public:
  virtual ~Inflater() = default;
  struct Step {
    size_t consumed = 0, produced = 0;
    bool at_end = false;  // a frame is complete; another may follow
  };
  /// Throws Error(corrupt) with the cause alone.
  virtual Step run(Bytes in, MutableBytes out) = 0;
};

class ZlibInflater final : public Inflater {
 public:
  ZlibInflater() {
    // 15 bits of window, +32: gzip and zlib headers are told apart by themselves.
    if (inflateInit2(&stream_, 15 + 32) != Z_OK) throw Error(ErrorKind::io, "zlib: out of memory");
  }
  ~ZlibInflater() override { inflateEnd(&stream_); }
  ZlibInflater(const ZlibInflater&) = delete;
  ZlibInflater& operator=(const ZlibInflater&) = delete;

  Step run(Bytes in, MutableBytes out) override {
    if (ended_) {
      inflateReset(&stream_);  // another gzip member, as pigz and bgzip write them
      ended_ = false;
    }
    const size_t in_size = std::min<size_t>(in.size(), 1U << 30);
    const size_t out_size = std::min<size_t>(out.size(), 1U << 30);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in_size);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out_size);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      throw Error(ErrorKind::corrupt, stream_.msg != nullptr ? stream_.msg : "invalid gzip data");
    }
    ended_ = code == Z_STREAM_END;
    return {in_size - stream_.avail_in, out_size - stream_.avail_out, ended_};
  }

 private:
  z_stream stream_{};
  bool ended_ = false;
};

class ZstdInflater final : public Inflater {
 public:
  ZstdInflater() : stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw Error(ErrorKind::io, "zstd: out of memory");
  }

  Step run(Bytes in, MutableBytes out) override {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const size_t code = ZSTD_decompressStream(stream_.get(), &output, &input);
    if (ZSTD_isError(code) != 0) throw Error(ErrorKind::corrupt, ZSTD_getErrorName(code));
    return {input.pos, output.pos, code == 0};
  }

 private:
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
};

class InflatingFile final : public ReadableFile {
 public:
  InflatingFile(std::unique_ptr<ReadableFile> file, std::string path, Compression compression)
      : file_(std::move(file)), path_(std::move(path)), compression_(compression) {
    restart();
  }

  size_t read_at(uint64_t offset, MutableBytes into) override {
    const std::lock_guard lock(mutex_);
    if (offset < position_) restart();
    std::vector<std::byte> discard;
    while (position_ < offset) {
      discard.resize(std::min<uint64_t>(offset - position_, kStep));
      if (produce(discard) == 0) return 0;
    }
    size_t done = 0;
    while (done < into.size()) {
      size_t got = 0;
      try {
        got = produce(into.subspan(done));
      } catch (const Error&) {
        // What lies before the damage is good; who reads on meets the damage.
        if (done == 0) throw;
        damage_ = std::current_exception();
      }
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  size_t read_at(uint64_t offset, std::span<const MutableBytes> into) override {
    size_t done = 0;
    for (const MutableBytes piece : into) {
      const size_t got = read_at(offset + done, piece);
      done += got;
      if (got < piece.size()) break;
    }
    return done;
  }

  FileInfo info() override { return file_->info(); }

 private:
  static constexpr size_t kStep = 262144;

  void restart() {
    if (compression_ == Compression::zstd) {
      inflater_ = std::make_unique<ZstdInflater>();
    } else {
      inflater_ = std::make_unique<ZlibInflater>();
    }
    position_ = 0;
    input_.resize(kStep);
    input_begin_ = input_end_ = 0;
    file_offset_ = 0;
    at_end_ = true;  // of a frame: none has begun
    damage_ = nullptr;
  }

  /// Decodes at least one byte into `into`; 0 at the end of the file.
  size_t produce(MutableBytes into) {
    if (damage_) std::rethrow_exception(damage_);
    for (;;) {
      if (input_begin_ == input_end_ && !refill()) {
        if (at_end_) return 0;
        // The decoder may still hold bytes for which there was no room.
        const Inflater::Step step = run({}, into);
        if (step.produced > 0) return step.produced;
        if (at_end_) return 0;
        throw Error(ErrorKind::corrupt,
                    fmt::format("{}: offset {}: compressed data ends too early: truncated",
                                printable(path_), file_offset_));
      }
      const Inflater::Step step =
          run(Bytes(input_).subspan(input_begin_, input_end_ - input_begin_), into);
      input_begin_ += step.consumed;
      if (step.produced > 0) return step.produced;
    }
  }

  Inflater::Step run(Bytes in, MutableBytes into) {
    try {
      const Inflater::Step step = inflater_->run(in, into);
      at_end_ = step.at_end;
      position_ += step.produced;
      return step;
    } catch (const Error& error) {
      throw Error(error.kind(),
                  fmt::format("{}: near offset {}: compressed data is damaged: {}",
                              printable(path_), file_offset_ - in.size(), error.what()));
    }
  }

  bool refill() {
    const size_t got = file_->read_at(file_offset_, input_);
    file_offset_ += got;
    input_begin_ = 0;
    input_end_ = got;
    return got > 0;
  }

  std::unique_ptr<ReadableFile> file_;
  std::string path_;
  Compression compression_;
  std::mutex mutex_;
  std::unique_ptr<Inflater> inflater_;
  uint64_t position_ = 0;  // of the next decoded byte
  std::vector<std::byte> input_;
  size_t input_begin_ = 0, input_end_ = 0;
  uint64_t file_offset_ = 0;
  bool at_end_ = true;
  std::exception_ptr damage_;
};

}  // namespace

std::unique_ptr<ReadableFile> inflate(std::unique_ptr<ReadableFile> file, const std::string& path,
                                      Compression compression, std::string_view view,
                                      const ViewLimits& limits) {
  if (compression == Compression::none) return file;
  if (compression == Compression::fortran) return as_c_order(std::move(file), path);
  if (compression == Compression::tiled) {
    return as_rows(std::move(file), parse_tiled_view(as_bytes(view)), limits);
  }
  return std::make_unique<InflatingFile>(std::move(file), path, compression);
}

Compression compression_of(Bytes begin) {
  const auto starts_with = [&](std::initializer_list<unsigned> magic) {
    return begin.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), begin.begin(),
                      [](unsigned a, std::byte b) { return std::byte(a) == b; });
  };
  if (starts_with({0x1f, 0x8b, 0x08})) return Compression::gzip;
  if (starts_with({0x28, 0xb5, 0x2f, 0xfd})) return Compression::zstd;
  // zlib: deflate with a window of 32 KiB, and a header that is a multiple of 31.
  if (begin.size() >= 2 && begin[0] == std::byte{0x78} &&
      (0x7800U + std::to_integer<unsigned>(begin[1])) % 31 == 0) {
    return Compression::gzip;
  }
  return Compression::none;
}

}  // namespace stoker
