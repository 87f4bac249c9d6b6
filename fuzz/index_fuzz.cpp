// SPDX-License-Identifier: Apache-2.0

// Hostile indexes. Checksums would stop nearly every mutation at the door, so they are made right
// first: what is inside must then still never crash, hang or read outside of the file.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/inner_path.h"
#include "dataset/manifest.h"
#include "dataset/paged_file.h"
#include "dataset/segment.h"
#include "dataset/segment_layout.h"
#include "dataset/tiled_file.h"
#include "os/fake_file_system.h"

namespace {

using namespace stoker;

/// Makes checksums of header and pages right where the header is sane enough to have them.
void mend_segment(std::string& text) {
  if (text.size() < sizeof(SegmentHeader)) return;
  auto* bytes = reinterpret_cast<std::byte*>(text.data());
  auto header = load<SegmentHeader>(bytes);
  header.magic = kSegmentMagic;
  header.version = kSegmentVersion;
  header.depth &= 1;
  const uint64_t directory = uint64_t{header.table_count} * sizeof(TableRecord);
  if (header.table_count > 1000 || header.data_begin > text.size()) return;
  header.data_size = text.size() - header.data_begin;
  header.page_count = (header.data_size + PagedFile::kPageSize - 1) / PagedFile::kPageSize;
  const uint64_t sums = sizeof(header) + directory;
  if (sums + header.page_count * 4 > header.data_begin) return;
  const Bytes all(bytes, text.size());
  for (uint64_t page = 0; page < header.page_count; ++page) {
    const uint64_t at = header.data_begin + page * PagedFile::kPageSize;
    const Bytes contents =
        all.subspan(at, std::min<uint64_t>(PagedFile::kPageSize, text.size() - at));
    store(bytes + sums + page * 4, crc32c(contents));
  }
  store(bytes, header);
  uint32_t crc = crc32c(all.first(offsetof(SegmentHeader, crc)));
  crc = crc32c(all.subspan(sizeof(header), directory + header.page_count * 4), crc);
  header.crc = crc;
  store(bytes, header);
}

void mend_manifest(std::string& text) {
  const size_t line = text.find('\n');
  if (line == std::string::npos) return;
  char digits[9];
  (void)snprintf(digits, sizeof(digits), "%08x",
                 crc32c(as_bytes(std::string_view(text).substr(line + 1))));
  text = "{\"checksum\": \"crc32c-" + std::string(digits) + "\",\n" + text.substr(line + 1);
}

/// The first and the last row, of a file that has next to nothing of what is said about it.
void read_view(const TiledView& view) {
  FakeFileSystem files;
  files.add_file("/x", std::string(1 << 12, 'x'));
  constexpr uint64_t kMemory = 1 << 20;
  if (view.chunk_bytes() > kMemory) return;
  const auto file = as_rows(files.open("/x"), view, {kMemory, 1});
  for (const uint64_t row : {uint64_t{0}, view.rows - 1}) {
    std::byte first{};
    try {
      if (file->read_at(row * view.row_bytes(), MutableBytes(&first, 1)) != 1) std::abort();
    } catch (const Error&) {
      continue;  // no such chunk
    }
  }
}

/// No name that comes out of an index leads out of the dataset.
void require_inside(const std::string& path) {
  bool inside = !path.empty() && path.front() != '/' && path.find('\0') == std::string::npos;
  inside = inside && ("/" + path + "/").find("/../") == std::string::npos;
  if (!inside || !unsafe_path(path).empty()) std::abort();
}

void read_segment(const std::string& path) {
  const Segment segment(path);
  segment.verify_all();
  for (uint32_t i = 0; i < segment.shard_count() && i < 100; ++i) {
    require_inside(segment.shard(i).path);
    const std::string view = segment.view(i);
    if (!view.empty()) read_view(parse_tiled_view(as_bytes(view)));
  }
  std::vector<uint64_t> found;
  for (uint64_t i = 0; i < segment.samples() && i < 1000; ++i) {
    (void)segment.key(i);
    const auto [hash, sample] = segment.hash_at(i);
    segment.find_hash(hash, found);
    for (uint32_t f = 0; f < segment.fields().size(); ++f) {
      const Located located = segment.locate(i, f);
      if (!located.present || located.extent.container != Container::file) continue;
      try {
        require_inside(segment.file_path(i, f, located));
      } catch (const Error&) {  // refused: what it should be where the key leads out
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  const bool manifest = !text.empty() && text[0] == '{';
  if (manifest) {
    mend_manifest(text);
  } else {
    mend_segment(text);
  }
  static const int kFile = ::memfd_create("index", 0);
  if (::ftruncate(kFile, 0) != 0 ||
      ::pwrite(kFile, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    std::abort();
  }
  const std::string path = "/proc/self/fd/" + std::to_string(kFile);
  try {
    if (manifest) {
      for (const SegmentEntry& entry : Manifest::read(path).segments) {
        require_inside(entry.file);
        if (entry.file.find('/') != std::string::npos) std::abort();
      }
    } else {
      read_segment(path);
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
