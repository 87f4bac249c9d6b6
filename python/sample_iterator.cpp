// SPDX-License-Identifier: Apache-2.0
#include "sample_iterator.h"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace nb = nanobind;

namespace stoker::python {
namespace {

/// Cuts a batch behind the last sample with which it stays below `limit` bytes; keeps one sample.
void cut(Batch& batch, uint64_t limit) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < batch.items.size(); ++i) {
    bytes += batch.items[i].length;
    const uint32_t row = batch.items[i].row;
    if (bytes <= limit || row == 0) continue;
    batch.samples.resize(row);
    const auto end = std::find_if(batch.items.begin(), batch.items.end(),
                                  [row](const Item& item) { return item.row >= row; });
    batch.items.erase(end, batch.items.end());
    return;
  }
}

}  // namespace

SampleIterator::~SampleIterator() {
  if (!pending_) return;
  if (forked()) {
    (void)pending_.release();  // its thread is not in this process: nothing to wait for
    return;
  }
  const nb::gil_scoped_release without_gil;
  pending_->thread.join();
}

bool SampleIterator::forked() const { return pending_ && pending_->process != getpid(); }

Batch SampleIterator::locate(uint64_t begin) {
  const nb::gil_scoped_release without_gil;
  Batch batch = dataset_.reader().locate(range_.part(begin, rows_));
  cut(batch, kMostBytes);
  rows_ = std::min(rows_ * 2, kMostRows);
  return batch;
}

std::unique_ptr<SampleIterator::Pending> SampleIterator::start(uint64_t begin) {
  if (begin >= range_.count) return nullptr;
  auto pending = std::make_unique<Pending>();
  pending->fetched = dataset_.prepare(locate(begin));
  pending->process = getpid();
  pending->thread = std::thread([work = pending.get()] {
    try {
      work->fetched->fetch();
    } catch (...) {
      work->failure = std::current_exception();
    }
  });
  return pending;
}

void SampleIterator::advance() {
  current_.reset();
  if (forked()) (void)pending_.release();
  // Until the next batch is there, this is the end: what is wrong with more than a sample (a
  // corrupt index) is raised once.
  const uint64_t begin = std::exchange(next_begin_, range_.count);
  if (!pending_) pending_ = start(begin);
  if (!pending_) throw nb::stop_iteration();
  {
    const nb::gil_scoped_release without_gil;
    pending_->thread.join();
  }
  const std::unique_ptr<Pending> done = std::move(pending_);
  if (done->failure) std::rethrow_exception(done->failure);
  current_ = std::move(done->fetched);
  row_ = 0;
  next_begin_ = begin + current_->rows();
  try {
    pending_ = start(next_begin_);
  } catch (const std::exception&) {
    // Its turn has not come: it is tried again, and raised, behind the samples of this batch.
  }
}

nb::dict SampleIterator::next() {
  if (busy_.test_and_set()) throw nb::value_error("this iterator is in use by another thread");
  struct Release {
    std::atomic_flag& flag;
    ~Release() { flag.clear(); }
  } release{busy_};
  if (!current_ || row_ == current_->rows()) advance();
  return current_->take(row_++);
}

}  // namespace stoker::python
