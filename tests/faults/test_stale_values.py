# SPDX-License-Identifier: Apache-2.0
"""Numbers that an index holds itself are not believed when the files they came from have changed; nor are records whose
checksum the file states."""

import io
import os
import re
import shutil
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
import stoker
from samples import shards_of, write_files
from tfrecord_bytes import example, record

COUNT = 12
LABELS = [100 + i for i in range(COUNT)]
FORMATS = ["tar", "tfrecord", "hdf5", "lmdb", "arrow", "npy"]


@pytest.fixture
def folder(tmp_path) -> Path:
    write_files(tmp_path / "folder", {f"s{i:02d}.cls": b"%d" % label for i, label in enumerate(LABELS)})
    return tmp_path / "folder"


@pytest.fixture(params=[*FORMATS, "folder"])
def dataset(request, folder, tmp_path) -> Path:
    """With an index that holds the labels."""
    if request.param == "folder":
        stoker.index(folder, full=True, where="beside")
        return folder
    stoker.pack(folder, tmp_path / "packed", to=request.param)
    return tmp_path / "packed"


def edit(dataset: Path) -> None:
    """Label 105 becomes 109, in place."""
    for path in (path for path in dataset.rglob("*") if path.is_file() and ".stoker" not in path.parts):
        if edit_one(path):
            return
    raise AssertionError("no label found")


def edit_one(path: Path) -> bool:
    contents = path.read_bytes()
    for before, after in [
        (b"105", b"109"),
        ((105).to_bytes(8, "little"), (109).to_bytes(8, "little")),
        (b"\n\x01\x69", b"\n\x01\x6d"),
    ]:
        if contents.count(before) == 1:
            with open(path, "r+b") as file:
                file.seek(contents.index(before))
                file.write(after)
            return True
    return False


def number_of(dataset: stoker.Dataset, label: int) -> int:
    return dataset.index_of(
        next(key for key in dataset.keys() if key.endswith(f"{label - 100:02d}") or key == f"{label - 100}")
    )


def test_labels_edited_in_place(dataset):
    before = stoker.open(dataset)
    number = number_of(before, 105)
    assert before.column("label").tolist() == LABELS
    time.sleep(0.02)  # file systems count time in steps
    edit(dataset)
    opened = stoker.open(dataset)
    with pytest.raises(stoker.CorruptError, match="checksum"):
        opened.column("label")
    with pytest.raises(stoker.CorruptError, match="checksum"):
        opened[number]
    with pytest.raises(stoker.CorruptError, match="checksum"):
        opened.read_many([number], fields=["label"])
    with pytest.raises(stoker.CorruptError, match="checksum"):
        list(stoker.Loader(dataset, 4))
    others = [i for i in range(COUNT) if i != number]
    assert [sample["label"] for sample in opened.read_many(others)] == [LABELS[i] for i in others]
    loader = stoker.Loader(dataset, 4, on_error="skip", shuffle=False)
    loaded = np.concatenate([batch["label"] for batch in loader])
    assert sorted(loaded) == [label for label in LABELS if label != 105]
    assert [fault["samples"] for fault in loader.stats()["bad"]] == [1]


def test_labels_edited_after_they_were_read(dataset):
    """An open Dataset says what one that is opened now would say."""
    opened = stoker.open(dataset)
    number = number_of(opened, 105)
    others = [i for i in range(COUNT) if i != number]
    for _ in range(2):  # opened when read first, known when read again
        assert opened.column("label").tolist() == LABELS
        assert opened[number]["label"] == 105
    loader = stoker.Loader(opened, 4, shuffle=False)
    assert np.concatenate([batch["label"] for batch in loader]).tolist() == LABELS
    originals = {
        path: path.read_bytes() for path in dataset.rglob("*") if path.is_file() and ".stoker" not in path.parts
    }
    time.sleep(0.02)
    edit(dataset)
    with pytest.raises(stoker.CorruptError, match="checksum"):
        opened.column("label")
    with pytest.raises(stoker.CorruptError, match="checksum"):
        opened[number]
    with pytest.raises(stoker.CorruptError, match="checksum"):
        list(loader)
    assert [sample["label"] for sample in opened.read_many(others)] == [LABELS[i] for i in others]
    for path, contents in originals.items():
        with open(path, "r+b") as file:
            file.write(contents)
    assert opened.column("label").tolist() == LABELS
    assert opened[number]["label"] == 105


