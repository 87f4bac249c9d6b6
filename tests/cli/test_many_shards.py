# SPDX-License-Identifier: Apache-2.0
"""Datasets of more shards than a process may have files open."""

import io
import json
import subprocess
import sys
import tarfile

import pytest
from samples import jpeg
from stoker_program import program

SHARDS = 1500
FILES = 128  # that may be open, as soft and as hard limit: there is nothing to raise


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    directory = tmp_path_factory.mktemp("many") / "shards"
    directory.mkdir()
    photo = jpeg(1)
    for number in range(SHARDS):
        with tarfile.open(directory / f"shard-{number:06d}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for name, contents in [("jpg", photo), ("cls", b"%d" % (number % 10))]:
                member = tarfile.TarInfo(f"{number:06d}.{name}")
                member.size = len(contents)
                tar.addfile(member, io.BytesIO(contents))
    return directory


@pytest.fixture
def limited(stoker_environment):
    """Runs a command that may have FILES files open."""

    def run(*words) -> str:
        done = subprocess.run(
            ["prlimit", f"--nofile={FILES}:{FILES}", "--", *words],
            env=stoker_environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_commands_need_few_descriptors(limited, shards, tmp_path):
    indexed = json.loads(limited(program(), "index", shards, "--full", "--json"))
    assert indexed["samples"] == SHARDS
    checked = json.loads(limited(program(), "check", shards, "--json"))
    assert (checked["samples"], checked["faults"]) == (SHARDS, [])
    loaded = json.loads(limited(program(), "load", shards, "--crop", "16", "--epochs", "1", "--json"))
    assert loaded["epochs"][0]["samples"] == SHARDS
    place = tmp_path / "place"
    place.mkdir()
    staged = json.loads(limited(program(), "stage", shards, place, "--json"))
    assert staged["samples"] == SHARDS
    packed = tmp_path / "packed"
    made = json.loads(limited(program(), "pack", shards, packed, "--shard-size", "2k", "-j", "8", "--json"))
    assert made["samples"] == SHARDS and len(list(packed.glob("*.tar"))) > 10 * FILES // 2
    limited(program(), "check", packed, "--compare", shards)


def test_python_needs_few_descriptors(limited, shards):
    limited(program(), "index", shards)
    script = """
import sys, stoker
from stoker.transforms import RandomResizedCrop
datasets = [stoker.open(sys.argv[1]) for _ in range(3)]
for dataset in datasets:
    assert [sample["label"] for sample in dataset] == [i % 10 for i in range(1500)]
loader = stoker.Loader(datasets, 64, [RandomResizedCrop(16)], threads=8)
assert sum(len(batch["label"]) for _ in range(2) for batch in loader) == 9000
"""
    limited(sys.executable, "-c", script, shards)
