# SPDX-License-Identifier: Apache-2.0
"""NumPy writes, we read; we write, NumPy reads. MNIST's and CIFAR-10's files as their descriptions have them."""

import gzip
import io
import shutil
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import stoker
from reading import read_dataset

DATA = Path(__file__).resolve().parent.parent / "data/npy"
DTYPES = ["?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", ">i2", ">u4", ">i8", ">f4", ">f8"]


def rows_of(samples: dict, field: str) -> list:
    return [sample[field] for sample in samples.values()]


def assert_rows(samples: dict, field: str, array: np.ndarray) -> None:
    found = rows_of(samples, field)
    assert len(found) == len(array)
    native = array.astype(array.dtype.newbyteorder("="))
    for value, expected in zip(found, native, strict=True):
        if expected.shape:
            assert value.dtype == native.dtype and value.shape == expected.shape
        np.testing.assert_array_equal(value, expected)


def some(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 256, size=int(np.prod(shape)) * np.dtype(dtype).itemsize, dtype="u1")
    if dtype == "?":
        return (bits.reshape(shape) % 2).astype("?")
    if "f" in dtype:
        return rng.normal(size=shape).astype(dtype)
    return bits.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
def test_every_dtype(tmp_path, stoker_cli, dtype, full):
    arrays = {"numbers": some(dtype, (11,)), "rows": some(dtype, (11, 3)), "planes": some(dtype, (11, 2, 4, 3))}
    (tmp_path / "d").mkdir()
    for name, array in arrays.items():
        np.save(tmp_path / f"d/{name}.npy", array)
    stoker_cli("index", tmp_path / "d", *(["--full"] if full else []))
    samples = read_dataset(tmp_path / "d")
    assert list(samples) == [str(i) for i in range(11)]
    for name, array in arrays.items():
        assert_rows(samples, name, array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(tmp_path, version):
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array(file, np.arange(6).reshape(3, 2), version=version)
    assert_rows(read_dataset(tmp_path / "x.npy"), "x", np.arange(6).reshape(3, 2))


def test_archive(tmp_path):
    x, y = np.arange(12.0).reshape(4, 3), np.array([b"a", b"bcd", b"", b"ef"])
    np.savez(tmp_path / "a.npz", x=x, y=y)
    samples = read_dataset(tmp_path / "a.npz")
    assert_rows(samples, "x", x)
    assert rows_of(samples, "y") == [b"a", b"bcd", b"", b"ef"]


def test_compressed_archive_is_named(tmp_path, stoker_cli):
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(4))
    assert "numpy.savez" in stoker_cli("index", tmp_path / "a.npz", status=1).text


def test_golden(tmp_path):
    samples = read_dataset(shutil.copytree(DATA, tmp_path / "d"))
    assert_rows(samples, "boxes", np.arange(12, dtype="i2").reshape(3, 2, 2))
    assert rows_of(samples, "weight") == [0.5, -1.0, 2.0]


@pytest.mark.parametrize("dtype", ["<f4", ">i2", "u1"])
def test_fortran_order_through_pack(tmp_path, stoker_cli, dtype):
    x = np.asfortranarray(some(dtype, (50, 4, 5, 3)))
    (tmp_path / "d").mkdir()
    np.save(tmp_path / "d/x.npy", x)
    np.save(tmp_path / "d/y.npy", np.arange(50))
    assert np.load(tmp_path / "d/x.npy").flags.f_contiguous
    refused = stoker_cli("index", tmp_path / "d", status=1)
    assert "Fortran order" in refused.stderr and "stoker pack" in refused.stderr
    stoker_cli("pack", tmp_path / "d", tmp_path / "to", "--to", "npy")
    np.testing.assert_array_equal(np.load(tmp_path / "to/d-000000.x.npy"), x)
    assert_rows(read_dataset(tmp_path / "to"), "x", x)
    stoker_cli("pack", tmp_path / "d", tmp_path / "tar")
    assert_rows(read_dataset(tmp_path / "tar"), "x", x)


def idx(dtype: int, array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, dtype, array.ndim, *array.shape) + array.tobytes()


def write_mnist(root, ending="", pack=bytes) -> dict[str, np.ndarray]:
    root.mkdir()
    arrays = {}
    for name, count in (("train", 60), ("t10k", 10)):
        images, labels = some("u1", (count, 28, 28)), some("u1", (count,)) % 10
        (root / f"{name}-images-idx3-ubyte{ending}").write_bytes(pack(idx(8, images)))
        (root / f"{name}-labels-idx1-ubyte{ending}").write_bytes(pack(idx(8, labels)))
        arrays[name] = images, labels
    return arrays


