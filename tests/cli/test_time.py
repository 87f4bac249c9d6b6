# SPDX-License-Identifier: Apache-2.0
"""`stoker time`: the command's own exit status and output, what it used, what its steps say, and what can go wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stoker_program import program

HERE = Path(__file__).resolve().parent
# Steps without a framework: the recorder that the hook uses, as it lies in the run directory.
STEPS = """
import os, sys
sys.path.insert(0, os.environ["STOKER_RUN"] + "/hook")
from _stoker_recorder import Recorder
recorder = Recorder(os.environ["STOKER_RUN"])
loader = recorder.add_loader("given")
end = 0
for i in range(int(sys.argv[1])):
    wait, step = 1_000_000, int(float(sys.argv[2]) * 1e9) + (i % 7) * 1000
    end += wait + step
    recorder.step(loader, 0, end, wait, step, 32)
recorder.close()
"""


@pytest.fixture(scope="module")
def known_use(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("known") / "known_use"
    subprocess.run(["cc", "-O1", "-pthread", HERE / "known_use.c", "-o", made], check=True)
    return made


@pytest.fixture
def timed(stoker_cli, tmp_path):
    """timed(*words, status=0): the JSON document of `stoker time --json *words`."""

    def run(*words, status=0, **options):
        finished = stoker_cli("time", "--json", *words, status=status, cwd=tmp_path, **options)
        return json.loads(finished.stdout[finished.stdout.index("{\n") :])

    return run


@pytest.mark.parametrize("status", [0, 1, 3, 200])
def test_exit_status_is_the_commands_own(timed, status):
    document = timed("--", "sh", "-c", f"exit {status}", status=status)
    assert document["exit_status"] == status and document["signal"] == 0


def test_death_by_a_signal(timed):
    document = timed("--", "sh", "-c", "kill -9 $$", status=137)
    assert document["signal"] == 9


@pytest.mark.parametrize("command, status", [("no-such-program", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_run(stoker_cli, tmp_path, command, status):
    finished = stoker_cli("time", "--", command, status=status, cwd=tmp_path)
    assert f"{command}: cannot be run" in finished.stderr
    assert not list(tmp_path.glob("stoker-runs/*"))


def test_output_goes_where_it_went_before(stoker_cli, tmp_path):
    finished = stoker_cli("time", "--", "sh", "-c", "echo out; echo err >&2", cwd=tmp_path)
    assert finished.stdout == "out\n"
    assert finished.stderr.startswith("err\n") and "run: " in finished.stderr


def test_options_of_the_command_are_its_own(stoker_cli, tmp_path):
    for words in (["--", "echo", "--json", "-h"], ["echo", "--json", "-h"]):
        assert stoker_cli("time", *words, cwd=tmp_path).stdout == "--json -h\n"


def test_much_output_passes_a_pattern_whole(stoker_cli, tmp_path):
    script = "for i in range(400_000): print('x' * 50, i)\nprint('rate: 123.5')"
    finished = stoker_cli("time", "--pattern", r"rate: ([0-9.]+)", "--", sys.executable, "-c", script, cwd=tmp_path)
    lines = finished.stdout.splitlines()
    assert len(lines) == 400_001 and lines[-2].endswith(" 399999") and lines[-1] == "rate: 123.5"


def test_a_pattern_gives_the_rate(timed):
    script = "for i in range(80): print('step', i, 'images/sec: %s' % (1250 + i % 5), flush=True)"
    document = timed("--pattern", r"images/sec: ([0-9.,]+)", "--", sys.executable, "-c", script)
    assert document["source"] == "--pattern" and document["steps"] == 80
    assert document["samples_per_s"]["value"] == pytest.approx(1252, rel=0.001)
    assert document["samples_per_s"]["low"] <= 1252 <= document["samples_per_s"]["high"]


@pytest.mark.parametrize("pattern", ["images", "([0-9"])
def test_a_wrong_pattern(stoker_cli, tmp_path, pattern):
    finished = stoker_cli("time", "--pattern", pattern, "--", "true", status=2, cwd=tmp_path)
    assert "--pattern" in finished.stderr


def test_memory_and_bytes_are_what_the_program_uses(stoker_cli, known_use, tmp_path):
    (tmp_path / "data").write_bytes(os.urandom(1 << 20) * 100)
    finished = stoker_cli("time", "--json", "--", known_use, "400", "1", "700", "data", "2", "0", cwd=tmp_path)
    said, text = finished.stdout.split("\n", 1)
    document = json.loads(text)
    assert int(said.split()[3]) == 200 << 20
    assert document["read_bytes"] == pytest.approx(200 << 20, rel=0.02)
    assert document["peak_memory_bytes"] == pytest.approx(400 << 20, rel=0.02)


def test_cpu_time_is_what_the_program_says(stoker_cli, known_use, tmp_path):
    finished = stoker_cli("time", "--json", "--", known_use, "1", "3", "700", "/dev/null", "1", "0", cwd=tmp_path)
    said, document = finished.stdout.split("\n", 1)
    assert json.loads(document)["cpu_seconds"] == pytest.approx(float(said.split()[1]), rel=0.02)


def test_short_lived_children_lose_nothing(stoker_cli, known_use, tmp_path):
    finished = stoker_cli("time", "--json", "--", known_use, "1", "0", "10", "/dev/null", "1", "200", cwd=tmp_path)
    said, document = finished.stdout.split("\n", 1)
    truth = float(said.split()[1])
    assert truth > 200 * 0.01
    assert json.loads(document)["cpu_seconds"] == pytest.approx(truth, rel=0.02)


def test_what_is_left_running_is_said(timed):
    document = timed("--", "sh", "-c", "(sleep 20 >/dev/null 2>&1 &) ; sleep 0.4")
    assert document["left_running"] == 1
    assert document["seconds"] < 15


def test_signals_reach_the_command(stoker_environment, tmp_path):
    script = "trap 'echo got it; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        [program(), "time", "--", "sh", "-c", script], cwd=tmp_path, env=stoker_environment, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == b"got it\n"
    assert process.returncode == 7


def test_steps_and_their_rate(timed, tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    document = timed("--run", "a", "--", sys.executable, "steps.py", "400", "0.004")
    # Steps of 5 ms and 0 to 6 us, of 32 samples, of which 1 ms is waiting.
    assert document["steps"] == 400 and document["samples"] == 400 * 32
    assert document["samples_per_s"]["value"] == pytest.approx(32 / 0.005003, rel=0.001)
    assert document["wait_share"] == pytest.approx(0.2, rel=0.01)
    assert document["steady_state"]["class"] == "flat" and document["steady_state"]["from_step"] == 0
    assert [each["what"] for each in document["findings"]][:1] == ["20 % of the time training waits for data"]


def test_compare(timed, stoker_cli, tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    timed("--run", "a", "--", sys.executable, "steps.py", "300", "0.009")
    timed("--run", "b", "--", sys.executable, "steps.py", "300", "0.004")
    document = stoker_cli("time", "--json", "--compare", "a", "b", cwd=tmp_path).json
    assert document["verdict"] == "faster" and document["ratio"]["value"] == pytest.approx(2, rel=0.01)
    assert stoker_cli("time", "--json", "--compare", "b", "a", cwd=tmp_path).json["verdict"] == "slower"
    assert stoker_cli("time", "--json", "--compare", "a", "a", cwd=tmp_path).json["verdict"] == "no difference"
    assert "no run directory" in stoker_cli("time", "--compare", "a", "home", status=1, cwd=tmp_path).stderr
    assert "two run directories" in stoker_cli("time", "--compare", "a", status=2, cwd=tmp_path).stderr


def test_repeat(timed, tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    document = timed("--repeat", "3", "--", sys.executable, "steps.py", "100", "0.009")
    assert len(document["runs"]) == 3 and len({each["run"] for each in document["runs"]}) == 3
    assert document["samples_per_s"]["value"] == pytest.approx(32 / 0.010003, rel=0.001)


def test_a_run_needs_a_new_directory(stoker_cli, tmp_path):
    stoker_cli("time", "--run", "r", "--", "true", cwd=tmp_path)
    finished = stoker_cli("time", "--run", "r", "--", "true", status=1, cwd=tmp_path)
    assert "is there already" in finished.stderr
    assert stoker_cli("time", status=2, cwd=tmp_path).stderr.startswith("stoker: a command is missing")


def test_two_at_once(stoker_environment, tmp_path):
    both = [subprocess.Popen([program(), "time", "--", "true"], cwd=tmp_path, env=stoker_environment) for _ in range(8)]
    assert [each.wait(timeout=60) for each in both] == [0] * 8
    assert len(list(tmp_path.glob("stoker-runs/*/run.json"))) == 8


def test_a_killed_run_keeps_its_steps(stoker_environment, stoker_cli, tmp_path):
    script = STEPS.replace(
        "recorder.close()", "recorder.flush(); print('ready', flush=True); import time; time.sleep(60)"
    )
    (tmp_path / "steps.py").write_text(script)
    process = subprocess.Popen(
        [program(), "time", "--run", "r", "--", sys.executable, "steps.py", "100", "0.001"],
        cwd=tmp_path,
        env=stoker_environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    document = stoker_cli("time", "--json", "--compare", "r", "r", cwd=tmp_path).json
    assert document["ratio"]["value"] == 1


def test_a_damaged_run_says_where(stoker_cli, tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    stoker_cli("time", "--run", "r", "--", sys.executable, "steps.py", "100", "0.001", cwd=tmp_path)
    (steps,) = (tmp_path / "r").glob("steps-*.columns")
    whole = steps.read_bytes()
    for cut in (0, 5, 17, 60, len(whole) - 1):
        steps.write_bytes(whole[:cut])
        stoker_cli("time", "--compare", "r", "r", cwd=tmp_path)
    (tmp_path / "r/run.json").write_text("{")
    assert "run.json: cannot be read" in stoker_cli("time", "--compare", "r", "r", status=1, cwd=tmp_path).stderr
    (tmp_path / "r/run.json").write_text('{"schema": 99}')
    assert "another version" in stoker_cli("time", "--compare", "r", "r", status=1, cwd=tmp_path).stderr


def test_attach_and_follow(stoker_environment, stoker_cli, tmp_path):
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        watcher = subprocess.Popen(
            [program(), "time", "--json", "--run", "r", "--attach", str(process.pid)],
            cwd=tmp_path,
            env=stoker_environment,
            stdout=subprocess.PIPE,
        )
        deadline = time.monotonic() + 60
        while not (tmp_path / "r/resources.columns").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        follower = subprocess.Popen(
            [program(), "time", "--follow", "r"], cwd=tmp_path, env=stoker_environment, stdout=subprocess.PIPE
        )
        time.sleep(1.5)
    finally:
        process.kill()
        process.wait()
    document = json.loads(watcher.communicate(timeout=60)[0])
    assert document["cpu_seconds"] > 0.01 and document["exit_status"] == 0  # of a busy loop; others may be busy, too
    assert b"CPU" in follower.communicate(timeout=60)[0]
    assert "no process" in stoker_cli("time", "--attach", "999999999", status=1, cwd=tmp_path).stderr


def test_live_view_leaves_the_terminal_as_it_was(stoker_environment, tmp_path):
    import pty

    ours, theirs = pty.openpty()
    subprocess.run(["stty", "rows", "24", "cols", "100"], stdin=theirs, check=True)
    before = subprocess.run(["stty", "-g"], stdin=theirs, capture_output=True).stdout
    environment = {**stoker_environment, "TERM": "xterm"}
    command = [program(), "time", "--", "sh", "-c", "stty size; sleep 1.3; echo done"]

    def own_terminal():
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=own_terminal
    )
    shown = b""
    os.set_blocking(ours, False)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            shown += os.read(ours, 65536)
        except BlockingIOError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    assert process.wait(timeout=60) == 0
    assert b"21 100" in shown  # the command has the upper lines
    assert b"stoker time" in shown and b"CPU" in shown and b"done" in shown
    assert b"\x1b[r" in shown and b"run: " in shown
    assert subprocess.run(["stty", "-g"], stdin=theirs, capture_output=True).stdout == before


def test_trainings_one_after_the_other_are_not_ranks(timed, tmp_path):
    script = STEPS.replace("end = 0", "import time\nend = time.perf_counter_ns()")
    (tmp_path / "steps.py").write_text(script)
    # The second begins, by its clock, when the first has ended.
    document = timed(
        "--", "sh", "-c", f"{sys.executable} steps.py 100 0.004; sleep 1; {sys.executable} steps.py 90 0.004"
    )
    assert len(document["ranks"]) == 1 and document["steps"] == 100
    assert document["samples_per_s"]["value"] == pytest.approx(32 / 0.005003, rel=0.001)


def test_ranks_that_are_not_in_step_are_added(timed, tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    both = f"RANK=0 WORLD_SIZE=2 {sys.executable} steps.py 100 0.004 & RANK=1 WORLD_SIZE=2 {sys.executable} steps.py 100 0.009; wait"
    document = timed("--", "sh", "-c", both)
    assert [each["rank"] for each in document["ranks"]] == [0, 1] and document["straggler"] == 1
    assert document["samples_per_s"]["value"] == pytest.approx(32 / 0.005003 + 32 / 0.010003, rel=0.001)


@pytest.mark.parametrize(
    "pattern, script, count",
    [
        (r"fps {1,20}([0-9.]+)", "printf 'fps  101\\nfps   102\\n'", 2),
        (r"\x72ate: +([0-9]+)", "printf 'rate: 5\\nrate: 6\\n'", 2),
        (r"^rate: ([0-9]+)$", "for i in 1 2 3; do printf '50 %%' >&2; echo rate: $i; done", 3),
        (r"rate: ([0-9]+)", "printf 'rate: 5\\nrate: 6'", 2),
    ],
)
def test_patterns_that_are_not_plain(timed, pattern, script, count):
    assert timed("--pattern", pattern, "--", "sh", "-c", script)["steps"] == count


def test_a_reader_that_leaves_ends_the_command_as_it_would(stoker_environment, tmp_path):
    line = f"{program()} time --pattern 'x([0-9])' -- yes | head -1"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=stoker_environment, capture_output=True, timeout=60)
    assert done.stdout == b"y\n"


def test_a_run_that_vanishes_does_not_end_the_command(stoker_cli, tmp_path):
    finished = stoker_cli(
        "time", "--run", "r", "--", "sh", "-c", "rm -rf r; echo on; exit 3", status=None, cwd=tmp_path
    )
    assert finished.stdout == "on\n" and finished.returncode in (1, 3)


def test_repeat_stops_when_asked_to(stoker_environment, tmp_path):
    process = subprocess.Popen(
        [
            program(),
            "time",
            "--repeat",
            "3",
            "--",
            "sh",
            "-c",
            "trap 'exit 0' TERM; echo start; while :; do sleep 0.05; done",
        ],
        cwd=tmp_path,
        env=stoker_environment,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"start\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == b""
    assert process.returncode == 0


def test_steps_are_not_compared_with_samples(timed, stoker_cli, tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "none.py").write_text(STEPS.replace("step, 32)", "step, 0)"))
    timed("--run", "a", "--", sys.executable, "steps.py", "100", "0.004")
    document = timed("--run", "b", "--", sys.executable, "none.py", "100", "0.004")
    assert document["counts_samples"] is False
    assert stoker_cli("time", "--json", "--compare", "a", "b", cwd=tmp_path).json["verdict"] is None


@pytest.mark.parametrize(
    "options, why",
    [
        (["-I"], "python -I ignores PYTHONPATH"),
        (["-W", "ignore", "-BE"], "python -E ignores PYTHONPATH"),
        (["-X", "utf8", "-S", "-u"], "python -S ignores sitecustomize"),
        (["-u"], None),
        (["-c", "pass", "-I"], None),
        (["-Wignore", "-m", "this", "-I"], None),
    ],
)
def test_python_that_ignores_the_hook(timed, stoker_cli, tmp_path, options, why):
    (tmp_path / "nothing.py").write_text("pass")
    command = ["--", sys.executable, *options, "nothing.py"]
    findings = [each["what"] for each in timed(*command)["findings"]]
    finished = stoker_cli("time", *command, cwd=tmp_path)
    general = "nothing that stoker knows was iterated over"
    if why is None:
        assert findings == [] and general in finished.stderr
    else:
        assert len(findings) == 1 and why in findings[0]
        assert f"! no steps were seen: {why}" in finished.stderr and general not in finished.stderr
    assert timed("--no-hook", *command)["findings"] == []


def test_hostile_columns(stoker_cli, tmp_path):
    import struct
    import zlib

    stoker_cli("time", "--run", "r", "--", "true", cwd=tmp_path)

    def block(description: bytes, rows: bytes) -> bytes:
        body = b"SBLK" + struct.pack("<IQ", len(description), len(rows)) + description + rows
        return body + struct.pack("<I", zlib.crc32(body))

    lacking = block(b'{"rows": 1, "columns": [{"name": "end_ns", "type": "i8"}], "about": {}}', b"\0" * 8)
    deep = block(b'{"rows": 0, "columns": [], "about": {"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}", b"")
    heads = (b"SBLK" + struct.pack("<IQ", 4, 40)) * 20_000
    for content in (lacking, deep, heads):
        (tmp_path / "r/steps-x-1.columns").write_bytes(b"stoker-columns 1\n" + content)
        stoker_cli("time", "--follow", "r", cwd=tmp_path)
        stoker_cli("time", "--compare", "r", "r", cwd=tmp_path)
