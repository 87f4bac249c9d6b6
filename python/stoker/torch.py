# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
# (torch need not be there where stoker's types are checked)
"""For PyTorch. Needs torch and Pillow, which the rest of stoker does not.

    from stoker.torch import ImageFolder          # instead of torchvision.datasets
    data = ImageFolder("train", transform)        # any dataset that stoker reads, any transform you have
    loader = torch.utils.data.DataLoader(data, batch_size=256, shuffle=True, num_workers=8)
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import torch.utils.data
from PIL import Image

import stoker
from stoker._commands import Path


class ImageFolder(torch.utils.data.Dataset[tuple[Any, Any]]):
    """What torchvision.datasets.ImageFolder is, for a dataset of any format: (image, label) by number.

    Images come as Pillow's, so that every existing transform works. May be used in any number of DataLoader workers,
    forked or spawned. `classes`, `class_to_idx` and `targets` are torchvision's.

    image, label: the fields, where they have other names.
    """

    def __init__(
        self,
        root: Path,
        transform: Callable[[Image.Image], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        *,
        image: str = "image",
        label: str = "label",
    ) -> None:
        self._dataset = stoker.open(root)
        for option, field in (("image", image), ("label", label)):
            if field not in self._dataset.fields:
                raise ValueError(
                    f"{self._dataset.path}: its samples have no field {field!r}, only: {', '.join(self._dataset.fields)}; "
                    f"choose one with {option}="
                )
        self._image, self._label = image, label
        self.root = self._dataset.path
        self.transform = transform
        self.target_transform = target_transform
        self.targets: list[int] = [int(label) for label in self._dataset.column(label)]
        self.classes: list[str] = list(self._dataset.classes) or [str(i) for i in range(max(self.targets, default=-1) + 1)]
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        sample = self._dataset[index]
        image: Any = Image.open(io.BytesIO(sample[self._image])).convert("RGB")
        label: Any = sample[self._label]
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label