def test_mnist(tmp_path, stoker_cli):
    images, labels = write_mnist(tmp_path / "mnist")["train"]
    samples = read_dataset(tmp_path / "mnist/train-images-idx3-ubyte")
    assert_rows(samples, "image", images)
    assert rows_of(samples, "label") == labels.tolist()
    listed = stoker_cli("check", tmp_path / "mnist", status=2).stdout
    assert f"{tmp_path}/mnist::train" in listed and f"{tmp_path}/mnist::test" in listed
    assert_rows(read_dataset(f"{tmp_path}/mnist::train"), "image", images)
    assert len(read_dataset(f"{tmp_path}/mnist::test")) == 10
    assert "no such split" in stoker_cli("check", f"{tmp_path}/mnist::val", status=None).stderr


def test_mnist_compressed_through_pack(tmp_path, stoker_cli):
    arrays = write_mnist(tmp_path / "mnist", ".gz", gzip.compress)
    for name, (images, labels) in zip(("train", "test"), arrays.values(), strict=True):
        source = f"{tmp_path}/mnist::{name}"
        assert "stoker pack" in stoker_cli("index", source, status=1).stderr
        stoker_cli("pack", source, tmp_path / name)
        samples = read_dataset(tmp_path / name)
        assert len(samples) == len(images)
        for i, image in enumerate(images):
            assert np.array_equal(samples[f"{i}"]["image"], image)
            assert samples[f"{i}"]["label"] == labels[i]


