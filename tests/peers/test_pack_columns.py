# SPDX-License-Identifier: Apache-2.0
"""Packing tables: rows of which something is missing, lists, and sources that look alike."""

import json
import shutil

import numpy as np
import pytest
from reading import read_dataset

WRITE = """
import sys, json, pyarrow as pa, pyarrow.feather as feather
columns = {name: pa.array(values) for name, values in json.loads(sys.argv[2]).items()}
feather.write_feather(pa.table(columns), sys.argv[1], compression=sys.argv[3])
"""


@pytest.fixture
def table(peer_arrow, tmp_path):
    def write(compression="uncompressed", **columns):
        peer_arrow(WRITE, tmp_path / "x.feather", json.dumps(columns), compression)
        return tmp_path / "x.feather"

    return write


def left_out(result):
    return sorted(fault["sample"] for fault in result.json["left_out"] if fault["sample"])


@pytest.mark.parametrize(("target", "stored"), [("tar", 2), ("lmdb", 2), ("tfrecord", 3), ("arrow", 3)])
def test_a_row_of_nulls(stoker_cli, table, tmp_path, target, stored):
    """Where nothing of it would be stored, it is not counted as if it were."""
    source = table(caption=["one", None, "three"])
    result = stoker_cli("pack", source, tmp_path / "out", "--to", target, "--json", status=0 if stored == 3 else 1)
    assert result.json["samples"] == stored
    assert left_out(result) == ([] if stored == 3 else ["x-00000001"])
    shutil.rmtree(tmp_path / "out" / ".stoker")
    assert len(read_dataset(tmp_path / "out")) == stored


@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
@pytest.mark.parametrize("beside", [{"img": ["x" * 50] * 40}, {"n": list(range(40))}])
def test_no_sample_is_packed_in_part(stoker_cli, table, tmp_path, compression, beside):
    """Twenty rows have a list that cannot be read; only the first few of them are named by the scan."""
    source = table(compression, boxes=[[1.0, None]] * 20 + [[1.0, 2.0]] * 20, **beside)
    result = stoker_cli("pack", source, tmp_path / "out", "--json", status=1)
    assert left_out(result) == [f"x-{i:08d}" for i in range(20)]
    found = read_dataset(tmp_path / "out")
    assert sorted(found) == [f"x-{i:08d}" for i in range(20, 40)]
    assert all(set(sample) == {"boxes", *beside} for sample in found.values())


def test_lists_of_any_length_come_back_from_a_tfrecord(stoker_cli, table, tmp_path):
    source = table(tags=[["a", "b"], ["c"], []])
    stoker_cli("pack", source, tmp_path / "out", "--to", "tfrecord")
    shutil.rmtree(tmp_path / "out" / ".stoker")
    assert [sample["tags"] for sample in read_dataset(tmp_path / "out").values()] == [[b"a", b"b"], [b"c"], []]
    stoker_cli("check", source, "--compare", tmp_path / "out")
    stoker_cli("pack", tmp_path / "out", tmp_path / "again", "--to", "tfrecord")
    shutil.rmtree(tmp_path / "again" / ".stoker")
    stoker_cli("check", source, "--compare", tmp_path / "again")


GROUPS = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    for value, name in enumerate(("train", "test")):
        file[name + "/x"] = np.full((50, 300), value, "float32")
"""


def test_another_group_of_a_file_is_another_source(stoker_cli, peer_hdf5, tmp_path):
    peer_hdf5(GROUPS, tmp_path / "x.h5")
    stoker_cli("pack", f"{tmp_path}/x.h5::train", tmp_path / "out", "--to", "npy")
    refused = stoker_cli("pack", f"{tmp_path}/x.h5::test", tmp_path / "out", "--to", "npy", status=2)
    assert "--overwrite" in refused.stderr
    again = stoker_cli("pack", f"{tmp_path}/x.h5::train", tmp_path / "out", "--to", "npy")
    assert "already packed" in again.stdout
    stoker_cli("pack", f"{tmp_path}/x.h5::test", tmp_path / "out", "--to", "npy", "--overwrite")
    assert np.all(np.load(next((tmp_path / "out").glob("*.npy"))) == 1)


def test_colons_in_names(stoker_cli, peer_hdf5, tmp_path):
    (tmp_path / "a::b").mkdir()
    peer_hdf5(GROUPS, tmp_path / "a::b" / "x.h5")
    assert stoker_cli("check", f"{tmp_path}/a::b/x.h5::train", "--json").json["samples"] == 50
