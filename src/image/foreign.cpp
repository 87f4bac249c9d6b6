// SPDX-License-Identifier: Apache-2.0
#include "image/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace stoker {
namespace {

using namespace std::string_view_literals;

/// So many bytes are looked at for what need not be at the very beginning.
constexpr size_t kLooksAt = 1024;

struct Magic {
  std::string_view bytes;
  size_t offset;
  std::string_view name;
};

/// Images that other programs decode.
constexpr std::array kImages = {
    Magic{"II*\0"sv, 0, "a TIFF image"},
    Magic{"MM\0*"sv, 0, "a TIFF image"},
    Magic{"II+\0"sv, 0, "a BigTIFF image"},
    Magic{"MM\0+"sv, 0, "a BigTIFF image"},
    Magic{"\0\0\0\x0cjP  "sv, 0, "a JPEG 2000 image"},
    Magic{"\xff\x4f\xff\x51"sv, 0, "a JPEG 2000 image"},
    Magic{"\0\0\0\x0cJXL "sv, 0, "a JPEG XL image"},
    Magic{"\xff\x0a"sv, 0, "a JPEG XL image"},
    Magic{"8BPS"sv, 0, "a Photoshop (PSD) image"},
    Magic{"\0\0\1\0"sv, 0, "an icon (ICO)"},
    Magic{"\0\0\2\0"sv, 0, "a cursor (CUR)"},
    Magic{"\x76\x2f\x31\x01"sv, 0, "an OpenEXR image"},
    Magic{"DICM"sv, 128, "a DICOM image"},
    Magic{"#?RADIANCE"sv, 0, "a Radiance HDR image"},
    Magic{"DDS "sv, 0, "a DDS image"},
    Magic{"qoif"sv, 0, "a QOI image"},
    Magic{"SIMPLE  ="sv, 0, "a FITS image"},
    Magic{"\x8aMNG"sv, 0, "an MNG image"},
};

constexpr std::array kOthers = {
    Magic{"%PDF-"sv, 0, "a PDF document"},
    Magic{"\x93NUMPY"sv, 0, "a NumPy array (.npy)"},
    Magic{"\x1f\x8b"sv, 0, "compressed with gzip"},
    Magic{"BZh"sv, 0, "compressed with bzip2"},
    Magic{"\xfd\x37zXZ\0"sv, 0, "compressed with xz"},
    Magic{"\x28\xb5\x2f\xfd"sv, 0, "compressed with Zstandard"},
    Magic{"PK\3\4"sv, 0, "a zip archive"},
    Magic{"\x89HDF\r\n"sv, 0, "an HDF5 file"},
    Magic{"\x1a\x45\xdf\xa3"sv, 0, "a Matroska or WebM video"},
    Magic{"version https://git-lfs.github.com/"sv, 0, "a pointer of Git LFS (git lfs pull)"},
};

template <typename Table>
std::string_view find_in(const Table& table, std::string_view text) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Magic& magic) {
    return text.size() >= magic.offset && text.substr(magic.offset).starts_with(magic.bytes);
  });
  return found == table.end() ? std::string_view() : found->name;
}

/// HEIC and AVIF are containers of the kind that MP4 is; the brands tell.
std::string_view name_of_container(std::string_view text) {
  if (text.size() < 12 || text.substr(4, 4) != "ftyp") return {};
  const auto length = static_cast<size_t>(static_cast<uint8_t>(text[3]));
  const std::string_view brands = text.substr(8, std::max<size_t>(length, 12) - 8);
  const auto has = [&](std::string_view brand) {
    return brands.find(brand) != std::string_view::npos;
  };
  if (has("avif") || has("avis")) return "an AVIF image";
  if (has("hei") || has("hev") || has("mif1") || has("msf1")) return "a HEIC image";
  return "an MP4 or QuickTime video";
}

/// PBM, PGM, PPM and PAM begin with P and a digit.
bool is_pnm(std::string_view text) {
  return text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7' &&
         (text[2] == '\n' || text[2] == ' ' || text[2] == '\r' || text[2] == '\t');
}

/// Text in angle brackets.
std::string_view name_of_markup(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // of UTF-8
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (!text.starts_with('<')) return {};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (lower.starts_with("<!doctype html") || lower.starts_with("<html")) return "an HTML page";
  if (lower.find("<svg") != std::string::npos) return "an SVG drawing";
  if (lower.find("<html") != std::string::npos) return "an HTML page";
  return lower.starts_with("<?xml") ? "an XML document" : std::string_view();
}

}  // namespace

std::string describe_foreign(Bytes data) {
  const std::string_view text(reinterpret_cast<const char*>(data.data()),
                              std::min(data.size(), kLooksAt));
  const std::string_view markup = name_of_markup(text);
  const std::string_view container = name_of_container(text);
  std::string_view image = find_in(kImages, text);
  if (image.empty() && is_pnm(text)) image = "a PNM image";
  if (image.empty() && container.ends_with("image")) image = container;
  if (image.empty() && markup == "an SVG drawing") image = markup;
  if (!image.empty()) return fmt::format("is {}, which is not decoded yet", image);
  std::string_view other = find_in(kOthers, text);
  if (other.empty()) other = container.empty() ? markup : container;
  if (!other.empty()) return fmt::format("is {}, not an image", other);
  return "no image: neither JPEG nor PNG, WebP, GIF or BMP";
}

}  // namespace stoker
