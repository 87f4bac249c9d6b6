// SPDX-License-Identifier: Apache-2.0

// Hostile run directories: run.json where the input begins with '{', a file of steps and of
// resources otherwise. The checksums of blocks are made right first, or they would stop nearly
// every mutation at the door.

#include <stdlib.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "base/error.h"
#include "measure/run_summary.h"
#include "results/run.h"

namespace {

using namespace stoker;

constexpr const char* kRun =
    R"({"schema": 1, "stoker": "0", "command": ["x"], "host": "h", "started": "", "cores": 2,)"
    R"( "clock_begin_ns": 0, "time_of_day_begin_ns": 0})";

void mend_blocks(std::string& text) {
  constexpr size_t kHead = 16;
  for (size_t at = text.find("SBLK"); at != std::string::npos; at = text.find("SBLK", at + 1)) {
    if (text.size() - at < kHead + 4) return;
    uint32_t description;
    uint64_t rows;
    std::memcpy(&description, text.data() + at + 4, sizeof description);
    std::memcpy(&rows, text.data() + at + 8, sizeof rows);
    const size_t room = text.size() - at - kHead - 4;
    if (description > room || rows > room - description) continue;
    const size_t body = kHead + description + rows;
    const auto sum =
        static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(text.data() + at), body));
    std::memcpy(text.data() + at + body, &sum, sizeof sum);
    at += body;
  }
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// In memory where the machine has such a directory.
std::string new_directory() {
  for (std::string name : {"/dev/shm/stoker-fuzz-XXXXXX", "/tmp/stoker-fuzz-XXXXXX"}) {
    if (::mkdtemp(name.data()) != nullptr) return name;
  }
  std::abort();
}

/// Gone again when the fuzzer ends.
struct Directory {
  std::string path = new_directory();
  ~Directory() { (void)std::system(("rm -r " + path).c_str()); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Directory kDirectory;
  std::string text(reinterpret_cast<const char*>(data), size);
  const bool about = !text.empty() && text[0] == '{';
  if (!about) mend_blocks(text);
  write(kDirectory.path + "/run.json", about ? text : kRun);
  write(kDirectory.path + "/steps-h-1.columns", about ? "" : text);
  write(kDirectory.path + "/resources.columns", about ? "" : text);
  try {
    (void)summarise(read_run(kDirectory.path));
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
