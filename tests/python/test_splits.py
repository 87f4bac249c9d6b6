# SPDX-License-Identifier: Apache-2.0
"""Directories that hold several datasets, one per split: none is taken for part of another."""

import json
import pickle
import re
import shutil
import subprocess

import numpy as np
import pytest
import stoker
from every_format import open_quietly
from samples import image_folder, write_files
from stoker_program import program

TRAIN, TEST = 12, 5
FORMATS = ["tar", "tfrecord", "hdf5", "lmdb", "arrow", "feather", "npy"]


def write_split(where, name: str, count: int, to: str) -> list[str]:
    """Shards called NAME-… of `count` samples, without an index; returns their keys."""
    source = where / "sources" / name
    write_files(source, {f"{name}{i:02d}.cls": str(i).encode() for i in range(count)})
    packed = where / "packed" / name
    stoker.pack(source, packed, to=to, shard_size=2000 if to == "tar" else "1G")
    target = where / "data"
    target.mkdir(exist_ok=True)
    for path in packed.iterdir():
        if path.name.startswith(name):
            shutil.copy(path, target / path.name)
        elif path.name == "data.mdb":
            shutil.copy(path, target / f"{name}.lmdb")
    return [f"{name}{i:02d}" for i in range(count)]


@pytest.fixture(params=FORMATS)
def both(request, tmp_path):
    """Shards of two splits in one directory."""
    for name, count in (("train", TRAIN), ("test", TEST)):
        write_split(tmp_path, name, count, request.param)
    return tmp_path / "data"


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i:02d}" for i in range(count)]


