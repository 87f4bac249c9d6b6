# SPDX-License-Identifier: Apache-2.0
"""Limits and neighbours: few descriptors for many shards, and a process that was stopped while it copied."""

import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hostile import example, record
from samples import noise, shards_of
from stoker_program import Finished, program
from tar_bytes import simple_tar

MANY = 1500


@pytest.fixture(scope="session")
def many_shards(tmp_path_factory) -> Path:
    """1,500 tar shards of two samples, without an index."""
    path = tmp_path_factory.mktemp("many") / "data"
    path.mkdir()
    for shard in range(MANY):
        files = {b"%06d-%d.bin" % (shard, i): noise(f"{shard}-{i}", 40) for i in range(2)}
        (path / f"x-{shard:06d}.tar").write_bytes(simple_tar(files))
    return path


@pytest.fixture(scope="session")
def many_indexed(many_shards, tmp_path_factory) -> Path:
    """The same shards with a full index next to them."""
    path = tmp_path_factory.mktemp("indexed") / "data"
    path.mkdir()
    for shard in many_shards.iterdir():
        os.link(shard, path / shard.name)
    env = {**os.environ, "HOME": str(path.parent)}
    line = [program(), "index", "--full", path, "--where", "beside"]
    subprocess.run(line, check=True, capture_output=True, env=env, preexec_fn=lambda: limit(8192, None))
    return path


def limit(soft: int, hard: int | None) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most if hard is None else hard))


# 256 that cannot be raised; 1024 as a login shell has it, which can.
LIMITS = {"256": (256, 256), "1024": (1024, None)}


@pytest.fixture
def limited(stoker_environment):
    """limited(set_limit, "check", …): the program after `set_limit` was called in its process."""

    def run(set_limit, *arguments, status=0) -> Finished:
        return Finished(
            subprocess.run(
                [program(), *arguments],
                env=stoker_environment,
                timeout=120,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                preexec_fn=set_limit,
            )
        ).require(status)

    return run


@pytest.mark.parametrize("indexed, most", [(False, "256"), (True, "256"), (True, "1024")])
@pytest.mark.parametrize("command", ["check", "stage", "pack", "load", "index"])
def test_many_shards_need_few_descriptors(command, indexed, most, many_shards, many_indexed, tmp_path, limited):
    data = many_indexed if indexed else many_shards
    place = tmp_path / "place"
    place.mkdir()
    line = {
        "check": ["check", data, "--json"],
        "stage": ["stage", data, place, "--json"],
        "pack": ["pack", data, tmp_path / "packed", "--json"],
        "load": ["load", data, "--raw", "--epochs", "1", "--json"],
        "index": ["index", data, "--full", "--where", "cache", "--json"],
    }[command]
    done = limited(lambda: limit(*LIMITS[most]), *line)
    if command == "load":
        assert done.json["epochs"][0]["samples"] == 2 * MANY
    else:
        assert done.json["samples"] == 2 * MANY


LOADER = """
import sys, warnings, stoker
warnings.simplefilter("ignore")
data = stoker.open(sys.argv[1])
assert len(data) == 3000, len(data)
assert sum(1 for sample in data if len(sample["bin"]) == 40) == 3000
loaders = [stoker.Loader(data, 64), stoker.Loader(sys.argv[1], 64), stoker.Loader(sys.argv[1], 64, shuffle="blocks")]
for loader in loaders:
    seen = sorted(int(number) for batch in loader for number in batch["sample"])
    assert seen == list(range(3000)), len(seen)
    assert not loader.stats()["bad"]
print("good")
"""


@pytest.mark.parametrize("most", sorted(LIMITS))
def test_many_shards_need_few_descriptors_in_python(most, many_indexed, fresh_python):
    assert fresh_python(LOADER, many_indexed, preexec_fn=lambda: limit(*LIMITS[most])).stdout == "good\n"


def test_many_records_need_few_descriptors(tmp_path, limited):
    data = tmp_path / "data"
    data.mkdir()
    for shard in range(600):
        (data / f"x-{shard:05d}-of-00600").write_bytes(record(example(x=shard)))
    done = limited(lambda: limit(128, 128), "check", data, "--json")
    assert done.json["samples"] == 600


def test_a_limit_that_is_too_small_is_said(many_indexed, limited):
    """With ten descriptors something may fail, but as an error."""
    done = limited(lambda: limit(10, 10), "check", many_indexed, status=None)
    assert done.returncode in (0, 1)


# --- A stopped process ------------------------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path, stoker_cli, stoker_environment, fault_library):
    """A stage process that stopped itself at the first read of a shard, as SIGSTOP or scontrol suspend would."""
    source, place, mark = tmp_path / "source", tmp_path / "place", tmp_path / "stopped"
    source.mkdir()
    place.mkdir()
    for shard in range(3):
        files = {b"%d-%02d.bin" % (shard, i): noise(f"{shard}-{i}", 3000) for i in range(10)}
        (source / f"s-{shard:06d}.tar").write_bytes(simple_tar(files))
    stoker_cli("index", "--full", source, "--where", "beside")
    env = {**stoker_environment, "LD_PRELOAD": str(fault_library), "FAULT_NAME": "/source/s-0", "FAULT_STOP": str(mark)}
    line = [program(), "stage", source, place, "-j", "1"]
    process = subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while state_of(process.pid) != "T":
        assert time.monotonic() < end and process.poll() is None, "the process did not stop: the test has to be adapted"
        time.sleep(0.05)
    yield source, place, process
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
    process.wait()


def state_of(pid: int) -> str:
    text = Path(f"/proc/{pid}/stat").read_text()
    return text.rpartition(")")[2].split()[0]


def test_a_stopped_process_does_not_hold_up_others(stopped, stoker_environment):
    """They say that they wait and for which process, and copy themselves after a while."""
    source, place, process = stopped
    held = any(path.parent.name == "claims" for path in place.rglob("*"))
    other = subprocess.Popen(
        [program(), "stage", source, place, "--json"],
        env=stoker_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, said = other.communicate(timeout=100)
    except subprocess.TimeoutExpired:
        other.kill()
        _, said = other.communicate()
        pytest.fail(f"still waiting after 100 s; said: {said!r}")
    assert other.returncode == 0, said
    assert not held or str(process.pid) in said or "stopped" in said, f"nothing about the stopped process: {said!r}"
    copy = next(path for path in place.rglob("data") if path.is_dir())
    expected = [path.read_bytes() for path in shards_of(source)]
    assert [path.read_bytes() for path in shards_of(copy)] == expected
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=60) == 0
    assert [path.read_bytes() for path in shards_of(copy)] == expected


def test_a_loader_does_not_wait_for_a_stopped_process(stopped, fresh_python):
    """It reads from the source what does not arrive."""
    source, place, _ = stopped
    script = """
import sys, warnings, stoker
warnings.simplefilter("ignore")
loader = stoker.Loader(sys.argv[1], 4, stage=sys.argv[2])
print(sum(len(batch["sample"]) for batch in loader), flush=True)
import os
os._exit(0)
"""
    assert fresh_python(script, source, place, timeout=60).stdout == "30\n"
