# SPDX-License-Identifier: Apache-2.0
"""`stoker scale`: the order of its runs, what a killed sweep goes on with, and what fails."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from known_scale import KNOWN, RATE, known, known_rate, ran
from stoker_program import program

# --- Order, and going on -----------------------------------------------------------------------------


def test_order_is_random_and_can_be_repeated(scale, here):
    widths = ",".join(str(n) for n in range(1, 9))
    orders = []
    for seed in ("1", "1", "2"):
        (here / "ran").unlink(missing_ok=True)
        scale(*known("--threads", widths, "--repeat", "2", "--seed", seed))
        order = ran(here)
        assert sorted(order[:8]) == sorted(order[8:]) == list(range(1, 9))  # each repeat has every width
        orders.append(order)
    assert orders[0] == orders[1] != orders[2]
    assert orders[0][:8] != orders[0][8:]


def test_goes_on_after_a_kill(stoker_environment, scale, here):
    """Killed in its fourth run: the three that ended are not run again, the fourth is."""
    (here / "slow.py").write_text(
        KNOWN + "import os, time\n"
        "if len(open('ran').readlines()) == 4 and not os.path.exists('go'):\n    time.sleep(600)\n"
    )
    command = ["--pattern", RATE, "--", sys.executable, "slow.py", "{n}"]
    words = ["--threads", "1,2,4", "--repeat", "2", "--output", "sweep", "--json", *command]
    process = subprocess.Popen(
        [program(), "scale", *words],
        cwd=here,
        env=stoker_environment,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not (here / "ran").exists() or len(ran(here)) < 4:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with the command, so that none is left
        process.wait()
    before = ran(here)
    (here / "go").touch()
    document = scale(*words).json
    assert len(before) == 4 and ran(here)[:4] == before and len(ran(here)) == 7
    assert ran(here)[4] == before[3]
    assert [run["found"] for run in document["runs"]] == [True] * 3 + [False] * 3
    assert [point["runs"] for point in document["points"]] == [2, 2, 2]
    for point in document["points"]:
        assert point["samples_per_s"] == pytest.approx(known_rate(point["n"]))
    again = scale(*words).json
    assert len(ran(here)) == 7 and again["points"] == document["points"] and again["fits"] == document["fits"]


@pytest.mark.parametrize("status", [0, 5])
def test_goes_on_after_a_signal(stoker_environment, scale, here, status):
    """A run that was asked to end does not count, whatever it makes of it."""
    (here / "polite.sh").write_text(
        f"echo $1 >> ran\n[ -e go ] && exit 0\n[ $(wc -l < ran) = 2 ] || exit 0\n"
        f"trap 'exit {status}' TERM\ntouch ready\nwhile :; do sleep 0.05; done\n"
    )
    words = ["--threads", "1,2", "--repeat", "1", "--output", "sweep", "--json", "--", "sh", "polite.sh", "{n}"]
    process = subprocess.Popen(
        [program(), "scale", *words], cwd=here, env=stoker_environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not (here / "ready").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and b"--output sweep goes on" in err
    assert json.loads(out)["error"]["kind"] == "interrupted"
    (here / "go").touch()
    document = scale(*words).json
    assert ran(here)[2:] == ran(here)[1:2] and [run["found"] for run in document["runs"]] == [True, False]


def test_more_widths_in_the_same_directory(scale, here):
    scale(*known("--threads", "1,2", "--repeat", "1", "--output", "sweep"))
    document = scale(*known("--threads", "4", "--repeat", "1", "--output", "sweep", "--json")).json
    assert [point["n"] for point in document["points"]] == [1, 2, 4] and sorted(ran(here)) == [1, 2, 4]


def test_another_command_is_refused(scale, here):
    scale(*known("--threads", "1", "--repeat", "1", "--output", "sweep"))
    plan = (here / "sweep/plan.json").read_bytes()
    for words in (
        ["--threads", "1", "--output", "sweep", "--", "true"],
        known("--procs", "1", "--output", "sweep"),
        known("--threads", "1", "--weak", "--output", "sweep"),
    ):
        refused = scale(*words, status=2).stderr
        assert "another sweep" in refused and "known.py" in refused
    assert (here / "sweep/plan.json").read_bytes() == plan and ran(here) == [1]
    (here / "full").mkdir()
    (here / "full/thesis.tex").touch()
    assert "has other things" in scale("--threads", "1", "--output", "full", "--", "true", status=2).stderr
    (here / "full/plan.json").write_text("{}")
    assert "is no plan" in scale("--threads", "1", "--output", "full", "--", "true", status=1).stderr


def test_default_directory_is_new_each_time(scale, here):
    for _ in range(2):
        scale(*known("--threads", "1", "--repeat", "1"))
    assert len(list((here / "stoker-scale").iterdir())) == 2 and ran(here) == [1, 1]


# --- Failures ------------------------------------------------------------------------------------------


def test_failing_width_ends_the_sweep(scale, here):
    command = [
        "--",
        "sh",
        "-c",
        "echo width {n}; echo {n} >> ran; [ -e well ] || [ {n} != 4 ] || { echo no room; exit 3; }",
    ]
    words = ["--threads", "1,2,4,8", "--repeat", "2", "--seed", "5", "--output", "sweep"]
    finished = scale(*words, *command, status=3)
    assert ran(here)[-1] == 4 and ran(here).count(4) == 1
    assert "4 threads failed with exit status 3" in finished.stdout and "--output sweep" in finished.stdout
    assert "  no room\n" in finished.stderr
    failed = scale(*words, "--json", *command, status=3).json
    assert (failed["failed"]["n"], failed["failed"]["exit_status"]) == (4, 3)
    assert failed["failed"]["run"] == f"sweep/n4-r{failed['failed']['repeat']}"
    assert 4 not in [point["n"] for point in failed["points"]]
    (here / "well").touch()
    done = scale(*words, "--json", *command).json
    assert done["failed"] is None and [point["runs"] for point in done["points"]] == [2] * 4


def test_all_fail(scale):
    document = scale("--threads", "1", "--json", "--", "sh", "-c", "exit 7", status=7).json
    assert document["points"] == [] and document["failed"]["exit_status"] == 7
    assert scale("--threads", "1", "--", "sh", "-c", "kill -9 $$", status=137).stdout.startswith("1 thread failed")


def test_command_that_cannot_be_run(scale, here):
    finished = scale("--threads", "1", "--output", "sweep", "--json", "--", "./nonsense", status=127)
    assert "nonsense" in finished.stderr and "nonsense" in finished.json["error"]["message"]
    scale("--threads", "1", "--output", "sweep", "--repeat", "1", "--", "true")  # nothing was measured yet


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "true"], "how many of what?"),
        (["--threads", "--", "true"], "--threads needs a value"),
        (["--threads", "0", "--", "true"], "--threads '0': should be whole numbers from 1"),
        (["--threads", "1,two", "--", "true"], "--threads '1,two': should be whole numbers"),
        (["--threads", "1,,2", "--", "true"], "--threads '1,,2': should be whole numbers"),
        (["--threads", "1,2,", "--", "true"], "should be whole numbers"),
        (["--threads", "-1", "--", "true"], "should be whole numbers"),
        (["--threads", "1.5", "--", "true"], "should be whole numbers"),
        (["--threads", "99999999999999999999", "--", "true"], "should be whole numbers"),
        (["--threads", "1,2"], "a command is missing"),
        (["--threads", "1", "--procs", "2", "--", "true"], "--threads and --procs: one of them at a time"),
        (["--threads", "1", "--repeat", "0", "--", "true"], "--repeat '0'"),
        (["--threads", "1", "--predict", "x", "--", "true"], "--predict 'x'"),
        (["--threads", "1", "--pattern", "rate", "--", "true"], "needs a group"),
        (["--procs", "1", "--", "mpirun", "-np", "4", "./a"], "write {n} for its number"),
        (["--cpu-run", "a"], "one needs the other"),
        (["--gpu-run", "a", "--cpu-run", "b", "--", "true"], "instead of a command"),
        (["--gpu-run", "a", "--cpu-run", "b", "--price-gpu-hour", "1"], "one needs the other"),
        (["--gpu-run", "a", "--cpu-run", "b", "--price-gpu-hour", "1", "--price-core-hour", "0"], "above 0"),
    ],
)
def test_wrong_use(scale, here, words, message):
    finished = scale(*words, status=2)
    assert message in finished.stderr and finished.stderr.count("\n") == 1
    assert finished.stdout == "" and not (here / "ran").exists()
