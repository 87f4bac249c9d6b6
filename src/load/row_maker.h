// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "load/batch.h"
#include "load/columns.h"
#include "load/fetch.h"
#include "load/order.h"
#include "load/picture.h"
#include "load/sources.h"

namespace stoker {

/// What is wrong with a sample, and where it lies.
class SampleError : public Error {
 public:
  SampleError(ErrorKind kind, Fault what, int os_error)
      : Error(kind, what.message(), os_error), fault_(std::move(what)) {}
  const Fault& fault() const { return fault_; }

 private:
  Fault fault_;
};

/// How photos were decoded.
struct DecodeReport {
  DecodeCounts paths{};
  std::vector<Fault> damaged;  // of those that were decoded all the same
};

/// The stage that turns what was fetched into rows of a batch. One per thread.
class RowMaker {
 public:
  /// `recipe` may be null where no column has pictures. Keeps pointing to all of them.
  RowMaker(const Sources& sources, const std::vector<ColumnPlan>& columns,
           const PictureRecipe* recipe, uint64_t seed, uint64_t epoch);

  /// Throws SampleError.
  void make(const FetchedRow& fetched, const Draw& draw, LoadedBatch& batch, uint64_t row);
  /// Of the photos since it was asked last.
  DecodeReport take_report() { return {pictures_.take_counts(), std::exchange(damaged_, {})}; }

 private:
  void fill(const FetchedSamples& from, const Item& item, const Draw& draw, BatchColumn& column,
            const ColumnPlan& plan, uint64_t row);
  void fill_array(const ColumnPlan& plan, const Item& item, const Reader& reader, std::byte* to);
  void check_header(const ColumnPlan& plan, const Item& item);
  static void reorder(const ColumnPlan& plan, const Item& item);

  const Sources& sources_;
  const std::vector<ColumnPlan>& columns_;
  const PictureRecipe* recipe_;
  const uint64_t seed_, epoch_;
  PictureMaker pictures_;
  std::vector<Fault> damaged_;
  std::vector<std::byte> header_;  // the last one that was right
  const ColumnPlan* header_of_ = nullptr;
};

}  // namespace stoker
