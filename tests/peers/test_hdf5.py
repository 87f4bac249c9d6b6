# SPDX-License-Identifier: Apache-2.0
"""h5py writes, we read."""

import pickle
from pathlib import Path

import hdf5_files
import numpy as np
import pytest
import stoker
from reading import assert_same_samples, read_dataset


@pytest.fixture(scope="session")
def cases(peer_hdf5, tmp_path_factory):
    directory = tmp_path_factory.mktemp("hdf5")
    peer_hdf5(Path(hdf5_files.__file__), directory)
    return directory


@pytest.mark.parametrize("depth", ["structure", "full"])
@pytest.mark.parametrize("name", hdf5_files.CASES)
def test_every_value_is_as_h5py_has_it(name, depth, cases, stoker_cli):
    path = cases / f"{name}.h5"
    if depth == "full":
        stoker_cli("index", "--full", path)
        assert "every byte matches" in stoker_cli("check", path).stdout
    expected = pickle.loads((cases / f"{name}.pickle").read_bytes())
    assert_same_samples(read_dataset(path), {str(i): sample for i, sample in enumerate(expected)})


def test_the_ways_of_finding_chunks_are_all_there(cases):
    latest = (cases / "indexes-latest.h5").read_bytes()
    for signature in (b"FAHD", b"EAHD", b"BTHD"):
        assert signature in latest
    # The layout of chunks of three dimensions, each in one byte: HDF5 2.0 has a version of its own for filtered ones.
    for flags, dims in ((0, b"\x04\x01\x02\x04\x06\x04"), (2, b"\x04\x01\x17\x04\x06\x04")):
        assert bytes([5, 2, flags]) + dims in latest
        assert bytes([4, 2, flags]) + dims in (cases / "indexes-v110.h5").read_bytes()
    assert b"TREE" in (cases / "indexes-earliest.h5").read_bytes()
    assert b"FRHP" in (cases / "many_links-latest.h5").read_bytes()
    assert b"SNOD" in (cases / "many_links-earliest.h5").read_bytes()


DEEP = """
import sys, h5py, numpy as np
rows = 140000  # so many that the arrays which note the chunks have pages, and trees several levels
with h5py.File(sys.argv[1], "w", libver="latest") as file:
    data = np.arange(rows, dtype="i4")
    file.create_dataset("extensible", data=data, chunks=(1,), maxshape=(None,))
    file.create_dataset("fixed", data=data, chunks=(1,), maxshape=(rows,))
    file.create_dataset("tree", data=data.reshape(rows, 1), chunks=(20, 1), maxshape=(None, None), compression="gzip")
    file.create_dataset("packed", data=data, chunks=(20,), compression="gzip")
"""


def test_many_chunks(peer_hdf5, tmp_path):
    peer_hdf5(DEEP, tmp_path / "deep.h5")
    with pytest.warns(stoker.IndexBuiltWarning):
        dataset = stoker.open(tmp_path / "deep.h5")
    assert len(dataset) == 140000
    for i in [*range(0, 140000, 61), 139999]:
        assert {name: int(np.ravel(value)[0]) for name, value in dataset[i].items()} == dict.fromkeys(
            ("extensible", "fixed", "packed", "tree"), i
        )


BIG_ENDIAN = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    made = file.create_dataset("x", (2,), h5py.vlen_dtype(np.dtype(">i4")))
    made[0], made[1] = np.array([1, 2], ">i4"), np.array([3], ">i4")
"""


def test_sequences_in_the_other_byte_order(peer_hdf5, tmp_path):
    """What h5py 3.14 writes as 1 it reads as 16777216: here it is what was written that counts."""
    peer_hdf5(BIG_ENDIAN, tmp_path / "x.h5")
    samples = read_dataset(tmp_path / "x.h5")
    assert [sample["x"].tolist() for sample in samples.values()] == [[1, 2], [3]]


TWO_GROUPS = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    for name, rows in (("train", 20), ("deep/test", 5)):
        file[name + "/image"] = np.arange(rows * 6, dtype="u1").reshape(rows, 6)
        file[name + "/label"] = np.arange(rows)
"""

