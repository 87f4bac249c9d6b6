# SPDX-License-Identifier: Apache-2.0
"""A dataset is a sequence of dicts, the same whatever the format."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import stoker
from every_format import COUNT, KEYS, fields_of, open_quietly, same, write_dataset
from samples import noise, write_files
from tar_bytes import simple_tar


def test_samples(dataset):
    assert len(dataset) == COUNT
    for number, key in enumerate(KEYS):
        assert same(dataset[number], fields_of(key)), key
        assert same(dataset[number - COUNT], fields_of(key)), key
        assert same(dataset[key], fields_of(key)), key
        assert same(dataset[key.encode()], fields_of(key)), key
    assert same(dataset[np.int64(3)], fields_of(KEYS[3]))


def test_iteration(dataset):
    for _ in range(2):
        samples = list(dataset)
        assert len(samples) == COUNT
        assert all(same(found, fields_of(key)) for found, key in zip(samples, KEYS))
    assert [s["label"] for s in reversed(dataset)] == [fields_of(key)["label"] for key in reversed(KEYS)]


def test_two_iterations_at_once(dataset):
    for a, b in zip(dataset, dataset[1:]):
        assert not same(a, b)


def test_iteration_given_up(dataset):
    iterator = iter(dataset)
    next(iterator)
    del iterator, dataset  # while the next batch is on its way


def test_iterator_keeps_the_dataset(dataset):
    iterator = iter(dataset)
    del dataset
    assert len(list(iterator)) == COUNT


def test_keys(dataset):
    keys = dataset.keys()
    assert list(keys) == KEYS
    assert len(keys) == COUNT
    assert (keys[0], keys[-1], list(keys[3:5])) == (KEYS[0], KEYS[-1], KEYS[3:5])
    assert dataset.key(4) == KEYS[4]
    assert dataset.key(-1) == KEYS[-1]
    for number, key in enumerate(KEYS):
        assert key in dataset
        assert key.encode() in dataset
        assert key in keys
        assert dataset.index_of(key) == number
    for key in ("", "c/000", "a", KEYS[0] + "x", "\ud800"):
        assert key not in dataset
        with pytest.raises(KeyError):
            dataset.index_of(key)
        with pytest.raises(KeyError):
            dataset[key]
    assert dict(dataset).keys() == set(KEYS)


@pytest.mark.parametrize(
    "which",
    [slice(None), slice(3, 9), slice(None, None, -1), slice(20, 2, -3), slice(-4, None), slice(5, 5), slice(99, None)],
)
def test_slices(dataset, which):
    view = dataset[which]
    expected = KEYS[which]
    assert isinstance(view, stoker.Dataset)
    assert len(view) == len(expected)
    assert list(view.keys()) == expected
    assert all(same(found, fields_of(key)) for found, key in zip(view, expected))
    assert view.column("label").tolist() == [fields_of(key)["label"] for key in expected]
    for number, key in enumerate(expected):
        assert view.index_of(key) == number
        assert same(view[number], fields_of(key))
    for key in set(KEYS) - set(expected):
        assert key not in view
    assert list(view[1::2].keys()) == expected[1::2], "a slice of a slice"
    assert view.fields == dataset.fields


def test_slice_reads_nothing(tmp_path):
    write_files(tmp_path, {"a.bin": b"1", "b.bin": b"2"})
    view = open_quietly(tmp_path)[1:]
    (tmp_path / "b.bin").unlink()
    assert len(view) == 1
    assert view.key(0) == "b"
    with pytest.raises(FileNotFoundError):
        view[0]


def test_read_many(dataset):
    numbers = [7, 0, -1, 7, 24, 3]
    samples = dataset.read_many(numbers)
    assert all(same(found, fields_of(KEYS[number])) for found, number in zip(samples, numbers))
    assert dataset.read_many([]) == []
    assert len(dataset.read_many(range(COUNT))) == COUNT
    assert same(dataset.read_many(np.array([2]))[0], fields_of(KEYS[2]))
    assert same(dataset.__getitems__([5])[0], fields_of(KEYS[5])), "as torch's DataLoader asks"


def test_read_many_of_some_fields(dataset):
    assert dataset.read_many([1], ["label"]) == [{"label": fields_of(KEYS[1])["label"]}]
    some = dataset.read_many(range(COUNT), fields=("txt", "image"))
    assert [s.keys() for s in some] == [fields_of(key).keys() & {"txt", "image"} for key in KEYS]
    assert dataset.read_many([0, 1], []) == [{}, {}]
    with pytest.raises(ValueError, match="no field 'nope'"):
        dataset.read_many([0], ["nope"])
    with pytest.raises(TypeError):
        dataset.read_many([0], "label")


@pytest.mark.parametrize("number", [COUNT, -COUNT - 1, 10**30])
def test_numbers_out_of_range(dataset, number):
    with pytest.raises(IndexError, match="there are 25"):
        dataset[number]
    with pytest.raises(IndexError):
        dataset.key(number)
    with pytest.raises(IndexError):
        dataset.read_many([0, number])
    with pytest.raises(IndexError):
        dataset[:0][0]


def test_what_is_no_number(dataset):
    for wrong in (1.5, None, [0]):
        with pytest.raises(TypeError):
            dataset[wrong]
    with pytest.raises(TypeError):
        1 in dataset  # noqa: B015


def test_description(dataset, tmp_path):
    path = tmp_path / "data"
    assert dataset.path == str(path)
    assert dataset.index_directory == str(path / ".stoker")
    assert dataset.depth == "structure"
    assert dataset.format in repr(dataset)
    assert "25 samples" in repr(dataset)
    assert "5 of 25 samples" in repr(dataset[:5])
    fields = dataset.fields
    assert fields.keys() == {"image", "label", "extra", "txt"}
    assert (fields["image"].type, fields["image"].present) == ("bytes", COUNT)
    assert fields["label"].type == "number"
    assert fields["extra"].type == "array"
    assert fields["txt"].present == sum("txt" in fields_of(key) for key in KEYS)
    if dataset.format != "tfrecord":
        assert fields["image"].suffixes == ("jpg",)
        assert fields["txt"].type == "text"
    assert dataset.classes == []


def test_shards(dataset):
    shards = dataset.shards
    files = [file for file in Path(dataset.path).glob("**/*") if file.is_file() and ".stoker" not in str(file)]
    assert len(shards) == len(files)
    assert {shard.path: shard.size for shard in shards} == {
        str(file.relative_to(dataset.path)): file.stat().st_size for file in files
    }
    assert [shards[i] for i in range(len(shards))] == list(shards)
    assert shards[-1] == list(shards)[-1]
    assert shards[1:] == list(shards)[1:]
    with pytest.raises(IndexError):
        shards[len(shards)]
    assert dataset[:1].shards[0] == shards[0]


def test_full_index(dataset):
    result = stoker.index(dataset.path, full=True)
    full = stoker.open(dataset.path)
    assert (result.depth, full.depth) == ("full", "full")
    assert full.fields["label"].dtype == "int64"
    assert full.fields["extra"].dtype == "int64"
    assert full.fields["extra"].shape == (-1,)
    assert all(same(found, fields_of(key)) for found, key in zip(full, KEYS))


def test_classes_of_a_folder(tmp_path):
    write_files(tmp_path, {"dog/1.jpg": b"d1", "cat/1.jpg": b"c1", "cat/2.jpg": b"c2", "x.jpg": b"none"})
    ds = open_quietly(tmp_path)
    assert ds.classes == ["cat", "dog"]
    assert ds.fields["label"].classes == ("cat", "dog")
    assert ds.fields["image"].classes == ()
    assert ds["cat/2"] == {"image": b"c2", "label": 0}
    assert ds["dog/1"] == {"image": b"d1", "label": 1}
    assert ds["x"] == {"image": b"none"}, "what is absent is not in the dict"


def test_column(dataset):
    labels = dataset.column("label")
    assert labels.dtype == np.int64
    assert labels.tolist() == [fields_of(key)["label"] for key in KEYS]
    labels[0] = 99  # its own memory
    assert dataset.column("label")[0] != 99
    for wrong in ("image", "extra", "nope"):
        with pytest.raises(ValueError, match=wrong):
            dataset.column(wrong)


def test_column_reads_no_data(packed, tmp_path):
    """But the index is believed only about a shard that is there; classes are directories of the folder as it was."""
    ds = stoker.open(packed)
    assert ds.column("label").tolist() == [fields_of(key)["label"] for key in KEYS]
    (shard,) = packed.glob("*.tar")
    shard.unlink()
    with pytest.raises(FileNotFoundError, match="has vanished"):
        stoker.open(packed).column("label")
    write_files(tmp_path / "f", {"a/1.jpg": b"", "b/1.jpg": b""})
    folder = open_quietly(tmp_path / "f")
    (tmp_path / "f/b/1.jpg").unlink()
    assert folder.column("label").tolist() == [0, 1]


def test_column_with_gaps(tmp_path):
    write_files(tmp_path, {"a/1.jpg": b"", "b/1.jpg": b"", "x.jpg": b""})
    ds = open_quietly(tmp_path)
    with pytest.raises(ValueError, match="1 sample without 'label', the first is 'x'"):
        ds.column("label")
    x = ds.index_of("x")
    filled = ds.column("label", missing=-1)
    assert filled.dtype == np.int64 and filled[x] == -1
    assert sorted(filled) == [-1, 0, 1]
    nan = ds.column("label", missing=float("nan"))
    assert nan.dtype == np.float64 and np.isnan(nan[x])
    assert sorted(np.delete(nan, x)) == [0, 1]


def test_column_of_fractions(tmp_path):
    write_files(tmp_path, {"a.score.cls": b"1.5", "b.score.cls": b"2", "c.score.cls": b" -3\n"})
    ds = open_quietly(tmp_path)
    scores = ds.column("score")
    assert scores.dtype == np.float64
    assert scores.tolist() == [1.5, 2, -3]


def test_large_batches(tmp_path):
    """More than one batch of the iterator, by number and by bytes."""
    sizes = [100 * (i % 50) for i in range(3000)] + [7_000_000, 20_000_000, 1, 7_000_000, 7_000_000]
    files = {b"%05d.bin" % i: b"%d" % (i % 10) * size for i, size in enumerate(sizes)}
    (tmp_path / "x.tar").write_bytes(simple_tar(files))
    ds = open_quietly(tmp_path)
    for (name, data), key, sample in zip(files.items(), ds.keys(), ds):
        assert name.decode() == f"{key}.bin"
        assert sample["bin"] == data
    assert [len(sample["bin"]) for sample in ds[::-1]] == sizes[::-1]


def test_names_that_are_no_utf8(tmp_path):
    names = {b"caf\xe9.txt": b"latin: \xe9", b"ok.txt": "utf: é".encode(), b"new\nline.txt": b"x"}
    (tmp_path / "x.tar").write_bytes(simple_tar(names))
    ds = open_quietly(tmp_path)
    assert list(ds.keys()) == ["caf\udce9", "ok", "new\nline"]
    assert ds["caf\udce9"] == ds[b"caf\xe9"] == {"txt": "latin: \udce9"}
    assert ds["caf\udce9"]["txt"].encode("utf-8", "surrogateescape") == b"latin: \xe9"
    assert b"caf\xe9" in ds
    assert ds["new\nline"] == {"txt": "x"}


def test_path_of_any_kind(tmp_path, monkeypatch):
    odd = tmp_path / os.fsdecode(b"d\xe9 x")
    write_dataset(odd, "tar")
    for path in (odd, str(odd), os.fsencode(odd), odd / "d-000000.tar"):
        ds = open_quietly(path)
        assert ds[KEYS[0]]["label"] == 0
    monkeypatch.chdir(odd)
    ds = stoker.open(".")
    assert ds.path == str(odd)
    monkeypatch.chdir("/")
    assert len(list(ds)) == COUNT, "still there after a change of directory"


def test_single_file(tmp_path):
    write_dataset(tmp_path / "data", "tar")
    ds = open_quietly(tmp_path / "data/d-000001.tar")
    assert list(ds.keys()) == KEYS[10:]
    assert len(ds.shards) == 1
    assert same(ds[0], fields_of(KEYS[10]))


def test_building_an_index_is_said_once(tmp_path):
    write_dataset(tmp_path / "data", "tar")
    with pytest.warns(stoker.IndexBuiltWarning, match=r"25 samples in .*/data/\.stoker") as caught:
        stoker.open(tmp_path / "data")
    assert caught[0].filename == __file__, "points at the caller"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.open(tmp_path / "data")


def test_faults_are_said_each_time(tmp_path):
    (tmp_path / "x.tar").write_bytes(simple_tar({b"a.txt": b"1", b"b.txt": noise(1, 900)})[:-1800])
    with pytest.warns(stoker.FaultWarning, match=r"x\.tar: offset .*truncated"):
        ds = open_quietly(tmp_path)
    assert ds["a"] == {"txt": "1"}
    with pytest.warns(stoker.FaultWarning):
        stoker.open(tmp_path)


def test_list(tmp_path):
    write_files(tmp_path / "data", {"a.jpg": b"A", "b.jpg": b"B", "c.jpg": b"C"})
    (tmp_path / "labels.csv").write_text("path,label,weight\nb.jpg,1,0.5\na.jpg,0,2.5\n")
    with pytest.warns(stoker.IndexBuiltWarning):
        ds = stoker.open(tmp_path / "data", list=tmp_path / "labels.csv")
    assert ds["b"] == {"image": b"B", "label": 1, "weight": 0.5}
    assert ds["a"]["label"] == 0
    assert "c" not in ds
    assert sorted(ds.column("weight")) == [0.5, 2.5]


def test_verify_can_be_left_out(packed):
    (shard,) = packed.glob("*.tar")
    contents = bytearray(shard.read_bytes())
    at = contents.index(fields_of(KEYS[0])["image"])
    contents[at] ^= 1
    shard.write_bytes(contents)
    with pytest.raises(stoker.CorruptError, match="checksum"):
        stoker.open(packed)[0]
    assert stoker.open(packed, verify=False)[0]["image"] != fields_of(KEYS[0])["image"]
