# SPDX-License-Identifier: Apache-2.0
"""What a batch consists of: arrays, numbers, text, bytes; padding, caches, Python functions, and how much is kept."""

import gc
import io
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import stoker
from PIL import Image
from samples import write_files
from stoker.transforms import PerBatch, Resize

COUNT = 50


def npy(value: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, value)
    return buffer.getvalue()


def tokens(i: int) -> np.ndarray:
    return np.arange(i % 7 + 1, dtype="uint16") + i


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("fields")
    files = {}
    for i in range(COUNT):
        rng = np.random.default_rng(i)
        buffer = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (12, 10, 3), dtype="uint8")).save(buffer, "PNG")
        # Stored in C order, Fortran order and big-endian: a batch has one order.
        fixed = rng.standard_normal((3, 5)).astype("float32")
        stored = [fixed, np.asfortranarray(fixed), fixed.astype(">f4")][i % 3]
        files |= {
            f"{i:03d}.png": buffer.getvalue(),
            f"{i:03d}.cls": str(i % 5).encode(),
            f"{i:03d}.fixed.npy": npy(stored),
            f"{i:03d}.tokens.npy": npy(tokens(i)),
            f"{i:03d}.txt": f"text {i} é".encode(),
            f"{i:03d}.bin": bytes([i]) * (i + 1),
        }
    write_files(root / "files", files)
    stoker.pack(root / "files", root / "packed")
    return root / "packed"


def test_every_kind_of_field(dataset):
    ds = stoker.open(dataset)
    seen = 0
    for batch in stoker.Loader(dataset, 8):
        assert set(batch) == {*ds.fields, "sample"}
        assert batch["fixed"].shape[1:] == (3, 5) and batch["fixed"].dtype == np.float32
        assert batch["fixed"].flags.c_contiguous
        for row, number in enumerate(batch["sample"]):
            sample = ds[int(number)]
            for name, value in sample.items():
                assert np.array_equal(batch[name][row], value), name
                if isinstance(value, np.ndarray) and name != "fixed":
                    assert batch[name][row].dtype == value.dtype
            seen += 1
    assert seen == COUNT


def test_without_checksums_too(tmp_path, dataset):
    # At structure depth nobody knows shapes: arrays come as a list.
    (tmp_path / "copy").mkdir()
    for shard in stoker.open(dataset).shards:
        (tmp_path / "copy" / shard.path).write_bytes((dataset / shard.path).read_bytes())
    with pytest.warns(stoker.IndexBuiltWarning):
        loader = stoker.Loader(tmp_path / "copy", 8, fields=["fixed", "label"], shuffle=False)
    batch = next(iter(loader))
    assert isinstance(batch["fixed"], list) and batch["fixed"][0].shape == (3, 5)
    assert batch["label"].tolist() == [0, 1, 2, 3, 4, 0, 1, 2]


def test_padding(dataset):
    loader = stoker.Loader(dataset, 8, fields=["tokens", "fixed"], pad={"tokens": 9}, shuffle=False)
    batch = next(iter(loader))
    assert batch["tokens"].shape == (8, 7) and batch["tokens"].dtype == np.uint16
    assert batch["tokens_length"].tolist() == [1, 2, 3, 4, 5, 6, 7, 1]
    for row in range(8):
        assert batch["tokens"][row].tolist() == [*tokens(row), *[9] * (7 - len(tokens(row)))]
    with pytest.raises(ValueError, match="no field 'x' is loaded"):
        stoker.Loader(dataset, 8, fields=["label"], pad={"x": 0})
    with pytest.raises(stoker.UnsupportedError, match="only arrays"):
        list(stoker.Loader(dataset, 8, fields=["bin"], pad={"bin": 0}))


def test_arrays_stay_what_they_are(dataset):
    loader = stoker.Loader(dataset, 4, fields=["fixed", "tokens"])
    kept = [(b["fixed"], b["tokens"][0], b["fixed"].copy(), b["tokens"][0].copy()) for _ in range(5) for b in loader]
    del loader
    gc.collect()
    for fixed, ragged, fixed_copy, ragged_copy in kept:
        assert np.array_equal(fixed, fixed_copy) and np.array_equal(ragged, ragged_copy)


