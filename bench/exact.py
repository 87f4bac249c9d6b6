# SPDX-License-Identifier: Apache-2.0
"""stoker.decode beside Pillow: how far any pixel of any crop is off. It should be 0.

    bench/exact.py [--crops 20] [--generated] [PHOTOS]

Of every photo in the folder PHOTOS, and of those that --generated makes (every sampling, baseline and progressive, with
restart markers, qualities 1 to 100, 1 x 1 to 5,000 x 5,000 pixels; needs cjpeg of libjpeg-turbo-progs): crops as they are
and resized with every filter, to 224 x 224 and to other sizes, some of them mirrored; without a row index, with one, and with
one every 3 MCUs, in turns. Always the same crops and sizes.
Exit status 1 where a pixel differs. Run with a Python that has the stoker package and Pillow.
"""

import argparse
import io
import math
import multiprocessing
import pathlib
import random
import subprocess
import sys

import numpy as np
import photos
import stoker
from PIL import Image

FILTERS = ["nearest", "box", "bilinear", "bicubic", "lanczos"]

# cjpeg's words for each way to store a photo.
SAMPLINGS = {
    "4:4:4": ["-sample", "1x1"],
    "4:2:2": ["-sample", "2x1"],
    "4:2:0": ["-sample", "2x2"],
    "4:4:0": ["-sample", "1x2"],
    "4:1:1": ["-sample", "4x1"],
    "4:1:0": ["-sample", "4x2"],
    "gray": ["-grayscale"],
    "rgb": ["-rgb"],
}
KINDS = {
    "baseline": [],
    "progressive": ["-progressive"],
    "restart each row": ["-restart", "1"],
    "restart each 3 blocks": ["-restart", "3B"],
    "progressive, restart": ["-progressive", "-restart", "1"],
    "arithmetic": ["-arithmetic"],
}
EDGES = [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64]


def generated() -> list[tuple[str, str, int, int, int]]:
    """(sampling, kind, quality, width, height): every sampling in every kind and size, and every quality."""
    found = []
    rng = random.Random(0)
    for number in range(12 * len(SAMPLINGS) * len(KINDS)):
        sampling = list(SAMPLINGS)[number % len(SAMPLINGS)]
        kind = list(KINDS)[number // len(SAMPLINGS) % len(KINDS)]
        if number % 3 == 0:
            width, height = rng.choice(EDGES), rng.choice(EDGES)
        else:
            width, height = (round(math.exp(rng.uniform(0, math.log(700)))) for _ in range(2))
        found.append((sampling, kind, 1 + number * 37 % 100, width, height))
    for sampling in SAMPLINGS:
        found += [
            (sampling, "baseline", 90, 3000, 3000),
            (sampling, "progressive", 75, 1, 3000),
            (sampling, "baseline", 75, 3000, 1),
        ]
    found += [("4:2:0", "progressive", 85, 3000, 3000), ("4:4:4", "restart each row", 85, 2999, 2993)]
    return [*found, ("4:2:0", "baseline", 85, 5000, 5000), ("4:4:4", "restart each 3 blocks", 70, 5000, 5000)]


def make(case: tuple[str, str, int, int, int]) -> bytes:
    sampling, kind, quality, width, height = case
    ppm = io.BytesIO()
    photos.picture(width, height, seed=quality).save(ppm, "PPM")
    command = ["cjpeg", "-quality", str(quality), *SAMPLINGS[sampling], *KINDS[kind]]
    return subprocess.run(command, input=ppm.getvalue(), capture_output=True, check=True).stdout


def crops(rng: random.Random, height: int, width: int, count: int) -> list[tuple[int, int, int, int]]:
    """The whole, single pixels, the edges, and any others up to `count`; top, left, height, width."""
    found = [
        (0, 0, height, width),
        (0, 0, 1, 1),
        (height - 1, width - 1, 1, 1),
        (rng.randrange(height), rng.randrange(width), 1, 1),
        (height - 1, 0, 1, width),
        (0, width - 1, height, 1),
        (height // 2, width // 2, height - height // 2, width - width // 2),
    ]
    while len(found) < count:
        top, left = rng.randrange(height), rng.randrange(width)
        found.append((top, left, rng.randint(1, height - top), rng.randint(1, width - left)))
    return found[:count]


def compare(work: tuple[str, object, int]) -> tuple[int, int, str]:
    """How many were compared, the largest difference, and where that was."""
    name, source, count = work
    data = source.read_bytes() if isinstance(source, pathlib.Path) else make(source)
    image = Image.open(io.BytesIO(data)).convert("RGB")
    rng = random.Random(name)
    indexes = [None, stoker.row_index(data), stoker.row_index(data, every=3)]
    compared, most, where = 0, 0, ""
    for number, (top, left, height, width) in enumerate(crops(rng, image.height, image.width, count)):
        part = image.crop((left, top, left + width, top + height))
        for resample in [None, *FILTERS]:
            size = None
            if resample:
                size = (224, 224) if number % 2 else (rng.randint(1, 400), rng.randint(1, 400))
            wanted = part.resize((size[1], size[0]), Image.Resampling[resample.upper()]) if size else part
            flip = rng.random() < 0.5
            if flip:
                wanted = wanted.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            found = stoker.decode(data, crop=(top, left, height, width), size=size, resample=resample or "bilinear", flip=flip,
                                  row_index=indexes[compared % 3])  # fmt: skip
            difference = int(np.abs(found.astype("int16") - np.asarray(wanted, "int16")).max())
            compared += 1
            if difference > most:
                most = difference
                where = f"{name}: crop {(top, left, height, width)}, size {size}, {resample}, flip {flip}: {difference}"
    return compared, most, where


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--crops", type=int, default=20, help="of each photo (20)")
    parser.add_argument("--generated", action="store_true", help="photos of every kind, made here")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("photos", type=pathlib.Path, nargs="?")
    options = parser.parse_args()
    if not options.generated and not options.photos:
        parser.error("a folder of photos, or --generated")
    work = []
    if options.photos:
        files = sorted(path for path in options.photos.rglob("*") if path.is_file())
        work += [(str(path.relative_to(options.photos)), path, options.crops) for path in files]
    if options.generated:
        work += [(f"generated {' '.join(map(str, case))}", case, options.crops) for case in generated()]
    with multiprocessing.Pool(options.processes) as pool:
        results = list(pool.imap_unordered(compare, work))
    for _, difference, where in sorted(results):
        if difference:
            print(where)
    different = sum(difference > 0 for _, difference, _ in results)
    most = max((difference for _, difference, _ in results), default=0)
    print(
        f"{len(work):,} photos, {sum(compared for compared, _, _ in results):,} comparisons: "
        f"largest difference {most}, in {different:,} photos"
    )
    return 1 if most or not work else 0


if __name__ == "__main__":
    sys.exit(main())
