# SPDX-License-Identifier: Apache-2.0
"""stoker.Loader over a packed dataset: original bytes, every checksum compared."""

import sys

import stoker
from rate import BATCH, SIZE, print_rate
from stoker.transforms import RandomHorizontalFlip, RandomResizedCrop

dataset, threads, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
loader = stoker.Loader(dataset, BATCH, [RandomResizedCrop(SIZE), RandomHorizontalFlip()], threads=threads)
print_rate(lambda: sum(len(batch["image"]) for batch in loader), epochs)