SIDE_BY_SIDE = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    for name, rows in (("train", 20), ("test", 5)):
        file["x_" + name] = np.arange(rows * 6, dtype="u1").reshape(rows, 6)
        file["y_" + name] = np.arange(rows)
    file["classes"] = np.array([b"a", b"b"])
"""


def test_of_several_groups_one_must_be_named(peer_hdf5, tmp_path, stoker_cli):
    path = tmp_path / "data.h5"
    peer_hdf5(TWO_GROUPS, path)
    refused = stoker_cli("check", path, status=2).stderr
    assert "train (20: image,label)" in refused and "deep/test (5: image,label)" in refused
    assert "data.h5::train" in refused
    assert len(read_dataset(f"{path}::train")) == 20
    assert len(read_dataset(f"{path}::deep/test")) == 5
    assert "no group or dataset nothing" in stoker_cli("check", f"{path}::nothing", status=None).stderr


def test_of_datasets_of_several_lengths_some_must_be_named(peer_hdf5, tmp_path, stoker_cli):
    path = tmp_path / "data.h5"
    peer_hdf5(SIDE_BY_SIDE, path)
    refused = stoker_cli("check", path, status=2).stderr
    assert "x_train,y_train (20)" in refused and "x_test,y_test (5)" in refused
    samples = read_dataset(f"{path}::x_test,y_test")
    assert len(samples) == 5 and samples["3"]["y_test"] == 3
    assert list(read_dataset(f"{path}::x_train")["7"]) == ["x_train"]


def test_files_of_a_folder_are_shards(peer_hdf5, tmp_path):
    for i in range(3):
        peer_hdf5(TWO_GROUPS, tmp_path / f"part{i}.h5")
    samples = read_dataset(f"{tmp_path}::train")
    assert len(samples) == 60
    assert samples["part2-00000007"]["label"] == 7


MANY_PIECES = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    data = np.arange(6 * 40 * 40, dtype="i4").reshape(6, 40, 40)
    file.create_dataset("x", data=data, chunks=(2, 4, 4), compression="gzip")
    file["label"] = np.arange(6)
"""


def test_chunks_cut_across_samples_are_for_pack(peer_hdf5, tmp_path, stoker_cli):
    path = tmp_path / "data.h5"
    peer_hdf5(MANY_PIECES, path)
    refused = stoker_cli("index", path, status=1)
    assert "400 pieces" in refused.stdout + refused.stderr and "stoker pack" in refused.stdout + refused.stderr
    stoker_cli("pack", path, tmp_path / "out")
    samples = read_dataset(tmp_path / "out")
    for i in range(6):
        assert np.array_equal(samples[str(i)]["x"], np.arange(1600, dtype="i4").reshape(40, 40) + 1600 * i)