def check(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run([program(), "check", *map(str, arguments)], capture_output=True, text=True, check=False, **options)


def test_open_asks_which(both):
    with pytest.raises(ValueError, match=r"holds 2 datasets, one per split") as asked:
        stoker.open(both)
    message = str(asked.value)
    assert f"{both}::train" in message and f"{both}::test" in message
    assert 'split="train"' in message and f"{both}::all" in message
    for command in (stoker.index, stoker.check, stoker.stage, stoker.Loader):
        with pytest.raises(ValueError, match="one per split"):
            command(both)
    with pytest.raises(ValueError, match="one per split"):
        stoker.pack(both, both.parent / "out")
    assert not (both / ".stoker").exists() and not (both.parent / "out").exists()


def test_one_of_them(both):
    train, test = open_quietly(f"{both}::train"), open_quietly(both, split="test")
    assert sorted(train.keys()) == names("train", TRAIN)
    assert sorted(test.keys()) == names("test", TEST)
    assert [train[key]["label"] for key in names("train", TRAIN)] == list(range(TRAIN))
    # Each has an index of its own, which is found again, in other processes too.
    assert train.index_directory != test.index_directory
    assert stoker.open(both, split="train").index_directory == train.index_directory
    assert sorted(pickle.loads(pickle.dumps(test)).keys()) == names("test", TEST)
    with pytest.raises(FileNotFoundError, match="no such split; there are"):
        stoker.open(both, split="val")
    with pytest.raises(ValueError, match="one per split"):
        stoker.open(both)


def test_all_of_them_on_purpose(both):
    everything = open_quietly(f"{both}::all")
    assert sorted(everything.keys()) == sorted(names("train", TRAIN) + names("test", TEST))
    assert len(stoker.open(both, split="all")) == TRAIN + TEST
    # An index of all of them, as earlier versions made it, does not make them one dataset.
    assert (both / ".stoker/manifest.json").exists()
    with pytest.raises(ValueError, match="one per split"):
        stoker.open(both)
    with pytest.raises(ValueError, match="one per split"):
        stoker.Loader(both)
    assert len(open_quietly(both, split="train")) == TRAIN


def test_every_command_takes_a_split(both, tmp_path):
    assert stoker.index(f"{both}::train", full=True).samples == TRAIN
    result = stoker.check(f"{both}::train")
    assert result.samples == TRAIN and result.good and result.checksums_compared
    assert stoker.check(f"{both}::test").samples == TEST
    assert stoker.pack(f"{both}::train", tmp_path / "out").samples == TRAIN
    assert stoker.check(tmp_path / "out", compare=f"{both}::train").comparison.equal
    with pytest.raises(ValueError, match="one per split"):
        stoker.check(tmp_path / "out", compare=both)
    (tmp_path / "place").mkdir()
    staged = stoker.stage(f"{both}::train", tmp_path / "place")
    assert staged.complete and staged.samples == TRAIN
    assert sorted(stoker.open(staged.path).keys()) == names("train", TRAIN)
    everything = stoker.stage(f"{both}::all", tmp_path / "place")
    assert everything.samples == TRAIN + TEST and len(open_quietly(everything.path)) == TRAIN + TEST


def test_loader_takes_a_split(both, tmp_path):
    labels = lambda loader: sorted(np.concatenate([batch["label"] for batch in loader]))  # noqa: E731
    assert labels(stoker.Loader(both, 4, split="train")) == list(range(TRAIN))
    assert labels(stoker.Loader([f"{both}::train", f"{both}::test"], 4)) == sorted([*range(TRAIN), *range(TEST)])
    (tmp_path / "place").mkdir()
    assert labels(stoker.Loader(both, 4, split="test", stage=tmp_path / "place")) == list(range(TEST))
    with pytest.raises(ValueError, match="for paths"):
        stoker.Loader(open_quietly(f"{both}::train"), split="train")


def test_check_lists_them(both):
    text = check("data", cwd=both.parent)
    assert text.returncode == 2 and "data: 2 datasets, one per split" in text.stdout
    for name in ("train", "test"):
        assert re.search(rf"^{name} +\d+ +[\d.]+ \w+ +stoker check data::{name}$", text.stdout, re.M), text.stdout
    document = json.loads(check(both, "--json").stdout)
    assert document["error"]["kind"] == "usage"
    for split in document["splits"]:
        files = [path for path in both.iterdir() if path.name.startswith(split["name"])]
        assert split["files"] == len(files) and split["bytes"] == sum(path.stat().st_size for path in files)
        assert split["path"] == f"{both}::{split['name']}"
        assert check(split["path"]).returncode == 0


def test_a_directory_of_one_split_is_that_dataset(tmp_path):
    write_split(tmp_path, "train", TRAIN, "tar")
    assert len(open_quietly(tmp_path / "data")) == TRAIN
    assert len(open_quietly(tmp_path / "data", split="train")) == TRAIN
    with pytest.raises(ValueError):
        stoker.open(tmp_path / "data", split="test")


def test_sub_directories(tmp_path):
    for name, count in (("train", 4), ("val", 2)):
        image_folder(tmp_path / "photos" / name, per_class=count)
    with pytest.raises(ValueError, match="one per split"):
        stoker.open(tmp_path / "photos")
    train = open_quietly(tmp_path / "photos", split="train")
    assert len(train) == 12 and list(train.classes) == ["cat", "dog", "eel"]
    assert len(open_quietly(f"{tmp_path}/photos/val")) == 6
    document = json.loads(check(tmp_path / "photos", "--json").stdout)
    assert [(split["name"], split["files"]) for split in document["splits"]] == [("train", 12), ("val", 6)]
    # On purpose: as torchvision would see it.
    assert list(open_quietly(tmp_path / "photos", split="all").classes) == ["train", "val"]
    with pytest.raises(ValueError, match="one per split"):
        stoker.open(tmp_path / "photos")


def test_a_list_says_what_belongs_together(tmp_path):
    for name in ("train", "val"):
        image_folder(tmp_path / "photos" / name, per_class=1)
    (tmp_path / "list.csv").write_text("path\ntrain/cat/cat_000.jpg\nval/dog/dog_000.jpg\n")
    assert len(open_quietly(tmp_path / "photos", list=tmp_path / "list.csv")) == 2


def test_classes_with_such_names_stay_classes(tmp_path):
    image_folder(tmp_path / "photos", per_class=2, classes=("bus", "car", "train"))
    assert list(open_quietly(tmp_path / "photos").classes) == ["bus", "car", "train"]
    image_folder(tmp_path / "places", per_class=2, classes=("test_tube", "train_station"))
    assert list(open_quietly(tmp_path / "places").classes) == ["test_tube", "train_station"]


@pytest.mark.parametrize("split", ["train=0.5,val=0.5", "a=0.5,b=0.5"])
def test_what_pack_split(tmp_path, split):
    image_folder(tmp_path / "photos", per_class=10)
    stoker.pack(tmp_path / "photos", tmp_path / "out", split=split)
    with pytest.raises(ValueError, match="holds 2 datasets"):
        stoker.open(tmp_path / "out")
    name = split.partition("=")[0]
    assert len(stoker.open(tmp_path / "out", split=name)) == len(stoker.open(tmp_path / "out" / name))


def test_shards_in_sub_directories(tmp_path):
    for name in ("train", "test"):
        write_split(tmp_path, name, 3, "hdf5")
        (tmp_path / "both" / name).mkdir(parents=True)
        for path in (tmp_path / "data").iterdir():
            path.rename(tmp_path / "both" / name / "data.h5")
    with pytest.raises(ValueError, match="one per split"):
        stoker.open(tmp_path / "both")
    assert sorted(open_quietly(tmp_path / "both", split="test").keys()) == names("test", 3)


def test_a_name_leads_to_no_other_place(tmp_path):
    for name in ("outside", "data/train", "data/test"):
        image_folder(tmp_path / name, per_class=1)
    for split in ("../outside", "..", ".stoker", "train/../../outside", str(tmp_path / "outside")):
        with pytest.raises((ValueError, FileNotFoundError)):
            stoker.open(tmp_path / "data", split=split)
    with pytest.raises(ValueError, match="split"):
        stoker.open(tmp_path / "data", split="")
