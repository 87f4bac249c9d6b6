# SPDX-License-Identifier: Apache-2.0
"""Which datasets of an HDF5 file are the samples: those whose first dimension has most of the bytes; what is left out is named."""

import warnings

import numpy as np
import pytest
import stoker

WRITE = """
import sys, h5py, numpy as np
def fill(file, *sets):
    for name, shape, dtype in sets:
        file[name] = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
with h5py.File(sys.argv[1], "w") as file:
    {code}
"""


@pytest.fixture
def h5(peer_hdf5, tmp_path):
    def make(code, name="x.h5"):
        peer_hdf5(WRITE.format(code=code), tmp_path / name)
        return tmp_path / name

    return make


def open_quietly(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stoker.IndexBuiltWarning)
        return stoker.open(path)


STATISTICS = 'fill(file, ("images", (500, 8, 8, 3), "u1"), ("mean", (3,), "f4"), ("std", (3,), "f4"))'


def test_a_mean_and_a_deviation_do_not_outvote_the_images(h5, stoker_cli, tmp_path):
    path = h5(STATISTICS)
    with pytest.warns(stoker.UnusedDataWarning, match=r"500 samples; not read: mean \(3\), std \(3\)"):
        dataset = open_quietly(path)
    assert len(dataset) == 500 and list(dataset[7]) == ["images"] and dataset.unused == ["mean (3)", "std (3)"]
    assert np.array_equal(dataset[7]["images"], (np.arange(192) + 7 * 192).astype("u1").reshape(8, 8, 3))
    for again in (stoker_cli("check", path), stoker_cli("check", path, "--json")):
        assert "mean (3)" in again.stdout and "std (3)" in again.stdout
    assert stoker_cli("check", path, "--json").json["unused"] == ["mean (3)", "std (3)"]
    packed = stoker_cli("pack", path, tmp_path / "out")
    assert "mean (3), std (3)" in packed.text
    assert "mean (3), std (3)" in stoker_cli("pack", path, tmp_path / "out").text  # already packed
    with pytest.warns(stoker.UnusedDataWarning):
        open_quietly(path)  # by its index


@pytest.mark.parametrize(
    "sets, rows, fields",
    [
        # names of classes, of variable length, and an samples that are small
        ('fill(file, ("x", (40, 50), "f4"), ("y", (40,), "i8")); file["names"] = ["a name of a class"] * 10', 40, ["x", "y"]),
        # what is of variable length has the bytes that it refers to
        (
            'm = file.create_dataset("image", (30,), h5py.vlen_dtype(np.uint8))\n'
            "    for i in range(30): m[i] = np.full(9000, i, 'u1')\n"
            '    fill(file, ("mean", (3, 32, 32), "f4"))',
            30,
            ["image"],
        ),
        # the same in compressed chunks
        (
            'm = file.create_dataset("image", (30,), h5py.vlen_dtype(np.uint8), chunks=(7,), compression="gzip")\n'
            "    for i in range(30): m[i] = np.full(9000, i, 'u1')\n"
            '    fill(file, ("mean", (3, 32, 32), "f4"))',
            30,
            ["image"],
        ),
        # a group below that has the samples, and something small at the root
        ('fill(file, ("classes", (10,), "i8"), ("data/x", (60, 30), "f4"), ("data/y", (60,), "i4"))', 60, ["x", "y"]),
        # samples at the root, something small below
        ('fill(file, ("x", (60, 30), "f4"), ("meta/scale", (3,), "f4"))', 60, ["x"]),
        # links are no splits
        ('fill(file, ("x", (60, 30), "f4"), ("c", (3,), "f4")); file["a/b"] = file["x"]; file["s"] = h5py.SoftLink("/x")', 60, ["s", "x"]),
        # a mean that keeps the first dimension is no split
        ('fill(file, ("x", (60, 3, 8, 8), "f4"), ("mean", (1, 3, 8, 8), "f4"))', 60, ["x"]),
        # keys say which they are
        ('fill(file, ("x", (9, 2), "f4"), ("big", (100, 90), "f4")); file["__key__"] = [f"k{i}" for i in range(9)]', 9, ["x"]),
    ],
)
def test_most_bytes_win(sets, rows, fields, h5):
    with pytest.warns(stoker.UnusedDataWarning):
        dataset = open_quietly(h5(sets))
    assert len(dataset) == rows
    assert list(dataset[0]) == fields


