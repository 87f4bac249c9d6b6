# SPDX-License-Identifier: Apache-2.0
"""The slow storage of bench/experiment.py, mounted for a test."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from slow_storage import Mounted, mounted
from stoker_program import program


@pytest.fixture(scope="session")
def shared_storage() -> Path:
    """The program. Not to be able to mount it is a failure: nothing here would be tested."""
    path = program().with_name("shared_storage")
    if not path.is_file():
        pytest.fail(
            f"{path} does not exist: install libfuse3-dev, then cmake --build {path.parent} --target shared_storage"
        )
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.fail("/dev/fuse cannot be used: load the kernel's module fuse; a container needs --device /dev/fuse")
    if not shutil.which("fusermount3"):
        pytest.fail("fusermount3 is missing: install Debian's fuse3")
    return path


@pytest.fixture
def mount(shared_storage, tmp_path):
    """mount(below, *options): a directory as slow storage, here a quick one that remembers names for a test's time."""
    made: list[Mounted] = []
    quick = ("--metadata-ms", "0", "--request-ms", "0", "--rate", "0", "--remember-s", "600")

    def run(below: Path, *options: str) -> Mounted:
        path = tmp_path / f"mounted{len(made)}"
        path.mkdir()
        made.append(Mounted(shared_storage, below, path, quick + options))
        return made[-1]

    yield run
    for each in made:
        each.end()
        if mounted(each.path):
            subprocess.run(["fusermount3", "-u", "-z", each.path], check=True)
