// SPDX-License-Identifier: Apache-2.0
#include "dataset/tiled_view.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "dataset/codec.h"

namespace stoker {
namespace {

/// 10 rows of 5 x 3 elements of 2 bytes, in chunks of 4 x 2 x 2: 3 rows of 3 x 2 chunks.
TiledView example() {
  TiledView view;
  view.rows = 10;
  view.dims = {5, 3};
  view.chunk = {4, 2, 2};
  view.stored_element = view.element = 2;
  view.fill = "ab";
  view.chains = {{}, {{static_cast<uint16_t>(CodecId::shuffle), std::string("\2\0\0\0", 4)}}};
  view.chunks = {{0, 5000, 32, 0}, {1, 4000, 40, 1}, {7, 4040, 32, 0}, {17, 100, 1, 1}};
  return view;
}

bool is_refused(const TiledView& view) {
  try {
    (void)parse_tiled_view(as_bytes(to_bytes(view)));
    return false;
  } catch (const Error& error) {
    return error.kind() == ErrorKind::corrupt;
  }
}

TEST(TiledView, ComesBackFromItsBytes) {
  EXPECT_EQ(parse_tiled_view(as_bytes(to_bytes(example()))), example());
}

TEST(TiledView, SaysWhatIsWhere) {
  const TiledView view = example();
  EXPECT_EQ(view.row_bytes(), 30);
  EXPECT_EQ(view.chunk_bytes(), 32);
  EXPECT_EQ(view.chunks_per_row(), 6);
  EXPECT_EQ(view.written(0).size(), 2);
  EXPECT_EQ(view.written(1).size(), 1);
  EXPECT_EQ(view.written(2).front().number, 17);
  EXPECT_EQ(view.band_rows(1000), 4);
  EXPECT_EQ(view.band_rows(70), 2);
  EXPECT_EQ(view.band_rows(0), 1);
}

TEST(TiledView, EveryCutAndEveryFlippedBitIsRefusedOrAnotherView) {
  const std::string bytes = to_bytes(example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW((void)parse_tiled_view(as_bytes(bytes).first(size)), Error) << size;
  }
  EXPECT_THROW((void)parse_tiled_view(as_bytes(bytes + '\0')), Error);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    try {
      EXPECT_NE(parse_tiled_view(as_bytes(flipped)), example()) << bit;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    }
  }
}

TEST(TiledView, LengthsThatCannotBeAreRefused) {
  const auto refused_with = [](auto change) {
    TiledView view = example();
    change(view);
    return is_refused(view);
  };
  EXPECT_TRUE(refused_with([](TiledView& view) { view.rows = 0; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.dims[1] = 0; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.chunk[2] = 0; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.element = 0; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.element = 3; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.begin = 1; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.begin = ~uint64_t{0}; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.fill = "a"; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.rows = uint64_t{1} << 60; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.dims[0] = uint64_t{1} << 62; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.chunk[1] = uint64_t{1} << 62; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.chunks[3].number = 18; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.chunks[1].number = 0; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.chunks[1].chain = 2; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.chunks[1].offset = uint64_t{1} << 63; }));
  EXPECT_TRUE(refused_with([](TiledView& view) { view.chunks[1].stored_length = ~uint64_t{0}; }));
}

TEST(TiledView, LargeRowsMustBeThere) {
  TiledView view;
  view.rows = 2;
  view.dims = {uint64_t{1} << 27};
  view.chunk = {2, uint64_t{1} << 26};
  view.stored_element = view.element = 1;
  view.chains = {{{static_cast<uint16_t>(CodecId::zlib), ""}}};
  view.chunks = {{0, 0, 1 << 20, 0}, {1, 1 << 20, 1 << 20, 0}};
  EXPECT_NO_THROW(refuse_unfounded(view, 2 << 20));
  EXPECT_THROW(refuse_unfounded(view, (2 << 20) - 1), Error);  // they share bytes
  view.chunks[1].stored_length = 100;
  EXPECT_THROW(refuse_unfounded(view, 2 << 20), Error);
  view.chunks.pop_back();
  EXPECT_THROW(refuse_unfounded(view, 2 << 20), Error);
}

}  // namespace
}  // namespace stoker
