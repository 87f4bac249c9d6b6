// SPDX-License-Identifier: Apache-2.0
#include "image/jpeg.h"

#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <new>
#include <optional>
#include <string>
#include <vector>

// Behind <cstdio>, which it does not include itself.
#include <jpeglib.h>

// Behind it: which messages there are depends on it.
#include <jerror.h>

#include "base/error.h"
#include "image/entropy_decoder.h"
#include "image/jpeg_header.h"

namespace stoker {
namespace {

/// Scans of a progressive photo; real ones have ten. Each costs a pass over all coefficients, so
/// that a large photo may have fewer: as many as take a few seconds.
constexpr uint64_t kMostScans = 500;
constexpr uint64_t kMostScannedPixels = 4'000'000'000;
/// Pixels beside the region whose chroma the smooth upsampling of its edges looks at.
constexpr uint32_t kMargin = 2;

struct Failure {
  jpeg_error_mgr manager{};  // first: libjpeg knows only this
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = {};
  char damage[JMSG_LENGTH_MAX] = {};  // the first that was forgiven; empty: none
  bool forgiving = false;
  int code = 0;  // of libjpeg's message; 0: it is ours

  static Failure& of(j_common_ptr info) { return *reinterpret_cast<Failure*>(info->err); }
};

bool is_unsupported(int code) {
  switch (code) {
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
      return true;
    default:
      return false;
  }
}

[[noreturn]] void fail(j_common_ptr info) {
  Failure& failure = Failure::of(info);
  info->err->format_message(info, failure.message);
  failure.code = info->err->msg_code;
  std::longjmp(failure.back, 1);
}

/// Other warnings (an unknown revision of JFIF, an unknown colour transform of Adobe's) concern no
/// pixel.
bool is_damage(int code) {
  switch (code) {
    case JWRN_JPEG_EOF:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_MUST_RESYNC:
    case JWRN_NOT_SEQUENTIAL:
      return true;
    default:
      return false;
  }
}

/// Called with -1 for a warning.
void take_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  Failure& failure = Failure::of(info);
  if (!is_damage(info->err->msg_code)) return;
  // Pillow refuses a photo that ends too early, and takes any other damage for pixels.
  if (!failure.forgiving || info->err->msg_code == JWRN_JPEG_EOF) fail(info);
  if (failure.damage[0] == '\0') info->err->format_message(info, failure.damage);
}

void watch_scans(j_common_ptr info) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  const auto scans = static_cast<uint64_t>(decompress->input_scan_number);
  const uint64_t pixels = uint64_t{decompress->image_width} * decompress->image_height;
  if (scans <= kMostScans && scans * pixels <= kMostScannedPixels) return;
  Failure& failure = Failure::of(info);
  (void)std::snprintf(failure.message, JMSG_LENGTH_MAX, "more than %d scans",
                      static_cast<int>(scans) - 1);
  failure.code = 0;
  std::longjmp(failure.back, 1);
}

/// Rows of inverted CMYK, as Adobe writes them, to pixels as Pillow converts them.
void convert_cmyk(uint8_t* row, uint32_t width) {
  const auto times = [](unsigned a, unsigned b) {
    const unsigned product = a * b + 128;
    return ((product >> 8) + product) >> 8;
  };
  for (uint32_t x = 0; x < width; ++x, row += 4) {
    const unsigned rest = row[3];  // 255 - black
    for (int channel = 0; channel < 3; ++channel) {
      row[channel] = static_cast<uint8_t>(rest - times(255U - row[channel], rest));
    }
  }
}

/// The few baseline photos that come here are decoded once more for it.
void refuse_overlooked_damage(Bytes photo) {
  const std::string damage = find_overlooked_damage(photo);
  if (!damage.empty()) throw Error(ErrorKind::corrupt, "damaged JPEG: " + damage);
}

}  // namespace

bool is_jpeg(Bytes data) {
  return data.size() >= 3 && data[0] == std::byte{0xFF} && data[1] == std::byte{0xD8} &&
         data[2] == std::byte{0xFF};
}

struct JpegDecoder::State {
  jpeg_decompress_struct info{};
  Failure failure;
  jpeg_progress_mgr progress{};
  Bytes data;
  std::vector<uint8_t> last_row;  // that is read and not wanted
  jvirt_barray_ptr* coefficients = nullptr;
  bool is_decoded = false;  // its header has to be read again

  State() {
    info.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = fail;
    failure.manager.emit_message = take_message;
    progress.progress_monitor = watch_scans;
  }
  ~State() { jpeg_destroy_decompress(&info); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  size_t consumed() const { return data.size() - info.src->bytes_in_buffer; }

  /// Whether libjpeg smooths the edges of blocks, as it does where scans of a progressive photo
  /// are missing: the pixels of a region then depend on blocks around it.
  bool smooths() const {
    constexpr int kLooksAt = 10;  // coefficients, of which the first is not smoothed
    if (info.progressive_mode == FALSE || info.coef_bits == nullptr) return false;
    for (int component = 0; component < info.num_components; ++component) {
      const int* bits = info.coef_bits[component];
      if (std::any_of(bits + 1, bits + kLooksAt, [](int missing) { return missing != 0; })) {
        return true;
      }
    }
    return false;
  }

  // What follows may end in a longjmp: no object that has a destructor lives in these functions.

  bool read_header() {
    if (setjmp(failure.back) != 0) return false;
    failure.forgiving = true;  // whether damage matters is known when it is decoded
    failure.damage[0] = '\0';
    // Anew for each photo: libjpeg keeps tables, and one without its own would get another's.
    jpeg_destroy_decompress(&info);
    jpeg_create_decompress(&info);
    info.progress = &progress;
    jpeg_mem_src(&info, reinterpret_cast<const uint8_t*>(data.data()), data.size());
    jpeg_read_header(&info, TRUE);
    return true;
  }

  /// From here on damage ends the decoding unless it is to be forgiven. Returns false where the
  /// header has some.
  bool judge(bool forgiving) {
    failure.forgiving = forgiving;
    if (forgiving || failure.damage[0] == '\0') return true;
    std::copy(std::begin(failure.damage), std::end(failure.damage), failure.message);
    failure.code = 0;
    return false;
  }

  bool start() {
    if (setjmp(failure.back) != 0) return false;
    const bool inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = inks ? JCS_CMYK : JCS_EXT_RGBX;
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&info);
    return true;
  }

