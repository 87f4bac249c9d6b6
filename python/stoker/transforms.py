# SPDX-License-Identifier: Apache-2.0
"""What a Loader does to a photo, by torchvision's names and with its meaning (transforms.v2, on Pillow's images).

    from stoker.transforms import Normalize, RandomHorizontalFlip, RandomResizedCrop, ToDtype
    transforms = [RandomResizedCrop(224), RandomHorizontalFlip(), ToDtype("float32", scale=True), Normalize(MEAN, STD)]

Crops, resizes and mirroring are done at once while a photo is decoded. A function that is none of these gets the picture
as an array (height, width, 3) and returns another; PerBatch(function) gets the whole batch, a dict of arrays. The order is
crops and resizes, colours, ToDtype, Normalize, RandomErasing, MixUp or CutMix, functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

from stoker._augmentations import (
    ColorJitter,
    CutMix,
    MixUp,
    Normalize,
    RandAugment,
    RandomErasing,
    RandomGrayscale,
    RandomVerticalFlip,
    ToDtype,
    TrivialAugmentWide,
    _check_probability,
    _finish_options,
)

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "CutMix",
    "MixUp",
    "Normalize",
    "PerBatch",
    "RandAugment",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToDtype",
    "TrivialAugmentWide",
]

Interpolation = Literal["nearest", "box", "bilinear", "bicubic", "lanczos"]
PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]


def _pair(size: int | Sequence[int], name: str = "size") -> tuple[int, int]:
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) == 1:
        pair = pair * 2
    if len(pair) != 2 or not all(isinstance(side, int) and side > 0 for side in pair):
        raise ValueError(f"{name} {size!r}: should be one number of pixels, or (height, width)")
    return pair


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of the photo, resized to `size` (one number: a square)."""

    size: int | tuple[int, int]
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        _pair(self.size)
        if not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise ValueError(f"scale {self.scale}: should be 0 < smallest <= largest <= 1")
        if not 0 < self.ratio[0] <= self.ratio[1]:
            raise ValueError(f"ratio {self.ratio}: should be 0 < smallest <= largest")

    def _geometry(self) -> dict[str, Any]:
        return {
            "kind": "random_resized_crop",
            "size": _pair(self.size),
            "scale": tuple(map(float, self.scale)),
            "ratio": tuple(map(float, self.ratio)),
            "resample": self.interpolation,
        }


@dataclass(frozen=True)
class Resize:
    """The photo resized: (height, width) whatever its shape; one number: so much for its shorter side.

    max_size: of the longer side, where the shorter one is given.
    """

    size: int | tuple[int, int]
    interpolation: Interpolation = "bilinear"
    max_size: int | None = None

    def __post_init__(self) -> None:
        _pair(self.size)
        if self.max_size is not None and not (isinstance(self.size, int) and self.max_size > self.size):
            raise ValueError(f"max_size {self.max_size}: should be larger than size, which should be one number")

    def _geometry(self) -> dict[str, Any]:
        if isinstance(self.size, int) or len(self.size) == 1:
            return {
                "kind": "resize_shorter",
                "size": (_pair(self.size)[0], self.max_size or 0),
                "resample": self.interpolation,
            }
        return {"kind": "resize", "size": _pair(self.size), "resample": self.interpolation}


@dataclass(frozen=True)
class CenterCrop:
    """The middle of it; black around it where it is smaller."""

    size: int | tuple[int, int]

    def __post_init__(self) -> None:
        _pair(self.size)

    def _geometry(self) -> dict[str, Any]:
        return {"kind": "center_crop", "size": _pair(self.size)}


@dataclass(frozen=True)
class RandomCrop:
    """A random part of the size given.

    padding: pixels put around it before: on all sides, (left and right, top and bottom), or (left, top, right, bottom).
    pad_if_needed: also where it is smaller than `size`, instead of an error.
    fill: colour of the padding, one number or three.
    padding_mode: "constant", or what lies at the border: "edge", "reflect", "symmetric".
    """

    size: int | tuple[int, int]
    padding: int | Sequence[int] | None = None
    pad_if_needed: bool = False
    fill: int | tuple[int, int, int] = 0
    padding_mode: PaddingMode = "constant"

    def __post_init__(self) -> None:
        _pair(self.size)
        self._sides()
        if self.padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ValueError(f"padding_mode {self.padding_mode!r}: should be 'constant', 'edge', 'reflect' or 'symmetric'")
        if not all(isinstance(part, int) and 0 <= part <= 255 for part in self._colour()) or len(self._colour()) != 3:
            raise ValueError(f"fill {self.fill!r}: should be one number or three, 0 to 255")

    def _colour(self) -> tuple[int, ...]:
        return (self.fill,) * 3 if isinstance(self.fill, int) else tuple(self.fill)

    def _sides(self) -> tuple[int, ...]:
        given = 0 if self.padding is None else self.padding
        sides = (given,) if isinstance(given, int) else tuple(given)
        if len(sides) not in (1, 2, 4) or not all(isinstance(side, int) and side >= 0 for side in sides):
            raise ValueError(f"padding {self.padding!r}: should be 1, 2 or 4 numbers of pixels")
        return {1: sides * 4, 2: sides * 2, 4: sides}[len(sides)]

    def _geometry(self) -> dict[str, Any]:
        return {
            "kind": "random_crop",
            "size": _pair(self.size),
            "padding": self._sides(),
            "pad_if_needed": self.pad_if_needed,
            "fill": self._colour(),
            "padding_mode": self.padding_mode,
        }


