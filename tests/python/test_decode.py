# SPDX-License-Identifier: Apache-2.0
"""stoker.decode beside Pillow: the same pixels, for every way a photo can be stored, cropped and resized."""

import io
import random
import subprocess

import numpy as np
import pytest
import stoker
from PIL import Image

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
SAMPLINGS = {"4:4:4": "1x1", "4:2:2": "2x1", "4:2:0": "2x2", "4:4:0": "1x2", "4:1:1": "4x1", "4:1:0": "4x2"}


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    """Slopes, edges and noise: what filters and upsampling treat differently."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    channels = [x * 255 // max(1, width - 1), y * 255 // max(1, height - 1), (x // 7 + y // 5) % 2 * 255]
    pixels = np.stack(channels, axis=2).astype("int32") + rng.integers(-40, 40, (height, width, 3))
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def saved(image: Image.Image, form: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def with_cjpeg(image: Image.Image, *options: str) -> bytes:
    """By libjpeg-turbo's own program, which writes what Pillow cannot."""
    return subprocess.run(["cjpeg", *options], input=saved(image, "PPM"), capture_output=True, check=True).stdout


def expected(data: bytes, crop=None, size=None, resample="bilinear", flip=False) -> np.ndarray:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    if crop:
        top, left, height, width = crop
        image = image.crop((left, top, left + width, top + height))
    if size:
        image = image.resize((size[1], size[0]), FILTERS[resample])
    return np.asarray(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flip else image)


def compare(data: bytes, **options) -> None:
    found = stoker.decode(data, **options)
    wanted = expected(data, **options)
    assert found.dtype == np.uint8 and found.shape == wanted.shape
    if not np.array_equal(found, wanted):
        difference = np.abs(found.astype(int) - wanted.astype(int))
        where = np.argwhere(difference.max(axis=2) > 0)
        pytest.fail(f"{options}: {len(where)} pixels differ by up to {difference.max()}, the first at {where[0]}")


def random_crop(rng: random.Random, height: int, width: int) -> tuple[int, int, int, int]:
    top, left = rng.randrange(height), rng.randrange(width)
    return top, left, rng.randint(1, height - top), rng.randint(1, width - left)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("kind", ["baseline", "progressive", "restart"])
def test_every_sampling(sampling, kind):
    options = {"baseline": [], "progressive": ["-progressive"], "restart": ["-restart", "1"]}[kind]
    rng = random.Random(f"{sampling}{kind}")
    for width, height in [(1, 1), (2, 3), (15, 17), (16, 16), (33, 31), (130, 97), (257, 300)]:
        data = with_cjpeg(picture(width, height), "-sample", SAMPLINGS[sampling], *options)
        compare(data)
        for _ in range(12):
            compare(data, crop=random_crop(rng, height, width))
        for name in FILTERS:
            compare(data, crop=random_crop(rng, height, width), size=(24, 31), resample=name, flip=rng.random() < 0.5)


@pytest.mark.parametrize("quality", [30, 90, 100])
def test_training_crops(quality):
    rng = random.Random(quality)
    for width, height in [(500, 375), (375, 500), (640, 480), (224, 224), (90, 120)]:
        data = saved(picture(width, height), "JPEG", quality=quality, subsampling=rng.choice([0, 1, 2]))
        for _ in range(8):
            compare(data, crop=random_crop(rng, height, width), size=(224, 224), flip=rng.random() < 0.5)
        for name in FILTERS:
            compare(data, size=(256, 171), resample=name)


def test_large_photo():
    data = saved(picture(3000, 3000), "JPEG", quality=85)
    compare(data, crop=(1234, 567, 1700, 2400), size=(224, 224))
    compare(data, size=(1, 1), resample="lanczos")


@pytest.mark.parametrize("size", [(1, 1), (7, 1000), (1000, 7), (3, 2), (200, 200)])
def test_sizes(size):
    data = saved(picture(61, 43), "PNG")
    for name in FILTERS:
        compare(data, size=size, resample=name)
        compare(data, crop=(5, 7, 1, 1), size=size, resample=name)


def images_of_every_mode() -> dict[str, bytes]:
    image = picture(61, 43)
    rng = np.random.default_rng(0)
    gray16 = Image.fromarray(rng.integers(0, 65536, (43, 61), dtype="uint16"))
    gray16_dark = Image.fromarray(rng.integers(0, 400, (43, 61), dtype="uint16"))
    alpha = image.copy()
    alpha.putalpha(Image.fromarray(rng.integers(0, 256, (43, 61), dtype="uint8")))
    gray_alpha = alpha.convert("LA")
    palette = image.quantize(60)
    found = {
        "jpeg gray": saved(image.convert("L"), "JPEG"),
        "jpeg cmyk": saved(image.convert("CMYK"), "JPEG"),
        "jpeg rgb": with_cjpeg(image, "-rgb"),
        "jpeg arithmetic": with_cjpeg(image, "-arithmetic"),
        "png rgb": saved(image, "PNG"),
        "png rgba": saved(alpha, "PNG"),
        "png gray": saved(image.convert("L"), "PNG"),
        "png gray alpha": saved(gray_alpha, "PNG"),
        "png gray 16": saved(gray16, "PNG"),
        "png gray 16 dark": saved(gray16_dark, "PNG"),
        "png 1 bit": saved(image.convert("1"), "PNG"),
        "png palette": saved(palette, "PNG"),
        "png palette transparent": saved(palette, "PNG", transparency=3),
        "png palette 4 bits": saved(image.quantize(13), "PNG", bits=4),
        "png palette 2 bits": saved(image.quantize(4), "PNG", bits=2),
        "webp": saved(image, "WEBP", quality=80),
        "webp lossless": saved(image, "WEBP", lossless=True),
        "webp alpha": saved(alpha, "WEBP", lossless=True, exact=True),
        "webp moving": saved(image, "WEBP", save_all=True, append_images=[picture(61, 43, 1)]),
        "gif": saved(palette, "GIF"),
        "gif transparent": saved(palette, "GIF", transparency=5),
        "gif interlaced": saved(palette, "GIF", interlace=1),
        "gif moving": saved(palette, "GIF", save_all=True, append_images=[picture(61, 43, 1).quantize(60)]),
        "bmp": saved(image, "BMP"),
        "bmp gray": saved(image.convert("L"), "BMP"),
        "bmp palette": saved(palette, "BMP"),
        "bmp 1 bit": saved(image.convert("1"), "BMP"),
        "bmp 32": saved(alpha, "BMP"),
    }
    found["a png with another name"] = found["png rgb"]
    return found


