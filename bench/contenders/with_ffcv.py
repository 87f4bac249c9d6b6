# SPDX-License-Identifier: Apache-2.0
"""FFCV over its own file. `with_ffcv.py write PHOTOS FILE` makes that: as in FFCV's ImageNet recipe every photo is
encoded anew, at quality 90 with sides of at most 512, so that it decodes fewer and other pixels than the rest do."""

import sys

from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from PIL import Image
from rate import BATCH, SIZE, photos_of, print_rate


class Photos:
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return Image.open(self.files[i]).convert("RGB"), 0


def write(folder, file):
    image = RGBImageField(write_mode="jpg", max_resolution=512, jpeg_quality=90)
    DatasetWriter(file, {"image": image, "label": IntField()}, num_workers=2).from_indexed_dataset(Photos(photos_of(folder)))


def load(file, threads, epochs):
    loader = Loader(
        file,
        batch_size=BATCH,
        num_workers=threads,
        order=OrderOption.RANDOM,
        os_cache=True,
        drop_last=False,
        pipelines={
            "image": [RandomResizedCropRGBImageDecoder((SIZE, SIZE)), RandomHorizontalFlip(), ToTensor(), ToTorchImage()],
            "label": [IntDecoder(), ToTensor()],
        },
    )
    print_rate(lambda: sum(len(batch[0]) for batch in loader), epochs)


if sys.argv[1] == "write":
    write(sys.argv[2], sys.argv[3])
else:
    load(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
