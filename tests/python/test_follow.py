# SPDX-License-Identifier: Apache-2.0
"""`stoker time --follow` of a run that only a stoker.Meter records, and when it knows that the run is over."""

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest
from run_directory import STEP_COLUMNS, write_columns
from stoker_program import program

LOOP = """
import sys, time, stoker
meter = stoker.Meter("r")
training, validation = meter.watch([[0] * 8] * 5, name="training"), meter.watch([[0] * 5000] * 100, name="validation")
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in training:
        time.sleep(0.01)
    for _ in validation:
        pass
"""
# "3.1 s · 789 samples/s ▇▇ · waiting 0 % · 123 steps"
LINE = re.compile(r" · ([0-9,]+) samples/s \S+ · waiting ([0-9]+) % · ([0-9,]+) steps$")


@pytest.fixture
def training(tmp_path):
    """training(*arguments): a process that trains and records it in r/, once it has begun."""
    begun = []

    def begin(*arguments, script=LOOP):
        process = subprocess.Popen([sys.executable, "-c", script, *arguments], cwd=tmp_path, stdout=subprocess.PIPE)
        begun.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def test_a_meters_run_is_shown_until_its_process_ends(stoker_cli, training, tmp_path):
    training("3.5")  # nobody waits for it: a process that has ended, not one that is gone
    lines = stoker_cli("time", "--follow", "r", cwd=tmp_path).stdout.splitlines()
    found = [LINE.search(line) for line in lines]
    assert found[-1], lines
    assert 4 <= len(lines) <= 30
    rates = [int(each[1].replace(",", "")) for each in found if each]
    # 8 samples in a little over 10 ms; with the validation in between it would be a hundred times as many.
    assert all(100 < rate <= 800 for rate in rates), lines
    steps = [int(each[3].replace(",", "")) for each in found if each]
    assert steps == sorted(steps) and steps[-1] % 5 == 0


def test_a_killed_process_ends_it(stoker_cli, training, tmp_path):
    process = training("600")
    threading.Timer(2.5, process.send_signal, [signal.SIGKILL]).start()
    lines = stoker_cli("time", "--follow", "r", cwd=tmp_path).stdout.splitlines()
    assert LINE.search(lines[-1]), lines


def test_before_the_first_step(stoker_cli, training, tmp_path):
    training(script="import time, stoker\nmeter = stoker.Meter('r')\nprint('ready', flush=True)\ntime.sleep(1.5)\n")
    lines = stoker_cli("time", "--follow", "r", cwd=tmp_path).stdout.splitlines()
    assert lines[0].endswith(" s, no steps yet") or lines[0].endswith("ms, no steps yet"), lines


def test_a_run_that_is_over_is_shown_once(stoker_cli, training, tmp_path):
    training("0.1").wait(timeout=60)
    (line,) = stoker_cli("time", "--follow", "r", cwd=tmp_path).stdout.splitlines()
    assert LINE.search(line)


def write_run(directory, *, host, pid, ended, loaders=({"name": "mine", "explicit": True},)):
    """As a Meter on `host` leaves it."""
    directory.mkdir()
    run = {"schema": 1, "host": host, "pid": pid, "command": ["train"], "time_of_day_begin_ns": 10**18, "ended": False}
    (directory / "run.json").write_text(json.dumps(run))
    about = {"host": host, "pid": pid, "loaders": list(loaders), **({"ended": True} if ended else {})}
    rows = [(0, 0, 0, 10**9 * i, 0, 10**9, 16, -1) for i in range(1, 20)]
    write_columns(directory / f"steps-{host}-{pid}.columns", STEP_COLUMNS, rows, about)


def test_a_process_on_another_host_says_itself_when_it_ends(stoker_cli, stoker_environment, tmp_path):
    write_run(tmp_path / "over", host="elsewhere", pid=1, ended=True)
    assert "16 samples/s" in stoker_cli("time", "--follow", "over", cwd=tmp_path).stdout
    write_run(tmp_path / "goes-on", host="elsewhere", pid=999_999_999, ended=False)
    process = subprocess.Popen(
        [program(), "time", "--follow", "goes-on"], cwd=tmp_path, env=stoker_environment, stdout=subprocess.PIPE
    )
    lines = [process.stdout.readline() for _ in range(3)]
    assert process.poll() is None and all(b"16 samples/s" in line for line in lines)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130


def test_another_process_with_the_same_number_is_not_it(stoker_cli, tmp_path):
    # Our own number, but of a process that recorded its steps long before we began.
    write_run(tmp_path / "r", host=os.uname().nodename, pid=os.getpid(), ended=False)
    assert "16 samples/s" in stoker_cli("time", "--follow", "r", cwd=tmp_path).stdout


def test_steps_without_a_size_and_without_waiting(stoker_cli, tmp_path):
    write_run(tmp_path / "r", host="elsewhere", pid=1, ended=True, loaders=[{"name": "fit", "waits": False}])
    path = tmp_path / "r/steps-elsewhere-1.columns"
    about = {"host": "elsewhere", "pid": 1, "loaders": [{"name": "fit", "waits": False}], "ended": True}
    write_columns(path, STEP_COLUMNS, [(0, 0, 0, 10**9 * i, 0, 2 * 10**9, 0, -1) for i in range(1, 20)], about)
    (line,) = stoker_cli("time", "--follow", "r", cwd=tmp_path).stdout.splitlines()
    assert "0.5 steps/s" in line and "waiting" not in line and line.endswith(" · 19 steps")
