# SPDX-License-Identifier: Apache-2.0
"""Datasets whose chunks cut through samples, as h5py's automatic ones do: `pack` brings them in order."""

import json
import pickle

import numpy as np
import pytest
from reading import read_dataset

# Writes NAME.h5 and, in NAME.pickle, what h5py reads from it: field to rows.
FILES = """
import pickle, sys, h5py, numpy as np
from h5py import h5d, h5p, h5s, h5t
rng = np.random.default_rng(3)

def numbers(shape, dtype):
    return rng.integers(0, 200, shape).astype(dtype)

def partly(file, name, fillvalue):
    made = file.create_dataset(name, (30, 40, 40), "i2", chunks=(4, 3, 7), compression="gzip", fillvalue=fillvalue)
    made[3:9] = numbers((6, 40, 40), "i2")
    made[20, 5:11, 7:9] = 1

def some_plain(file):
    made = file.create_dataset("x", (10, 20, 20), "u1", chunks=(5, 4, 4), compression="gzip")
    made[:] = numbers((10, 20, 20), "u1")
    made.id.write_direct_chunk((5, 8, 4), bytes(range(80)), filter_mask=1)

def shrunk(file):
    made = file.create_dataset("x", data=numbers((33, 30, 30), "u1"), chunks=(8, 4, 4), maxshape=(None, None, None))
    made.resize((21, 22, 27))

def early(file):
    chunks = h5p.create(h5p.DATASET_CREATE)
    chunks.set_chunk((4, 3, 5))
    chunks.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    made = h5d.create(file.id, b"x", h5t.STD_U16LE, h5s.create_simple((9, 25, 25)), chunks)
    h5py.Dataset(made)[:] = numbers((9, 25, 25), "u2")

def compound(file, **how):
    made = np.zeros((25, 90), [("a", "u1"), ("b", "<f4"), ("c", ">i2"), ("d", "u1", (3,))])
    for name in made.dtype.names:
        made[name] = numbers(made[name].shape, made[name].dtype)
    file.create_dataset("x", data=made, **how)

def two(file):
    file.create_dataset("image", data=numbers((300, 32, 32, 3), "u1"), compression="gzip")
    file.create_dataset("depth", data=numbers((300, 40, 40), "f4"), compression="gzip", shuffle=True)
    file["label"] = np.arange(300) % 7
    file["name"] = np.array([b"name %d" % i for i in range(300)])

CASES = {
    "automatic": lambda f: f.create_dataset("x", data=numbers((120, 64, 64, 3), "u1"), compression="gzip"),
    "reals": lambda f: f.create_dataset("x", data=numbers((40, 50, 52), "f4"), chunks=(7, 5, 5), compression="gzip", shuffle=True),
    "doubles": lambda f: f.create_dataset("x", data=numbers((20, 30, 31), "f8"), chunks=(20, 30, 1)),
    "big": lambda f: f.create_dataset("x", data=numbers((20, 30, 31), ">f4"), chunks=(3, 4, 4), compression="lzf"),
    "big_short": lambda f: f.create_dataset("x", data=numbers((20, 30, 31), ">i2"), chunks=(3, 1, 4), fletcher32=True, maxshape=(None, 30, 50)),
    "sums": lambda f: f.create_dataset("x", data=numbers((20, 30, 31), "i8"), chunks=(6, 4, 4), compression="gzip", fletcher32=True),
    "flags": lambda f: f.create_dataset("x", data=numbers((20, 40, 40), "u1") > 100, chunks=(6, 4, 4), compression="gzip"),
    "partly": lambda f: partly(f, "x", 258),
    "partly_zero": lambda f: partly(f, "x", None),
    "some_plain": some_plain,
    "shrunk": shrunk,
    "early": early,
    "members": compound,
    "members_chunked": lambda f: compound(f, chunks=(7, 11), compression="gzip"),
    "two": two,
}

def rows_of(file):
    for name, made in file.items():
        if made.dtype.names:
            yield from ((member, made[:][member]) for member in made.dtype.names)
        else:
            yield name, made[:]

for name, make in CASES.items():
    for version in ("earliest", "latest"):
        path = f"{sys.argv[1]}/{name}-{version}"
        with h5py.File(path + ".h5", "w", libver=version) as file:
            make(file)
        with h5py.File(path + ".h5") as file, open(path + ".pickle", "wb") as out:
            pickle.dump(dict(rows_of(file)), out)
"""

NAMES = (
    "automatic reals doubles big big_short sums flags partly partly_zero some_plain shrunk early members members_chunked two"
).split()

