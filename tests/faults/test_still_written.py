# SPDX-License-Identifier: Apache-2.0
"""Files that somebody is still writing: what is whole is read, and it is said; when they grow, the index says so."""

import pytest
import stoker
from reading import read_dataset

HDF5 = """
import shutil, sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w", libver=sys.argv[3]) as file:
    made = file.create_dataset("x", (0, 8), "i4", maxshape=(None, 8), chunks=(4, 8))
    for i in range(50):
        made.resize((i + 1, 8))
        made[i] = i
        if i == 29:
            file.flush()
            shutil.copyfile(sys.argv[1], sys.argv[2])  # as a reader would find it at this moment
"""


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_hdf5_that_is_open(version, peer_hdf5, tmp_path, stoker_cli):
    now = tmp_path / "now.h5"
    peer_hdf5(HDF5, tmp_path / "whole.h5", now, version)
    assert [row["x"].tolist() for row in read_dataset(tmp_path / "whole.h5").values()] == [[i] * 8 for i in range(50)]
    if version == "latest":  # only a superblock of version 3 says so
        said = stoker_cli("check", now, status=1).stdout
        assert "is being written, or the writer was killed" in said
    with pytest.warns(stoker.FaultWarning if version == "latest" else stoker.IndexBuiltWarning):
        found = stoker.open(now)
    assert [row["x"].tolist() for row in found] == [[i] * 8 for i in range(30)]


ARROW = """
import shutil, sys, pyarrow as pa
schema = pa.schema([("n", pa.int64()), ("t", pa.string())])
kind, path, now = sys.argv[1:4]
new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
with open(path, "wb") as file, new(file, schema) as writer:
    for k in range(5):
        rows = range(10 * k, 10 * k + 10)
        writer.write_batch(pa.record_batch([pa.array(rows), pa.array([f"text {i}" for i in rows])], schema=schema))
        if k == 2:
            file.flush()
            shutil.copyfile(path, now)
"""


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_arrow_that_is_open(kind, peer_arrow, tmp_path, stoker_cli):
    peer_arrow(ARROW, kind, tmp_path / "whole.arrow", tmp_path / "now.arrow")
    result = stoker_cli("check", tmp_path / "now.arrow", "--json", status=1).json
    assert result["samples"] == 30 and {fault["shard"] for fault in result["faults"]} == {"now.arrow"}
    with pytest.warns((stoker.FaultWarning, stoker.IndexBuiltWarning)):
        found = stoker.open(tmp_path / "now.arrow")
    assert [(row["n"], row["t"]) for row in found] == [(i, f"text {i}") for i in range(30)]


PARQUET = """
import shutil, sys, pyarrow as pa, pyarrow.parquet as parquet
table = pa.table({"n": range(10)})
with open(sys.argv[1], "wb") as file, parquet.ParquetWriter(file, table.schema) as writer:
    for k in range(3):
        writer.write_table(table)
    file.flush()
    shutil.copyfile(sys.argv[1], sys.argv[2])
"""


def test_parquet_that_is_open(peer_arrow, tmp_path, stoker_cli):
    """Its footer comes last: until then nobody can say where anything is."""
    peer_arrow(PARQUET, tmp_path / "whole.parquet", tmp_path / "now.parquet")
    assert len(read_dataset(tmp_path / "whole.parquet")) == 30
    assert "footer is missing" in stoker_cli("check", tmp_path / "now.parquet", status=1).text


GROW = {
    "hdf5": """
import os, sys, h5py, numpy as np
with h5py.File(sys.argv[1], "a") as file:
    if "x" not in file:
        file.create_dataset("x", (0, 8), "i4", maxshape=(None, 8), chunks=(4, 8))
    made, size = file["x"], file["x"].shape[0]
    made.resize((size + 30, 8))
    made[size:] = np.arange(size, size + 30)[:, None] * np.ones(8, "i4")
""",
    "arrow": """
import os, sys, pyarrow as pa
old = pa.ipc.open_stream(sys.argv[1]).read_all().num_rows if os.path.exists(sys.argv[1]) else 0
table = pa.table({"x": [[i] * 8 for i in range(old + 30)]})
with pa.ipc.new_stream(sys.argv[1], table.schema) as writer:
    writer.write_table(table, max_chunksize=10)
""",
}


@pytest.mark.parametrize("form", GROW)
def test_a_file_that_grows(form, request, tmp_path, stoker_cli):
    """The index is of what was there: it says that there is something else now, and made anew it has all."""
    path = tmp_path / f"x.{form}"
    peer = request.getfixturevalue(f"peer_{form}")
    peer(GROW[form], path)
    stoker.index(path, full=True)
    assert stoker.check(path).good
    peer(GROW[form], path)
    assert path.name in stoker_cli("check", path, status=1).text
    stoker.index(path, full=True)
    assert stoker.check(path).good
    assert [row["x"].tolist() for row in read_dataset(path).values()] == [[i] * 8 for i in range(60)]
