# SPDX-License-Identifier: Apache-2.0
"""The shim that strikes at the n-th call with which the program changes the file system; see kill_at.c."""

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shim(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "kill_at.so"
    source = Path(__file__).with_name("kill_at.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture
def count_calls(shim, stoker_cli, tmp_path):
    """count_calls("pack", …): runs the program to its end and returns how many calls changed the file system."""

    def count(*arguments) -> int:
        answer = tmp_path / "count"
        stoker_cli(*arguments, env={"LD_PRELOAD": str(shim), "KILL_COUNT": str(answer)})
        calls = int(answer.read_text())
        answer.unlink()
        assert calls > 0, "the shim counts nothing: is the program linked statically?"
        return calls

    return count