  bool begin_region(JDIMENSION& left, JDIMENSION& width, JDIMENSION top) {
    if (setjmp(failure.back) != 0) return false;
    if (width < info.output_width) jpeg_crop_scanline(&info, &left, &width);
    if (top > 0) (void)jpeg_skip_scanlines(&info, top);
    return true;
  }

  /// `reads_on`: to the end of the photo, for damage there.
  bool read_rows(uint8_t* const to, size_t stride, uint32_t height, bool reads_on) {
    if (setjmp(failure.back) != 0) return false;
    const JDIMENSION begin = info.output_scanline;
    const JDIMENSION end = begin + height;
    constexpr int kAtOnce = 16;
    JSAMPROW rows[kAtOnce];
    while (info.output_scanline < end) {
      const JDIMENSION done = info.output_scanline - begin;
      const JDIMENSION count = std::min<JDIMENSION>(kAtOnce, height - done);
      for (JDIMENSION i = 0; i < count; ++i) rows[i] = to + (done + i) * stride;
      (void)jpeg_read_scanlines(&info, rows, count);
    }
    if (reads_on && info.output_scanline < info.output_height) {
      // All but one: a skip to the very end would not look at the data.
      (void)jpeg_skip_scanlines(&info, info.output_height - info.output_scanline - 1);
      rows[0] = last_row.data();
      (void)jpeg_read_scanlines(&info, rows, 1);
    }
    if (reads_on) (void)jpeg_finish_decompress(&info);
    jpeg_abort_decompress(&info);
    return true;
  }

  bool read_coefficients() {
    if (!judge(false)) return false;
    if (setjmp(failure.back) != 0) return false;
    coefficients = jpeg_read_coefficients(&info);
    return true;
  }

  const int16_t* coefficient_row(uint32_t component, uint32_t row) {
    if (setjmp(failure.back) != 0) return nullptr;
    return *info.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&info),
                                         coefficients[component], row, 1, FALSE)[0];
  }

  [[noreturn]] void refuse() const {
    if (failure.code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
    if (is_unsupported(failure.code)) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("JPEG of a kind that is not decoded: {}", failure.message));
    }
    throw Error(ErrorKind::corrupt, fmt::format("damaged JPEG: {}", failure.message));
  }
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}
JpegDecoder::~JpegDecoder() = default;

Size JpegDecoder::open(Bytes data) {
  state_->data = data;
  state_->is_decoded = false;
  if (!state_->read_header()) state_->refuse();
  return {state_->info.image_height, state_->info.image_width};
}

bool JpegDecoder::read_coefficients() { return state_->read_coefficients(); }

const int16_t* JpegDecoder::coefficients(uint32_t component, uint32_t row) {
  return state_->coefficient_row(component, row);
}

void JpegDecoder::drop_coefficients() { jpeg_abort_decompress(&state_->info); }

PixelView JpegDecoder::decode(const Region& region, JpegDamage damage, PixelBuffer& buffer) {
  State& state = *state_;
  if (state.is_decoded && !state.read_header()) state.refuse();
  state.is_decoded = true;
  if (!has_jpeg_end(state.data, state.consumed())) {
    throw Error(ErrorKind::corrupt, "damaged JPEG: it ends too early");
  }
  if (!state.judge(damage == JpegDamage::pillows) || !state.start()) state.refuse();
  const uint32_t full = state.info.output_width;
  const Region wanted = state.smooths() ? Region{0, 0, state.info.output_height, full} : region;
  JDIMENSION left = wanted.left - std::min(wanted.left, kMargin);
  JDIMENSION width = std::min(wanted.left + wanted.width + kMargin, full) - left;
  if (!state.begin_region(left, width, wanted.top)) state.refuse();
  buffer.resize({wanted.height, width});
  state.last_row.resize(size_t{width} * 4);
  // Of several scans all were read to begin with.
  const bool reads_on =
      damage == JpegDamage::pillows ||
      (damage == JpegDamage::anywhere && jpeg_has_multiple_scans(&state.info) == FALSE);
  if (!state.read_rows(buffer.row(0), size_t{width} * 4, wanted.height, reads_on)) state.refuse();
  if (damage == JpegDamage::anywhere) refuse_overlooked_damage(state.data);
  if (state.info.out_color_space == JCS_CMYK) {
    for (uint32_t y = 0; y < wanted.height; ++y) convert_cmyk(buffer.row(y), width);
  }
  return buffer.view().part(
      {region.top - wanted.top, region.left - left, region.height, region.width});
}

}  // namespace stoker
