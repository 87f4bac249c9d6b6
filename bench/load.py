# SPDX-License-Identifier: Apache-2.0
"""stoker.Loader beside PyTorch's DataLoader: RandomResizedCrop(224) and flip, interleaved, in one run.

    bench/load.py [--rounds 5] [--epochs 4] [--threads N] --peer-python PYTHON_WITH_TORCH_AND_TORCHVISION PHOTOS

PHOTOS is a folder of images, which stays as it is: stoker loads a pack of it (original bytes, checksums compared), the
peers load the files. Each contender is a process of its own; its first epoch warms up and does not count. "kernel" is
stoker.decode of the same crops in a loop on one thread, without a loader. Run with a Python that has the stoker package.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

STOKER = """
import sys, time, warnings
import stoker
from stoker.transforms import RandomResizedCrop, RandomHorizontalFlip
dataset, threads, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
loader = stoker.Loader(dataset, 64, [RandomResizedCrop(224), RandomHorizontalFlip()], threads=threads)
for _ in loader: pass
count, begin = 0, time.perf_counter()
for _ in range(epochs):
    for batch in loader: count += len(batch["image"])
print(count / (time.perf_counter() - begin))
"""

KERNEL = """
import math, random, sys, time
import stoker
dataset, threads, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ds = stoker.open(dataset)
photos = [sample["image"] for sample in ds]
sizes = [stoker.decode(photo).shape[:2] for photo in photos]
rng = random.Random(0)
def crop(height, width):
    for _ in range(10):
        area = height * width * rng.uniform(0.08, 1)
        ratio = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return rng.randint(0, height - h), rng.randint(0, width - w), h, w
    return 0, 0, height, width
work = [(photo, crop(*size), rng.random() < 0.5) for _ in range(epochs) for photo, size in zip(photos, sizes)]
begin = time.perf_counter()
for photo, region, flip in work: stoker.decode(photo, crop=region, size=(224, 224), flip=flip)
print(len(work) / (time.perf_counter() - begin))
"""

TORCH = """
import pathlib, sys, time
import torch
from PIL import Image
from torchvision import transforms
from torchvision.io import decode_image, read_file, ImageReadMode
folder, threads, epochs, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.set_num_threads(1)
files = sorted(str(path) for path in pathlib.Path(folder).rglob("*") if path.is_file())
crop = transforms.Compose([transforms.RandomResizedCrop(224, antialias=True), transforms.RandomHorizontalFlip()])
class Photos(torch.utils.data.Dataset):
    def __len__(self): return len(files)
    def __getitem__(self, i):
        if how == "pillow":
            return transforms.functional.pil_to_tensor(crop(Image.open(files[i]).convert("RGB")))
        return crop(decode_image(read_file(files[i]), ImageReadMode.RGB))
loader = torch.utils.data.DataLoader(Photos(), 64, shuffle=True, num_workers=threads, persistent_workers=True)
for _ in loader: pass
count, begin = 0, time.perf_counter()
for _ in range(epochs):
    for batch in loader: count += len(batch)
print(count / (time.perf_counter() - begin))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("photos", type=pathlib.Path)
    options = parser.parse_args()
    words = [str(options.threads), str(options.epochs)]
    with tempfile.TemporaryDirectory() as scratch:
        import stoker

        stoker.pack(options.photos, pathlib.Path(scratch) / "packed")
        packed = str(pathlib.Path(scratch) / "packed")
        photos = str(options.photos)
        own, peer = [sys.executable, "-c"], [options.peer_python, "-c"]
        contenders = {
            f"stoker, {options.threads} threads": [*own, STOKER, packed, *words],
            "stoker, 1 thread": [*own, STOKER, packed, "1", words[1]],
            "kernel, 1 thread": [*own, KERNEL, packed, *words],
            "torchvision decode_image": [*peer, TORCH, photos, *words, "torchvision"],
            "PyTorch + Pillow": [*peer, TORCH, photos, *words, "pillow"],
        }
        rates = {name: [] for name in contenders}
        for _ in range(options.rounds):
            for name, command in contenders.items():
                finished = subprocess.run(command, capture_output=True, text=True)
                if finished.returncode != 0:
                    sys.exit(f"{name} failed:\n{finished.stderr}")
                rates[name].append(float(finished.stdout))
    ours = rates[next(iter(rates))]
    print(f"{options.threads} threads or workers, median of {options.rounds} interleaved rounds")
    for name, values in rates.items():
        ratios = sorted(mine / theirs for mine, theirs in zip(ours, values))
        print(f"  {name:26} {statistics.median(values):7.0f} images/s   the first line is {statistics.median(ratios):.2f}x "
              f"({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
