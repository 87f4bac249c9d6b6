# SPDX-License-Identifier: Apache-2.0
"""A small network on MNIST, as many write it.

    python examples/mnist/train.py [--data FOLDER_WITH_IDX_FILES] [--epochs 2]
"""

import argparse

import torch
from digits import load
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="folder with train-images-idx3-ubyte(.gz) and its labels; without it, digits are drawn")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = torch.utils.data.DataLoader(load(options.data), options.batch, shuffle=True, num_workers=options.workers)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(options.epochs):
        right = count = 0
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            answers = model(images)
            loss = nn.functional.cross_entropy(answers, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (answers.argmax(1) == labels).sum().item()
            count += len(labels)
        print(f"epoch {epoch + 1}: {100 * right / count:.1f} % right", flush=True)


if __name__ == "__main__":
    main()
