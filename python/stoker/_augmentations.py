# SPDX-License-Identifier: Apache-2.0
"""What comes behind the crop, with the names, arguments and defaults of torchvision.transforms.v2.

Each says what it is to the C++ side by _step(): a dict of its name and arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

WarpInterpolation = Literal["nearest", "bilinear", "bicubic"]
Factor = Union[float, Sequence[float], None]
Fill = Union[float, Sequence[float], None]

_DTYPES = ("uint8", "float32", "float16", "bfloat16")


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"p {p}: should be between 0 and 1")


def _range(name: str, given: Factor, middle: float, least: float, most: float) -> tuple[float, float] | None:
    """What a factor is drawn from: one number is how far it goes to both sides. None: it is not drawn."""
    if given is None:
        return None
    if isinstance(given, (int, float)):
        if not given >= 0:
            raise ValueError(f"{name} {given}: should be 0 or more, or (smallest, largest)")
        low, high = middle - given, middle + given
        low = max(low, 0.0) if least == 0 else low
    elif len(given) == 2:
        low, high = float(given[0]), float(given[1])
    else:
        raise ValueError(f"{name} {given}: should be one number, or (smallest, largest)")
    if not least <= low <= high <= most:
        raise ValueError(f"{name} {given}: should be {least} <= smallest <= largest <= {most}")
    return None if low == high == middle else (float(low), float(high))


def _pair(name: str, given: Sequence[float], least: float, most: float) -> tuple[float, float]:
    if len(given) != 2 or not least <= given[0] <= given[1] <= most:
        raise ValueError(f"{name} {given}: should be {least} <= smallest <= largest <= {most}")
    return float(given[0]), float(given[1])


def _by_channel(name: str, given: float | Sequence[float]) -> tuple[float, float, float]:
    values = (given,) * 3 if isinstance(given, (int, float)) else tuple(given)
    if len(values) == 1:
        values *= 3
    if len(values) != 3:
        raise ValueError(f"{name} {given}: should be one number, or three, one for each channel")
    return float(values[0]), float(values[1]), float(values[2])


def _warp(interpolation: str, fill: Fill) -> dict[str, object]:
    if interpolation not in ("nearest", "bilinear", "bicubic"):
        raise ValueError(f"interpolation {interpolation!r}: should be 'nearest', 'bilinear' or 'bicubic'")
    colour = tuple(int(value) for value in _by_channel("fill", 0 if fill is None else fill))
    if not all(0 <= value <= 255 for value in colour):
        raise ValueError(f"fill {fill}: should be between 0 and 255")
    return {"interpolation": interpolation, "fill": colour}


def _check_whole(name: str, given: int, least: int) -> None:
    if not isinstance(given, int) or given < least:
        raise ValueError(f"{name} {given}: should be a whole number, {least} or more")


@dataclass(frozen=True)
class ColorJitter:
    """Changes brightness, contrast, saturation and hue by random factors, in random order."""

    brightness: Factor = None
    contrast: Factor = None
    saturation: Factor = None
    hue: Factor = None

    def __post_init__(self) -> None:
        self._step()

    def _step(self) -> dict[str, object]:
        infinity = float("inf")
        return {
            "step": "ColorJitter",
            "brightness": _range("brightness", self.brightness, 1, 0, infinity),
            "contrast": _range("contrast", self.contrast, 1, 0, infinity),
            "saturation": _range("saturation", self.saturation, 1, 0, infinity),
            "hue": _range("hue", self.hue, 0, -0.5, 0.5),
        }


@dataclass(frozen=True)
class RandAugment:
    """`num_ops` random operations, all of the same magnitude."""

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: WarpInterpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        _check_whole("num_ops", self.num_ops, 0)
        _check_whole("num_magnitude_bins", self.num_magnitude_bins, 2)
        if not isinstance(self.magnitude, int) or not 0 <= self.magnitude < self.num_magnitude_bins:
            raise ValueError(f"magnitude {self.magnitude}: should be 0 to {self.num_magnitude_bins - 1}")
        self._step()

    def _step(self) -> dict[str, object]:
        return {
            "step": "RandAugment",
            "num_ops": self.num_ops,
            "magnitude": self.magnitude,
            "num_magnitude_bins": self.num_magnitude_bins,
            **_warp(self.interpolation, self.fill),
        }


@dataclass(frozen=True)
class TrivialAugmentWide:
    """One random operation of random magnitude."""

    num_magnitude_bins: int = 31
    interpolation: WarpInterpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        _check_whole("num_magnitude_bins", self.num_magnitude_bins, 2)
        self._step()

    def _step(self) -> dict[str, object]:
        return {
            "step": "TrivialAugmentWide",
            "num_magnitude_bins": self.num_magnitude_bins,
            **_warp(self.interpolation, self.fill),
        }


@dataclass(frozen=True)
class RandomVerticalFlip:
    """Turns upside down, mirrored, with probability `p`."""

    p: float = 0.5

    def __post_init__(self) -> None:
        _check_probability(self.p)

    def _step(self) -> dict[str, object]:
        return {"step": "RandomVerticalFlip", "p": float(self.p)}


@dataclass(frozen=True)
class RandomGrayscale:
    """Makes all three channels gray with probability `p`."""

    p: float = 0.1

    def __post_init__(self) -> None:
        _check_probability(self.p)

    def _step(self) -> dict[str, object]:
        return {"step": "RandomGrayscale", "p": float(self.p)}


@dataclass(frozen=True)
class ToDtype:
    """Hands pictures out as uint8, float32, float16 or bfloat16; `scale` divides floats by 255.

    dtype: a name, or a dtype of NumPy or torch.
    """

    dtype: Any
    scale: bool = False

    def __post_init__(self) -> None:
        given = self.dtype
        name = getattr(given, "name", None) or getattr(given, "__name__", None) or str(given)
        name = str(name).rpartition(".")[2]
        if name not in _DTYPES:
            raise ValueError(f"dtype {given}: should be one of {', '.join(_DTYPES)}")
        object.__setattr__(self, "dtype", name)

    def _step(self) -> dict[str, object]:
        return {"step": "ToDtype", "dtype": self.dtype, "scale": bool(self.scale)}


@dataclass(frozen=True)
class Normalize:
    """Subtracts `mean` and divides by `std`, both by channel. Of floats: behind ToDtype."""

    mean: Sequence[float]
    std: Sequence[float]

    def __post_init__(self) -> None:
        _by_channel("mean", self.mean)
        if not all(_by_channel("std", self.std)):
            raise ValueError(f"std {self.std}: should not be 0")

    def _step(self) -> dict[str, object]:
        return {"step": "Normalize", "mean": _by_channel("mean", self.mean), "std": _by_channel("std", self.std)}


@dataclass(frozen=True)
class RandomErasing:
    """Overwrites a random rectangle with probability `p`.

    scale: its part of the picture's area; ratio: of its height to its width.
    value: one number, one for each channel, or "random": normal noise.
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float | Sequence[float] | str = 0.0

    def __post_init__(self) -> None:
        _check_probability(self.p)
        if isinstance(self.value, str) and self.value != "random":
            raise ValueError(f"value {self.value!r}: should be 'random', a number, or one for each channel")
        if not self.ratio[0] > 0:
            raise ValueError(f"ratio {self.ratio}: should be 0 < smallest <= largest")
        self._step()

    def _step(self) -> dict[str, object]:
        return {
            "step": "RandomErasing",
            "p": float(self.p),
            "scale": _pair("scale", self.scale, 0, 1),
            "ratio": _pair("ratio", self.ratio, 0, float("inf")),
            "value": None if isinstance(self.value, str) else _by_channel("value", self.value),
        }


