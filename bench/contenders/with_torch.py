# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over the files; the fourth word says who decodes: pillow or torchvision."""

import sys

import torch
from PIL import Image
from rate import BATCH, SIZE, photos_of, print_rate
from torchvision import transforms
from torchvision.io import ImageReadMode, decode_image, read_file

files, threads, epochs, how = photos_of(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.set_num_threads(1)
crop = transforms.Compose([transforms.RandomResizedCrop(SIZE, antialias=True), transforms.RandomHorizontalFlip()])


class Photos(torch.utils.data.Dataset):
    def __len__(self):
        return len(files)

    def __getitem__(self, i):
        if how == "pillow":
            return transforms.functional.pil_to_tensor(crop(Image.open(files[i]).convert("RGB")))
        return crop(decode_image(read_file(files[i]), ImageReadMode.RGB))


loader = torch.utils.data.DataLoader(Photos(), BATCH, shuffle=True, num_workers=threads, persistent_workers=True)
print_rate(lambda: sum(len(batch) for batch in loader), epochs)
