// SPDX-License-Identifier: Apache-2.0
// Hostile LMDB files: what comes out must lie within the file, and the walk must end.
#include <cstdlib>

#include "base/error.h"
#include "format/collecting_sink.h"
#include "format/lmdb.h"
#include "os/fake_file_system.h"

namespace {

using namespace stoker;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string contents(reinterpret_cast<const char*>(data), size);
  FakeFileSystem files;
  files.add_file("/d/x.lmdb", contents);
  const Source source{"/d", "x.lmdb", "", &files};
  try {
    (void)detect_lmdb(source);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::usage);  // several databases
  }
  CollectingSink found;
  try {
    scan_lmdb(source, {}, {"x.lmdb", Compression::none, 0, 0}, found);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::unsupported);
  }
  for (const auto& sample : found.samples) {
    for (const auto& [name, kept] : sample.fields) {
      const Extent& extent = kept.field.extent;
      require(extent.offset <= size && extent.length <= size - extent.offset);
    }
  }
  for (const Fault& fault : found.faults) require(!fault.message().empty());
  return 0;
}
