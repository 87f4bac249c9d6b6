# SPDX-License-Identifier: Apache-2.0
"""Failures arrive as the exception that a Python programmer expects, and leave the rest usable."""

import errno
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import stoker
from every_format import KEYS, fields_of, open_quietly, same, write_dataset
from samples import write_files
from tar_bytes import simple_tar


def test_classes():
    assert issubclass(stoker.CorruptError, ValueError)
    assert issubclass(stoker.UnsupportedError, ValueError)
    assert issubclass(stoker.LeftOutError, RuntimeError)
    assert issubclass(stoker.IndexBuiltWarning, UserWarning)
    assert issubclass(stoker.FaultWarning, UserWarning)
    error = pickle.loads(pickle.dumps(stoker.CorruptError("why")))
    assert type(error) is stoker.CorruptError and str(error) == "why"
    assert repr(error) == "CorruptError('why')"
    assert type(error).__module__ == "stoker"


@pytest.mark.parametrize("function", [stoker.open, stoker.index, stoker.check])
def test_missing(tmp_path, function):
    with pytest.raises(FileNotFoundError, match="gone") as caught:
        function(tmp_path / "gone")
    assert caught.value.errno == errno.ENOENT


def test_missing_source(tmp_path):
    with pytest.raises(FileNotFoundError, match="gone"):
        stoker.pack(tmp_path / "gone", tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_empty_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        stoker.open(tmp_path)


@pytest.mark.parametrize("function", [stoker.open, stoker.index, stoker.check])
def test_paths_that_are_none(function):
    with pytest.raises(ValueError, match="null"):
        function("a\0b")
    with pytest.raises(TypeError):
        function(7)


def test_permission():
    """Root may read anything, so another user tries."""
    script = """
import os, sys, stoker
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    stoker.open(sys.argv[1])
except PermissionError as error:
    print(error.errno, error)
"""
    with tempfile.TemporaryDirectory() as directory:  # not pytest's own, which is closed to others
        os.chmod(directory, 0o755)
        data = Path(directory) / "data"
        write_dataset(data, "tar")
        data.chmod(0)
        done = subprocess.run([sys.executable, "-c", script, data], capture_output=True, text=True)
        data.chmod(0o755)
    assert done.stdout.startswith(f"{errno.EACCES} "), done
    assert "data" in done.stdout


def test_no_space(small_file_system, tmp_path):
    write_files(tmp_path / "source", {f"{i}.bin": os.urandom(100_000) for i in range(30)})
    with pytest.raises(OSError, match="packed") as caught:
        stoker.pack(tmp_path / "source", small_file_system(1_000_000) / "packed")
    assert caught.value.errno == errno.ENOSPC
    assert type(caught.value) is OSError


def test_compressed(tmp_path):
    import gzip

    source = tmp_path / "x.tar.gz"
    source.write_bytes(gzip.compress(simple_tar({b"a.txt": b"1"})))
    with pytest.raises(stoker.UnsupportedError, match="pack"):
        stoker.open(source)
    stoker.pack(source, tmp_path / "to")
    assert list(stoker.open(tmp_path / "to")) == [{"txt": "1"}]


def test_vanished_shard(packed):
    ds = stoker.open(packed)
    (shard,) = packed.glob("*.tar")
    shard.rename(packed / "away")
    with pytest.raises(FileNotFoundError, match=shard.name) as caught:
        ds[0]
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(FileNotFoundError):
        ds.read_many([0, 1])
    (packed / "away").rename(shard)
    assert same(ds[0], fields_of(KEYS[0]))


def test_shard_that_shrank(packed):
    ds = stoker.open(packed)
    (shard,) = packed.glob("*.tar")
    shard.write_bytes(shard.read_bytes()[:-512])
    with pytest.raises(stoker.CorruptError, match=shard.name):
        ds[0]


def damage(packed, key: str) -> None:
    (shard,) = packed.glob("*.tar")
    contents = bytearray(shard.read_bytes())
    contents[contents.index(fields_of(key)["image"])] ^= 1
    shard.write_bytes(contents)


def test_damaged_sample(packed):
    bad = KEYS[4]
    damage(packed, bad)
    ds = stoker.open(packed)
    with pytest.raises(stoker.CorruptError) as caught:
        ds[bad]
    for word in (bad, "image", "checksum", ".tar"):
        assert word in str(caught.value)
    with pytest.raises(stoker.CorruptError, match=bad):
        ds.read_many(range(10))
    assert ds.read_many([4], ["label"]) == [{"label": fields_of(bad)["label"]}]


def test_iteration_goes_on_behind_a_damaged_sample(packed):
    damage(packed, KEYS[4])
    damage(packed, KEYS[20])
    iterator = iter(stoker.open(packed))
    found, failed = [], 0
    while True:
        try:
            found.append(next(iterator))
        except stoker.CorruptError:
            failed += 1
        except StopIteration:
            break
    assert failed == 2
    good = [key for key in KEYS if key not in (KEYS[4], KEYS[20])]
    assert all(same(sample, fields_of(key)) for sample, key in zip(found, good, strict=True))
    with pytest.raises(StopIteration):
        next(iterator)


def test_corrupt_index(packed):
    for file in (packed / ".stoker").iterdir():
        if file.suffix == ".rows":  # nobody needs them
            continue
        good = file.read_bytes()
        file.write_bytes(good[: len(good) // 2])
        with pytest.raises(stoker.CorruptError, match="stoker index"):
            list(stoker.open(packed))
        iterator = None
        try:
            iterator = iter(stoker.open(packed))
            next(iterator)
        except stoker.CorruptError:
            pass
        if iterator is not None:
            with pytest.raises(StopIteration):
                next(iterator)
        file.write_bytes(good)
    assert len(list(stoker.open(packed))) == len(KEYS)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"to": "zip"}, "zip"),
        ({"shard_size": "much"}, "shard_size 'much'"),
        ({"shard_size": 0}, "shard_size '0'"),
        ({"shard_size": -1}, "shard_size '-1'"),
        ({"jobs": 0}, "jobs 0"),
        ({"jobs": -1}, "jobs -1"),
        ({"shuffle": -1}, "shuffle -1"),
        ({"shuffle": 2**64}, "shuffle"),
        ({"limit": 0}, "limit 0"),
        ({"split": "train"}, "split"),
        ({"split": {"train": 0.5}}, "sum to 0.5"),
        ({"split": {"a/b": 1.0}}, "slash"),
    ],
)
def test_wrong_use_of_pack(tmp_path, options, complaint):
    write_files(tmp_path / "source", {"a.txt": b"1"})
    with pytest.raises(ValueError, match=complaint):
        stoker.pack(tmp_path / "source", tmp_path / "to", **options)
    assert not (tmp_path / "to").exists()


def test_wrong_use(tmp_path):
    write_files(tmp_path, {"a.txt": b"1"})
    with pytest.raises(ValueError, match="should be beside or cache"):
        stoker.index(tmp_path, where="nowhere")
    with pytest.raises(ValueError, match="ignore_keys needs compare"):
        stoker.check(tmp_path, ignore_keys=True)
    with pytest.raises(ValueError, match="jobs"):
        stoker.check(tmp_path, jobs=0)
    with pytest.raises(TypeError):
        stoker.open(tmp_path, nonsense=1)
    with pytest.raises(ValueError):
        stoker.pack(tmp_path, tmp_path / "inside" / "..")


def test_error_in_a_thread_and_in_a_column(tmp_path):
    (tmp_path / "x.tar").write_bytes(simple_tar({b"a.cls": b"1", b"b.cls": b"one"}))
    ds = open_quietly(tmp_path)
    with pytest.raises(stoker.CorruptError, match="'b'"):
        ds.column("label")
    assert ds[0] == {"label": 1}