READ_BACK = """
import pickle, sys, h5py
with h5py.File(sys.argv[1]) as file, open(sys.argv[2], "wb") as out:
    pickle.dump({name: made[:] for name, made in file.items()}, out)
"""


@pytest.fixture(scope="module")
def files(peer_hdf5, tmp_path_factory):
    directory = tmp_path_factory.mktemp("tiles")
    peer_hdf5(FILES, directory)
    return directory


def expected_of(path):
    return pickle.loads(path.with_suffix(".pickle").read_bytes())


def assert_rows(samples, expected):
    """What was read, by key, is what h5py has, row by row."""
    (count,) = {len(rows) for rows in expected.values()}
    assert list(samples) == [str(i) for i in range(count)]
    for i, sample in enumerate(samples.values()):
        assert set(sample) == set(expected)
        for name, rows in expected.items():
            if isinstance(sample[name], str):
                assert sample[name].encode() == rows[i]
            else:
                assert np.array_equal(sample[name], rows[i]), (i, name)
                assert np.ndim(rows[i]) == 0 or sample[name].dtype == rows.dtype.newbyteorder("=")


@pytest.mark.parametrize("version", ["earliest", "latest"])
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_as_h5py_has_them(name, version, files, peer_hdf5, tmp_path, stoker_cli):
    path = files / f"{name}-{version}.h5"
    assert "pieces" in stoker_cli("check", path, status=1).text
    stoker_cli("pack", path, tmp_path / "tar")
    assert_rows(dict(sorted(read_dataset(tmp_path / "tar").items(), key=lambda one: int(one[0]))), expected_of(path))
    stoker_cli("pack", path, tmp_path / "hdf5", "--to", "hdf5", "--compress", "gzip", "--jobs", "3")
    (written,) = (tmp_path / "hdf5").glob("*.h5")
    peer_hdf5(READ_BACK, written, tmp_path / "read.pickle")
    found = pickle.loads((tmp_path / "read.pickle").read_bytes())
    for field, rows in expected_of(path).items():
        assert np.array_equal(np.array(found[field]).astype(rows.dtype), rows), field


def test_small_shards_small_groups_and_splits(files, tmp_path, stoker_cli):
    """Shards that end within a row of chunks, several writers, two arrays side by side."""
    path = files / "two-latest.h5"
    whole = expected_of(path)
    for options in ((), ("--compress", "gzip", "--to", "hdf5")):
        out = tmp_path / f"out{len(options)}"
        stoker_cli("pack", path, out, "--shard-size", "300K", "--jobs", "4", *options)
        assert len(list(out.glob("two*"))) > 5
        samples = read_dataset(out)
        assert len(samples) == 300
        for key, sample in samples.items():
            assert np.array_equal(sample["image"], whole["image"][int(key)])
            assert np.array_equal(sample["depth"], whole["depth"][int(key)])
            assert sample["label"] == int(key) % 7
    stoker_cli("pack", path, tmp_path / "split", "--split", "train=0.7,test=0.3")
    parts = [read_dataset(tmp_path / "split" / name) for name in ("train", "test")]
    assert sum(map(len, parts)) == 300
    for key, sample in parts[1].items():
        assert np.array_equal(sample["image"], whole["image"][int(key)])


def test_files_of_a_folder(files, tmp_path, stoker_cli):
    (tmp_path / "in").mkdir()
    for i in range(3):
        (tmp_path / f"in/part{i}.h5").symlink_to(files / "automatic-latest.h5")
    stoker_cli("pack", tmp_path / "in", tmp_path / "out")
    samples = read_dataset(tmp_path / "out")
    assert len(samples) == 360
    assert np.array_equal(samples["part2-00000117"]["x"], expected_of(files / "automatic-latest.h5")["x"][117])


def test_what_is_small_may_be_read_in_any_order(files, tmp_path, stoker_cli):
    rows = expected_of(files / "automatic-latest.h5")["x"]
    for options in (("--shuffle", "5"), ("--to", "lmdb")):
        out = tmp_path / options[-1]
        stoker_cli("pack", files / "automatic-latest.h5", out, *options)
        samples = read_dataset(out)
        assert len(samples) == 120 and all(np.array_equal(sample["x"], rows[int(key)]) for key, sample in samples.items())


ON_PAPER = """
import sys, h5py
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("x", (2000, 224, 224, 3), "u1", compression="gzip")
"""


