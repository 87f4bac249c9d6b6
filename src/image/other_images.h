// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "image/pixels.h"

namespace stoker {

// Images that are rare in training data: decoded as a whole, by a library each, then cropped. The
// first frame of those that move. Transparency is dropped, as Pillow's convert("RGB") does.

bool is_png(Bytes data);
Size size_of_png(Bytes data);
void decode_png(Bytes data, PixelBuffer& pixels);

bool is_webp(Bytes data);
Size size_of_webp(Bytes data);
void decode_webp(Bytes data, PixelBuffer& pixels);

bool is_gif(Bytes data);
Size size_of_gif(Bytes data);
void decode_gif(Bytes data, PixelBuffer& pixels);

bool is_bmp(Bytes data);
Size size_of_bmp(Bytes data);
void decode_bmp(Bytes data, PixelBuffer& pixels);

}  // namespace stoker
