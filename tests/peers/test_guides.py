# SPDX-License-Identifier: Apache-2.0
"""The guides that can be run, as a user runs them; and the benchmark behind the one that compares formats."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import stoker
from guide import Guide
from samples import jpeg, write_files
from stoker_program import ROOT, clean_environment, program

COUNT = 48


def shape_of(lines: list[str]) -> list[str]:
    """Lines without what differs from run to run: numbers and the size of their units."""
    plain = [re.sub(r"\d[\d,.]*", "0", line) for line in lines]
    return [re.sub(r"\b0 (?:[µm]?s|[kMG]?B)\b", "0 unit", line) for line in plain]


@pytest.fixture
def environment(tmp_path, peer_torch) -> dict[str, str]:
    """`python` is the one that has PyTorch and h5py, and finds stoker and nothing else of the tests'."""
    packages, commands = tmp_path / "packages", tmp_path / "bin"
    packages.mkdir()
    (packages / "stoker").symlink_to(Path(stoker.__file__).parent)
    commands.mkdir()
    # Not a link: an interpreter looks for its environment where it was called.
    (commands / "python").write_text(f'#!/bin/sh\nexec "{peer_torch.interpreter()}" "$@"\n')
    (commands / "python").chmod(0o755)
    (commands / "stoker").symlink_to(program())
    clean = clean_environment(tmp_path / "home")
    return {
        **clean,
        "PATH": f"{commands}:{clean['PATH']}",
        "PYTHONPATH": os.fspath(packages),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }


def test_from_a_folder_to_hdf5_to_training(environment, peer_torch, tmp_path):
    guide = Guide(ROOT / "docs/guides/hdf5.md")
    directory = tmp_path / "work"
    photos = {f"photos/{'abc'[i % 3]}/{i:02d}.jpg": jpeg(i, 40 + i % 9, 50 - i % 7) for i in range(COUNT)}
    write_files(directory, photos)
    assert guide.write_files(directory)
    printed = guide.run(directory, environment)
    assert {command: shape_of(lines) for command, lines in printed.items()} == {
        command: shape_of(lines) for command, lines in guide.shown.items()
    }
    # The same samples with the same pixels, whoever loaded them.
    trained = [
        [line.rpartition(":")[0] for line in printed[f"python {script}"]]
        for script in ("train_h5py.py", "train_stoker.py packed", "train_stoker.py photos.h5")
    ]
    assert all(line.startswith(f"epoch {i}: {COUNT} samples, labels {COUNT}, pixels ") for i, line in enumerate(trained[0]))
    assert trained[0] == trained[1] == trained[2]
    size = sum(map(len, photos.values()))
    assert [line.split(",")[0] for line in printed["python read.py"]] == [
        f"with_h5py: {size} bytes",
        f"with_stoker: {size} bytes",
    ]
    names = peer_torch("import h5py, sys; print(*h5py.File(sys.argv[1]))", directory / "packed/photos-000000.h5")
    assert names.split() == ["__key__", "image", "label"]


def rows_of(text: str) -> list[list[str]]:
    """The tables' formats, one list for each table."""
    tables = re.findall(r"^\|---.*\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    return [[line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()] for table in tables]


def test_which_format(peer_arrow, tmp_path):
    """The benchmark runs, and the guide shows the rows that it prints."""
    command = [sys.executable, ROOT / "bench/formats.py", "--quick", "--arrow-python", peer_arrow.interpreter(), tmp_path]
    environment = {**os.environ, "STOKER_PROGRAM": os.fspath(program())}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr  # as many samples in all of them, or it fails
    photos, arrays = rows_of(done.stdout)
    assert photos == ["folder", "tar", "tfrecord", "hdf5", "lmdb", "arrow", "feather", "parquet"]
    assert arrays == ["folder", "tar", "tfrecord", "hdf5", "lmdb", "arrow", "feather", "npy", "hdf5, gzip", "parquet"]
    assert not re.search(r"\b0 \|", done.stdout)
    assert rows_of((ROOT / "docs/guides/which-format.md").read_text())[:2] == [photos, arrays]
