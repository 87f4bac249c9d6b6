// SPDX-License-Identifier: Apache-2.0
#include "load/picture.h"

#include <fmt/format.h>

#include "base/error.h"

namespace stoker {

std::string PictureRecipe::element() const { return "uint8"; }

std::vector<uint64_t> PictureRecipe::shape() const { return {size.height, size.width, 3}; }

void PictureMaker::make(const PictureRecipe& recipe, Bytes encoded, SampleRandom& random,
                        std::byte* out) {
  const Size photo = decoder_.open(encoded).size;
  const PicturePlan plan = recipe.geometry.plan(photo, random);
  if (plan.size != recipe.size) {
    throw Error(ErrorKind::unsupported,
                fmt::format("a picture of height {}, width {} among those of {} x {}: add a Resize "
                            "or a crop",
                            plan.size.height, plan.size.width, recipe.size.height,
                            recipe.size.width));
  }
  decode_picture(decoder_, plan, scratch_, reinterpret_cast<uint8_t*>(out));
}

}  // namespace stoker
