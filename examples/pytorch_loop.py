# SPDX-License-Identifier: Apache-2.0
"""A plain PyTorch training loop that may be stopped at any moment and goes on exactly there.

    python examples/pytorch_loop.py DATASET [--epochs N] [--checkpoint FILE]

DATASET is a folder of class directories, or what `stoker pack` made of one. Send the process SIGTERM, as Slurm does
before it takes a node away, and start it again: every step is the one that it would have been.
"""

import argparse
import os

import stoker
import torch
from stoker.transforms import RandomHorizontalFlip, RandomResizedCrop
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("dataset")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--checkpoint", default="checkpoint.pt")
options = parser.parse_args()

torch.manual_seed(0)
data = stoker.open(options.dataset)
loader = stoker.Loader(data, options.batch_size, [RandomResizedCrop(32), RandomHorizontalFlip()], output="torch")
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, len(data.classes))
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
parts = {"model": model, "optimizer": optimizer, "loader": loader}


def save():
    torch.save({name: part.state_dict() for name, part in parts.items()}, f"{options.checkpoint}.new")
    os.replace(f"{options.checkpoint}.new", options.checkpoint)


if os.path.exists(options.checkpoint):
    saved = torch.load(options.checkpoint)
    for name, part in parts.items():
        part.load_state_dict(saved[name])

loader.save_on_signal()
try:
    for epoch in range(loader.state_dict()["epoch"], options.epochs):
        for batch in loader:
            image = batch["image"].permute(0, 3, 1, 2).float() / 127.5 - 1  # uint8, (rows, height, width, channels)
            loss = nn.functional.cross_entropy(model(image), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch}, {loader.state_dict()['position']} of {len(data)} samples: loss {loss.item():.6f}", flush=True)
        save()
except stoker.Preempted:
    save()
    raise
print(loader.verdict())
