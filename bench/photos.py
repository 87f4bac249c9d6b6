# SPDX-License-Identifier: Apache-2.0
"""Photos for the benchmarks where none are at hand: noise of several octaves, which compresses as real ones do."""

import concurrent.futures
import io
import pathlib
import random

import numpy as np
from PIL import Image


def picture(width: int, height: int, seed: int) -> Image.Image:
    """Large soft shapes with finer ones in them down to single pixels; brightness varies more than colour."""
    rng = np.random.default_rng(seed)
    pixels = np.full((height, width, 3), 128, "float32")
    cells = 3
    while cells <= max(width, height):
        rough = rng.uniform(-1, 1, (cells * height // max(width, height) + 2, cells * width // max(width, height) + 2, 4))
        layers = [
            np.asarray(Image.fromarray(rough[:, :, i].astype("float32")).resize((width, height), Image.Resampling.BICUBIC))
            for i in range(4)
        ]
        strength = 95 * (3 / cells) ** 0.45
        pixels += strength * (layers[3][:, :, None] + 0.4 * np.stack(layers[:3], axis=2))
        cells *= 2
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def photo(seed: int) -> bytes:
    """About 500 x 375 pixels and 100 kB; four in five with halved chroma, as cameras and web sites store them."""
    rng = random.Random(seed)
    long, short = rng.choice([(500, 375), (500, 333), (500, 400), (640, 480), (480, 360)])
    width, height = (long, short) if rng.random() < 0.75 else (short, long)
    buffer = io.BytesIO()
    subsampling = "4:4:4" if rng.random() < 0.2 else "4:2:0"
    picture(width, height, seed).save(buffer, "JPEG", quality=rng.randint(90, 96), subsampling=subsampling)
    return buffer.getvalue()


def make_photos(folder: pathlib.Path, count: int) -> None:
    """The same ones every time, in ten classes."""
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for number, data in enumerate(pool.map(photo, range(count), chunksize=8)):
            path = folder / f"class{number % 10}" / f"{number:06}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