@pytest.mark.parametrize("options, word", [(("--shuffle", "5"), "without --shuffle"), (("--to", "lmdb"), "order of their keys")])
def test_what_is_large_is_read_front_to_back(options, word, peer_hdf5, tmp_path, stoker_cli):
    peer_hdf5(ON_PAPER, tmp_path / "x.h5")
    refused = stoker_cli("pack", tmp_path / "x.h5", tmp_path / "out", *options, status=2)
    assert "front to back" in refused.text and word in refused.text
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").rglob("*"))


DAMAGED = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    data = np.random.default_rng(0).integers(0, 99, (40, 24, 24), "u1")
    made = file.create_dataset("x", data=data, chunks=(10, 3, 3), compression="gzip", fletcher32=True)
    file["label"] = np.arange(40)
    np.save(sys.argv[1] + ".npy", data)
    chunk = made.id.get_chunk_info_by_coord((20, 6, 3))
with open(sys.argv[1], "r+b") as file:
    file.seek(chunk.byte_offset + chunk.size // 2)
    byte = file.read(1)[0]
    file.seek(-1, 1)
    file.write(bytes([byte ^ 4]))
print(chunk.byte_offset)
"""


def test_a_damaged_chunk_costs_the_samples_it_cuts_through(peer_hdf5, tmp_path, stoker_cli):
    offset = int(peer_hdf5(DAMAGED, tmp_path / "x.h5"))
    rows = np.load(tmp_path / "x.h5.npy")
    done = stoker_cli("pack", tmp_path / "x.h5", tmp_path / "out", "--json", status=1).json
    assert [fault["sample"] for fault in done["left_out"]] == [str(i) for i in range(20, 30)]
    assert all(f"offset {offset}" in fault["cause"] and fault["field"] == "x" for fault in done["left_out"])
    samples = read_dataset(tmp_path / "out")
    assert sorted(map(int, samples)) == [*range(20), *range(30, 40)]
    assert all(np.array_equal(sample["x"], rows[int(key)]) for key, sample in samples.items())


CUT = """
import os, sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w", libver="latest") as file:
    data = np.random.default_rng(0).integers(0, 250, (40, 24, 24), "u1")
    file.create_dataset("x", data=data, chunks=(10, 3, 3))
    np.save(sys.argv[1] + ".npy", data)
with h5py.File(sys.argv[1]) as file:
    chunks = [file["x"].id.get_chunk_info(i) for i in range(256)]
    last = max(chunk.byte_offset for chunk in chunks)
    print(sorted({row for chunk in chunks if chunk.byte_offset == last for row in range(chunk.chunk_offset[0], chunk.chunk_offset[0] + 10)}))
os.truncate(sys.argv[1], last + 5)
"""


def test_a_file_that_is_cut_off_keeps_what_is_there(peer_hdf5, tmp_path, stoker_cli):
    lost = json.loads(peer_hdf5(CUT, tmp_path / "x.h5"))
    rows = np.load(tmp_path / "x.h5.npy")
    done = stoker_cli("pack", tmp_path / "x.h5", tmp_path / "out", status=1)
    assert "beyond the end of the file" in done.text
    samples = read_dataset(tmp_path / "out")
    assert sorted(map(int, samples)) == sorted(set(range(40)) - set(lost))
    assert all(np.array_equal(sample["x"], rows[int(key)]) for key, sample in samples.items())


PHOTOS = """
import sys, h5py, numpy as np
photo = np.arange(224 * 224 * 3).reshape(224, 224, 3) % 251
with h5py.File(sys.argv[1], "w") as file:
    made = file.create_dataset("image", (400, 224, 224, 3), "u1", compression="gzip", compression_opts=1)
    made[:] = photo[None] + np.arange(400).reshape(400, 1, 1, 1) % 5
    print(made.chunks)
"""


def test_memory_is_bounded(peer_hdf5, tmp_path, stoker_cli):
    """Each of these samples lies in 150,528 pieces of one byte: to note them all took gigabytes."""
    assert peer_hdf5(PHOTOS, tmp_path / "x.h5").strip() == "(50, 28, 56, 1)"
    stoker_cli("pack", tmp_path / "x.h5", tmp_path / "out", "--jobs", "2", memory=400 << 20)
    samples = read_dataset(tmp_path / "out")
    photo = np.arange(224 * 224 * 3).reshape(224, 224, 3) % 251
    assert len(samples) == 400
    for i in (0, 123, 399):
        assert np.array_equal(samples[str(i)]["image"], (photo + i % 5).astype("u1"))
