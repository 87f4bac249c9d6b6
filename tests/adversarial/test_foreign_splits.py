# SPDX-License-Identifier: Apache-2.0
"""Datasets of others that consist of splits: never merged without being asked for."""

import shutil
from pathlib import Path

import pytest
from hostile import example, record, tar_of
from samples import image_folder
from stoker_program import ROOT


def records_of(prefix: str, count: int) -> bytes:
    return b"".join(record(example(text=f"{prefix}{i}".encode(), label=i)) for i in range(count))


def hub_parquet(root: Path) -> dict[str, str]:
    (root / "data").mkdir(parents=True)
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"):
        shutil.copy(ROOT / "tests/data/parquet/pages1.parquet", root / f"data/{name}.parquet")
    return {"train": "2", "test": "1"}


def hub_flat(root: Path) -> dict[str, str]:
    root.mkdir()
    for name in (
        "train-00000-of-00002-a1b2c3d4e5f60718",
        "train-00001-of-00002-a1b2c3d4e5f60718",
        "test-00000-of-00001-a1b2c3d4e5f60718",
    ):
        shutil.copy(ROOT / "tests/data/parquet/pages1.parquet", root / f"{name}.parquet")
    return {"train": "2", "test": "1"}


def tfds(root: Path) -> dict[str, str]:
    root.mkdir()
    for split, count in (("train", 2), ("test", 1)):
        for i in range(count):
            name = f"flowers-{split}.tfrecord-{i:05d}-of-{count:05d}"
            (root / name).write_bytes(records_of(f"{split}{i}-", 10))
    return {"train": "2", "test": "1"}


def tars(root: Path) -> dict[str, str]:
    root.mkdir()
    for name in ("train-000000", "train-000001", "test-000000"):
        (root / f"{name}.tar").write_bytes(tar_of(name, 10))
    return {"train": "2", "test": "1"}


def named_tars(root: Path) -> dict[str, str]:
    root.mkdir()
    for name in ("imagenet-train-000000", "imagenet-train-000001", "imagenet-val-000000"):
        (root / f"{name}.tar").write_bytes(tar_of(name, 10))
    return {"train": "2", "val": "1"}


def tars_in_directories(root: Path) -> dict[str, str]:
    for split, count in (("train", 2), ("test", 1)):
        (root / split).mkdir(parents=True)
        for i in range(count):
            (root / split / f"{i:05d}.tar").write_bytes(tar_of(f"{split}{i}", 10))
    return {"train": "2", "test": "1"}


def hdf5_in_directories(root: Path) -> dict[str, str]:
    for split in ("train", "test"):
        (root / split).mkdir(parents=True)
        shutil.copy(ROOT / "tests/data/hdf5/written.h5", root / split / "part0.h5")
    return {"train": "1", "test": "1"}


def records_in_directories(root: Path) -> dict[str, str]:
    for split, count in (("train", 2), ("validation", 1)):
        (root / split).mkdir(parents=True)
        for i in range(count):
            (root / split / f"part-{i:05d}.tfrecord").write_bytes(records_of(f"{split}{i}-", 10))
    return {"train": "2", "validation": "1"}


LAYOUTS = [
    hub_parquet,
    hub_flat,
    tfds,
    tars,
    named_tars,
    tars_in_directories,
    hdf5_in_directories,
    records_in_directories,
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_splits_are_not_merged(layout, tmp_path, opened, stoker_cli):
    """Without a choice: an error that names the splits. With one: its samples and no others."""
    data = tmp_path / "data"
    shares = layout(data)
    asked = opened(data)
    assert "error" in asked, f"opened as one dataset of {asked['samples']} samples"
    for split in shares:
        assert split in asked["error"]
    whole = {split: opened(f"{data}::{split}") for split in shares}
    for split, result in whole.items():
        assert "error" not in result, result
        assert opened(data, split=split)["samples"] == result["samples"]
    first, second = shares
    times = 1 if layout is hdf5_in_directories else 2
    assert whole[first]["samples"] == times * whole[second]["samples"] > 0
    checked = stoker_cli("check", data, status=None)
    for split in shares:
        assert split in checked.text


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_pack_and_index_do_not_merge_splits(layout, tmp_path, stoker_cli):
    data = tmp_path / "data"
    shares = layout(data)
    for line in (["pack", data, tmp_path / "packed"], ["index", data]):
        done = stoker_cli(*line, status=None)
        assert done.returncode != 0, f"{line[0]} took all splits as one dataset\n{done!r}"
        for split in shares:
            assert split in done.text
    first = next(iter(shares))
    stoker_cli("pack", f"{data}::{first}", tmp_path / "one")


def test_a_split_that_does_not_exist_is_an_error(tmp_path, opened):
    tars(tmp_path / "data")
    asked = opened(f"{tmp_path / 'data'}::vall")
    assert "error" in asked and "train" in asked["error"]


def test_one_split_alone_needs_no_choice(tmp_path, opened):
    data = tmp_path / "data"
    data.mkdir()
    for i in range(2):
        (data / f"train-{i:06d}.tar").write_bytes(tar_of(f"t{i}", 10))
    assert opened(data)["samples"] == 20


def test_shards_with_other_names_are_one_dataset(tmp_path, opened):
    """Names that merely contain such a word, and parts that are called otherwise, are no splits."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("trainspotting-000000", "trainspotting-000001", "contest-000000"):
        (data / f"{name}.tar").write_bytes(tar_of(name, 10))
    assert opened(data)["samples"] == 30


def test_a_class_called_train_stays_a_class(tmp_path, opened):
    image_folder(tmp_path / "data", per_class=3, classes=("bus", "car", "train"))
    assert opened(tmp_path / "data")["samples"] == 9
