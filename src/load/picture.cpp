// SPDX-License-Identifier: Apache-2.0
#include "load/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "image/mix.h"

namespace stoker {
namespace {

bool changes_nothing(const FinishOptions& options) {
  return options.type == PixelType::uint8 && options.layout == PixelLayout::nhwc &&
         !options.normalize;
}

void erase_randomly(const RandomErasing& erasing, const FinishedPicture& picture,
                    SampleRandom& random) {
  const std::optional<Region> region = draw_erasing(erasing, picture.size, random);
  if (!region) return;
  if (erasing.value) return erase(picture, *region, *erasing.value);
  NormalRandom noise(random);
  erase(picture, *region, [&] { return static_cast<float>(noise()); });
}

/// Labels as rows of one 1 and otherwise 0.
BatchColumn one_hot(const BatchColumn& labels, uint64_t rows, uint32_t classes,
                    BatchMemory& memory) {
  BatchColumn column;
  column.name = labels.name;
  column.element = "float32";
  column.shape = {rows, classes};
  column.row_bytes = classes * sizeof(float);
  column.data = memory.take(rows * column.row_bytes);
  std::memset(column.data.get(), 0, rows * column.row_bytes);
  for (uint64_t row = 0; row < rows; ++row) {
    const auto label = load<int64_t>(labels.row(row));
    if (label < 0 || label >= classes) {
      throw Error(
          ErrorKind::unsupported,
          fmt::format("label {} among {} classes: num_classes should be larger", label, classes));
    }
    store(column.row(row) + static_cast<size_t>(label) * sizeof(float), 1.0F);
  }
  return column;
}

/// Each row becomes lambda of itself and the rest of the row before it, the first one's the last.
void mix_labels(BatchColumn& labels, uint64_t rows, double lambda) {
  const size_t classes = labels.shape[1];
  const auto own = static_cast<float>(lambda);
  const auto other = static_cast<float>(1.0 - lambda);
  std::vector<float> before(classes);
  std::vector<float> here(classes);
  std::memcpy(before.data(), labels.row(rows - 1), labels.row_bytes);
  for (uint64_t row = 0; row < rows; ++row) {
    std::memcpy(here.data(), labels.row(row), labels.row_bytes);
    auto* to = reinterpret_cast<float*>(labels.row(row));
    for (size_t i = 0; i < classes; ++i) to[i] = before[i] * other + here[i] * own;
    std::swap(before, here);
  }
}

}  // namespace

std::string PictureRecipe::element() const {
  switch (finisher.options().type) {
    case PixelType::uint8:
      return "uint8";
    case PixelType::float32:
      return "float32";
    case PixelType::float16:
      return "float16";
    case PixelType::bfloat16:
      return "bfloat16";
  }
  return "";
}

std::vector<uint64_t> PictureRecipe::shape() const {
  if (finisher.options().layout == PixelLayout::nchw) return {3, size.height, size.width};
  return {size.height, size.width, 3};
}

/// Most photos are not damaged: only what is is decoded as a whole, as Pillow does.
std::string PictureMaker::decode(PicturePlan& plan, bool like_pillow, uint8_t* out) {
  std::string damage;
  try {
    decode_picture(decoder_, plan, scratch_, out);
  } catch (const Error& error) {
    if (!like_pillow || error.kind() != ErrorKind::corrupt) throw;
    plan.decode.like_pillow = true;
    decode_picture(decoder_, plan, scratch_, out);
    damage = error.what();
  }
  return damage;
}

std::string PictureMaker::make(const PictureRecipe& recipe, const EncodedPhoto& photo,
                               SampleRandom& random, std::byte* out) {
  const ImageInfo info = photo.raw ? decoder_.open(*photo.raw) : decoder_.open(photo.bytes);
  PicturePlan plan = recipe.geometry.plan(info.size, random);
  plan.decode.row_index = photo.row_index;
  plan.decode.crc = photo.crc;
  if (plan.size != recipe.size) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("a picture of height {}, width {} among those of {} x {}: add a Resize "
                    "or a crop",
                    plan.size.height, plan.size.width, recipe.size.height, recipe.size.width));
  }
  const FinishOptions& finish = recipe.finisher.options();
  const bool straight = changes_nothing(finish);
  FinishedPicture finished{out, plan.size, finish.type, finish.layout};
  picture_.resize(straight ? 0 : plan.size.pixels() * 3);
  const Picture picture{straight ? reinterpret_cast<uint8_t*>(out) : picture_.data(), plan.size};
  std::string damage = decode(plan, recipe.like_pillow, picture.data);
  if (!photo.raw) ++counts_[static_cast<size_t>(decoder_.path())];
  augment(recipe.augmentation, random, augmenter_, picture);
  if (!straight) finished = recipe.finisher.run(picture, out);
  for (const RandomErasing& erasing : recipe.erasing) erase_randomly(erasing, finished, random);
  return damage;
}

void mix_batch(const PictureRecipe& recipe, std::string_view image, SampleRandom& random,
               BatchMemory& memory, LoadedBatch& batch) {
  const auto column = [&](std::string_view name) {
    const auto found = std::find_if(batch.columns.begin(), batch.columns.end(),
                                    [&](const BatchColumn& each) { return each.name == name; });
    return found == batch.columns.end() ? nullptr : &*found;
  };
  BatchColumn* images = column(image);
  BatchColumn* labels = column(kLabelField);
  if (images == nullptr || labels == nullptr) return;
  *labels = one_hot(*labels, batch.rows, recipe.classes, memory);
  if (batch.rows == 0) return;
  const FinishOptions& finish = recipe.finisher.options();
  const PictureBatch pictures{{images->data.get(), recipe.size, finish.type, finish.layout},
                              batch.rows};
  for (const std::vector<BatchMix>& choices : recipe.mixing) {
    const BatchMix& mix = choices[random.below(static_cast<uint32_t>(choices.size()))];
    double lambda = 0;
    if (mix.kind == BatchMix::Kind::mix_up) {
      lambda = draw_beta(mix.alpha, random);
      mix_up(pictures, lambda);
    } else {
      const CutMixDraw draw = draw_cut_mix(mix.alpha, recipe.size, random);
      lambda = draw.lambda;
      cut_mix(pictures, draw.region);
    }
    mix_labels(*labels, batch.rows, lambda);
  }
}

}  // namespace stoker
