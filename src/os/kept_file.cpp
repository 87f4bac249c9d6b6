// SPDX-License-Identifier: Apache-2.0
#include "os/kept_file.h"

#include <algorithm>
#include <utility>

#include "os/open_file_limit.h"

namespace stoker {
namespace {

std::atomic<uint32_t> kept_open{0};

/// A small share of what the process may have open: shards, pipes, sockets and the caller's own
/// files need the rest.
uint32_t most_kept_open() {
  constexpr uint64_t kMost = 4096, kShare = 8;
  return static_cast<uint32_t>(std::min(kMost, open_file_limit() / kShare));
}

}  // namespace

KeptFile::KeptFile(std::string path)
    : path_(std::move(path)), file_(real_file_system().open(path_)), info_(file_->info()) {}

KeptFile::~KeptFile() {
  if (counted_) --kept_open;
}

void KeptFile::settle() {
  if (counted_ || file_ == nullptr) return;
  counted_ = kept_open++ < most_kept_open();
  if (counted_) return;
  --kept_open;
  file_.reset();
}

size_t KeptFile::read_at(uint64_t offset, MutableBytes into) const {
  const auto opened = file_ ? nullptr : real_file_system().open(path_);
  return (file_ ? *file_ : *opened).read_at(offset, into);
}

}  // namespace stoker
