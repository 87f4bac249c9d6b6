# SPDX-License-Identifier: Apache-2.0
"""NVIDIA DALI over the files, on the CPU alone."""

import sys

from nvidia.dali import fn, pipeline_def
from rate import BATCH, SIZE, photos_of, print_rate

files, threads, epochs = photos_of(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


@pipeline_def(batch_size=BATCH, num_threads=threads, device_id=None, prefetch_queue_depth=2)
def pipeline():
    image, label = fn.readers.file(files=files, labels=[0] * len(files), random_shuffle=True)
    image = fn.decoders.image_random_crop(image, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3])
    image = fn.resize(image, device="cpu", size=[SIZE, SIZE])
    return fn.flip(image, device="cpu", horizontal=fn.random.coin_flip()), label


loader = pipeline()
loader.build()
print_rate(lambda: sum(len(loader.run()[0]) for _ in range(-(-len(files) // BATCH))), epochs)
