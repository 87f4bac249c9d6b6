# SPDX-License-Identifier: Apache-2.0
"""stoker::Meter, in a small program of C++: under `stoker time`, by itself, killed, followed, and as ranks."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from stoker_program import program


@pytest.fixture
def meter_program() -> Path:
    path = program().with_name("meter_program")
    if not path.is_file():
        pytest.fail(f"{path} does not exist: build it (cmake --build {path.parent} --target meter_program)")
    return path


def timed(stoker_cli, *words, **options) -> tuple[str, dict]:
    finished = stoker_cli("time", "--json", *words, **options)
    said, document = finished.stdout.split("\n", 1)
    return said, json.loads(document[document.index("{\n") :])


def test_under_stoker_time(stoker_cli, meter_program, tmp_path):
    said, document = timed(stoker_cli, "--run", "r", "--", meter_program, "100", "3", "9", cwd=tmp_path)
    assert said == str(tmp_path / "r")
    assert document["source"] == "Meter.step" and document["steps"] == 100 and document["samples"] == 3200
    # 3 ms of at least 12, whatever else the machine does meanwhile.
    assert 0.05 < document["wait_share"] < 0.6
    assert document["samples_per_s"]["value"] <= 32 / 0.012
    _, document = timed(stoker_cli, "--", meter_program, "80", "0", "2", "watch", cwd=tmp_path)
    assert document["source"] == "training" and document["steps"] == 80 and document["samples"] == 2560


def test_by_itself_and_followed(stoker_cli, stoker_environment, meter_program, tmp_path):
    process = subprocess.Popen(
        [meter_program, "250", "0", "10"], cwd=tmp_path, env=stoker_environment, stdout=subprocess.PIPE, text=True
    )
    run = Path(process.stdout.readline().strip())
    assert run.parent == tmp_path / "stoker-runs"
    assert json.loads((run / "run.json").read_text())["command"] == [str(meter_program), "250", "0", "10"]
    lines = stoker_cli("time", "--follow", run).stdout.splitlines()
    assert process.wait(timeout=60) == 0
    assert lines[-1].endswith(" · 250 steps") and "samples/s" in lines[-1]


def test_a_killed_one_keeps_all_but_its_last_second(stoker_cli, stoker_environment, meter_program, tmp_path):
    process = subprocess.Popen(
        [meter_program, "100000", "0", "1"], cwd=tmp_path, env=stoker_environment, stdout=subprocess.PIPE, text=True
    )
    run = Path(process.stdout.readline().strip())
    # A second's rows are at most 64 kB: of 100 kB at least one second was written whole. The kernel may cut the write
    # that the signal meets, and what was cut does not count.
    while not [path for path in run.glob("steps-*") if path.stat().st_size > 100_000]:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    document = stoker_cli("time", "--json", "--compare", run, run).json
    assert document["ratio"]["value"] == 1


def test_ranks(stoker_cli, meter_program, tmp_path):
    both = " & ".join(f"RANK={rank} WORLD_SIZE=2 {meter_program} 70 0 {2 + 4 * rank}" for rank in (0, 1))
    _, document = timed(stoker_cli, "--", "sh", "-c", f"{both}; wait", cwd=tmp_path)
    assert [each["rank"] for each in document["ranks"]] == [0, 1] and document["straggler"] == 1
    assert {each["host"] for each in document["ranks"]} == {os.uname().nodename}