OTHERS = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1] + "/virtual.h5", "w", libver="latest") as file:
    layout = h5py.VirtualLayout((4, 3), "i4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (4, 3))
    file.create_virtual_dataset("x", layout)
    file["label"] = np.arange(4)
with h5py.File(sys.argv[1] + "/external.h5", "w") as file:
    file.create_dataset("x", (4, 3), "i4", external=[("other.raw", 0, 48)])
    file["label"] = np.arange(4)
with h5py.File(sys.argv[1] + "/filter.h5", "w") as file:
    file.create_dataset("x", data=np.arange(12).reshape(4, 3), chunks=(2, 3), scaleoffset=True)
    file["label"] = np.arange(4)
"""


@pytest.mark.parametrize(
    "name, word", [("virtual", "virtual dataset"), ("external", "external storage"), ("filter", "scale-offset")]
)
def test_what_cannot_be_read_is_named_and_the_rest_is_read(name, word, peer_hdf5, tmp_path, stoker_cli):
    peer_hdf5(OTHERS, tmp_path)
    path = tmp_path / f"{name}.h5"
    refused = stoker_cli("index", path, status=1)
    assert word in refused.stdout + refused.stderr
    assert read_dataset(path)["2"] == {"label": 2}


@pytest.mark.parametrize("compress", [(), ("--compress", "gzip")], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", ["contiguous-latest", "variable-earliest", "text-latest", "compound-latest", "pieces-latest"])
def test_what_we_write_is_as_h5py_has_it(name, compress, cases, peer_hdf5, tmp_path, stoker_cli):
    stoker_cli("pack", cases / f"{name}.h5", tmp_path / "out", "--to", "hdf5", *compress)
    assert "same samples" in stoker_cli("check", tmp_path / "out", "--compare", cases / f"{name}.h5").stdout
    (written,) = (tmp_path / "out").glob("*.h5")
    peer_hdf5(Path(hdf5_files.__file__), tmp_path / "read.pickle", written)
    found = pickle.loads((tmp_path / "read.pickle").read_bytes())
    expected = pickle.loads((cases / f"{name}.pickle").read_bytes())
    keyed = [{"__key__": str(i), **sample} for i, sample in enumerate(expected)]
    assert_same_samples(dict(enumerate(found)), {i: dict(sorted(s.items())) for i, s in enumerate(keyed)})


def test_many_samples_in_several_files(peer_hdf5, tmp_path, stoker_cli):
    """Trees of several levels, chunks that are not full, several shards."""
    peer_hdf5(MANY, tmp_path / "many.h5")
    for options in ((), ("--compress", "gzip")):
        out = tmp_path / f"out{len(options)}"
        stoker_cli("pack", tmp_path / "many.h5", out, "--to", "hdf5", "--shard-size", "2M", *options)
        assert "same samples" in stoker_cli("check", out, "--compare", tmp_path / "many.h5").stdout
        assert "right" in peer_hdf5(READ_MANY, out)


MANY = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w", libver="latest") as file:
    rows = 20000
    file.create_dataset("a", data=np.arange(rows * 10, dtype="i4").reshape(rows, 10), chunks=(7, 10), maxshape=(None, 10))
    file.create_dataset("n", data=np.arange(rows, dtype="i8"), chunks=(100,), compression="gzip")
    texts = file.create_dataset("t", (rows,), h5py.string_dtype(), chunks=(64,))
    texts[:] = [f"text {i}" * (i % 5) for i in range(rows)]
"""

READ_MANY = """
import sys, h5py, numpy as np
from pathlib import Path
paths = sorted(Path(sys.argv[1]).glob("*.h5"))
assert len(paths) > 1
at = 0
for path in paths:
    with h5py.File(path) as file:
        keys = file["__key__"].asstr()[:]
        rows = len(keys)
        assert keys.tolist() == [str(i) for i in range(at, at + rows)]
        assert np.array_equal(file["n"][:], np.arange(at, at + rows))
        assert np.array_equal(file["a"][:], np.arange(at * 10, (at + rows) * 10).reshape(rows, 10))
        assert file["t"].asstr()[:].tolist() == [f"text {i}" * (i % 5) for i in range(at, at + rows)]
    at += rows
assert at == 20000
print("right")
"""


DAMAGED_NUMBERS = """
import sys, h5py, numpy as np
rows = 2_000_000
with h5py.File(sys.argv[1], "w") as file:
    labels = np.random.default_rng(0).integers(0, 10, rows).astype("u1")
    made = file.create_dataset("label", data=labels, chunks=(rows,), compression="gzip", compression_opts=1)
    chunk = made.id.get_chunk_info(0)
with open(sys.argv[1], "r+b") as file:
    file.seek(chunk.byte_offset + chunk.size - 8)
    byte = file.read(1)[0]
    file.seek(-1, 1)
    file.write(bytes([byte ^ 1]))
"""


def test_a_damaged_chunk_is_decoded_once(peer_hdf5, tmp_path, stoker_cli):
    peer_hdf5(DAMAGED_NUMBERS, tmp_path / "x.h5")
    found = stoker_cli("check", tmp_path / "x.h5", status=1, timeout=60)
    assert "lost: 2000000 samples up to '1999999'" in found.text
    checked = stoker_cli("check", "--json", tmp_path / "x.h5", status=1, timeout=60)
    assert [fault["samples"] for fault in checked.json["faults"]] == [2_000_000]


C_KEYS = """
import sys, h5py, numpy as np
from h5py import h5d, h5p, h5s, h5t
with h5py.File(sys.argv[1], "w") as file:
    file["x"] = np.arange(4)
    kind = h5t.C_S1.copy()
    kind.set_size(8)  # ended by a NUL, as programs in C write it
    space = h5s.create_simple((4,), (h5s.UNLIMITED,))
    chunks = h5p.create(h5p.DATASET_CREATE)
    chunks.set_chunk((4,))
    made = h5d.create(file.id, b"__key__", kind, space, chunks)
    made.write(h5s.ALL, h5s.ALL, np.array([b"a", b"b", b"", b"d"], dtype="S8"), kind)
"""


def test_an_empty_key_is_a_key(peer_hdf5, tmp_path):
    peer_hdf5(C_KEYS, tmp_path / "x.h5")
    assert read_dataset(tmp_path / "x.h5") == {"a": {"x": 0}, "b": {"x": 1}, "": {"x": 2}, "d": {"x": 3}}


NULS = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1] + "/text.h5", "w") as file:
    file["t"] = np.array([b"a\\0b", b"xyz", b"ab\\0c"], dtype="S5")
    file["x"] = np.arange(3)
