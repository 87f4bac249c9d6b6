# SPDX-License-Identifier: Apache-2.0
"""bench/experiment.py, small: every way delivers every sample, counts make sense, nothing stays; and its guide."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from guide import Guide
from slow_storage import until
from stoker_program import ROOT, program

FILES = 60
SMALL = ["--files", str(FILES), "--size", "5000", "--shard-mb", "1", "--rounds", "1"]
QUICK = ["--metadata-ms", "0.1", "--request-ms", "0.1"]
NAMES = [
    "folder, read in place",
    "folder, cp -r",
    "folder, rsync",
    "tar, copied and extracted",
    "tar shards, read in place",
    "TFRecord shards, read in place",
    "folder, stoker stage",
    "tar shards, stoker stage",
    "tar shards, read while staged",
]


@pytest.fixture
def local(tmp_path) -> Path:
    """The name is quoted wherever it is used."""
    path = tmp_path / "local disk's $(place)"
    path.mkdir()
    return path


@pytest.fixture
def environment(shared_storage, tmp_path) -> dict[str, str]:
    found = {**os.environ, "STOKER_PROGRAM": str(program()), "STOKER_SHARED_STORAGE": str(shared_storage)}
    return {**found, "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def experiment(environment, local):
    """experiment(*options, NAME=value): its JSON document; names are of the environment."""

    def run(*options, **changed) -> dict:
        words = [sys.executable, ROOT / "bench/experiment.py", *SMALL, "--local", local, "--json", *options]
        done = subprocess.run(words, env={**environment, **changed}, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


def nothing_left(local: Path) -> bool:
    return (
        list(local.iterdir()) == [] and str(local).replace(" ", "\\040") not in Path("/proc/self/mountinfo").read_text()
    )


def test_every_way(experiment, local):
    document = experiment(*QUICK)
    # Not all samples with all of their bytes, and it would have failed.
    ways = {way["name"]: way for way in document["ways"]}
    assert list(ways) == NAMES and document["left_out"] == {}
    assert document["samples"] == FILES and document["findings"][-1].startswith("next: ")
    folder, size = ways["folder, read in place"], document["bytes"]
    # A lookup and an open for each file, at least; all bytes, by whatever way.
    assert folder["metadata"] >= 2 * FILES and folder["reads"] >= FILES and folder["next_metadata"] >= FILES
    assert all(way["read_bytes"] >= size for way in ways.values())
    for name in ("tar, copied and extracted", "tar shards, read in place", "TFRecord shards, read in place"):
        assert ways[name]["metadata"] < folder["metadata"] / 4
    for name, way in ways.items():
        brought = name not in NAMES[:1] + NAMES[4:6]
        assert way["next_read_bytes"] == 0 if brought else way["next_read_bytes"] >= size
        assert way["until_first_epoch_s"] == pytest.approx(way["bring_s"] + way["first_epoch_s"])
        assert way["with_preparation_s"] == pytest.approx(way["until_first_epoch_s"] + way["prepared_s"])
        assert (way["prepared_s"] > 0) == ("tar" in name.lower() or "TFRecord" in name)
    assert nothing_left(local)


def test_storage_of_ones_own_without_rsync(experiment, local, tmp_path):
    """Without FUSE, too: its program is not even there."""
    shared, tools = tmp_path / "shared", tmp_path / "tools"
    shared.mkdir()
    tools.mkdir()
    for name in ("cp", "tar", "sync", "rm"):
        (tools / name).symlink_to(shutil.which(name))
    document = experiment("--shared", str(shared), STOKER_SHARED_STORAGE="/missing", PATH=str(tools))
    assert document["left_out"] == {"folder, rsync": "rsync is not installed"}
    assert [way["name"] for way in document["ways"]] == [name for name in NAMES if name != "folder, rsync"]
    assert document["shared"] == {"path": str(shared)} and "metadata" not in document["ways"][0]
    assert nothing_left(local) and list(shared.iterdir()) == []


def test_decoded(experiment):
    """The same pixels by every way, or it would have failed."""
    assert experiment(*QUICK, "--files", "20", "--decode")["decode"] is True


@pytest.mark.parametrize(
    ("when", "number"),
    [
        ("making", signal.SIGTERM),
        ("photos.tar", signal.SIGINT),
        ("round", signal.SIGTERM),
        ("folder, cp", signal.SIGHUP),
        ("TFRecord", signal.SIGTERM),
    ],
)
def test_stopped_it_leaves_nothing(environment, local, when, number):
    words = [sys.executable, ROOT / "bench/experiment.py", *SMALL, "--local", local]
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert any(line.startswith(when) for line in process.stderr)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert nothing_left(local)


def test_killed_it_leaves_nothing_mounted(environment, local):
    words = [sys.executable, ROOT / "bench/experiment.py", *SMALL, "--local", local]
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert any(line.startswith("round") for line in process.stderr)
        process.kill()
    until(lambda: str(local).replace(" ", "\\040") not in Path("/proc/self/mountinfo").read_text())


@pytest.mark.parametrize(
    ("options", "status", "cause"),
    [
        (["--files", "0"], 2, "--files: should be 1 or more"),
        (["--local", "/missing"], 2, "/missing: not a directory"),
        (["--rate", "fast"], 1, "--rate fast"),
    ],
)
def test_wrong_use(environment, local, options, status, cause):
    words = [sys.executable, ROOT / "bench/experiment.py", *SMALL, "--local", local, *options]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == status and cause in done.stderr and "Traceback" not in done.stderr
    assert nothing_left(local)


@pytest.mark.parametrize(
    ("name", "cause"), [("STOKER_SHARED_STORAGE", "--shared DIR --local DIR"), ("STOKER_PROGRAM", "pip install")]
)
def test_what_is_missing_is_said(environment, local, name, cause):
    words = [sys.executable, ROOT / "bench/experiment.py", *SMALL, "--local", local]
    done = subprocess.run(words, env={**environment, name: "/missing"}, capture_output=True, text=True)
    assert done.returncode == 1 and cause in done.stderr and "Traceback" not in done.stderr
    assert nothing_left(local)


def test_when_staging_pays():
    code = (
        "import experiment_table, json\n"
        "print(json.dumps([experiment_table.pays_after(*map(way, pair)) for pair in {!r}]))"
    )
    way = "way = lambda times: dict(zip(('until_first_epoch_s', 'next_epoch_s'), times))\n"
    # Sooner from the first epoch on; 9 s behind and 2, or 3, gained in each further one; never.
    pairs = [((5, 1), (7, 2)), ((10, 1), (1, 3)), ((10, 1), (1, 4)), ((10, 3), (1, 3))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "bench")}
    done = subprocess.run(
        [sys.executable, "-c", way + code.format(pairs)], env=environment, capture_output=True, check=True
    )
    assert json.loads(done.stdout) == [1, 6, 4, None]


def table_of(text: str) -> tuple[str, list[str]]:
    """Its head, and the names of its rows."""
    (head, rows), *_ = re.findall(r"^(\| way .*)\n\|---.*\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    return head, [line.split(" | ")[0].removeprefix("| ") for line in rows.splitlines()]


def test_the_guide(environment, local, tmp_path):
    """Its command runs as it stands, with a small dataset; its table has the rows and columns that are printed."""
    guide = Guide(ROOT / "docs/guides/experiment.md")
    (command,) = guide.shown
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (commands / "python").chmod(0o755)
    changed = {**environment, "PATH": f"{commands}:{environment['PATH']}", "TMPDIR": str(local)}
    small = f"{command} {shlex.join([*SMALL, *QUICK, '--rounds', '2'])}"
    done = subprocess.run(small, shell=True, cwd=ROOT, env=changed, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert table_of(done.stdout) == table_of(guide.text)
    assert table_of(guide.text)[1] == NAMES
    assert "median of 2" in done.stdout and len(re.findall(r"\(\d+\.\d\d–\d+\.\d\d\)", done.stdout)) == len(NAMES)
    assert nothing_left(local)