@pytest.mark.parametrize("where", ["ram", "disk"])
def test_cache(dataset, tmp_path, where):
    place = "ram" if where == "ram" else tmp_path
    loader = stoker.Loader(dataset, 8, fields=["fixed", "txt"], cache=place, cache_limit="1M", shuffle=False)
    first = [[b["fixed"].tobytes(), b["txt"]] for b in loader]
    assert loader.stats()["cache_hits"] == 0 and loader.stats()["cache_bytes"] > 0
    assert [[b["fixed"].tobytes(), b["txt"]] for b in loader] == first
    assert loader.stats()["cache_hits"] == 2 * COUNT
    assert os.listdir(tmp_path) == []
    small = stoker.Loader(dataset, 8, fields=["fixed"], cache=place, cache_limit="1000", shuffle=False)
    for _ in range(3):
        assert [b["fixed"].tobytes() for b in small] == [part[0] for part in first]
    assert 0 < small.stats()["cache_bytes"] <= 1000
    with pytest.raises(OSError, match="cache"):
        stoker.Loader(dataset, 8, cache=tmp_path / "missing", cache_limit="1M")


def test_python_functions_and_their_cost(dataset):
    def halve(picture):
        assert picture.shape == (6, 5, 3)
        return (picture / 2).astype("float32")

    def shift(batch):
        return {**batch, "label": batch["label"] + 1}

    loader = stoker.Loader(dataset, 8, [Resize((6, 5)), halve, PerBatch(shift)], shuffle=False)
    plain = stoker.Loader(dataset, 8, [Resize((6, 5))], shuffle=False)
    for changed, batch in zip(loader, plain):
        assert changed["image"].dtype == np.float32
        assert np.array_equal(changed["image"], batch["image"] / np.float32(2))
        assert np.array_equal(changed["label"], batch["label"] + 1)
    assert loader.stats()["stages"]["python"]["busy"] > 0
    assert loader.stats()["stages"]["python"]["batches"] == 7


def test_python_functions_that_misbehave(dataset):
    def raises(picture):
        raise KeyError("oh")

    with pytest.raises(RuntimeError, match=r"raises failed on sample '\d+'") as caught:
        list(stoker.Loader(dataset, 8, [Resize((6, 5)), raises]))
    assert isinstance(caught.value.__cause__, KeyError)
    sizes = iter(range(1, 1000))
    with pytest.raises(ValueError, match="they should be alike"):
        list(stoker.Loader(dataset, 8, [Resize((6, 5)), lambda picture: np.zeros(next(sizes))]))
    with pytest.raises(TypeError, match="should be the batch"):
        list(stoker.Loader(dataset, 8, [Resize((6, 5)), PerBatch(lambda batch: None)]))
    with pytest.raises(ValueError, match="after a Python function"):
        stoker.Loader(dataset, 8, [np.copy, Resize((6, 5))])


def test_photos_of_one_size_need_no_resize(dataset):
    ds = stoker.open(dataset)
    for batch in stoker.Loader(dataset, 8, [np.copy]):
        assert np.array_equal(batch["image"][0], stoker.decode(ds[int(batch["sample"][0])]["image"]))


def test_a_bad_sample_comes_behind_the_good_batches(dataset, tmp_path):
    ds = stoker.open(dataset)
    (tmp_path / "broken").mkdir()
    for shard in ds.shards:
        data = bytearray((dataset / shard.path).read_bytes())
        at = data.find(ds[33]["bin"])
        data[at] ^= 1
        (tmp_path / "broken" / shard.path).write_bytes(bytes(data))
    import shutil

    shutil.copytree(dataset / ".stoker", tmp_path / "broken" / ".stoker")
    loader = stoker.Loader(tmp_path / "broken", 8, fields=["bin"], shuffle=False, threads=4)
    for _ in range(5):
        got = []
        with pytest.raises(stoker.CorruptError, match="033"):
            for batch in loader:
                got.append(batch["sample"].tolist())
        assert got == [list(range(8 * i, 8 * i + 8)) for i in range(4)]


