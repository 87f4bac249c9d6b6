# SPDX-License-Identifier: Apache-2.0
"""Files and directories as strangers have them: several splits, formats that are not read, HDF5 of all habits."""

import json
import pickle
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hostile import example, record, tar_of
from samples import image_folder, jpeg, noise, npy
from tar_bytes import simple_tar

# --- HDF5 -------------------------------------------------------------------------------------------

HDF5 = """
import sys, numpy as np, h5py
root = sys.argv[1]
random = np.random.default_rng(1)
with h5py.File(root + "/mean.h5", "w") as f:
    f["images"] = random.integers(0, 256, (500, 8, 8, 3), dtype="u1")
    f["mean"] = np.zeros(3, "f4")
    f["std"] = np.ones(3, "f4")
with h5py.File(root + "/mean_labels.h5", "w") as f:
    f["images"] = random.integers(0, 256, (500, 8, 8, 3), dtype="u1")
    f["labels"] = np.arange(500)
    f["mean"], f["std"], f["norm"] = np.zeros(3, "f4"), np.ones(3, "f4"), np.ones(3, "f4")
with h5py.File(root + "/tie.h5", "w") as f:
    f["a"] = random.integers(0, 256, (500, 16), dtype="u1")
    f["b"] = random.integers(0, 256, (400, 20), dtype="u1")
# What DataFrame.to_hdf writes by default (fixed format).
with h5py.File(root + "/fixed.h5", "w") as f:
    g = f.create_group("df")
    g.attrs["pandas_type"] = "frame"
    g["axis0"] = np.array([b"x", b"y", b"z"])
    g["axis1"] = np.arange(500)
    g["block0_items"] = np.array([b"x", b"y"])
    g["block0_values"] = random.normal(size=(500, 2))
    g["block1_items"] = np.array([b"z"])
    g["block1_values"] = np.arange(500).reshape(500, 1)
# A frame with text: a pickled object array of one variable-length element.
with h5py.File(root + "/object.h5", "w") as f:
    g = f.create_group("df")
    g.attrs["pandas_type"] = "frame"
    g["axis0"] = np.array([b"x", b"name"])
    g["axis1"] = np.arange(500)
    g["block0_items"] = np.array([b"x"])
    g["block0_values"] = random.normal(size=(500, 1))
    g["block1_items"] = np.array([b"name"])
    kind = h5py.vlen_dtype("u1")
    made = g.create_dataset("block1_values", (1,), kind)
    made[0] = random.integers(0, 256, 9000, dtype="u1")
with h5py.File(root + "/texts.h5", "w") as f:
    f["words"] = np.array([[b"one", b"two", b"three of these"]] * 50, dtype="S14")
with h5py.File(root + "/texts_and_x.h5", "w") as f:
    f["x"] = np.arange(50.0)
    f["words"] = np.array([[b"one", b"two", b"three of these"]] * 50, dtype="S14")
"""


@pytest.fixture(scope="session")
def hdf5(tmp_path_factory, peer_hdf5) -> Path:
    root = tmp_path_factory.mktemp("hdf5")
    peer_hdf5(HDF5, root)
    return root


@pytest.mark.parametrize("name, fields", [("mean", ["images"]), ("mean_labels", ["images", "labels"])])
def test_most_bytes_decide_what_the_samples_are(name, fields, hdf5, opened, stoker_cli):
    result = opened(hdf5 / f"{name}.h5")
    assert result.get("samples") == 500, result
    assert result["first"] == fields
    checked = stoker_cli("check", hdf5 / f"{name}.h5", status=None)
    for left_out in ("mean", "std"):
        assert left_out in checked.text.replace(f"{name}.h5", ""), "what is left out is not named"
    assert any("mean" in each.replace(f"{name}.h5", "") and "std" in each for each in result["heard"]), result["heard"]


def test_pack_names_what_it_leaves_out_of_hdf5(hdf5, tmp_path, stoker_cli):
    packed = stoker_cli("pack", hdf5 / "mean.h5", tmp_path / "packed", status=None)
    text = packed.text.replace("mean.h5", "").replace("mean-000", "")
    assert "mean" in text and "std" in text, repr(packed)


def test_ambiguous_hdf5_is_an_error_with_choices(hdf5, opened):
    """As many bytes in 500 rows as in 400."""
    result = opened(hdf5 / "tie.h5")
    assert "error" in result, result
    assert (
        "::a" in result["error"] and "::b" in result["error"] or "500" in result["error"] and "400" in result["error"]
    )


@pytest.mark.parametrize("name", ["fixed", "object"])
def test_a_frame_of_500_rows_is_not_one_sample(name, hdf5, opened):
    result = opened(hdf5 / f"{name}.h5")
    assert result.get("samples") in (None, 500), result
    if "error" in result:
        assert "axis" in result["error"] or "block0" in result["error"] or "pandas" in result["error"].lower()


# --- Formats that are not read ----------------------------------------------------------------------