@dataclass(frozen=True)
class RandomHorizontalFlip:
    """Mirrors with probability `p`."""

    p: float = 0.5

    def __post_init__(self) -> None:
        _check_probability(self.p)

    def _geometry(self) -> dict[str, Any]:
        return {"kind": "horizontal_flip", "p": float(self.p)}

    def _step(self) -> dict[str, object]:
        return {"step": "RandomHorizontalFlip", "p": float(self.p)}


@dataclass(frozen=True)
class PerBatch:
    """A function that gets a batch (dict of arrays) and returns it changed, or another."""

    function: Callable[[dict[str, Any]], dict[str, Any]]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"{self.function!r}: should be a function")


@dataclass(frozen=True)
class RandomChoice:
    """One of several MixUp and CutMix, by chance, for each batch."""

    transforms: Sequence[MixUp | CutMix]

    def __post_init__(self) -> None:
        if not self.transforms or not all(isinstance(one, (MixUp, CutMix)) for one in self.transforms):
            raise ValueError(f"RandomChoice of {self.transforms!r}: should be of MixUp and CutMix")


Geometry = Union[RandomResizedCrop, Resize, CenterCrop, RandomCrop, RandomHorizontalFlip]
Augmentation = Union[ColorJitter, RandAugment, TrivialAugmentWide, RandomHorizontalFlip, RandomVerticalFlip, RandomGrayscale]
Transform = Union[
    Geometry, Augmentation, ToDtype, Normalize, RandomErasing, MixUp, CutMix, RandomChoice, PerBatch, Callable[[Any], Any]
]

# In the order in which they may follow each other; what is of one kind may come several times, but for two of them.
_KINDS: list[tuple[str, tuple[type, ...]]] = [
    ("geometry", (RandomResizedCrop, Resize, CenterCrop, RandomCrop, RandomHorizontalFlip)),
    (
        "augmentation",
        (ColorJitter, RandAugment, TrivialAugmentWide, RandomHorizontalFlip, RandomVerticalFlip, RandomGrayscale),
    ),
    ("dtype", (ToDtype,)),
    ("normalize", (Normalize,)),
    ("erasing", (RandomErasing,)),
    ("mixing", (MixUp, CutMix, RandomChoice)),
]
_ORDER = "crops and resizes, then colours, then ToDtype, Normalize, RandomErasing, MixUp or CutMix, then Python functions"


@dataclass
class _Recipe:
    """What is done natively, and what is left for Python."""

    picture: dict[str, Any] | None
    functions: list[Callable[..., Any]]
    bfloat16: bool


def _sorted(transforms: Sequence[Transform]) -> tuple[dict[str, list[Any]], list[Callable[..., Any]]]:
    """Transforms by their kind. Throws where they cannot be done in this order."""
    kinds: dict[str, list[Any]] = {name: [] for name, _ in _KINDS}
    functions: list[Callable[..., Any]] = []
    at = 0
    for transform in transforms:
        found = next((i for i, (_, types) in enumerate(_KINDS) if i >= at and isinstance(transform, types)), None)
        known = any(isinstance(transform, types) for _, types in _KINDS)
        if not known and not isinstance(transform, PerBatch) and not callable(transform):
            raise ValueError(f"transforms: {transform!r} is neither of stoker.transforms nor a function")
        if not known:
            functions.append(transform)  # type: ignore[arg-type]
            continue
        if functions:
            raise ValueError(f"transforms: {transform!r} after a Python function: put it before, or into the function")
        if found is None:
            raise ValueError(f"transforms: {transform!r} comes too late; the order is: {_ORDER}")
        at = found
        kinds[_KINDS[at][0]].append(transform)
    for name in ("dtype", "normalize"):
        if len(kinds[name]) > 1:
            raise ValueError(f"transforms: {kinds[name][1]!r} is the second one of its kind")
    return kinds, functions


def _recipe(transforms: Sequence[Transform], layout: Literal["NHWC", "NCHW"], classes: int) -> _Recipe:
    """`classes`: of the dataset, 0 where they are not known."""
    kinds, functions = _sorted(transforms)
    if layout not in ("NHWC", "NCHW"):
        raise ValueError(f"layout {layout!r}: should be 'NHWC' or 'NCHW'")
    native = any(kinds.values()) or any(not isinstance(one, PerBatch) for one in functions)
    if not native:
        if layout != "NHWC":
            raise ValueError("layout: is for pictures, which need transforms")
        return _Recipe(None, functions, False)
    to_dtype = kinds["dtype"][0] if kinds["dtype"] else None
    mixing = [list(one.transforms) if isinstance(one, RandomChoice) else [one] for one in kinds["mixing"]]
    picture = {
        "geometry": [one._geometry() for one in kinds["geometry"]],
        "augmentation": [one._step() for one in kinds["augmentation"]],
        "finish": _finish_options(to_dtype, kinds["normalize"][0] if kinds["normalize"] else None, layout),
        "erasing": [one._step() for one in kinds["erasing"]],
        "mixing": [[one._step() for one in choices] for choices in mixing],
        "classes": _classes([one for choices in mixing for one in choices], to_dtype, classes),
    }
    return _Recipe(picture, functions, to_dtype is not None and to_dtype.dtype == "bfloat16")


def _classes(mixing: list[MixUp | CutMix], to_dtype: ToDtype | None, known: int) -> int:
    if any(isinstance(one, MixUp) for one in mixing) and (to_dtype is None or to_dtype.dtype == "uint8"):
        raise ValueError("MixUp: should come after ToDtype('float32', scale=True); uint8 cannot be mixed")
    given = {one.num_classes for one in mixing if one.num_classes is not None}
    if len(given) > 1:
        raise ValueError(f"num_classes: {sorted(given)} differ")
    if mixing and not given and not known:
        raise ValueError("num_classes: the dataset does not say how many there are")
    return given.pop() if given else known