def test_a_thousand_epochs_leak_nothing(dataset):
    loader = stoker.Loader(dataset, 16, [Resize((8, 8))], threads=2)

    def used() -> tuple[int, int, int]:
        gc.collect()
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return resident, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    for _ in range(200):
        for _batch in loader:
            pass
    before = used()
    for epoch in range(800):
        for _batch in loader:
            if epoch % 10 == 0:
                break
    after = used()
    assert after[0] - before[0] < 8 << 20
    assert after[1] <= before[1] and threading.active_count() < 20 and after[2] <= before[2] + 8


def test_padding_does_not_depend_on_what_the_index_knows(dataset):
    batch = next(iter(stoker.Loader(dataset, 4, fields=["fixed"], pad={"fixed": 0})))
    assert batch["fixed"].shape == (4, 3, 5) and batch["fixed_length"].tolist() == [[3, 5]] * 4
    for value in (-1, 70000, 0.5, float("nan")):
        with pytest.raises(stoker.UnsupportedError, match="pad: .* is no number of this field"):
            list(stoker.Loader(dataset, 8, fields=["tokens"], pad={"tokens": value}))
    with pytest.raises(ValueError, match="is no array"):
        stoker.Loader(dataset, 8, fields=["label"], pad={"label": 0})


def test_names_that_a_batch_has_itself(tmp_path):
    write_files(tmp_path / "d", {"a.sample": b"x", "a.cls": b"1"})
    stoker.pack(tmp_path / "d", tmp_path / "p")
    with pytest.raises(ValueError, match="'sample' twice"):
        stoker.Loader(tmp_path / "p", 1)
    assert next(iter(stoker.Loader(tmp_path / "p", 1, fields=["label"])))["label"].tolist() == [1]


def test_a_replaced_sample_leaves_nothing_behind(tmp_path):
    files = {}
    for i in range(6):
        files[f"{i}.cls"] = str(i).encode()
        files[f"{i}.png"] = b"no picture" if i % 2 == 0 else npy_picture(i)
        if i % 2 == 0:
            files[f"{i}.txt"] = b"of a bad sample"
    write_files(tmp_path / "d", files)
    stoker.pack(tmp_path / "d", tmp_path / "p")
    loader = stoker.Loader(
        tmp_path / "p", 6, [Resize((4, 4))], fields=["txt", "image", "label"], on_error="replace", shuffle=False
    )
    [batch] = loader
    assert batch["sample"].tolist() == [1, 1, 3, 3, 5, 5] and batch["label"].tolist() == [1, 1, 3, 3, 5, 5]
    assert batch["txt"] == [None] * 6


def npy_picture(seed: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((5, 5, 3), seed, dtype="uint8")).save(buffer, "PNG")
    return buffer.getvalue()


def test_wrong_types_and_contradictions(dataset):
    for words in ({"batch_size": 2.5}, {"seed": 1.5}, {"threads": 2**40}, {"ahead": 2**33}, {"batch_size": 2**64},
                  {"threads": 5000}, {"fields": []}, {"cache_limit": "1M"}, {"shuffle": "yes"}):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=next(iter(words))):
            stoker.Loader(dataset, **{"batch_size": 4, **words})
    assert set(next(iter(stoker.Loader(dataset, 4, fields="label")))) == {"label", "sample"}
    with pytest.raises(ValueError, match="transforms change 'image'"):
        stoker.Loader(dataset, 4, [Resize((4, 4))], fields=["label"])
    loader = stoker.Loader(
        dataset, 4, [PerBatch(lambda batch: {**batch, "twice": batch["label"] * 2})], fields=["label"]
    )
    for batch in loader:  # no picture is needed for that
        assert np.array_equal(batch["twice"], 2 * batch["label"])


def test_what_comes_ahead_raises_in_its_turn(dataset):
    def fails(batch):
        if 20 in batch["sample"]:
            raise ValueError("twenty")
        return batch

    loader = stoker.Loader(dataset, 4, [PerBatch(fails)], fields=["label"], shuffle=False)
    loader._output.ahead = True  # as with a GPU
    seen = []
    with pytest.raises(ValueError, match="twenty"):
        for batch in loader:
            seen += batch["sample"].tolist()
    assert seen == list(range(20))
