# SPDX-License-Identifier: Apache-2.0
"""Transforms in a Loader: each step is done, in its order, with numbers that belong to the sample alone."""

import io
from pathlib import Path

import numpy as np
import pytest
import stoker
from PIL import Image
from samples import write_files
from stoker import _core
from stoker.transforms import (
    CenterCrop,
    ColorJitter,
    CutMix,
    MixUp,
    Normalize,
    RandAugment,
    RandomChoice,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    ToDtype,
    TrivialAugmentWide,
)

COUNT = 30
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("transforms")
    files = {}
    for i in range(COUNT):
        rng = np.random.default_rng(i)
        pixels = np.kron(rng.integers(0, 256, (5, 6, 3)), np.ones((9, 9, 1))).astype("uint8")
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=95)
        files[f"{'abc'[i % 3]}/{i:03d}.jpg"] = buffer.getvalue()
    write_files(root / "photos", files)
    stoker.pack(root / "photos", root / "train", shard_size="20K")
    return root / "train"


def everything(dataset, transforms, batch_size=8, **words):
    """By sample: its picture and its label."""
    return {
        int(sample): (image.copy(), label.copy())
        for batch in stoker.Loader(dataset, batch_size, transforms, **words)
        for image, label, sample in zip(batch["image"], batch["label"], batch["sample"])
    }


@pytest.mark.parametrize("step", [
    ColorJitter(0.4, 0.4, 0.4, 0.1), RandAugment(), TrivialAugmentWide(), RandomVerticalFlip(), RandomGrayscale(0.5)
])  # fmt: skip
def test_augmentation_is_applied(dataset, step):
    plain = everything(dataset, [Resize((32, 40))])
    changed = everything(dataset, [Resize((32, 40)), step], seed=7)
    differ = 0
    for sample, (picture, label) in plain.items():
        expected = _core.apply_steps(picture, [step._step()], 7, 0, sample)
        assert np.array_equal(changed[sample][0], expected) and changed[sample][1] == label
        differ += not np.array_equal(expected, picture)
    assert differ > 5


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_dtype_normalize_and_layout(dataset, dtype, layout):
    plain = everything(dataset, [Resize((32, 40))])
    finished = everything(dataset, [Resize((32, 40)), ToDtype(dtype, scale=True), Normalize(MEAN, STD)], layout=layout)
    mean, std = np.float32(MEAN), np.float32(STD)
    for sample, (picture, _) in plain.items():
        expected = ((picture.astype("float32") / np.float32(255) - mean) / std).astype(dtype)
        if layout == "NCHW":
            expected = expected.transpose(2, 0, 1)
        assert finished[sample][0].dtype == dtype and finished[sample][0].shape == expected.shape
        assert np.allclose(finished[sample][0].astype("float32"), expected.astype("float32"), rtol=1e-6, atol=1e-3)


def test_uint8_may_lie_the_other_way(dataset):
    plain = everything(dataset, [Resize((32, 40))])
    turned = everything(dataset, [Resize((32, 40))], layout="NCHW")
    assert all(np.array_equal(turned[s][0].transpose(1, 2, 0), plain[s][0]) for s in plain)


def test_numpy_has_no_bfloat16(dataset):
    with pytest.raises(ValueError, match="output='torch'"):
        everything(dataset, [Resize((8, 8)), ToDtype("bfloat16", scale=True)])


