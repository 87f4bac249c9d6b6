# SPDX-License-Identifier: Apache-2.0
"""Where the program under test is, in what environment it runs, and what is left of it when it has ended."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def program() -> Path:
    path = Path(os.environ.get("STOKER_PROGRAM", ROOT / "build/release/stoker"))
    if not path.is_file():
        pytest.fail(f"{path} does not exist: build it (cmake --preset release && cmake --build build/release)")
    return path


def clean_environment(home: Path) -> dict[str, str]:
    """Nothing of the user's that could change what the program says, and a cache of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


class Finished:
    """A command that has ended."""

    def __init__(self, process: subprocess.CompletedProcess):
        self.returncode = process.returncode
        self.stdout = process.stdout.decode("utf-8", "surrogateescape")
        self.stderr = process.stderr.decode("utf-8", "surrogateescape")
        self.arguments = process.args

    @property
    def json(self):
        return json.loads(self.stdout)

    @property
    def text(self) -> str:
        return self.stdout + self.stderr

    def require(self, status: int | None) -> "Finished":
        """Never killed by a signal; with the exit status expected, where one is."""
        assert self.returncode >= 0, f"killed by signal {-self.returncode}\n{self!r}"
        assert status is None or self.returncode == status, f"expected exit status {status}\n{self!r}"
        return self

    def __repr__(self) -> str:
        shown = " ".join(str(argument) for argument in self.arguments)
        return f"$ {shown}\nexit status {self.returncode}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"
