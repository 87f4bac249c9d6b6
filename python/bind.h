// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <array>

#include "image/decode_path.h"
#include "index/build_index.h"

namespace stoker::python {

void bind_augment(nanobind::module_& module);
void bind_dataset(nanobind::module_& module);
void bind_pack(nanobind::module_& module);
void bind_index(nanobind::module_& module);
void bind_load(nanobind::module_& module);
void bind_decode(nanobind::module_& module);
void bind_check(nanobind::module_& module);
void bind_measure(nanobind::module_& module);
void bind_job(nanobind::module_& module);
void bind_probe(nanobind::module_& module);
void bind_report(nanobind::module_& module);
void bind_stage(nanobind::module_& module);

// Results go to Python as dicts, which the package makes its result classes of: the members of
// both have the names that --json prints.
nanobind::dict to_dict(const IndexResult& result);
nanobind::dict to_dict(const RowIndexSummary& summary);
/// {words: count} of those that occurred.
nanobind::dict by_decoder(const std::array<uint64_t, kDecodePaths>& photos);

}  // namespace stoker::python
