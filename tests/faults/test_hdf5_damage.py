# SPDX-License-Identifier: Apache-2.0
"""HDF5 files that are cut off, damaged, being written, or whose writer was killed."""

import random
from pathlib import Path

import pytest
import stoker

CORPUS = sorted((Path(__file__).parents[2] / "fuzz/corpus/hdf5").iterdir())
assert CORPUS


def samples_in(path):
    """Number of samples, and of faults; an Error counts as one."""
    try:
        report = stoker.check(path)
    except (stoker.CorruptError, stoker.UnsupportedError, ValueError, OSError):
        return 0, 1
    return report.samples, len(report.faults)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_no_truncation_goes_unnoticed(path, tmp_path):
    whole = path.read_bytes()
    damaged = tmp_path / "x.h5"
    step = max(1, len(whole) // 40)
    for size in range(0, len(whole), step):
        damaged.write_bytes(whole[:size])
        _, faults = samples_in(damaged)
        assert faults > 0, f"cut at {size} of {len(whole)}"


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_damage_is_survived(path, tmp_path):
    whole = path.read_bytes()
    damaged = tmp_path / "x.h5"
    rng = random.Random(path.name)
    for _ in range(50):
        data = bytearray(whole)
        at = rng.randrange(len(data))
        kind = rng.randrange(3)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + 8] = b"\xff" * len(data[at : at + 8])
        else:
            other = rng.randrange(len(data))
            data[at : at + 8], data[other : other + 8] = data[other : other + 8], data[at : at + 8]
        damaged.write_bytes(data)
        samples_in(damaged)


KILLED = """
import os, sys, h5py, numpy as np
pid = os.fork()
if pid == 0:
    file = h5py.File(sys.argv[1], "w", libver=sys.argv[2])
    made = file.create_dataset("x", (0, 8), "i4", maxshape=(None, 8), chunks=(4, 8))
    for i in range(200):
        made.resize((i + 1, 8))
        made[i] = i
        if i == 100 and sys.argv[3] == "flushed":
            file.flush()
    os._exit(0)
os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("flushed", ["flushed", "never"])
@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_a_killed_writer(version, flushed, peer_hdf5, tmp_path):
    path = tmp_path / "x.h5"
    peer_hdf5(KILLED, path, version, flushed)
    samples, faults = samples_in(path)
    assert faults > 0 or samples in (101, 200)
    if version == "latest" and flushed == "flushed":
        assert faults > 0
        with pytest.warns(stoker.FaultWarning):
            dataset = stoker.open(path)
        for key, sample in zip(dataset.keys(), dataset, strict=True):
            assert set(sample["x"].tolist()) <= {int(key), 0}


SWMR = """
import sys, shutil, h5py, numpy as np
with h5py.File(sys.argv[1], "w", libver="latest") as file:
    made = file.create_dataset("x", (0, 8), "i4", maxshape=(None, 8), chunks=(4, 8))
    file.swmr_mode = True
    for i in range(50):
        made.resize((i + 1, 8))
        made[i] = i
    made.flush()
    shutil.copyfile(sys.argv[1], sys.argv[2])
"""


def test_a_file_being_written(peer_hdf5, tmp_path):
    peer_hdf5(SWMR, tmp_path / "whole.h5", tmp_path / "now.h5")
    report = stoker.check(tmp_path / "now.h5")
    assert report.samples == 50
    assert any("SWMR" in str(fault) for fault in report.faults)
    assert samples_in(tmp_path / "whole.h5") == (50, 0)


def test_links_in_a_circle(peer_hdf5, tmp_path):
    path = tmp_path / "x.h5"
    peer_hdf5(
        """
import sys, h5py
with h5py.File(sys.argv[1], "w") as file:
    group = file.create_group("a")
    group["up"] = file
    group["self"] = group
    file["one"] = h5py.SoftLink("/two")
    file["two"] = h5py.SoftLink("/one")
    file["out"] = h5py.ExternalLink("other.h5", "/x")
""",
        path,
    )
    assert samples_in(path)[1] > 0


READ_ALL = """
import os, signal, sys, h5py
pid = os.fork()
if pid == 0:
    signal.alarm(5)
    try:
        with h5py.File(sys.argv[1]) as file:
            for name in file:
                file[name][()]
    except Exception:
        pass
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_what_the_library_does_not_come_back_from(peer_hdf5, tmp_path):
    """One byte of a global heap is damaged: libhdf5 1.14.6 reads it forever, in whichever process it is. We say what is wrong."""
    data = bytearray((Path(__file__).parents[1] / "data/hdf5/written.h5").read_bytes())
    data[592] = 0xFF
    (tmp_path / "x.h5").write_bytes(data)
    assert int(peer_hdf5(READ_ALL, tmp_path / "x.h5")) < 0  # ended by the alarm, or by itself
    report = stoker.check(tmp_path / "x.h5")
    assert report.faults and all("global heap" in fault.cause for fault in report.faults)
