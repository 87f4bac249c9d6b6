// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include "load/picture.h"

namespace stoker::python {

/// What stoker.transforms makes of a list of transforms: a dict of "geometry", "augmentation",
/// "finish", "erasing", "mixing" and "classes"; each step is a dict of what it is and its numbers.
PictureRecipe picture_recipe_of(const nanobind::dict& given);

}  // namespace stoker::python