def zarr2(root: Path) -> None:
    (root / "images").mkdir(parents=True)
    (root / ".zgroup").write_text('{"zarr_format": 2}')
    (root / "images/.zarray").write_text(
        '{"zarr_format": 2, "shape": [10, 4], "chunks": [5, 4], "dtype": "|u1", "compressor": null, "fill_value": 0, "order": "C", "filters": null}'
    )
    (root / "images/0.0").write_bytes(bytes(20))
    (root / "images/1.0").write_bytes(bytes(20))


def zarr2_array(root: Path) -> None:
    zarr2(root / "inner")
    for path in (root / "inner/images").iterdir():
        path.rename(root / path.name)
    shutil.rmtree(root / "inner")


def zarr3(root: Path) -> None:
    (root / "images/c/0").mkdir(parents=True)
    (root / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    (root / "images/zarr.json").write_text(
        '{"zarr_format": 3, "node_type": "array", "shape": [10, 4], "data_type": "uint8"}'
    )
    (root / "images/c/0/0").write_bytes(bytes(40))


def mds(root: Path) -> None:
    root.mkdir()
    shard = {
        "column_names": ["x"],
        "format": "mds",
        "samples": 2,
        "version": 2,
        "raw_data": {"basename": "shard.00000.mds", "bytes": 60},
    }
    (root / "index.json").write_text(json.dumps({"version": 2, "shards": [shard]}))
    (root / "shard.00000.mds").write_bytes(struct.pack("<IIII", 2, 16, 30, 60) + bytes(44))


def recordio(root: Path) -> None:
    root.mkdir()
    body = struct.pack("<IfQQ", 0, 3.0, 1, 0) + jpeg(1)
    body += bytes(-len(body) % 4)
    (root / "train.rec").write_bytes((struct.pack("<II", 0xCED7230A, len(body)) + body) * 5)
    (root / "train.idx").write_text("".join(f"{i}\t{i * (len(body) + 8)}\n" for i in range(5)))
    (root / "train.lst").write_text("0\t3.0\ta.jpg\n")


def tfds_other(root: Path) -> None:
    root.mkdir()
    info = {
        "name": "flowers",
        "version": "1.0.0",
        "fileFormat": "array_record",
        "splits": [{"name": "train", "shardLengths": ["10"]}],
    }
    (root / "dataset_info.json").write_text(json.dumps(info))
    (root / "features.json").write_text(
        '{"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict"}'
    )
    (root / "flowers-train.array_record-00000-of-00001").write_bytes(noise("array record", 5000))


def cifar_pickled(root: Path) -> None:
    root.mkdir()
    for i in range(1, 6):
        batch = {
            b"data": np.zeros((10, 3072), "u1"),
            b"labels": [1] * 10,
            b"batch_label": b"x",
            b"filenames": [b"a.png"] * 10,
        }
        (root / f"data_batch_{i}").write_bytes(pickle.dumps(batch, protocol=2))
    (root / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    (root / "batches.meta").write_bytes(pickle.dumps({b"label_names": [b"cat"]}, protocol=2))
    (root / "readme.html").write_text("<html></html>")


FOREIGN = [
    (zarr2, ["zarr"]),
    (zarr2_array, ["zarr"]),
    (zarr3, ["zarr"]),
    (mds, ["mds", "mosaic"]),
    (recordio, ["recordio"]),
    (tfds_other, ["tfds", "tensorflow datasets", "tensorflow_datasets", "arrayrecord", "array_record"]),
    (cifar_pickled, ["pickle"]),
]


@pytest.mark.parametrize("make, words", FOREIGN, ids=lambda each: getattr(each, "__name__", ""))
def test_a_format_that_is_not_read_is_named(make, words, tmp_path, opened, stoker_cli):
    """Not a folder of junk: an error in the user's words, from the package and from every command."""
    data = tmp_path / "data"
    make(data)
    result = opened(data)
    assert "error" in result, f"opened as {result}"
    assert any(word in result["error"].lower() for word in words), result["error"]
    for line in (["check", data], ["index", data], ["pack", data, tmp_path / "packed"]):
        done = stoker_cli(*line, status=None)
        assert done.returncode == 1, repr(done)
        assert any(word in done.text.lower() for word in words), repr(done)


# --- Things that cannot be read ---------------------------------------------------------------------


UNREADABLE = ["x.tar", "x.tfrecord", "x.h5", "x.arrow", "x.parquet", "x.npy", "x.npz", "x.feather", "data.mdb"]
SHARDS = ["x.tar", "x.tfrecord", "x.arrow", "x.parquet"]  # which alone make a directory a dataset of their format


@pytest.mark.parametrize("inside, name", [*((False, name) for name in UNREADABLE), *((True, name) for name in SHARDS)])
@pytest.mark.parametrize("contents", ["noise", "zeros", "empty"])
def test_open_of_something_unreadable_raises(name, contents, inside, tmp_path, opened):
    """0 samples and a warning is no answer."""
    data = tmp_path / "data"
    data.mkdir()
    made = {"noise": noise(name, 20_000), "zeros": bytes(20_480), "empty": b""}[contents]
    (data / name).write_bytes(made)
    result = opened(data if inside else data / name)
    if (name, contents) in [("x.tar", "zeros"), ("x.tfrecord", "empty")]:  # legal, without samples
        assert "error" in result or result["samples"] == 0
        return
    assert "error" in result, result
    assert name in result["error"] or str(data) in result["error"]


def test_an_empty_directory_raises(tmp_path, opened):
    (tmp_path / "data").mkdir()
    result = opened(tmp_path / "data")
    assert "error" in result, result


def test_a_directory_that_may_not_be_read_raises(node):
    data = node.directory / "secret"
    data.mkdir()
    (data / "x.tar").write_bytes(tar_of("x", 3))
    data.chmod(0o700)
    for command in ("check", "index"):
        done = node.alice.stoker(command, data, status=1)
        assert "ermission" in done.text


def test_a_folder_of_files_that_may_not_be_read_is_no_empty_dataset(node):
    data = node.directory / "secret"
    image_folder(data, per_class=2)
    for path in data.rglob("*.jpg"):
        path.chmod(0o600)
    done = node.alice.stoker("check", data, status=1)
    assert "ermission" in done.text
    done = node.alice.stoker("load", data, "--raw", "--epochs", "1", status=None)
    assert done.returncode == 1, repr(done)


SAMPLES = """
import json, sys, warnings, stoker
warnings.simplefilter("ignore")
try:
    print(json.dumps([sorted(sample) for sample in stoker.open(sys.argv[1])]))
except (ValueError, OSError) as error:
    print(json.dumps(str(error)))
"""


def phantoms(root: Path) -> dict[str, Path]:
    """Inputs of which a careless reader makes a sample without fields."""
    root.mkdir()
    (root / "directories.tar").write_bytes(simple_tar({}) and _directories() + simple_tar({b"a.bin": b"1"}))
    (root / "truncated.tar").write_bytes(simple_tar({b"a.bin": bytes(2000), b"b.bin": bytes(2000)})[:3000])
    (root / "bad_name.tar").write_bytes(simple_tar({b"../a.bin": b"1", b"b.bin": b"2"}))
    (root / "bad_label.tar").write_bytes(simple_tar({b"a.cls": b"three", b"b.cls": b"2"}))
    (root / "dots.tar").write_bytes(simple_tar({b"._a.bin": b"1", b".cls": b"4", b"b.bin": b"2"}))
    (root / "cut.tfrecord").write_bytes(record(example(x=1)) + record(example(x=2))[:-6])
    (root / "zero.tfrecord").write_bytes(record(example(x=1)) + bytes(16))
    (root / "object.npz").write_bytes(_object_npz())
    return {path.name: path for path in root.iterdir()}


def _directories() -> bytes:
    from tar_bytes import header

    return header(b"a/", 0, b"5") + header(b"a/b/", 0, b"5")


def _object_npz() -> bytes:
    import io

    buffer = io.BytesIO()
    np.savez(buffer, words=np.array(["one", "two"]))
    return buffer.getvalue()


PHANTOMS = [
    "directories.tar",
    "truncated.tar",
    "bad_name.tar",
    "bad_label.tar",
    "dots.tar",
    "cut.tfrecord",
    "zero.tfrecord",
    "object.npz",
]


@pytest.mark.parametrize("name", PHANTOMS)
def test_there_is_no_sample_without_fields(name, tmp_path, fresh_python):
    result = json.loads(fresh_python(SAMPLES, phantoms(tmp_path / "data")[name]).stdout.splitlines()[-1])
    assert isinstance(result, str) or [] not in result, f"a sample {{}}: {result}"


ONLY_UNREAD = """
import decimal, sys, pyarrow as pa, pyarrow.parquet
table = pa.table({"price": pa.array([decimal.Decimal("1.5")] * 5)})
with pa.OSFile(sys.argv[1] + ".arrow", "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
    stream.write_table(table)
pyarrow.parquet.write_table(table, sys.argv[1] + ".parquet")
"""


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_a_table_of_which_no_column_is_read_has_no_samples(ending, tmp_path, fresh_python, peer_arrow):
    peer_arrow(ONLY_UNREAD, tmp_path / "x")
    result = json.loads(fresh_python(SAMPLES, tmp_path / f"x.{ending}").stdout.splitlines()[-1])
    assert isinstance(result, str) or [] not in result, f"samples {{}}: {result}"


def test_a_file_of_labels_alone_is_no_phantom(tmp_path, fresh_python):
    data = tmp_path / "data"
    data.mkdir()
    (data / "labels.npy").write_bytes(npy(np.arange(5)))
    result = json.loads(fresh_python(SAMPLES, data).stdout.splitlines()[-1])
    assert result == [["labels"]] * 5 or isinstance(result, str)
