# SPDX-License-Identifier: Apache-2.0
"""MNIST from its idx files, or digits drawn here where there are none."""

import gzip
import pathlib
import struct

import torch

# Seven segments: top, upper left, upper right, middle, lower left, lower right, bottom.
SEGMENTS = ["1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011"]
PLACES = [(4, 8, 2, 12), (4, 8, 10, 2), (4, 18, 10, 2), (13, 8, 2, 12), (14, 8, 10, 2), (14, 18, 10, 2), (23, 8, 2, 12)]


def read_idx(path: pathlib.Path) -> torch.Tensor:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    zero, kind, dimensions = struct.unpack(">HBB", data[:4])
    if zero != 0 or kind != 8:
        raise SystemExit(f"{path}: is no idx file of bytes")
    shape = struct.unpack(f">{dimensions}I", data[4 : 4 + 4 * dimensions])
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions :]), dtype=torch.uint8).reshape(shape)


def load(folder: str | None, count: int = 12_000) -> torch.utils.data.TensorDataset:
    """Pictures of 1 x 28 x 28 between 0 and 1, and what they show."""
    if folder is None:
        return torch.utils.data.TensorDataset(*draw(count))
    files = {path.name.split(".")[0]: path for path in sorted(pathlib.Path(folder).iterdir())}
    part = "train" if "train-images-idx3-ubyte" in files else "t10k"
    try:
        images = read_idx(files[f"{part}-images-idx3-ubyte"])
        labels = read_idx(files[f"{part}-labels-idx1-ubyte"])
    except KeyError as missing:
        raise SystemExit(f"{folder}: has no {missing.args[0]}") from None
    return torch.utils.data.TensorDataset(images.unsqueeze(1).float() / 255, labels.long())


def draw(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = torch.zeros(10, 28, 28)
    for digit, segments in enumerate(SEGMENTS):
        for lit, (top, left, height, width) in zip(segments, PLACES):
            if lit == "1":
                shapes[digit, top : top + height, left : left + width] = 1
    labels = torch.randint(0, 10, (count,), generator=generator)
    moves = torch.randint(-3, 4, (count, 2), generator=generator).tolist()
    images = torch.stack([shapes[label].roll(move, (0, 1)) for label, move in zip(labels.tolist(), moves)])
    noise = 0.3 * torch.rand(images.shape, generator=generator)
    return (0.7 * images + noise).unsqueeze(1), labels
