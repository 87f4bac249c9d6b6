# SPDX-License-Identifier: Apache-2.0
"""Makes a folder of class directories with small JPEG pictures: make_demo_data.py FOLDER [PICTURES]."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

CLASSES = ["dusk", "field", "harbour", "orchard", "quarry", "tundra"]
WIDTH, HEIGHT = 320, 240


def picture(rng, hue):
    """Sky, ground and a few soft shapes: enough texture for a JPEG to have a photo's size."""
    rows = np.linspace(0, 1, HEIGHT)[:, None, None]
    sky, ground = rng.integers(90, 255, 3) * hue, rng.integers(20, 160, 3) * hue
    image = Image.fromarray(np.broadcast_to(sky * (1 - rows) + ground * rows, (HEIGHT, WIDTH, 3)).clip(0, 255).astype("uint8"))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(4, 12))):
        x, y, size = rng.integers(0, WIDTH), rng.integers(0, HEIGHT), rng.integers(10, 90)
        colour = tuple(int(c) for c in rng.integers(0, 256, 3))
        draw.ellipse([int(x - size), int(y - size // 2), int(x + size), int(y + size // 2)], fill=colour)
    pixels = np.asarray(image.filter(ImageFilter.GaussianBlur(2))).astype("float32")
    return Image.fromarray((pixels + rng.normal(0, 6, pixels.shape)).clip(0, 255).astype("uint8"))


def main():
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300
    rng = np.random.default_rng(1)
    hues = {name: rng.uniform(0.6, 1.1, 3) for name in CLASSES}
    for name in CLASSES:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for i in range(count):
        name = CLASSES[int(rng.integers(len(CLASSES)))]
        picture(rng, hues[name]).save(folder / name / f"{name}_{i:04d}.jpg", quality=88)


if __name__ == "__main__":
    main()