@pytest.mark.parametrize(
    "sets, choices",
    [
        ('fill(file, ("a", (50, 4), "f4"), ("b", (60, 4), "f8"))', ["a (50)", "b (60)", "x.h5::b"]),
        ('fill(file, ("a", (50,), "f4"), ("b", (60,), "f4"))', ["a (50)", "b (60)"]),
        ('fill(file, ("x_train", (600, 4), "f4"), ("x_test", (20, 4), "f4"))', ["x_train (600)", "x_test (20)"]),
        ('fill(file, ("train/y", (600,), "f4"), ("test/y", (6,), "f4"))', ["train (600: y)", "test (6: y)"]),
        # what may be the labels of the others
        ('fill(file, ("in/x", (60, 40), "f4"), ("out/y", (60,), "i8"))', ["in (60: x)", "out (60: y)", "x.h5::in/x,out/y"]),
        ('fill(file, ("x", (600, 4), "f4"), ("more/x", (300, 4), "f4"))', ["/ (600: x)", "more (300: x)", "x.h5::x"]),
    ],
)
def test_where_no_dimension_clearly_wins_the_choices_are_listed(sets, choices, h5, stoker_cli):
    path = h5(sets)
    refused = stoker_cli("check", path, status=2).stderr
    for choice in choices:
        assert choice in refused
    with pytest.raises(ValueError, match="say which"):
        stoker.open(path)


def test_what_was_chosen_in_one_shard_holds_for_all(h5, tmp_path):
    h5('fill(file, ("x", (600, 4), "f4"), ("mean", (3, 4), "f4"))', "a.h5")
    h5('fill(file, ("x", (2, 4), "f4"), ("mean", (3, 4), "f4"))', "b.h5")
    with pytest.warns(stoker.UnusedDataWarning, match=r"mean \(3\)"):
        dataset = open_quietly(tmp_path)
    assert len(dataset) == 602 and set(dataset.fields) == {"x"}


def test_a_sparse_matrix_is_not_taken_for_rows(h5, stoker_cli):
    path = h5('fill(file, ("X/data", (900,), "f4"), ("X/indices", (900,), "i4"), ("X/indptr", (31,), "i4"))')
    assert "sparse matrix" in stoker_cli("check", path, status=2).stderr


PANDAS = """
import sys, warnings
import numpy as np, pandas as pd
warnings.simplefilter("ignore")
rows = 500
frame = pd.DataFrame({"a": np.arange(rows) * 0.5, "b": np.arange(rows) * 2.0, "n": np.arange(rows)})
frame["a"].to_frame().to_hdf(sys.argv[1] + "/one.h5", key="df")
frame.to_hdf(sys.argv[1] + "/fixed.h5", key="df")
frame.to_hdf(sys.argv[1] + "/packed.h5", key="df", complevel=5)
frame["a"].to_hdf(sys.argv[1] + "/series.h5", key="s")
text = frame.assign(t=[f"text {i} that is long" * 9 for i in range(rows)])
text.to_hdf(sys.argv[1] + "/objects.h5", key="df")
text.to_hdf(sys.argv[1] + "/table.h5", key="df", format="table")
text.to_hdf(sys.argv[1] + "/columns.h5", key="df", format="table", data_columns=True)
with pd.HDFStore(sys.argv[1] + "/two.h5", "w") as store:
    store["train"], store["test"] = frame, frame[:50]
"""


@pytest.fixture(scope="module")
def pandas_files(peer_hdf5, tmp_path_factory):
    directory = tmp_path_factory.mktemp("pandas")
    peer_hdf5(PANDAS, directory)
    return directory


