# SPDX-License-Identifier: Apache-2.0
"""Runs a guide: Python blocks that begin with `# NAME.py` are files, `$ ` lines of console blocks are commands.

    tests/guide.py docs/guides/hdf5.md DIRECTORY

does so in DIRECTORY, with the `python` and `stoker` of the PATH, and puts what the commands print into the page.
"""

import re
import subprocess
import sys
from pathlib import Path

FILE = re.compile(r"```python\n(# (\w+\.py)\n.*?)```", re.DOTALL)
CONSOLE = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)


class Guide:
    def __init__(self, page: Path):
        self.text = page.read_text()
        self.shown = {}  # command -> lines that the page shows behind it
        for block in CONSOLE.findall(self.text):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, *lines = part.splitlines()
                self.shown[command] = lines

    def write_files(self, directory: Path) -> list[str]:
        found = FILE.findall(self.text)
        for text, name in found:
            (directory / name).write_text(text)
        return [name for _, name in found]

    def run(self, directory: Path, environment: dict[str, str] | None = None) -> dict[str, list[str]]:
        """Command -> lines that it printed."""
        printed = {}
        for command in self.shown:
            done = subprocess.run(
                command, shell=True, cwd=directory, env=environment, capture_output=True, text=True, timeout=600
            )
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
            printed[command] = done.stdout.splitlines()
        return printed


def main(page: Path, directory: Path) -> None:
    guide = Guide(page)
    guide.write_files(directory)
    printed = guide.run(directory)

    def anew(block: re.Match) -> str:
        commands = re.findall(r"^\$ (.*)$", block[0], flags=re.MULTILINE)
        return "".join(f"{line}\n" for command in commands for line in [f"$ {command}", *printed[command]])

    page.write_text(CONSOLE.sub(anew, guide.text))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
