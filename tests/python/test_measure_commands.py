# SPDX-License-Identifier: Apache-2.0
"""stoker.time, scale, probe and report: what they return is what --json prints; errors, Ctrl-C, and that other children are left
alone."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import stoker
from run_directory import warming_up, write_run

RATE = r"rate: ([0-9.]+)"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STOKER_RUN", raising=False)
    return tmp_path


def test_time_is_what_the_command_says(here, stoker_cli):
    script = "for i in range(80): print('rate: %s' % (1250 + i % 5), flush=True)"
    result = stoker.time([sys.executable, "-c", script], run=here / "r", pattern=RATE)
    assert result.exit_status == 0 and result.source == "--pattern" and result.steps == 80
    assert result.samples_per_s.low <= 1252 <= result.samples_per_s.high
    assert result.run == str(here / "r") and result.runs == (result.run,)
    assert result.steady_state.kind == "flat"
    assert result.document["samples_per_s"]["value"] == result.samples_per_s.value
    assert "samples/s" in repr(result)
    printed = stoker_cli("time", "--json", "--", "true", cwd=here).json
    assert set(printed) == set(result.document)
    assert (here / "r/run.json").exists()


def test_time_takes_steps_and_repeats(here):
    script = "import stoker\nfor batch in stoker.watch([[0] * 4] * 70, name='mine'): pass\n"
    result = stoker.time([sys.executable, "-c", script], repeat=2)
    assert result.source == "mine" and result.samples == 280 and len(set(result.runs)) == 2
    assert result.ranks[0].steps == 70 and result.step_s.median > 0 and result.samples_per_s


def test_a_command_that_fails_is_a_result(here):
    assert stoker.time(["sh", "-c", "exit 3"]).exit_status == 3
    result = stoker.time(["sh", "-c", "kill -9 $$"])
    assert result.signal == 9 and "exit status 137" in repr(result)


def test_output_goes_where_ours_goes(here, capfd):
    stoker.time(["sh", "-c", "echo out; echo err >&2; cat"])
    assert capfd.readouterr() == ("out\n", "err\n")


@pytest.mark.parametrize(
    "command, error, message",
    [
        (["no-such-program"], FileNotFoundError, "no-such-program: cannot be run"),
        (["/etc/passwd"], PermissionError, "cannot be run"),
        ("python train.py", ValueError, "list of words"),
        ([], ValueError, "list of words"),
    ],
)
def test_commands_that_cannot_be_run(command, error, message):
    with pytest.raises(error, match=message):
        stoker.time(command)
    with pytest.raises(error, match=message):
        stoker.scale(command, threads=[1])


def test_wrong_options_of_time(here):
    (here / "r").mkdir()
    with pytest.raises(FileExistsError, match="is there already"):
        stoker.time(["true"], run="r")
    with pytest.raises(ValueError, match="needs a group"):
        stoker.time(["true"], pattern="rate")
    with pytest.raises(ValueError, match="directory of its own"):
        stoker.time(["true"], run="x", repeat=2)
    with pytest.raises(ValueError, match="repeat 0"):
        stoker.time(["true"], repeat=0)


def test_names_that_are_not_utf8(here):
    name = b"r\xff"
    result = stoker.time(["sh", "-c", 'printf %s "$0" > said', name], run=os.fsencode(here) + b"/" + name)
    assert (here / "said").read_bytes() == name and os.path.exists(os.fsencode(here) + b"/" + name + b"/run.json")
    assert result.exit_status == 0


def test_other_children_are_left_alone(here):
    others = [subprocess.Popen(["sh", "-c", f"sleep 0.2; exit {status}"]) for status in (3, 4)]
    handler = signal.getsignal(signal.SIGINT)
    assert stoker.time(["sleep", "0.6"]).exit_status == 0
    assert [each.wait(timeout=60) for each in others] == [3, 4]
    assert signal.getsignal(signal.SIGINT) is handler and not signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("call", ["stoker.time({})", "stoker.scale({}, threads=[1], output='sweep')"])
def test_ctrl_c_ends_the_command(here, call):
    command = ["sh", "-c", "trap 'echo bye > said; exit 0' INT; echo > ready; while :; do sleep 0.05; done"]
    script = f"import stoker\ntry:\n    {call.format(command)}\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (here / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"
    assert (here / "said").read_text() == "bye\n"
    assert not list(here.glob("sweep/n1-r1"))


def test_other_threads_run_meanwhile(here):
    counted = []
    stop = threading.Event()

    def count():
        while not stop.wait(0.01):
            counted.append(1)

    thread = threading.Thread(target=count)
    thread.start()
    stoker.time(["sleep", "1"])
    stop.set()
    thread.join()
    assert len(counted) > 5


def test_scale(here, stoker_cli):
    known = "import sys; n = int(sys.argv[1]); print('rate:', 100 * n / (1 + 0.05 * (n - 1) + 0.01 * n * (n - 1)))"
    command = [sys.executable, "-c", known, "{n}"]
    options = {"threads": [8, 1, 2, 4, 4], "repeat": 1, "pattern": RATE, "hook": False, "output": here / "sweep"}
    result = stoker.scale(command, **options, predict=[12, 65], seed=7)
    assert result.measured == "samples_per_s" and result.axis == "threads" and result.seed == 7
    assert [point.n for point in result.points] == [1, 2, 4, 8] and result.points[0].seconds is None
    assert result.points[1].speedup == pytest.approx(2 / 1.07) and result.points[0].samples_per_s == pytest.approx(100)
    (best,) = [fit for fit in result.fits if fit.best]
    assert best.model == "usl" and best.alpha.value == pytest.approx(0.05, rel=0.01)
    assert result.predictions[0].rate and result.predictions[1].refused and result.failed is None
    assert result.ask_for and "Ask for" in result.advice and result.advice in repr(result)
    again = stoker.scale(command, **options)
    assert all(run.found for run in again.runs) and len(again.runs) == 4
    words = ["--repeat", "1", "--pattern", RATE, "--no-hook", "--output", here / "sweep"]
    printed = stoker_cli("scale", "--json", "--threads", "1,2,4,8", *words, "--", *command).json
    assert printed == {**again.document, "output": printed["output"]}


def test_scale_says_what_failed(here):
    result = stoker.scale(["sh", "-c", "exit $(( {n} - 1 ))"], procs=[1, 2], repeat=1)
    assert result.failed.n == 2 and result.failed.exit_status == 1 and "FAILED at 2" in repr(result)


@pytest.mark.parametrize("widths", [{}, {"threads": [1], "gpus": [1]}, {"threads": [0]}, {"procs": [10**7]}])
def test_wrong_widths(widths):
    with pytest.raises(ValueError, match="how many of what|whole number from 1"):
        stoker.scale(["true"], **widths)


def test_probe(here, stoker_cli):
    options = {"bytes": "32MiB", "seconds": 1, "threads": 1, "only": ["storage", "files"]}
    result = stoker.probe(here, **options)
    (place,) = result.places
    assert place.path == str(here) and place.problem is None and place.writable and place.free_bytes > 0
    assert place.read_bytes_per_s > 0 and place.opens_per_s > 0
    assert result.cores >= 1 and result.memory_bytes > 0 and result.decode_per_core_per_s is None
    assert all(os.path.exists(profile) for profile in result.profiles) and str(here) in repr(result)
    printed = stoker_cli("probe", "--json", "--bytes", "32MiB", "--seconds", "1", "--only", "files", here).json
    assert set(printed) == set(result.document)
    result = stoker.probe(here, **options, output=here / "profile.json")
    assert json.loads((here / "profile.json").read_text())["host"] == result.host
    assert result.profiles == (str(here / "profile.json"),)


def test_wrong_options_of_probe(here):
    for options in ({"only": ["disk"]}, {"bytes": 7}, {"bytes": "x"}, {"seconds": 0}, {"threads": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            stoker.probe(here, **options)
    assert stoker.probe(here / "none", bytes="32MiB", seconds=1, only="storage").places[0].problem


def test_ctrl_c_ends_probe(here):
    script = (
        "import stoker\ntry:\n    stoker.probe('.', seconds=600)\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not [path for path in here.iterdir() if path.name.startswith(".")] and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"
    assert not [path for path in here.iterdir() if path.name.startswith(".stoker")]


def test_report(here, stoker_cli):
    write_run(here / "a", [warming_up(300, seed=1)])
    write_run(here / "b", [warming_up(300, seed=2, step_s=0.025)])
    result = stoker.report(here / "a", b"b", output="page.html", units=[1, 2], unit="core")
    assert result.output == "page.html" and result.format == "html"
    assert result.bytes == (here / "page.html").stat().st_size
    (comparison,) = result.comparisons
    assert comparison.verdict == "faster" and comparison.ratio.value == pytest.approx(2, rel=0.05)
    assert len(result.verdicts) == 2 and result.document["scaling"]["unit"] == "core" and "page.html" in repr(result)
    printed = stoker_cli("report", "--json", "a", "b", cwd=here).json
    assert printed == stoker.report("a", "b").document
    assert not (here / "report.html").exists()
    assert stoker.report("a", format="csv").output == "report.csv" and (here / "report.csv").exists()
    assert stoker.report("a", output="logs", format="tensorboard").bytes > 0


def test_wrong_reports(here):
    write_run(here / "a", [warming_up(100)])
    with pytest.raises(ValueError, match="a run is missing"):
        stoker.report()
    with pytest.raises(FileNotFoundError, match="no run directory"):
        stoker.report(here)
    with pytest.raises(ValueError, match="its suffix does not say"):
        stoker.report("a", output="x.pdf")
    with pytest.raises(ValueError, match="should be one of html"):
        stoker.report("a", format="pdf")
    with pytest.raises(ValueError, match="numbers"):
        stoker.report("a", units=[1, 2])
    (here / "a/run.json").write_text("{")
    with pytest.raises(stoker.CorruptError, match="cannot be read"):
        stoker.report("a")