def test_labels_replaced_after_they_were_read(dataset, tmp_path):
    """As editors and rsync do: another file of the same size takes the name."""
    opened = stoker.open(dataset)
    number = number_of(opened, 105)
    assert opened.column("label").tolist() == LABELS
    shutil.copytree(dataset, tmp_path / "other")
    time.sleep(0.02)
    edit(tmp_path / "other")
    for path in [path for path in (tmp_path / "other").rglob("*") if path.is_file() and ".stoker" not in path.parts]:
        os.replace(path, dataset / path.relative_to(tmp_path / "other"))
    with pytest.raises(stoker.CorruptError, match="checksum"):
        opened.column("label")
    with pytest.raises(stoker.CorruptError, match="checksum"):
        opened[number]


def test_labels_edited_after_they_were_read_without_checksums(dataset):
    """Raised, or what the file has now; never what it had."""
    shutil.rmtree(dataset / ".stoker")
    stoker.index(dataset, where="beside")
    opened = stoker.open(dataset)
    number = number_of(opened, 105)
    assert opened.column("label")[number] == 105
    time.sleep(0.02)
    edit(dataset)
    for read in (lambda: opened.column("label")[number], lambda: opened[number]["label"]):
        try:
            assert read() == 109
        except stoker.CorruptError as error:
            assert re.search("modified after it was indexed|checksum of the record", str(error))


@pytest.fixture(params=["arrow", "hdf5"])
def unlocated(request, folder, tmp_path) -> Path:
    """With an index that holds the labels, and does not say where in the shards they are."""
    stoker.pack(folder, tmp_path / "packed", to=request.param)
    shutil.rmtree(tmp_path / "packed/.stoker")
    stoker.index(tmp_path / "packed", full=True, where="beside")
    return tmp_path / "packed"


@pytest.mark.parametrize("read_before", [True, False])
def test_labels_that_cannot_be_compared(unlocated, read_before):
    opened = stoker.open(unlocated)
    number = number_of(opened, 105)
    if read_before:
        assert opened.column("label").tolist() == LABELS
    time.sleep(0.02)
    edit(unlocated)
    with pytest.raises(stoker.CorruptError, match="was modified after it was indexed.*run stoker index"):
        opened.column("label")
    with pytest.raises(stoker.CorruptError, match="was modified after it was indexed"):
        opened[number]
    with pytest.raises(stoker.CorruptError, match="was modified after it was indexed"):
        list(stoker.Loader(unlocated, 4))
    stoker.index(unlocated, full=True, where="beside")
    assert stoker.open(unlocated).column("label")[number] == 109


def test_labels_of_another_file_with_an_older_time(unlocated):
    """As rsync -a, cp -a and tar x put it there."""
    (shard,) = [path for path in unlocated.rglob("*") if path.suffix in (".arrow", ".h5")]
    other = unlocated.parent / "other"
    shutil.copy2(shard, other)
    assert edit_one(other)
    os.utime(other, (1e9, 1e9))
    time.sleep(0.02)
    os.replace(other, shard)
    with pytest.raises(stoker.CorruptError, match="was modified after it was indexed, or copied without its times"):
        stoker.open(unlocated).column("label")


def test_a_copy_with_its_times_can_be_read(unlocated, tmp_path):
    shutil.copytree(unlocated, tmp_path / "copy")
    assert stoker.open(tmp_path / "copy").column("label").tolist() == LABELS


