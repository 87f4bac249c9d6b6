# SPDX-License-Identifier: Apache-2.0
"""stoker.Loader over datasets that are empty, smaller than a batch, vanish, or change while they are loaded: what is
delivered is right, and what ends it says which file is missing or has changed."""

import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import stoker
from PIL import Image
from samples import write_files
from stoker.transforms import Resize

RECIPE = [Resize((8, 8))]
COUNT = 120


def photo(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    buffer = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype="uint8")).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The same keys twice, as folders and packed to about ten shards: other photos in `other`."""
    root = tmp_path_factory.mktemp("made")
    for name, first in (("photos", 0), ("other", 1000)):
        write_files(root / name / "source", {f"a/{i:03d}.jpg": photo(first + i) for i in range(COUNT)})
        stoker.pack(root / name / "source", root / name / "packed", shard_size="25K")
        stoker.index(root / name / "source")
    return root


@pytest.fixture(params=["packed", "folder"])
def kind(request) -> str:
    return {"packed": "packed", "folder": "source"}[request.param]


@pytest.fixture
def dataset(made, kind, tmp_path) -> Path:
    """A copy to destroy."""
    shutil.copytree(made / "photos" / kind, tmp_path / "train")
    if kind == "source":
        stoker.index(tmp_path / "train")
    return tmp_path / "train"


def load_and(change, dataset: Path, on_error: str) -> tuple[int, str, list]:
    """Loads an epoch, in whose beginning change() is called: rows that came, the error that ended it, bad samples.

    Every row is what the sample was before."""
    before = [stoker.decode(sample["image"], size=(8, 8)) for sample in stoker.open(dataset)]
    loader = stoker.Loader(dataset, 2, RECIPE, threads=1, on_error=on_error)
    rows, error = 0, ""
    batches = iter(loader)
    next(batches)
    change()
    try:
        for batch in batches:
            rows += len(batch["image"])
            for image, sample in zip(batch["image"], batch["sample"]):
                assert np.array_equal(image, before[int(sample)])
    except (OSError, ValueError) as raised:
        error = str(raised)
    return rows + 2, error, loader.stats()["bad"]


def names_a_file(text: str, dataset: Path) -> bool:
    return str(dataset) in text or ".tar" in text or ".jpg" in text


# --- Few samples or none -------------------------------------------------------------------------------


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        stoker.Loader(tmp_path / "nothing", 4, RECIPE)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no files in it"):
        stoker.Loader(tmp_path / "empty", 4, RECIPE)
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards/a.tar").write_bytes(bytes(10240))
    with pytest.warns(stoker.IndexBuiltWarning), pytest.raises(ValueError, match="no sample in it"):
        stoker.Loader(tmp_path / "shards", 4, RECIPE)


def test_batch_larger_than_the_dataset(made):
    path = made / "photos/packed"
    assert [len(batch["image"]) for batch in stoker.Loader(path, 10 * COUNT, RECIPE)] == [COUNT]
    dropping = stoker.Loader(path, 10 * COUNT, RECIPE, drop_last=True)
    assert len(dropping) == 0 and list(dropping) == []
    more_ranks = [stoker.Loader(path, 4, RECIPE, rank=rank, world_size=COUNT + 7) for rank in (0, COUNT + 6)]
    assert [sum(len(batch["image"]) for batch in loader) for loader in more_ranks] == [1, 1]


def test_all_of_it_is_bad(tmp_path):
    write_files(tmp_path / "texts", {f"a/{i}.jpg": b"no photo" for i in range(50)})
    stoker.pack(tmp_path / "texts", tmp_path / "packed")
    loader = stoker.Loader(tmp_path / "packed", 8, RECIPE, on_error="skip")
    with pytest.raises(stoker.UnsupportedError, match="not one sample of this epoch could be loaded; the first: .*sample 'a/"):
        list(loader)
    assert len(loader.stats()["bad"]) == 50
    with pytest.raises(stoker.UnsupportedError, match="nothing after it can take its place"):
        list(stoker.Loader(tmp_path / "packed", 8, RECIPE, on_error="replace"))


# --- Vanishes or changes while it is loaded ------------------------------------------------------------


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_deleted(dataset, kind, on_error):
    rows, error, bad = load_and(lambda: shutil.rmtree(dataset), dataset, on_error)
    assert rows < COUNT  # most of it was not open yet
    assert error or on_error != "raise"
    assert not error or names_a_file(error, dataset)
    assert error or rows + len(bad) >= COUNT
    assert all(names_a_file(fault["message"], dataset) for fault in bad)
    with pytest.raises((OSError, ValueError)):
        stoker.Loader(dataset, 2, RECIPE)


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_replaced_as_a_whole(dataset, made, kind, tmp_path, on_error):
    """By another one of the same names, as when a new version is moved into place."""
    shutil.copytree(made / "other" / kind, tmp_path / "new")

    def replace():
        os.rename(dataset, tmp_path / "old")
        os.rename(tmp_path / "new", dataset)

    rows, error, bad = load_and(replace, dataset, on_error)
    # Small files are opened below the directory that was there when loading began, wherever it is now: all of them are read.
    if rows == COUNT and kind == "source":
        assert not error and not bad
        return
    assert rows < COUNT or on_error == "replace"
    assert error or on_error != "raise"
    assert not error or names_a_file(error, dataset)
    assert all(names_a_file(fault["message"], dataset) for fault in bad)


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_written_over(dataset, made, kind, on_error):
    """File by file, in place: the checksums notice, or where there are none the times."""
    files = sorted(path for path in dataset.rglob("*") if path.suffix in (".tar", ".jpg"))
    new = sorted(path for path in (made / "other" / kind).rglob("*") if path.suffix in (".tar", ".jpg"))

    def write_over():
        for path, other in zip(files, new):
            path.write_bytes(other.read_bytes())

    rows, error, bad = load_and(write_over, dataset, on_error)
    assert rows < COUNT or on_error == "replace"
    assert error or on_error != "raise"
    assert not error or names_a_file(error, dataset)
    assert error or len(bad) > COUNT // 2
    for fault in bad:
        assert "checksum" in fault["cause"] or "stoker index" in fault["cause"], fault["cause"]


def test_truncated_while_loading(made, tmp_path):
    shutil.copytree(made / "photos/packed", tmp_path / "train")

    def truncate():
        for path in (tmp_path / "train").glob("*.tar"):
            os.truncate(path, 1000)

    _, error, _ = load_and(truncate, tmp_path / "train", "raise")
    assert ".tar" in error and "is truncated: 1000 of " in error and " are missing" in error


def test_so_many_bad_samples_are_no_chance(tmp_path):
    """A file system that went away must not look like an epoch of skipped samples."""
    write_files(tmp_path / "texts", {f"{i:04d}.jpg": b"no photo" for i in range(1200)})
    stoker.pack(tmp_path / "texts", tmp_path / "packed")
    with pytest.raises(stoker.UnsupportedError, match="1000 samples in a row cannot be loaded"):
        list(stoker.Loader(tmp_path / "packed", 8, RECIPE, on_error="skip"))
