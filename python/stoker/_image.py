# SPDX-License-Identifier: Apache-2.0
"""Pixels: the same as Pillow's, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from stoker import _core

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def decode(
    data: bytes | bytearray | memoryview,
    crop: tuple[int, int, int, int] | None = None,
    size: tuple[int, int] | None = None,
    resample: Literal["nearest", "box", "bilinear", "bicubic", "lanczos"] = "bilinear",
    *,
    flip: bool = False,
    on_corrupt: Literal["raise", "like_pillow"] = "raise",
    row_index: bytes | bytearray | memoryview | None = None,
) -> npt.NDArray[np.uint8]:
    """Decode a JPEG, PNG, WebP, GIF or BMP: a uint8 array of (height, width, 3), red, green, blue.

    crop: (top, left, height, width) of the image; of a JPEG only what it needs is decoded.
    size: (height, width) to which the crop is resized, as Pillow does it; None: not resized.
    resample: Pillow's filter for that.
    flip: mirror the result left to right.
    on_corrupt: a truncated or damaged image raises CorruptError; "like_pillow" gives the pixels that
        Pillow gives for it, where it gives any.
    row_index: what row_index() made of this JPEG: a crop is then found without decoding all before it. That of
        another photo is not used.

    The pixels are those of Image.open(data).convert("RGB").crop(…).resize(size, resample).
    """
    if on_corrupt not in ("raise", "like_pillow"):
        raise ValueError(f"on_corrupt {on_corrupt!r}: should be 'raise' or 'like_pillow'")
    pixels: npt.NDArray[np.uint8] = _core.decode(
        data, crop, size, resample, flip, on_corrupt == "like_pillow", row_index
    )
    return pixels


def row_index(data: bytes | bytearray | memoryview, every: int = 0) -> bytes | None:
    """Find where the rows of a JPEG begin, so that decode() can begin in the midst of it. None where it can have no index.

    every: so many blocks (MCUs) apart within a row; 0: as many as half a percent of the photo's bytes holds.

    pack() and index(full=True) do this for all photos of a dataset, and the Loader uses it.
    """
    if not 0 <= every <= 65535:
        raise ValueError(f"every {every}: should be a whole number from 0 to 65535")
    return _core.row_index(data, every)