def test_erasing(dataset):
    plain = everything(dataset, [Resize((32, 40)), ToDtype("float32", scale=True)])
    erased = everything(dataset, [Resize((32, 40)), ToDtype("float32", scale=True), RandomErasing(1, value=(5, 6, 7))])
    noisy = everything(dataset, [Resize((32, 40)), RandomErasing(1, value="random")])
    for sample, (picture, _) in plain.items():
        changed = (erased[sample][0] != picture).any(axis=2)
        assert 0.01 < changed.mean() < 0.4
        assert (erased[sample][0][changed] == (5, 6, 7)).all()
        rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
        assert changed[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert noisy[sample][0].dtype == np.uint8


FULL = [
    RandomResizedCrop(32), RandomHorizontalFlip(), ColorJitter(0.4, 0.4, 0.4, 0.1), RandAugment(), TrivialAugmentWide(),
    RandomVerticalFlip(), RandomHorizontalFlip(), ToDtype("float16", scale=True), Normalize(MEAN, STD), RandomErasing(0.5),
]  # fmt: skip


def test_same_numbers_for_any_number_of_threads_and_ranks(dataset):
    whole = everything(dataset, FULL, threads=1)
    other = everything(dataset, FULL, batch_size=3, threads=8)
    assert all(np.array_equal(whole[s][0], other[s][0]) for s in whole) and len(other) == COUNT
    for rank in range(3):
        part = everything(dataset, FULL, rank=rank, world_size=3)
        assert len(part) == 10 and all(np.array_equal(whole[s][0], part[s][0]) for s in part)
    assert not np.array_equal(whole[0][0], everything(dataset, FULL, seed=1)[0][0])


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("mix", [MixUp(), CutMix(), RandomChoice([MixUp(0.2), CutMix(0.5)])])
def test_mixing(dataset, mix, layout):
    recipe = [Resize((32, 40)), ToDtype("float32", scale=True)]
    plain = stoker.Loader(dataset, 8, recipe, seed=3, layout=layout)
    mixed = stoker.Loader(dataset, 8, [*recipe, mix], seed=3, layout=layout)
    for before, after in zip(plain, mixed):
        rows = len(before["sample"])
        assert after["label"].shape == (rows, 3) and after["label"].dtype == np.float32
        assert np.allclose(after["label"].sum(1), 1)
        other = np.roll(before["label"], 1)
        row = int(np.flatnonzero(other != before["label"])[0])
        part = after["label"][row, before["label"][row]]
        for i in range(rows):
            expected = np.zeros(3)
            expected[before["label"][i]] += part
            expected[other[i]] += 1 - part
            assert np.allclose(after["label"][i], expected, atol=1e-6)
        rolled = np.roll(before["image"], 1, axis=0)
        blended = np.allclose(after["image"], part * before["image"] + (1 - part) * rolled, atol=1e-5)
        taken = (after["image"] == before["image"]) | (after["image"] == rolled)
        assert blended or taken.all()
        if isinstance(mix, MixUp):
            assert blended
        if isinstance(mix, CutMix):
            channel = (after["image"] == before["image"]).all(axis=3 if layout == "NHWC" else 1)
            assert abs(channel.mean() - part) < 0.1


def test_order_of_transforms(dataset):
    for wrong, why in [
        ([ColorJitter(0.1), Resize((8, 8))], "comes too late"),
        ([Resize((8, 8)), Normalize(MEAN, STD)], "after ToDtype"),
        ([Resize((8, 8)), MixUp()], "after ToDtype"),
        ([Resize((8, 8)), ToDtype("float32"), ToDtype("float16")], "second one"),
        ([Resize((8, 8)), ToDtype("float32"), CenterCrop(4)], "comes too late"),
        ([Resize((8, 8)), CutMix(num_classes=2), CutMix(num_classes=3)], "differ"),
    ]:
        with pytest.raises(ValueError, match=why):
            stoker.Loader(dataset, 8, wrong)
    with pytest.raises(stoker.UnsupportedError, match="num_classes should be larger"):
        list(stoker.Loader(dataset, 8, [Resize((8, 8)), CutMix(num_classes=2)]))
    with pytest.raises(ValueError, match="layout"):
        stoker.Loader(dataset, 8, [Resize((8, 8))], layout="CHW")
    with pytest.raises(ValueError, match="should be of MixUp and CutMix"):
        RandomChoice([Resize((8, 8))])
