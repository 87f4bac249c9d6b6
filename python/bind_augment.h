// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "image/finish.h"
#include "load/augmentation.h"

namespace stoker::python {

// What the package's transforms say of themselves, as dicts: "step" has the name of the class, the
// others are its arguments. All throw Error(usage) where something makes no sense.

std::vector<AugmentationStep> steps_of(const nanobind::list& steps);
RandomErasing erasing_of(const nanobind::dict& given);
/// dtype, layout ("NHWC", "NCHW"), scale, mean and std; these two None where it is not normalized.
FinishOptions finish_options_of(const nanobind::dict& given);

}  // namespace stoker::python
