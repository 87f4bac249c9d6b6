# SPDX-License-Identifier: Apache-2.0
"""A script for torchvision's ImageFolder with one line changed: the import.

    python examples/pytorch_image_folder.py DATASET [--epochs N] [--workers N]

DATASET may then be any that Stoker reads, such as the few large files that `stoker pack` made of the folder. Transforms,
DataLoader and workers stay what they were; for speed, see pytorch_loop.py.
"""

import argparse

import torch
from stoker.torch import ImageFolder  # instead of torchvision.datasets
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()

    torch.manual_seed(0)
    transform = transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])
    data = ImageFolder(options.dataset, transform)
    loader = DataLoader(data, options.batch_size, shuffle=True, num_workers=options.workers)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, len(data.classes))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(options.epochs):
        total = 0.0
        for image, label in loader:
            loss = nn.functional.cross_entropy(model(image), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(label)
        print(f"epoch {epoch}, {len(data)} samples: loss {total / len(data):.6f}", flush=True)


if __name__ == "__main__":
    main()
