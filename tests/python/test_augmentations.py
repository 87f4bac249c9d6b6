# SPDX-License-Identifier: Apache-2.0
"""The augmentations' arguments: torchvision's, and what is said where they make no sense."""

import dataclasses

import numpy as np
import pytest
from stoker import _augmentations as augmentations
from stoker import _core
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
)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: ColorJitter(brightness=-1), "brightness -1"),
        (lambda: ColorJitter(contrast=(2, 1)), "contrast"),
        (lambda: ColorJitter(saturation=(0, 1, 2)), "saturation"),
        (lambda: ColorJitter(hue=0.6), "hue 0.6"),
        (lambda: ColorJitter(brightness=float("nan")), "brightness nan"),
        (lambda: RandAugment(num_ops=-1), "num_ops -1"),
        (lambda: RandAugment(magnitude=31), "magnitude 31: should be 0 to 30"),
        (lambda: RandAugment(num_magnitude_bins=1), "num_magnitude_bins 1"),
        (lambda: RandAugment(interpolation="lanczos"), "interpolation 'lanczos'"),
        (lambda: TrivialAugmentWide(fill=(1, 2)), "fill"),
        (lambda: TrivialAugmentWide(fill=300), "fill 300"),
        (lambda: RandomVerticalFlip(1.5), "p 1.5"),
        (lambda: RandomGrayscale(-0.1), "p -0.1"),
        (lambda: RandomErasing(scale=(0.5, 0.1)), "scale"),
        (lambda: RandomErasing(scale=(0.5, 1.1)), "scale"),
        (lambda: RandomErasing(ratio=(0, 1)), "ratio"),
        (lambda: RandomErasing(value="noise"), "value 'noise'"),
        (lambda: RandomErasing(value=(1, 2)), "value"),
        (lambda: Normalize((0.5, 0.5, 0.5), (1, 0, 1)), "std"),
        (lambda: Normalize((0.5, 0.5), (1, 1, 1)), "mean"),
        (lambda: ToDtype("int32"), "dtype int32"),
        (lambda: MixUp(alpha=0), "alpha 0"),
        (lambda: CutMix(num_classes=0), "num_classes 0"),
        (lambda: augmentations._finish_options(None, Normalize((0, 0, 0), (1, 1, 1))), "ToDtype"),
    ],
)
def test_what_makes_no_sense(make, named):
    with pytest.raises(ValueError, match=named.replace("(", r"\(")):
        make()


def test_dtypes_by_any_name():
    for given in ["float32", np.float32, np.dtype("float32")]:
        assert ToDtype(given).dtype == "float32" and not ToDtype(given).scale
    assert ToDtype(np.float16, scale=True)._step() == {"step": "ToDtype", "dtype": "float16", "scale": True}


def test_they_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RandomGrayscale().p = 1
    assert ColorJitter(0.4) == ColorJitter(0.4) and ColorJitter(0.4) != ColorJitter(0.5)


def test_seed_epoch_and_sample_decide_the_pixels():
    picture = np.random.default_rng(1).integers(0, 256, (20, 30, 3), dtype="uint8")
    before = picture.copy()
    steps = [RandAugment(3)._step(), ColorJitter(0.4, 0.4, 0.4, 0.1)._step(), RandomVerticalFlip()._step()]
    found = [
        _core.apply_steps(picture, steps, *numbers)
        for numbers in [(1, 2, 3), (1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4)]
    ]
    assert np.array_equal(picture, before)
    assert np.array_equal(found[0], found[1])
    assert len({each.tobytes() for each in found}) == 4


def test_core_refuses_what_makes_no_sense():
    picture = np.zeros((4, 4, 3), dtype="uint8")
    form = {"rows": 1, "height": 4, "width": 4, "dtype": "uint8", "layout": "NHWC"}
    for call, named in [
        (lambda: _core.apply_operation(picture, "blur", {}), "blur"),
        (lambda: _core.apply_operation(picture, "hue", {"amount": 0.7}), "hue 0.7"),
        (lambda: _core.apply_operation(picture, "posterize", {"amount": 0.0}), "posterize 0"),
        (lambda: _core.apply_operation(picture, "brightness", {"amount": float("nan")}), "brightness nan"),
        (lambda: _core.apply_steps(picture, [{"step": "Blur"}], 0, 0, 0), "Blur"),
        (lambda: _core.mix_up(picture.reshape(-1), form, 0.5), "uint8 cannot be mixed"),
        (lambda: _core.cut_mix(picture.reshape(-1), form, (0, 0, 5, 5)), "region"),
        (lambda: _core.erase(picture.reshape(-1), form, (0, 3, 1, 2), None, 0), "region"),
    ]:
        with pytest.raises(ValueError, match=named):
            call()