with h5py.File(sys.argv[1] + "/key.h5", "w") as file:
    file["__key__"] = np.array([b"a\\0b", b"xyz", b"ab\\0c"], dtype="S5")
    file["x"] = np.arange(3)
"""

READ_NULS = """
import sys, h5py
with h5py.File(sys.argv[1]) as file:
    print([file["__key__"][0], int(file["x"][0]), len(file["x"])])
"""


@pytest.mark.parametrize("name, key", [("text", b"1"), ("key", b"xyz")])
def test_what_h5py_would_read_up_to_its_nul_is_left_out(name, key, peer_hdf5, tmp_path, stoker_cli):
    """The library takes texts of variable length for C strings."""
    peer_hdf5(NULS, tmp_path)
    done = stoker_cli("pack", tmp_path / f"{name}.h5", tmp_path / "nul", "--to", "hdf5", status=1)
    assert done.text.count("NUL byte") == 2
    assert peer_hdf5(READ_NULS, tmp_path / f"nul/{name}-000000.h5").strip() == str([key, 1, 1])


def test_more_dimensions_than_hdf5_has(tmp_path, stoker_cli):
    np.savez(tmp_path / "x.npz", x=np.zeros((3,) + (1,) * 31), y=np.arange(3))
    stoker_cli("pack", tmp_path / "x.npz", tmp_path / "fits", "--to", "hdf5")
    (tmp_path / "s").mkdir()
    for i in range(3):
        header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + "1, " * 32 + "), }"
        head = b"\x93NUMPY\x01\x00" + (182).to_bytes(2, "little") + header.ljust(181).encode() + b"\n"
        (tmp_path / f"s/{i}.x.npy").write_bytes(head + b"\x07")
        (tmp_path / f"s/{i}.cls").write_text("1")
    refused = stoker_cli("pack", tmp_path / "s", tmp_path / "out", "--to", "hdf5", status=1)
    assert "more than 31 dimensions" in refused.text


ONE_PER_SAMPLE = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    for i in range(12):
        file[f"img{i}"] = np.arange(32 * 6, dtype="u1").reshape(32, 6)
    file["mean"] = np.zeros(6)
"""


def test_one_dataset_per_sample_is_not_read_as_fields(peer_hdf5, tmp_path, stoker_cli):
    path = tmp_path / "data.h5"
    peer_hdf5(ONE_PER_SAMPLE, path)
    refused = stoker_cli("check", path, status=2).stderr
    assert "12 datasets such as img0 and img1" in refused and "one per sample" in refused
    found = stoker_cli("check", f"{path}::img0,img1,img2").stdout
    assert "32 samples" in found
    stoker_cli("pack", f"{path}::img0,img1,img2", tmp_path / "out", "--to", "hdf5")
    assert "32 samples" in stoker_cli("check", tmp_path / "out").stdout


