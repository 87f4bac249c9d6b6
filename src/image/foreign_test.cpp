// SPDX-License-Identifier: Apache-2.0
#include "image/foreign.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "image/decode.h"

namespace stoker {
namespace {

using namespace std::string_view_literals;

TEST(ForeignImages, AreNamed) {
  const std::string dicom = std::string(128, '\0') + "DICM";
  const std::vector<std::pair<std::string_view, std::string_view>> known = {
      {"II*\0\x08\0\0\0"sv, "is a TIFF image, which is not decoded yet"},
      {"MM\0*\0\0\0\x08"sv, "is a TIFF image, which is not decoded yet"},
      {"\0\0\0\x1c"
       "ftypavif\0\0\0\0avifmif1miaf"sv,
       "is an AVIF image, which is not decoded yet"},
      {"\0\0\0\x1c"
       "ftypmif1\0\0\0\0mif1avifmiaf"sv,
       "is an AVIF image, which is not decoded yet"},
      {"\0\0\0\x18"
       "ftypheic\0\0\0\0mif1heic"sv,
       "is a HEIC image, which is not decoded yet"},
      {"\0\0\0\x18"
       "ftypmp42\0\0\0\0isommp42"sv,
       "is an MP4 or QuickTime video, not an image"},
      {"\0\0\0\x0cjP  \r\n\x87\n"sv, "is a JPEG 2000 image, which is not decoded yet"},
      {"\xff\x4f\xff\x51\0\x2f"sv, "is a JPEG 2000 image, which is not decoded yet"},
      {"\xff\x0a\xfa\x1f"sv, "is a JPEG XL image, which is not decoded yet"},
      {"\0\0\0\x0cJXL \r\n\x87\n"sv, "is a JPEG XL image, which is not decoded yet"},
      {"8BPS\0\1"sv, "is a Photoshop (PSD) image, which is not decoded yet"},
      {"\0\0\1\0\1\0\x10\x10"sv, "is an icon (ICO), which is not decoded yet"},
      {"\x76\x2f\x31\x01\2\0\0\0"sv, "is an OpenEXR image, which is not decoded yet"},
      {dicom, "is a DICOM image, which is not decoded yet"},
      {"<?xml version=\"1.0\"?>\n<svg xmlns=\"x\">"sv,
       "is an SVG drawing, which is not decoded yet"},
      {"P6\n2 2\n255\n"sv, "is a PNM image, which is not decoded yet"},
      {"%PDF-1.7"sv, "is a PDF document, not an image"},
      {"\x93NUMPY\1\0"sv, "is a NumPy array (.npy), not an image"},
      {"\x1f\x8b\x08\0"sv, "is compressed with gzip, not an image"},
      {"\n <!DOCTYPE HTML><html>404"sv, "is an HTML page, not an image"},
      {"<?xml version=\"1.0\"?><Error><Code>AccessDenied"sv, "is an XML document, not an image"},
      {"hello"sv, "no image: neither JPEG nor PNG, WebP, GIF or BMP"},
      {"\0"sv, "no image: neither JPEG nor PNG, WebP, GIF or BMP"},
      {"\0\0\0\x18"
       "ftyp"sv,
       "no image: neither JPEG nor PNG, WebP, GIF or BMP"},
  };
  for (const auto& [text, expected] : known) {
    const Bytes data(reinterpret_cast<const std::byte*>(text.data()), text.size());
    EXPECT_EQ(describe_foreign(data), expected);
    try {
      (void)ImageDecoder().open(data);
      ADD_FAILURE() << expected;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), expected);
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    }
  }
}

}  // namespace
}  // namespace stoker