def ignoring(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return stoker.open(path)


@pytest.mark.parametrize("name", ["fixed", "packed", "objects"])
def test_a_frame_of_pandas_has_the_rows_of_its_index(name, pandas_files):
    dataset = ignoring(pandas_files / f"{name}.h5")
    assert len(dataset) == 500
    for i in (0, 499):
        assert dataset[i]["axis1"] == i
        assert dataset[i]["block0_values"].tolist() == [i * 0.5, i * 2.0]
        assert dataset[i]["block1_values"].tolist() == [i]


def test_a_frame_of_one_column(pandas_files):
    dataset = ignoring(pandas_files / "one.h5")
    assert len(dataset) == 500 and dataset[3]["block0_values"].tolist() == [1.5]
    series = ignoring(pandas_files / "series.h5")
    assert len(series) == 500 and series[3] == {"index": 3, "values": 1.5}


def test_pickled_columns_are_named(pandas_files, stoker_cli):
    found = stoker_cli("check", pandas_files / "objects.h5", status=1).text
    assert "block2_values" in found and "pickled" in found and 'format="table"' in found


def test_tables_of_pandas(pandas_files):
    dataset = ignoring(pandas_files / "table.h5")
    assert len(dataset) == 500 and dataset[7]["values_block_0"].tolist() == [3.5, 14.0]
    assert dataset[7]["values_block_2"] == "text 7 that is long" * 9
    columns = ignoring(pandas_files / "columns.h5")
    assert columns[9] == {"index": 9, "a": 4.5, "b": 18.0, "n": 9, "t": "text 9 that is long" * 9}


def test_of_two_frames_one_must_be_named(pandas_files, stoker_cli):
    refused = stoker_cli("check", pandas_files / "two.h5", status=2).stderr
    assert "train (500" in refused and "test (50" in refused and "two.h5::train" in refused
    assert len(ignoring(f"{pandas_files}/two.h5::test")) == 50


TEXTS = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    file["x"] = np.arange(6)
    file["words"] = np.array([[b"a", b"b"]] * 6, "S14")
    kind = np.dtype([("one", "S5", (1,)), ("two", "S14", (2,))])
    file["table"] = np.array([((b"abc",), (b"d", b"e"))] * 6, kind)
"""


def test_several_texts_in_a_sample_are_named_as_such(peer_hdf5, tmp_path, stoker_cli):
    peer_hdf5(TEXTS, tmp_path / "x.h5")
    found = stoker_cli("check", tmp_path / "x.h5", status=1).text
    assert found.count("several texts in one sample are not read") == 2
    assert ignoring(tmp_path / "x.h5")[0] == {"x": 0, "table.one": "abc"}


@pytest.mark.parametrize("test", [40, 10])
@pytest.mark.parametrize("names", [("x_train", "y_train", "x_test", "y_test"), ("XTrain", "YTrain", "XTest", "YTest"), ("x", "y", "test_x", "test_y")])
def test_splits_in_one_file_are_not_one_sample(h5, names, test):
    x, y, other_x, other_y = names
    path = h5(f'fill(file, ("{x}", (40, 8), "u1"), ("{y}", (40,), "i8"), ("{other_x}", ({test}, 8), "f4"), ("{other_y}", ({test},), "i8"))')
    with pytest.raises(ValueError, match="several splits" if test == 40 else "differ in length") as asked:
        open_quietly(path)
    for name in names:
        assert name in str(asked.value)
    assert "say which: x.h5::" in str(asked.value)
    assert sorted(open_quietly(f"{path}::{x},{y}")[0]) == sorted([x, y])
    assert sorted(open_quietly(f"{path}::test")[0]) == sorted([other_x, other_y]) and len(open_quietly(f"{path}::test")) == test
    assert len(open_quietly(f"{path.parent}::test")) == test
    with pytest.raises(FileNotFoundError, match="val.*no splits"):
        open_quietly(f"{path.parent}::val")
