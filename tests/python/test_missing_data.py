# SPDX-License-Identifier: Apache-2.0
"""Datasets of which a part is missing: open() warns and names it, a Loader raises, or counts it where it was told to."""

import json
import os
import shutil
from pathlib import Path

import pytest
import stoker
from hostile_index import change_manifest
from samples import noise, shards_of, write_files
from tar_bytes import END, member
from tfrecord_bytes import example, record

COUNT = 30


@pytest.fixture
def shards(tmp_path) -> Path:
    """Tar shards without an index."""
    write_files(tmp_path / "source", {f"{i:06d}.bin": noise(i, 3000) for i in range(COUNT)})
    stoker.pack(tmp_path / "source", tmp_path / "train", shard_size="24K")
    shutil.rmtree(tmp_path / "train/.stoker")
    return tmp_path / "train"


def test_a_shard_that_is_cut_off(shards):
    damaged = shards_of(shards)[2]
    os.truncate(damaged, damaged.stat().st_size // 2)
    with pytest.warns(stoker.FaultWarning) as warned, pytest.warns(stoker.IndexBuiltWarning):
        dataset = stoker.open(shards)
    (text,) = [str(each.message) for each in warned if each.category is stoker.FaultWarning]
    assert damaged.name in text and "truncated" in text
    assert [fault.shard for fault in dataset.faults] == [damaged.name]
    with pytest.raises(stoker.CorruptError, match=f'{damaged.name}.*truncated.*on_error="skip"'):
        stoker.Loader(dataset, 4)
    for on_error in ("skip", "replace"):
        loader = stoker.Loader(dataset, 4, on_error=on_error)
        assert sum(len(batch["sample"]) for batch in loader) == len(dataset) < COUNT
        (bad,) = loader.stats()["bad"]
        assert bad["shard"] == damaged.name and bad["samples"] is None


def test_a_shard_that_was_cut_off_since(shards):
    """An index knows what was there."""
    stoker.index(shards, full=True)
    damaged = shards_of(shards)[2]
    os.truncate(damaged, damaged.stat().st_size // 2)
    dataset = stoker.open(shards)
    with pytest.raises(
        stoker.CorruptError,
        match=r"is truncated: \d+ of \d+ bytes are there; \d samples from '0000\d\d' on are missing",
    ):
        list(stoker.Loader(dataset, 4))


@pytest.mark.parametrize("how", ["missing", ".tmp", ".part"])
def test_a_shard_that_is_missing(shards, how):
    gone = shards_of(shards)[1]
    gone.unlink() if how == "missing" else os.rename(gone, f"{gone}{how}")
    with pytest.raises(stoker.CorruptError, match=f"{gone.name}.*an unknown number of samples is missing"):
        stoker.Loader(shards, 4)
    loader = stoker.Loader(shards, 4, on_error="skip")
    loaded = sum(len(batch["sample"]) for batch in loader)
    assert (
        loaded < COUNT and loader.stats()["bad"] and all(gone.name in bad["message"] for bad in loader.stats()["bad"])
    )


def test_the_command(shards, stoker_cli):
    damaged = shards_of(shards)[2]
    os.truncate(damaged, damaged.stat().st_size // 2)
    failed = stoker_cli("load", shards, "--raw", "--epochs", "1", status=1)
    assert damaged.name in failed.stderr and "truncated" in failed.stderr
    finished = stoker_cli("load", shards, "--raw", "--epochs", "2", "--skip-bad")
    assert "left out: an unknown number of samples" in finished.text and damaged.name in finished.text
    assert len(stoker_cli("load", shards, "--raw", "--skip-bad", "--json").json["bad"]) == 1


def test_what_pack_left_out_is_missing_from_its_source(tmp_path):
    write_files(tmp_path / "source", {"a.cls": b"1", "b.cls": b"no number"})
    with pytest.raises(stoker.LeftOutError):
        stoker.pack(tmp_path / "source", tmp_path / "packed")
    assert stoker.open(tmp_path / "packed").faults == ()
    assert sum(len(batch["label"]) for batch in stoker.Loader(tmp_path / "packed", 4)) == 1


def test_nothing_can_be_read(tmp_path):
    (tmp_path / "d").mkdir()
    for name in ("a.tar", "b.tar"):
        (tmp_path / "d" / name).write_bytes(member(b"a.txt", b"x" * 2000)[:700])
    for _ in range(2):
        with pytest.raises(stoker.CorruptError, match="not one sample could be read: a.tar"):
            stoker.open(tmp_path / "d")
    # Copied again, it is looked at again.
    (tmp_path / "d/a.tar").write_bytes(member(b"a.txt", b"x" * 2000) + END)
    with pytest.warns(stoker.FaultWarning, match=r"b\.tar"):
        assert len(stoker.open(tmp_path / "d")) == 1


def test_no_sample_is_without_fields(tmp_path):
    from tfrecord_bytes import example

    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.tfrecord").write_bytes(
        record(example({"x": [b"1"]})) + record(b"") + record(example({"x": [b"3"]}))
    )
    with pytest.warns(stoker.FaultWarning, match="has no fields"):
        dataset = stoker.open(tmp_path / "d")
    assert [sample["x"] for sample in dataset] == [b"1", b"3"]


def test_samples_that_are_left_out_are_counted(tmp_path):
    """A member that is a link, a record without fields: one sample each."""
    (tmp_path / "a.tar").write_bytes(
        b"".join([member(b"a.bin", b"1"), member(b"b.bin", b"", kind=b"2"), member(b"c.bin", b"3"), END])
    )
    (tmp_path / "b.tfrecord").write_bytes(record(example({"x": [1]})) + record(b"") + record(example({"x": [2]})))
    for name in ("a.tar", "b.tfrecord"):
        with pytest.warns(stoker.FaultWarning), pytest.warns(stoker.IndexBuiltWarning):
            dataset = stoker.open(tmp_path / name)
        loader = stoker.Loader(dataset, 2, on_error="skip")
        assert sum(len(batch["sample"]) for batch in loader) == 2
        assert [fault["samples"] for fault in loader.stats()["bad"]] == [1]


def test_commands_name_a_shard_that_is_missing(shards, stoker_cli, tmp_path):
    """Each takes what is there and says how to go on; none gives a number of samples that it cannot know."""
    gone = shards_of(shards)[1]
    gone.unlink()
    (tmp_path / "place").mkdir()
    for command in (["check", shards], ["pack", shards, tmp_path / "out"], ["stage", shards, tmp_path / "place"]):
        failed = stoker_cli(*command, status=1)
        assert f"{gone.name} is missing" in failed.text and "1 fault" in failed.text
        assert "1 sample" not in failed.text
    failed = stoker_cli("load", shards, "--raw", "--epochs", "1", status=1)
    assert f"{gone.name} is missing" in failed.stderr and "--skip-bad" in failed.stderr
    assert gone.name in stoker_cli("load", shards, "--raw", "--epochs", "1", "--skip-bad").text
    assert len(stoker.open(tmp_path / "out")) < COUNT


def test_a_part_of_a_dataset_that_was_chosen(shards):
    """Of a public dataset somebody fetched two shards of five: nothing tells that from a loss, and the error says how to go on."""
    first, last = shards_of(shards)[0], shards_of(shards)[4]
    for path in shards_of(shards):
        if path not in (first, last):
            path.unlink()
    with pytest.raises(stoker.CorruptError, match='on_error="skip"'):
        list(stoker.Loader(shards, 4))
    loader = stoker.Loader(shards, 4, on_error="skip")
    assert 0 < sum(len(batch["sample"]) for batch in loader) < COUNT and len(loader.stats()["bad"]) == 1


@pytest.mark.parametrize("earlier", [False, True])
def test_faults_are_found_without_the_other_segments(tmp_path, earlier):
    """The manifest says which segments have some; those of earlier versions did not."""
    for i in range(5):
        kind = b"2" if i == 3 else b"0"
        members = [member(b"a%d.bin" % i, b"1"), member(b"b%d.bin" % i, b"", kind=kind), END]
        write_files(tmp_path / "d", {f"{i:05d}.tar": b"".join(members)})
    stoker.index(tmp_path / "d", where="beside")
    index = tmp_path / "d/.stoker"
    manifest = json.loads((index / "manifest.json").read_text())
    assert sorted(segment["faults"] for segment in manifest["segments"]) == [0, 0, 0, 0, 1]
    if earlier:
        change_manifest(index, lambda manifest: [segment.pop("faults") for segment in manifest["segments"]])
    else:
        for segment in manifest["segments"]:
            if segment["faults"] == 0:
                (index / segment["file"]).unlink()
    with pytest.warns(stoker.FaultWarning, match="b3"):
        dataset = stoker.open(tmp_path / "d")
    assert [(fault.sample, fault.samples) for fault in dataset.faults] == [("b3", 1)]
