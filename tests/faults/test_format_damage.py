# SPDX-License-Identifier: Apache-2.0
"""Every format with a full index: whatever is done to its files is named, and nothing wrong is read for right."""

import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import stoker
from reading import same_value
from samples import multi_file_samples, npy, shards_of, write_files

DATA = Path(__file__).parents[1] / "data"
PACKED = ["tar", "tfrecord", "hdf5", "lmdb", "arrow", "feather", "npy"]
GOLDEN = [
    "arrow/file.arrow",
    "arrow/stream.arrow",
    "hdf5/golden.h5",
    "lmdb/golden.lmdb",
    "npy",
    "parquet/pages1.parquet",
]


def pack(root: Path, form: str) -> Path:
    if form in ("hdf5", "npy"):  # these want the same of every sample
        arrays = {f"s{i}.x.npy": npy(np.arange(i, i + 40, dtype="f4").reshape(5, 8)) for i in range(8)}
        write_files(root / "source", {**arrays, **{f"s{i}.cls": b"%d" % i for i in range(8)}})
    else:
        multi_file_samples(root / "source", 4)
    stoker.pack(root / "source", root / "data", to=form)
    return root / "data"


def put(root: Path, name: str) -> Path:
    """A golden file where it can be damaged, with an index of full depth."""
    copy = shutil.copytree if (DATA / name).is_dir() else shutil.copy
    (root / "data").mkdir()
    path = Path(copy(DATA / name, root / "data" / Path(name).name))
    stoker.index(path, full=True)
    return path


@pytest.fixture(params=PACKED + GOLDEN)
def dataset(request, tmp_path) -> Path:
    return pack(tmp_path, request.param) if request.param in PACKED else put(tmp_path, request.param)


def files_of(dataset: Path) -> list[Path]:
    described = ("state.json", "dataset_info.json")  # for `datasets`; written anew by pack
    return [path for path in shards_of(dataset) if path.name not in described] if dataset.is_dir() else [dataset]


def read(path: Path) -> dict:
    """(key, field) -> value, of all that can be read; every failure names the file."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = stoker.open(path)
        for number, key in enumerate(opened.keys()):
            try:
                found.update({(key, name): value for name, value in opened[number].items()})
            except (stoker.CorruptError, OSError) as error:
                assert any(file.name in str(error) for file in files_of(path)), error
    return found


def assert_named(dataset: Path, file: Path, good: dict, what: str) -> None:
    report = stoker.check(dataset)
    assert not report.good and file.name in {Path(fault.shard).name for fault in report.faults}, what
    for (key, name), value in read(dataset).items():
        assert same_value(value, good[key, name]), f"{what}: {key}, {name} is wrong"


def changes(contents: bytes, seed: int):
    """Ways to damage a file: flipped bits, lengths that changed places, absurd ones, the end cut off."""
    rng = random.Random(seed)
    for _ in range(12):
        at = rng.randrange(len(contents))
        changed = bytearray(contents)
        changed[at] ^= 1 << rng.randrange(8)
        yield f"bit at {at}", changed
        at, other = rng.randrange(len(contents) // 8) * 8, rng.randrange(len(contents) // 8) * 8
        changed = bytearray(contents)
        changed[at : at + 8], changed[other : other + 8] = contents[other : other + 8], contents[at : at + 8]
        yield f"swapped {at} and {other}", changed
        changed = bytearray(contents)
        changed[at : at + 8] = b"\xff" * 8
        yield f"absurd at {at}", changed
        yield f"cut at {at}", contents[:at]


def test_damage_is_named_and_not_believed(dataset):
    good = read(dataset)
    assert good and stoker.check(dataset).good
    for number, file in enumerate(files_of(dataset)):
        contents = file.read_bytes()
        for what, changed in changes(contents, number):
            if changed != contents:
                file.write_bytes(changed)
                assert_named(dataset, file, good, f"{file.name}, {what}")
        file.write_bytes(contents)
    assert stoker.check(dataset).good