ON_PAPER = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    made = file.create_dataset("x", (int(sys.argv[2]),), "f4", chunks=(1024,))
    made[:5000] = 1
"""


def test_samples_that_were_never_written_are_bounded(peer_hdf5, tmp_path, stoker_cli):
    peer_hdf5(ON_PAPER, tmp_path / "few.h5", "100000")
    assert "100,000 samples" in stoker_cli("check", tmp_path / "few.h5").stdout
    peer_hdf5(ON_PAPER, tmp_path / "many.h5", "20000000")
    found = stoker_cli("check", tmp_path / "many.h5", status=1).text
    assert "states 20000000 samples" in found and "holds 5120" in found


MODEL = """
import sys, h5py
with h5py.File(sys.argv[1], "w") as file:
    file["weights"] = [1.0, 2.0]
"""


def test_a_model_beside_recordings_is_no_dataset(peer_hdf5, tmp_path, stoker_cli):
    for i in range(20):
        (tmp_path / f"{i}.wav").write_bytes(b"RIFF")
    peer_hdf5(MODEL, tmp_path / "model.h5")
    assert ": folder, " in stoker_cli("check", tmp_path).stdout


SAME_NAME = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    file["p"] = np.zeros(40, dtype=[("a", "i4"), ("b", "f4")])
    file["p.a"] = np.arange(40) + 7
"""


def test_two_fields_of_one_name_are_one_fault(peer_hdf5, tmp_path, stoker_cli):
    peer_hdf5(SAME_NAME, tmp_path / "x.h5")
    found = stoker_cli("check", tmp_path / "x.h5", status=1).text
    assert found.count("has its name") == 1 and "40 samples" in found


@pytest.mark.parametrize("format", ["hdf5", "lmdb"])
def test_memory_does_not_grow_with_samples(format, tmp_path, stoker_cli):
    """More bytes than there is memory, in samples of which a group of a fixed number would not fit either."""
    (tmp_path / "big").mkdir()
    for i in range(24):
        with open(tmp_path / f"big/{i}.bin", "wb") as file:
            file.truncate(16 << 20)
    stoker_cli("pack", tmp_path / "big", tmp_path / "out", "--to", format, "--jobs", "1", memory=300 << 20)
    assert "24 samples" in stoker_cli("check", tmp_path / "out").stdout


CLASSES = """
import sys, h5py, numpy as np
names = ["class number %03d %s" % (i, "x" * int(sys.argv[3])) for i in range(int(sys.argv[2]))]
with h5py.File(sys.argv[1], "w", libver="latest") as file:
    kind = h5py.enum_dtype({name: i for i, name in enumerate(names)}, basetype="u1")
    file.create_dataset("label", data=np.arange(60, dtype="u1"), dtype=kind)
"""

READ_CLASSES = """
import sys, h5py
with h5py.File(sys.argv[1]) as file:
    print([name.decode() for name in file["__classes__"][:5]], len(file["__classes__"]), len(file["label"]))
"""


def test_names_of_many_classes_are_kept(peer_hdf5, tmp_path, stoker_cli):
    """More than the type of the labels has room for."""
    peer_hdf5(CLASSES, tmp_path / "x.h5", "200", "5")
    names = [f"class number {i:03} xxxxx" for i in range(200)]
    with pytest.warns(stoker.IndexBuiltWarning):
        assert stoker.open(tmp_path / "x.h5").classes == names
    stoker_cli("pack", tmp_path / "x.h5", tmp_path / "out", "--to", "hdf5")
    written = tmp_path / "out/x-000000.h5"
    assert peer_hdf5(READ_CLASSES, written).strip() == f"{names[:5]} 200 60"
    written.rename(tmp_path / "alone.h5")
    with pytest.warns(stoker.IndexBuiltWarning):
        dataset = stoker.open(tmp_path / "alone.h5")
    assert dataset.classes == names and len(dataset) == 60 and set(dataset[0]) == {"label"}
