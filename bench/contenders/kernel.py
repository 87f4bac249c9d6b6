# SPDX-License-Identifier: Apache-2.0
"""stoker.decode of the same kind of crops in a loop on one thread, out of memory: what a loader can reach at most."""

import math
import random
import sys

import stoker
from rate import SIZE, print_rate

dataset, epochs = sys.argv[1], int(sys.argv[3])
photos = [sample["image"] for sample in stoker.open(dataset)]
sizes = [stoker.decode(photo).shape[:2] for photo in photos]
indexes = [stoker.row_index(photo) for photo in photos]
rng = random.Random(0)


def crop(height, width):
    for _ in range(10):
        area = height * width * rng.uniform(0.08, 1)
        ratio = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return rng.randint(0, height - h), rng.randint(0, width - w), h, w
    return 0, 0, height, width


# Chosen before the clock runs: an epoch to warm up, and those that count.
work = [
    [(photo, index, crop(*size), rng.random() < 0.5) for photo, index, size in zip(photos, indexes, sizes)]
    for _ in range(epochs + 1)
]


def epoch():
    for photo, index, region, flip in work.pop():
        stoker.decode(photo, crop=region, size=(SIZE, SIZE), flip=flip, row_index=index)
    return len(photos)


print_rate(epoch, epochs)