@pytest.mark.parametrize("name", images_of_every_mode())
def test_every_mode(name):
    data = images_of_every_mode()[name]
    compare(data)
    compare(data, crop=(3, 5, 20, 40))
    compare(data, crop=(3, 5, 20, 40), size=(30, 21), flip=True)


def png_of_16_bit_colours(width: int = 9, height: int = 7) -> bytes:
    import struct
    import zlib

    rows = b"".join(b"\0" + random.Random(y).randbytes(6 * width) for y in range(height))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_sixteen_bits_of_colour():
    compare(png_of_16_bit_colours())


# --- What is wrong with a photo --------------------------------------------------------------------


def test_truncated_photo_is_an_error_whatever_part_is_wanted():
    for options in ({"quality": 90}, {"progressive": True}):
        data = saved(picture(200, 150), "JPEG", **options)
        for length in [*range(0, len(data) - 2, 97), len(data) - 2, len(data) - 1]:
            with pytest.raises((stoker.CorruptError, stoker.UnsupportedError)):
                stoker.decode(data[:length], crop=(0, 0, 8, 8))


def test_damaged_photo_is_an_error_or_what_pillow_makes_of_it():
    data = saved(picture(200, 150), "JPEG", quality=90, subsampling=0)
    begin = data.index(b"\xff\xda") + 20
    refused = same = 0
    for seed in range(60):
        damaged = bytearray(data)
        rng = random.Random(seed)
        for _ in range(20):
            damaged[rng.randrange(begin, len(data) - 2)] ^= 1 << rng.randrange(8)
        damaged = bytes(damaged)
        try:
            stoker.decode(damaged)
        except stoker.CorruptError:
            refused += 1
        try:
            wanted = expected(damaged)
        except OSError:
            with pytest.raises(stoker.CorruptError):
                stoker.decode(damaged, on_corrupt="like_pillow")
            continue
        assert np.array_equal(stoker.decode(damaged, on_corrupt="like_pillow"), wanted)
        same += 1
    assert refused >= 1 and same > 20  # libjpeg notices little of it: checksums are there for the rest


@pytest.mark.parametrize("form", ["PNG", "WEBP", "GIF", "BMP"])
def test_truncated_images(form):
    data = saved(picture(60, 40), form)
    for length in range(0, len(data) - 30, 61):
        with pytest.raises((stoker.CorruptError, stoker.UnsupportedError)):
            stoker.decode(data[:length])


def test_lying_dimensions():
    data = bytearray(saved(picture(200, 150), "JPEG", quality=90))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = b"\xff\xdc\xff\xdc"  # 65,500 x 65,500
    with pytest.raises(stoker.UnsupportedError, match="65500 x 65500"):
        stoker.decode(bytes(data))
    data[at : at + 4] = b"\x20\x00\x20\x00"  # 8,192 x 8,192: most of it is missing
    with pytest.raises(stoker.CorruptError):
        stoker.decode(bytes(data), size=(8, 8))
    data[at : at + 4] = b"\0\0\0\0"
    with pytest.raises(stoker.CorruptError):
        stoker.decode(bytes(data))


def test_wrong_use():
    data = saved(picture(20, 10), "PNG")
    for crop in [(0, 0, 11, 5), (0, 0, 0, 5), (10, 0, 1, 1), (2**32 - 1, 0, 2, 2)]:
        with pytest.raises(ValueError, match="crop"):
            stoker.decode(data, crop=crop)
    with pytest.raises(ValueError, match="size"):
        stoker.decode(data, size=(0, 5))
    with pytest.raises(ValueError, match="nearest, box, bilinear"):
        stoker.decode(data, resample="linear")
    with pytest.raises(ValueError, match="on_corrupt"):
        stoker.decode(data, on_corrupt="ignore")
    with pytest.raises(TypeError):
        stoker.decode("text")
    with pytest.raises(stoker.UnsupportedError, match="neither JPEG nor PNG"):
        stoker.decode(b"hello, this is no image")
    with pytest.raises(stoker.CorruptError, match="no bytes"):
        stoker.decode(b"")


def test_anything_with_bytes_is_taken():
    data = saved(picture(20, 10), "JPEG")
    for form in (bytearray(data), memoryview(data), np.frombuffer(data, "uint8")):
        assert np.array_equal(stoker.decode(form), expected(data))


def test_result_is_ours_to_change():
    found = stoker.decode(saved(picture(20, 10), "PNG"))
    found[:] = 7
    assert found.flags.writeable and found.flags.c_contiguous and (found == 7).all()
