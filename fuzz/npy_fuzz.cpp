// SPDX-License-Identifier: Apache-2.0
// The first byte of an input says what the rest is:
//   'n'  x.npy            'z'  a.npz
//   'i'  a file in MNIST's format        'c'  a batch of CIFAR-10
//   'p'  two .npy files of a directory: the length of the first in two bytes, then both
//   'f'  an .npy file in Fortran order, read as if it were in C order
// What comes out must lie within the files.
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "dataset/inflating_file.h"
#include "dataset/value.h"
#include "format/collecting_sink.h"
#include "format/npy.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_sample(const CollectingSink& found, const CollectingSink::Sample& sample,
                  FakeFileSystem& files) {
  for (const auto& [name, kept] : sample.fields) {
    const Extent& extent = kept.field.extent;
    const Shard& shard = found.shards.at(extent.number);
    if (shard.compression != Compression::none) continue;
    require(extent.container == Container::shard && extent.offset <= shard.size &&
            extent.length <= shard.size - extent.offset);
    std::vector<std::byte> stored(extent.length);
    require(files.open("/d/" + shard.path)->read_at(extent.offset, stored) == stored.size());
    Field field;
    field.type = kept.field.type;
    field.encoding = kept.field.encoding;
    field.dtype = kept.field.dtype;
    field.shape = kept.field.shape;
    (void)decode_value(field, stored);  // a row is always a value
  }
}

void try_files(FakeFileSystem& files, const std::string& file) {
  const Source source{"/d", file, "", &files};
  std::optional<Layout> layout;
  CollectingSink found;
  try {
    layout = detect_npy(source);
    if (!layout) return;
    for (const Part& part : layout->parts) scan_npy(source, *layout, part, found);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported ||
            error.kind() == ErrorKind::usage);  // arrays that have to be named
    return;
  }
  constexpr size_t kEnough = 64;
  for (size_t i = 0; i < found.samples.size(); i += 1 + found.samples.size() / kEnough) {
    check_sample(found, found.samples[i], files);
  }
  for (const Fault& fault : found.faults) require(!fault.message().empty());
}

void try_view(FakeFileSystem& files, const std::string& contents) {
  try {
    const auto view = inflate(files.open("/d/x.npy"), "/d/x.npy", Compression::fortran);
    std::vector<std::byte> all(contents.size() + 1);
    require(view->read_at(0, all) <= contents.size());
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported);
  }
}

void try_input(char kind, std::string contents) {
  FakeFileSystem files;
  std::string file;
  if (kind == 'n' || kind == 'f') file = "x.npy";
  if (kind == 'z') file = "a.npz";
  if (kind == 'i') file = "train-labels-idx1-ubyte";
  if (kind == 'c') file = "data_batch_1.bin";
  if (kind == 'p' && contents.size() >= 2) {
    const auto low = static_cast<unsigned char>(contents[0]);
    const auto high = static_cast<unsigned char>(contents[1]);
    const size_t length = std::min<size_t>(low + 256U * high, contents.size() - 2);
    files.add_file("/d/s-000000.__key__.npy", contents.substr(2, length));
    files.add_file("/d/s-000000.x.npy", contents.substr(2 + length));
    return try_files(files, "");
  }
  if (file.empty()) return;
  files.add_file("/d/" + file, contents);
  if (kind == 'f') return try_view(files, contents);
  try_files(files, file);
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  stoker::try_input(static_cast<char>(data[0]),
                    std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
