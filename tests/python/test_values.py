# SPDX-License-Identifier: Apache-2.0
"""What values become in Python, and whose memory they lie in."""

import gc
import tracemalloc

import numpy as np
import pytest
import stoker
from every_format import open_quietly
from samples import noise, npy, write_files
from tar_bytes import simple_tar
from tfrecord_bytes import example, record

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32"]
DTYPES += ["float64"]


def one_sample(tmp_path, suffix: str, data: bytes) -> dict:
    shard = tmp_path / f"{suffix}.tar"
    shard.write_bytes(simple_tar({b"key." + suffix.encode(): data}))
    return open_quietly(shard)["key"]


@pytest.mark.parametrize("size", [0, 1, 511, 512, 100_000])
def test_bytes(tmp_path, size):
    value = one_sample(tmp_path, "bin", noise(size, size))["bin"]
    assert type(value) is bytes
    assert value == noise(size, size)
    assert hash(value) == hash(noise(size, size))


def test_one_byte_is_not_shared_with_python(tmp_path):
    """Python keeps one object for each bytes of length one: reading must not write into it."""
    files = {f"{i:03d}.bin": bytes([i]) for i in range(256)}
    write_files(tmp_path, files)
    assert [sample["bin"] for sample in open_quietly(tmp_path)] == list(files.values())
    assert [bytes([i])[0] for i in range(256)] == list(range(256))


def test_text(tmp_path):
    value = one_sample(tmp_path, "txt", "grüße 世界 \0\n".encode() + b"\xff")["txt"]
    assert value == "grüße 世界 \0\n\udcff"
    assert one_sample(tmp_path, "json", b'{"a": 1}') == {"json": '{"a": 1}'}


@pytest.mark.parametrize(("text", "value"), [(b"7", 7), (b" -12\n", -12), (b"9223372036854775807", 2**63 - 1)])
def test_integers(tmp_path, text, value):
    found = one_sample(tmp_path, "cls", text)["label"]
    assert type(found) is int
    assert found == value


def test_fractions(tmp_path):
    found = one_sample(tmp_path, "score.cls", b"0.25")["score"]
    assert type(found) is float
    assert found == 0.25


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (0,), (5, 0, 2), (1,)])
def test_arrays(tmp_path, dtype, shape):
    array = (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)
    found = one_sample(tmp_path, "npy", npy(array))["npy"]
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array)
    assert found.flags.aligned and found.flags.c_contiguous and found.flags.writeable


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3).T, np.arange(5, dtype=">i4"), np.arange(20)[::3]])
def test_arrays_in_other_orders(tmp_path, array):
    found = one_sample(tmp_path, "npy", npy(array))["npy"]
    assert np.array_equal(found, array)
    assert found.dtype == array.dtype.newbyteorder("=")


def test_array_is_its_own(tmp_path):
    """Writing to an array changes nothing else, and it lives on when everything else is gone."""
    files = {f"{i}.npy": npy(np.full(1000, i)) for i in range(20)}
    write_files(tmp_path, files)
    ds = open_quietly(tmp_path)
    arrays = [sample["npy"] for sample in ds]
    arrays[3][:] = -1
    again = ds[3]["npy"]
    del ds
    gc.collect()
    assert [int(array[0]) for array in arrays] == [-1 if i == 3 else int(key) for i, key in enumerate(_keys(files))]
    assert (again == int(_keys(files)[3])).all()
    view = arrays[5][10:20]
    arrays.clear()
    gc.collect()
    assert (view == int(_keys(files)[5])).all()


def _keys(files: dict) -> list[str]:
    return sorted(name.split(".")[0] for name in files)


def test_no_copy_of_arrays_and_bytes(tmp_path):
    """What is read lies once in memory: an array in the buffer it was read into, bytes in their own object."""
    write_files(tmp_path, {"a.npy": npy(np.zeros(4_000_000, "uint8")), "b.bin": bytes(4_000_000)})
    ds = open_quietly(tmp_path)
    array = ds["a"]["npy"]
    assert not array.flags.owndata
    assert array.__array_interface__["data"][0] % 64 == 0
    tracemalloc.start()
    try:
        value = ds["b"]["bin"]
        now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(value) == 4_000_000
    assert 4_000_000 <= now and most < 5_000_000


def test_memory_comes_back(tmp_path):
    """Arrays and bytes are freed when they are let go: 2 GB in all."""
    write_files(tmp_path, {"a.npy": npy(np.zeros(5_000_000, "uint8")), "a.bin": bytes(5_000_000)})
    ds = open_quietly(tmp_path)

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(5):
        ds[0]
    before = resident()
    for _ in range(200):
        ds[0]
    assert resident() - before < 50_000_000


def test_tf_features(tmp_path):
    features = {
        "__key__": [b"k"],
        "floats": [0.5, -1.5, 3.0],
        "ints": [1, -2, 2**40],
        "one": [7],
        "real": [0.25],
        "names": [b"a", b"", b"ccc"],
        "image": [b"\xff\xd8"],
    }
    (tmp_path / "x.tfrecord").write_bytes(record(example(features)))
    sample = open_quietly(tmp_path / "x.tfrecord")["k"]
    assert sample["floats"].dtype == np.float32 and sample["floats"].tolist() == [0.5, -1.5, 3.0]
    assert sample["ints"].dtype == np.int64 and sample["ints"].tolist() == [1, -2, 2**40]
    assert sample["floats"].flags.aligned and sample["floats"].flags.writeable
    assert sample["one"] == 7 and type(sample["one"]) is int
    assert sample["real"] == 0.25 and type(sample["real"]) is float
    assert sample["names"] == [b"a", b"", b"ccc"] and type(sample["names"]) is list
    assert sample["image"] == b"\xff\xd8"


def test_plain_records(tmp_path):
    (tmp_path / "x.tfrecord").write_bytes(record(b"\xff\xfe first") + record(b""))
    ds = open_quietly(tmp_path / "x.tfrecord")
    assert list(ds) == [{"data": b"\xff\xfe first"}, {"data": b""}]
    assert list(ds.keys()) == ["x-00000000", "x-00000001"]


def test_damaged_array_is_an_error(tmp_path):
    files = {b"a.npy": npy(np.arange(3)), b"b.npy": b"rubbish", b"c.npy": npy(np.arange(4))}
    (tmp_path / "x.tar").write_bytes(simple_tar(files))
    ds = open_quietly(tmp_path)
    with pytest.raises(stoker.CorruptError) as caught:
        ds["b"]
    for word in ("x.tar", "'b'", "npy"):
        assert word in str(caught.value)
    assert len(ds["c"]["npy"]) == 4


def test_arrays_do_not_share_memory_that_is_used_again(tmp_path):
    """What an array no longer needs serves the next one, but nobody else's."""
    rows = np.arange(40 * 20_000, dtype="int32").reshape(40, 20_000)
    np.save(tmp_path / "x.npy", rows)
    dataset = open_quietly(tmp_path / "x.npy")
    kept = []
    for turn in range(6):
        values = [sample["x"] for sample in dataset.read_many(range(40))]
        assert all(np.array_equal(value, row) for value, row in zip(values, rows))
        assert all(value.ctypes.data % 64 == 0 for value in values)
        kept.append((turn, values[turn]))
        for value in values[6:]:
            value[:] = -1
    assert all(np.array_equal(value, rows[turn]) for turn, value in kept)
