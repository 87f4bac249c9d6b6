# SPDX-License-Identifier: Apache-2.0
"""Runs scripts that compare our augmentations with torchvision's, where torchvision is."""

import json
from pathlib import Path

import stoker

PACKAGES = str(Path(stoker.__file__).parents[1])

# The package is put behind torch's own, so that NumPy and Pillow are the peer's. Each script prints how much it compared.
PRELUDE = """
import collections, json, math, sys
sys.path.append(sys.argv[1])
import numpy as np
import torch
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F
from stoker import _augmentations as ours
from stoker import _core

arguments = sys.argv[2:]
rng = np.random.default_rng(7)
SIZES = [(1, 1), (1, 9), (8, 1), (2, 2), (3, 3), (5, 4), (16, 16), (17, 33), (64, 64), (101, 57), (224, 224)]


def pictures():
    for height, width in SIZES:
        y, x = np.mgrid[0:height, 0:width]
        yield rng.integers(0, 256, (height, width, 3), dtype="uint8")
        yield np.stack([x * 255 // max(1, width - 1), y * 255 // max(1, height - 1), (7 * x + 3 * y) % 256], 2).astype("uint8")
        yield np.full((height, width, 3), rng.integers(0, 256, 3), dtype="uint8")
        yield rng.integers(90, 130, (height, width, 3), dtype="uint8")


def require_equal(found, wanted, what):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, (what, found.shape, wanted.shape)
    if not np.array_equal(found, wanted):
        where = np.argwhere(found != wanted)
        raise AssertionError(f"{what}: {len(where)} of {found.size} differ, the first at {where[0]}")


def affine(image, translate=(0, 0), shear=(0.0, 0.0), **options):
    return F.affine(image, angle=0.0, translate=list(translate), scale=1.0, shear=list(shear), **options)


def slope(magnitude):
    return math.degrees(math.atan(magnitude))


# What RandAugment does with a PIL image, as its source says it.
THEIRS = {
    "brightness": lambda image, amount: F.adjust_brightness(image, amount),
    "contrast": lambda image, amount: F.adjust_contrast(image, amount),
    "saturation": lambda image, amount: F.adjust_saturation(image, amount),
    "sharpness": lambda image, amount: F.adjust_sharpness(image, amount),
    "hue": lambda image, amount: F.adjust_hue(image, amount),
    "posterize": lambda image, amount: F.posterize(image, int(amount)),
    "solarize": lambda image, amount: F.solarize(image, amount),
    "autocontrast": lambda image, amount: F.autocontrast(image),
    "equalize": lambda image, amount: F.equalize(image),
    "invert": lambda image, amount: F.invert(image),
    "grayscale": lambda image, amount: F.rgb_to_grayscale(image, 3),
    "horizontal_flip": lambda image, amount: F.horizontal_flip(image),
    "vertical_flip": lambda image, amount: F.vertical_flip(image),
    "shear_x": lambda image, amount, **o: affine(image, shear=(slope(amount), 0.0), center=[0, 0], **o),
    "shear_y": lambda image, amount, **o: affine(image, shear=(0.0, slope(amount)), center=[0, 0], **o),
    "translate_x": lambda image, amount, **o: affine(image, translate=(int(amount), 0), **o),
    "translate_y": lambda image, amount, **o: affine(image, translate=(0, int(amount)), **o),
    "rotate": lambda image, amount, **o: F.rotate(image, angle=amount, **o),
}


def compare(name, picture, amount, **options):
    wanted = THEIRS[name](Image.fromarray(picture), amount, **options)
    found = _core.apply_operation(picture, name, {"amount": amount, **options})
    require_equal(found, wanted, f"{name} {amount} {options} of {picture.shape}")
    return 1


def random_amounts(low, high, *others):
    return [float(value) for value in rng.uniform(low, high, 6)] + [float(value) for value in others]


def require_likely(counts, expected, what):
    # chi-square; beyond 4.5 deviations (Wilson and Hilferty) nobody would call it chance
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    freedom = len(counts) - 1
    statistic = ((counts - expected) ** 2 / expected).sum() / freedom
    deviations = (statistic ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    assert deviations < 4.5, (what, deviations, counts, expected)


def require_same_distribution(mine, others, what):
    # Kolmogorov and Smirnov: a chance of one in ten thousand
    mine, others = np.sort(mine), np.sort(others)
    both = np.concatenate([mine, others])
    apart = np.abs(np.searchsorted(mine, both, "right") / len(mine) - np.searchsorted(others, both, "right") / len(others))
    limit = 2.2 * math.sqrt((len(mine) + len(others)) / (len(mine) * len(others)))
    assert apart.max() < limit, (what, apart.max(), limit)
"""


def run(peer, body, *arguments) -> int:
    """What the script printed: the number of comparisons it made, all of them good."""
    return json.loads(peer(PRELUDE + body, PACKAGES, *[str(argument) for argument in arguments]))
