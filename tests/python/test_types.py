# SPDX-License-Identifier: Apache-2.0
"""The types that are shipped are complete and right."""

import ast
import importlib.metadata
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
import stoker
from stoker import _core

PACKAGE = Path(stoker.__file__).parent


def test_version():
    assert stoker.__version__ == importlib.metadata.version("stoker")


def test_marked_as_typed():
    assert (PACKAGE / "py.typed").is_file()
    assert (PACKAGE / "_core.pyi").is_file()


def test_stub_has_every_name():
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    named = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    named |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert named == {name for name in vars(_core) if not name.startswith("__")}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = {child.name for child in node.body if isinstance(child, ast.FunctionDef)}
            members = {name for name in vars(getattr(_core, node.name)) if not name.startswith("_")}
            assert members <= methods, node.name


def test_public_names_are_annotated_and_documented():
    assert sorted(stoker.__all__) == sorted(name for name in stoker.__all__ if hasattr(stoker, name))
    for name in stoker.__all__:
        public = getattr(stoker, name)
        if name == "__version__":
            continue
        assert public.__doc__, name
        members = [(name, public)]
        if inspect.isclass(public):
            members = [item for item in vars(public).items() if inspect.isfunction(item[1]) and item[0][0] != "_"]
        for member, function in members:
            if not inspect.isfunction(function):
                continue
            signature = inspect.signature(function)
            assert signature.return_annotation is not signature.empty, member
            for parameter in list(signature.parameters.values()):
                assert parameter.name == "self" or parameter.annotation is not parameter.empty, (name, member)


def test_public_names_say_where_they_are():
    for name in stoker.__all__:
        public = getattr(stoker, name)
        if inspect.isclass(public):
            assert public.__module__ == "stoker", name


RIGHT = """
from pathlib import Path
from typing import Any
import stoker

ds: stoker.Dataset = stoker.open(Path("x"), verify=False)
sample: dict[str, Any] = ds[0]
other: dict[str, Any] = ds["key"]
view: stoker.Dataset = ds[1:3]
count: int = len(view)
keys: list[str] = list(view.keys())
field: stoker.Field = ds.fields["label"]
total: int = sum(shard.size for shard in ds.shards)
for each in ds:
    each["image"]
labels = ds.column("label")
labels.mean()
packed: stoker.PackResult = stoker.pack("a", b"b", split={"train": 0.9, "val": 0.1}, include=["*"])
left_out: tuple[stoker.Fault, ...] = packed.left_out
good: bool = stoker.check("x", compare=Path("y")).good
depth: str = stoker.index("x", where="cache").depth
timed: stoker.TimeResult = stoker.time(["python", Path("train.py")], run="r")
rate: stoker.Interval | None = timed.samples_per_s
changes: list[str] = [finding.change for finding in timed.findings]
ask_for: int | None = stoker.scale(["train"], threads=[1, 2]).ask_for
free: int | None = stoker.probe(".", b"/tmp", only=["storage"]).places[0].free_bytes
written: str | None = stoker.report("a", Path("b"), output="x.html").output
"""
WRONG = [
    "stoker.open(7)",
    "stoker.index('x', where='there')",
    "stoker.pack('x')",
    "stoker.probe(only=['disk'])",
    "stoker.report('r', format='pdf')",
    "stoker.open('x')[0].nope",
    "stoker.no",
]


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    cache = tmp_path_factory.mktemp("mypy")

    def run(*arguments) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=cache, env={**os.environ, "MYPY_CACHE_DIR": str(cache)}
        )

    return run


def test_mypy_accepts_right_use(mypy, tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    done = mypy("mypy", "--strict", tmp_path / "right.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_finds_wrong_use(mypy, tmp_path):
    (tmp_path / "wrong.py").write_text("import stoker\n" + "\n".join(WRONG))
    done = mypy("mypy", "--strict", tmp_path / "wrong.py")
    for line in range(2, len(WRONG) + 2):
        assert f"wrong.py:{line}: error" in done.stdout, done.stdout + done.stderr


def test_mypy_finds_nothing_in_the_package(mypy):
    done = mypy("mypy", "--strict", "-p", "stoker")
    assert done.returncode == 0, done.stdout + done.stderr