def test_labels_that_cannot_be_compared_are_right_in_a_staged_copy(unlocated, tmp_path):
    (tmp_path / "place").mkdir()
    for damage in (False, True):
        staged = stoker.stage(unlocated, tmp_path / "place", verify=damage)
        assert stoker.open(staged.path).column("label").tolist() == LABELS
        if damage:
            assert len(staged.repaired) == 1
        time.sleep(0.02)
        edit(Path(staged.path))  # found and copied again by the next one
        with pytest.raises(stoker.CorruptError):
            stoker.open(staged.path).column("label")


def test_labels_of_an_index_that_was_made_again(tmp_path):
    """That the index on disk is newer than the edit says nothing about the one that was opened before."""
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for i, label in enumerate(LABELS):
            info = tarfile.TarInfo(f"s{i:02d}.cls")
            info.size = 3
            tar.addfile(info, io.BytesIO(b"%d" % label))
    stoker.index(path, full=True, where="beside")
    opened = stoker.open(path)
    assert opened.column("label").tolist() == LABELS
    time.sleep(0.02)
    edit(tmp_path)
    stoker.index(path, full=True, where="beside")
    assert stoker.open(path)[5]["label"] == 109
    with pytest.raises(stoker.CorruptError, match="checksum"):
        opened.column("label")


def test_a_copy_with_other_times_is_right(dataset, tmp_path):
    """What was copied without its times is compared, and believed."""
    shutil.copytree(dataset, tmp_path / "copy", copy_function=shutil.copyfile)
    for path in (tmp_path / "copy").rglob("*"):
        if path.is_file() and ".stoker" not in path.parts:
            os.utime(path, (2e9, 2e9))
    assert stoker.open(tmp_path / "copy").column("label").tolist() == LABELS
    loader = stoker.Loader(tmp_path / "copy", 4, shuffle=False)
    assert np.concatenate([batch["label"] for batch in loader]).tolist() == LABELS


def test_labels_of_a_shard_that_is_gone(dataset):
    opened = stoker.open(dataset)
    for path in [path for path in dataset.rglob("*") if path.is_file() and ".stoker" not in path.parts]:
        path.unlink()
    with pytest.raises(OSError, match="has vanished"):
        opened.column("label")


def test_records_that_state_another_checksum(tmp_path):
    """Without a full index: as tf.data does, the record's checksum is compared whenever it is read."""
    records = [record(example({"__key__": [b"k%d" % i], "label": [i], "x": [b"%050d" % i]})) for i in range(8)]
    (tmp_path / "d").mkdir()
    damaged = records[5].replace(b"%050d" % 5, b"%050d" % 6)
    assert damaged != records[5]
    (tmp_path / "d/a.tfrecord").write_bytes(b"".join([*records[:5], damaged, *records[6:]]))
    with pytest.warns(stoker.IndexBuiltWarning):
        dataset = stoker.open(tmp_path / "d")
    assert dataset.depth == "structure"
    for fields in (None, ["x"], ["label"]):
        with pytest.raises(stoker.CorruptError, match="a.tfrecord: offset .*'k5': checksum of the record"):
            dataset.read_many([5], fields=fields)
        assert len(dataset.read_many([4, 6], fields=fields)) == 2
    with pytest.raises(stoker.CorruptError, match="checksum of the record"):
        dataset.column("label")
    with pytest.raises(stoker.CorruptError, match="checksum of the record"):
        list(stoker.Loader(dataset, 2))
    loader = stoker.Loader(dataset, 3, on_error="skip", shuffle=False, cache="ram", cache_limit="1M")
    for _ in range(2):
        assert np.concatenate([batch["label"] for batch in loader]).tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert shards_of(tmp_path / "d")
    assert stoker.open(tmp_path / "d", verify=False)[5]["x"] == b"%050d" % 6
