# SPDX-License-Identifier: Apache-2.0
"""The slow storage as tests use it: mounted, asked what it has counted, ended."""

import json
import subprocess
import time
from pathlib import Path


def mounted(path: Path) -> bool:
    """As the kernel says; stat() fails where nobody answers."""
    return any(line.split()[4] == str(path) for line in Path("/proc/self/mountinfo").read_text().splitlines())


def until(condition) -> None:
    """Waits for what must come; the limit is only there to end a test that fails."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.01)


class Mounted:
    def __init__(self, program: Path, below: Path, path: Path, options: tuple[str, ...]):
        self.below, self.path = below, path
        self.process = subprocess.Popen([program, *options, below, path])
        until(lambda: mounted(path) or self.process.poll() is not None)
        assert self.process.poll() is None, "could not be mounted"

    def operations(self) -> dict:
        return json.loads((self.path / ".operations").read_text())

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(60)