def test_cifar(tmp_path, stoker_cli):
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    (tmp_path / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    for number in (1, 2):
        records = some("u1", (20, 3073))
        records[:, 0] %= 10
        (tmp_path / f"data_batch_{number}.bin").write_bytes(records.tobytes())
    (tmp_path / "test_batch.bin").write_bytes(records[:5].tobytes())
    assert "2 datasets, one per split" in stoker_cli("check", tmp_path, status=2).stdout
    assert len(read_dataset(f"{tmp_path}::test")) == 5
    samples = read_dataset(f"{tmp_path}::train")
    assert len(samples) == 40
    assert np.array_equal(samples["data_batch_2/7"]["image"], records[7, 1:].reshape(3, 32, 32))
    assert samples["data_batch_2/7"]["label"] == records[7, 0]
    assert stoker_cli("check", f"{tmp_path}::train", "--json").json["format"] == "npy"


def test_zeros_are_no_batch(tmp_path, stoker_cli):
    (tmp_path / "zeros.bin").write_bytes(bytes(4 * 3073))
    assert "formats known here" in stoker_cli("check", tmp_path / "zeros.bin", status=None).stderr
    (tmp_path / "my_batch.bin").write_bytes(bytes(4 * 3073))
    assert "4 samples" in stoker_cli("check", tmp_path / "my_batch.bin").stdout


def test_arrays_of_an_archive_by_name(tmp_path, stoker_cli):
    path = tmp_path / "a.npz"
    np.savez(path, x_train=np.arange(40), y_train=np.arange(40), x_test=np.arange(4), y_test=np.arange(4), mean=0.5)
    refused = stoker_cli("check", path, status=2).stderr
    assert "x_train,y_train (40); x_test,y_test (4)" in refused
    samples = read_dataset(f"{path}::x_train,y_train")
    assert len(samples) == 40 and samples["7"] == {"x_train": 7, "y_train": 7}
    assert "no array 'z'" in stoker_cli("check", f"{path}::x_train,z", status=None).stderr


def test_a_single_value_beside_arrays_is_no_field(tmp_path, stoker_cli):
    np.savez(tmp_path / "a.npz", x=np.arange(4), y=np.arange(4), mean=0.5)
    found = stoker_cli("check", tmp_path / "a.npz")
    assert "4 samples" in found.stdout and "mean" not in found.text


def test_two_members_of_one_name(tmp_path, stoker_cli):
    """One fault, and the last one counts, as for NumPy."""
    np.savez(tmp_path / "a.npz", x=np.arange(4), y=np.arange(4))
    second = io.BytesIO()
    np.save(second, np.arange(4) * 10)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("x.npy", second.getvalue())
    found = stoker_cli("index", tmp_path / "a.npz", status=1)
    assert found.text.count("has its name") == 1
    assert [sample["x"] for sample in read_dataset(tmp_path / "a.npz").values()] == [0, 10, 20, 30]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_reads_what_we_write(tmp_path, stoker_cli, dtype):
    arrays = {"n": some(dtype, (30,)), "a/b%": some(dtype, (30, 2, 3))}
    np.savez(tmp_path / "a.npz", **arrays)
    stoker_cli("pack", tmp_path / "a.npz", tmp_path / "to", "--to", "npy", "--shard-size", "500")
    for name, array in arrays.items():
        shown = name.replace("%", "%25").replace("/", "%2F")
        files = sorted((tmp_path / "to").glob(f"a-*.{shown}.npy"))
        found = [np.load(file) for file in files]
        native = array.astype(array.dtype.newbyteorder("="))
        assert all(one.dtype == native.dtype for one in found)
        np.testing.assert_array_equal(np.concatenate(found), native)
        saved = tmp_path / "saved.npy"
        np.save(saved, found[0])
        assert saved.read_bytes() == files[0].read_bytes()
    keys = np.concatenate([np.load(file) for file in sorted((tmp_path / "to").glob("*.__key__.npy"))])
    assert keys.tolist() == [str(i).encode() for i in range(30)]
    stoker_cli("check", tmp_path / "to", "--compare", tmp_path / "a.npz")
    for other in ("tar", "tfrecord"):
        stoker_cli("pack", tmp_path / "to", tmp_path / other, "--to", other)
        stoker_cli("check", tmp_path / other, "--compare", tmp_path / "a.npz")
        stoker_cli("pack", tmp_path / other, tmp_path / f"back-{other}", "--to", "npy")
        stoker_cli("check", tmp_path / f"back-{other}", "--compare", tmp_path / "a.npz")


def test_what_cannot_be_stored_is_said_first(tmp_path, stoker_cli):
    (tmp_path / "d").mkdir()
    for i in range(4):
        np.save(tmp_path / f"d/{i}.fixed.npy", np.full((2, 2), i))
        np.save(tmp_path / f"d/{i}.open.npy", np.zeros(i))
        (tmp_path / f"d/{i}.txt").write_text("a text")
        (tmp_path / f"d/{i}.cls").write_text(str(i))
    refused = stoker_cli("pack", tmp_path / "d", tmp_path / "to", "--to", "npy", status=1)
    assert 'lossy: field "open" (array) → not in npy: its shape varies' in refused.stderr
    assert 'lossy: field "txt" (text) → not in npy' in refused.stderr
    assert not (tmp_path / "to").exists()
    done = stoker_cli("pack", tmp_path / "d", tmp_path / "to", "--to", "npy", "--lossy")
    assert 'lossy: field "txt"' in done.stdout
    assert np.load(tmp_path / "to/d-000000.fixed.npy")[:, 0, 0].tolist() == [0, 1, 2, 3]
    assert np.load(tmp_path / "to/d-000000.label.npy").tolist() == [0, 1, 2, 3]
    assert sorted(p.name for p in (tmp_path / "to").glob("*.npy")) == [
        f"d-000000.{name}.npy" for name in ("__key__", "fixed", "label")
    ]


def test_damage_is_found(tmp_path, stoker_cli):
    np.savez(tmp_path / "a.npz", x=np.arange(600).reshape(100, 6), y=np.arange(100))
    stoker_cli("pack", tmp_path / "a.npz", tmp_path / "to", "--to", "npy")
    path = tmp_path / "to/a-000000.x.npy"
    contents = bytearray(path.read_bytes())
    contents[128 + 48 * 17] ^= 1
    path.write_bytes(contents)
    found = stoker_cli("check", tmp_path / "to", status=1)
    assert "a-000000.x.npy: offset 944" in found.text and "'17'" in found.text


def test_member_that_its_checksum_contradicts(stoker_cli, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(4000).reshape(1000, 4), y=np.arange(1000))
    bytes_of = bytearray(path.read_bytes())
    bytes_of[20_000] ^= 4  # in x
    path.write_bytes(bytes_of)
    with pytest.raises(zipfile.BadZipFile):
        np.load(path)["x"]
    (fault,) = stoker_cli("check", path, "--json", status=1).json["faults"]
    assert "checksum of the member" in fault["cause"]
    assert len(stoker_cli("index", path, "--full", "--json", status=1).json["faults"]) == 1
    with pytest.warns(stoker.FaultWarning):
        dataset = stoker.open(path)
    with pytest.raises(stoker.CorruptError, match="checksum"):
        dataset[999]
    assert dataset.read_many([999], fields=["y"])[0]["y"] == 999