@dataclass(frozen=True)
class MixUp:
    """Mixes each picture of a batch, and its label, with the one before it, by a part from Beta(alpha, alpha).

    Labels become a row of `num_classes` numbers each.
    """

    alpha: float = 1.0
    num_classes: int | None = None

    def __post_init__(self) -> None:
        _check_mixing(self.alpha, self.num_classes)

    def _step(self) -> dict[str, object]:
        return {"step": "MixUp", "alpha": float(self.alpha), "num_classes": self.num_classes}


@dataclass(frozen=True)
class CutMix:
    """Gives each picture of a batch a rectangle of the one before it, and mixes their labels accordingly.

    Labels become a row of `num_classes` numbers each.
    """

    alpha: float = 1.0
    num_classes: int | None = None

    def __post_init__(self) -> None:
        _check_mixing(self.alpha, self.num_classes)

    def _step(self) -> dict[str, object]:
        return {"step": "CutMix", "alpha": float(self.alpha), "num_classes": self.num_classes}


def _check_mixing(alpha: float, num_classes: int | None) -> None:
    if not 0 < alpha < float("inf"):
        raise ValueError(f"alpha {alpha}: should be above 0")
    if num_classes is not None:
        _check_whole("num_classes", num_classes, 1)


def _finish_options(
    to_dtype: ToDtype | None, normalize: Normalize | None, layout: Literal["NHWC", "NCHW"] = "NHWC"
) -> dict[str, object]:
    """How a picture is handed out."""
    dtype = to_dtype or ToDtype("uint8")
    if normalize is not None and dtype.dtype == "uint8":
        raise ValueError("Normalize: should come after ToDtype('float32', scale=True); uint8 cannot be normalized")
    given = normalize._step() if normalize else {}
    return {
        "dtype": dtype.dtype,
        "scale": dtype.scale,
        "layout": layout,
        "mean": given.get("mean"),
        "std": given.get("std"),
    }
