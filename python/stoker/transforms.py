# SPDX-License-Identifier: Apache-2.0
"""What a Loader does to a photo, by torchvision's names. The first ones; more will come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Interpolation = Literal["nearest", "box", "bilinear", "bicubic", "lanczos"]


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of the photo, resized to `size` (one number: a square)."""

    size: int | tuple[int, int]
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        if not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise ValueError(f"scale {self.scale}: should be 0 < smallest <= largest <= 1")
        if not 0 < self.ratio[0] <= self.ratio[1]:
            raise ValueError(f"ratio {self.ratio}: should be 0 < smallest <= largest")


@dataclass(frozen=True)
class Resize:
    """The whole photo, resized to (height, width) whatever its shape."""

    size: tuple[int, int]
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        if isinstance(self.size, int):
            raise ValueError("size: should be (height, width); resizing the shorter side alone is not there yet")


@dataclass(frozen=True)
class RandomHorizontalFlip:
    """Mirrors with probability `p`."""

    p: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"p {self.p}: should be between 0 and 1")

    def _step(self) -> dict[str, object]:
        return {"step": "RandomHorizontalFlip", "p": float(self.p)}


Transform = RandomResizedCrop | Resize | RandomHorizontalFlip


def _recipe(transforms: list[Transform]) -> dict[str, object]:
    """One crop or resize, then perhaps a flip: what is done in one step while a photo is decoded."""
    recipe: dict[str, object] = {
        "smallest_area": 0.08, "largest_area": 1.0, "smallest_ratio": 0.75, "largest_ratio": 4 / 3, "flip": 0.0
    }  # fmt: skip
    steps = list(transforms)
    first = steps.pop(0) if steps else None
    if not isinstance(first, (RandomResizedCrop, Resize)):
        raise ValueError("transforms: should begin with RandomResizedCrop(size) or Resize((height, width))")
    recipe["height"], recipe["width"] = _pair(first.size)
    recipe["resample"] = first.interpolation
    recipe["random"] = isinstance(first, RandomResizedCrop)
    if isinstance(first, RandomResizedCrop):
        recipe["smallest_area"], recipe["largest_area"] = first.scale
        recipe["smallest_ratio"], recipe["largest_ratio"] = first.ratio
    if steps and isinstance(flip := steps[0], RandomHorizontalFlip):
        recipe["flip"] = float(flip.p)
        steps.pop(0)
    if steps:
        raise ValueError(f"transforms: {steps[0]!r} is not known here")
    return recipe
