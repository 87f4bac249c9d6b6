# SPDX-License-Identifier: Apache-2.0
"""Fresh interpreters, two users who do not trust each other, and a library that makes reads fail or stop."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from stoker_program import Finished, clean_environment, program

OPEN = """
import json, sys, warnings, stoker
heard = []
warnings.showwarning = lambda message, *rest, **more: heard.append(str(message))
warnings.simplefilter("always")
path, options = sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
try:
    dataset = stoker.open(path, **options)
    print(json.dumps({"samples": len(dataset), "fields": [str(f) for f in dataset.fields], "keys": [str(k) for k in dataset.keys()],
                      "first": sorted(dataset[0]) if len(dataset) else None, "heard": heard}))
except Exception as error:
    print(json.dumps({"error": str(error), "kind": type(error).__name__, "bases": [c.__name__ for c in type(error).__mro__]}))
"""


@pytest.fixture
def fresh_python(stoker_environment):
    """fresh_python(script, *arguments): runs it in a new interpreter, because a crash must not take the tests along."""

    def run(script, *arguments, status=0, interpreter=sys.executable, env=None, timeout=120, **options) -> Finished:
        return Finished(
            subprocess.run(
                [str(interpreter), "-c", script, *map(str, arguments)],
                env={**stoker_environment, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
                timeout=timeout,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                **options,
            )
        ).require(status)

    return run


@pytest.fixture
def opened(fresh_python):
    """opened(path, split="train"): what stoker.open says of it, in a process of its own."""

    def run(path, **options):
        return json.loads(fresh_python(OPEN, path, json.dumps(options)).stdout.splitlines()[-1])

    return run


@pytest.fixture
def fresh_cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def fault_library(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("fault") / "fault_read.so"
    source = Path(__file__).with_name("fault_read.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", library, source, "-ldl"], check=True)
    return library


class Person:
    """Runs the program as one of the users of a node."""

    def __init__(self, directory: Path, name: str, uid: int, groups=()):
        self.uid = uid
        self.groups = list(groups)
        self.program = directory / "stoker"
        self.home = directory / f"home-{name}"
        self.home.mkdir()
        self.home.chmod(0o700)
        os.chown(self.home, uid, uid)

    def run(self, *command, status=0, env=None, cwd=None, timeout=120, umask=0o022, **options) -> Finished:
        return Finished(
            subprocess.run(
                [str(word) for word in command],
                env={**clean_environment(self.home), **(env or {})},
                cwd=cwd or self.home,
                timeout=timeout,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                user=self.uid,
                group=self.uid,
                extra_groups=self.groups,
                umask=umask,
                **options,
            )
        ).require(status)

    def stoker(self, *arguments, **options) -> Finished:
        return self.run(self.program, *arguments, **options)

    def own(self, path: Path, mode: int | None = None) -> Path:
        """Makes `path` and everything below it this user's."""
        for each in [path, *path.rglob("*")]:
            os.chown(each, self.uid, self.uid, follow_symlinks=False)
        if mode is not None:
            path.chmod(mode)
        return path


class Node:
    """A node that alice and mallory share; both are members of one group."""

    shared_group, group_name = 100, "users"  # which every Debian has

    def __init__(self, directory: Path):
        self.directory = directory
        shutil.copy2(program(), directory / "stoker")
        self.alice = Person(directory, "alice", 64_001, [self.shared_group])
        self.mallory = Person(directory, "mallory", 64_002, [self.shared_group])

    def place(self, name: str, mode: int, group: int = 0) -> Path:
        path = self.directory / name
        path.mkdir()
        os.chown(path, 0, group)
        path.chmod(mode)
        return path


@pytest.fixture
def node():
    if os.geteuid() != 0:
        pytest.fail("needs two users: run the tests as root")
    directory = Path(tempfile.mkdtemp(prefix="stoker-node-"))
    directory.chmod(0o755)
    try:
        yield Node(directory)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(directory)
