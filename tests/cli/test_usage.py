# SPDX-License-Identifier: Apache-2.0
"""Wrong use, JSON in every case, colours and the progress bar: what all commands have in common."""

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest
from samples import image_folder

PROGRAM = Path(os.environ.get("STOKER_PROGRAM", Path(__file__).resolve().parents[2] / "build/release/stoker"))

# --- Wrong use ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pck", "a", "b"], "unknown command 'pck', did you mean 'pack'?"),
        (["chekc", "a"], "unknown command 'chekc', did you mean 'check'?"),
        (["hlep"], "unknown command 'hlep', did you mean 'help'?"),
        (["help", "indx"], "unknown command 'indx', did you mean 'index'?"),
        (["zzzzzz"], "unknown command 'zzzzzz' ("),
        (["--verison"], "unknown option '--verison', did you mean '--version'?"),
        (["pack", "a", "b", "--shard-sze", "1G"], "unknown option '--shard-sze', did you mean '--shard-size'?"),
        (["check", "a", "--qiuck"], "unknown option '--qiuck', did you mean '--quick'?"),
        (["pack", "a", "b", "--to", "tfrecrd"], "did you mean 'tfrecord'?"),
        (["pack", "a", "b", "--to", "folder"], "--to 'folder': should be one of "),
        (["index", "a", "--where", "besides"], "should be one of beside, cache, did you mean 'beside'?"),
        (["pack"], "SRC is missing"),
        (["pack", "a"], "DST is missing"),
        (["check"], "DATASET is missing"),
        (["check", "a", "b"], "'b' is one argument too many"),
        (["pack", "a", "b", "--limit"], "--limit needs a value: --limit N"),
        (["pack", "a", "b", "--list", "--json"], "--list needs a value: --list FILE"),
        (["pack", "a", "b", "--overwrite=yes"], "--overwrite takes no value"),
        (["pack", "a", "b", "--jobs", "0"], "--jobs '0': should be a whole number, 1 or more"),
        (["pack", "a", "b", "--limit=ten"], "--limit 'ten': should be a whole number, 1 or more"),
        (["pack", "a", "b", "--shuffle", "-1"], "--shuffle '-1': should be a whole number, 0 or more"),
        (["pack", "a", "b", "--shard-size", "big"], "--shard-size 'big': should be a size such as 512M, 1G or 1.5GiB"),
        (["pack", "a", "b", "--split", "train=90,val=10"], "sum to 100, not 1; perhaps train=0.9,val=0.1"),
        (["pack", "a", "b", "--split", "a/b=1"], "contains a slash"),
        (["check", "a", "--ignore-keys"], "--ignore-keys needs --compare"),
        (["check", "\x1b[31m", "\x1b[32m"], "'\\x1B[32m' is one argument too many"),
    ],
)
def test_wrong_use(stoker_cli, tmp_path, words, message):
    finished = stoker_cli(*words, status=2, cwd=tmp_path)
    assert message in finished.stderr
    assert finished.stderr.startswith("stoker: ") and finished.stderr.count("\n") == 1
    if "--json" not in words:
        assert finished.stdout == ""
    assert os.listdir(tmp_path) in ([], ["home"])


def test_errors_as_json(stoker_cli, tmp_path):
    for words, status, kind in (
        (["check", tmp_path / "nowhere", "--json"], 1, "not_found"),
        (["pack", "--json"], 2, "usage"),
        (["chekc", "x", "--json"], 2, "usage"),
    ):
        finished = stoker_cli(*words, status=status)
        assert finished.json["error"]["kind"] == kind
        assert finished.stderr == f"stoker: {finished.json['error']['message']}\n"
        assert finished.json["stoker"]["schema"] == 1
    assert stoker_cli("check", "--", "--json", status=1).stdout == ""


def test_two_dashes_end_the_options(stoker_cli, tmp_path):
    image_folder(tmp_path / "--json", per_class=1)
    assert "folder" in stoker_cli("check", "--", "--json", cwd=tmp_path).stdout


def test_jobs_and_equals_signs(stoker_cli, tmp_path):
    image_folder(tmp_path / "d", per_class=2)
    for jobs in (["-j2"], ["-j", "2"], ["--jobs=2"], ["--jobs", "9", "--jobs", "2"]):
        assert stoker_cli("check", tmp_path / "d", "--json", *jobs).json["samples"] == 6


@pytest.mark.parametrize("command", ["pack", "index", "check"])
def test_json_is_all_there_is(stoker_cli, tmp_path, command):
    image_folder(tmp_path / "d", per_class=2)
    words = [tmp_path / "d", tmp_path / "out"] if command == "pack" else [tmp_path / "d"]
    finished = stoker_cli(command, *words, "--json")
    assert finished.stderr == ""
    assert list(finished.json)[0] == "stoker"
    assert finished.json["stoker"].keys() == {"version", "schema", "command"}
    assert finished.json["stoker"]["command"] == command
    assert finished.json["samples"] == 6


# --- The terminal --------------------------------------------------------------------------------------


@pytest.fixture
def start():
    """start(environment, word, ...): the program, running; what has not ended by itself is ended after the test."""
    started = []

    def run(environment, *words, **options) -> subprocess.Popen:
        started.append(subprocess.Popen([PROGRAM, *words], env=environment, **options))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def at_terminal(start):
    """at_terminal(environment, word, ...): exit status and output on a pseudo-terminal of 80 columns."""

    def run(environment, *words, meanwhile=None, **options) -> tuple[int, str]:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        process = start(environment, *words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, **options)
        os.close(slave)
        if meanwhile:
            meanwhile(process)
        output = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while chunk := os.read(master, 65536):
                output += chunk
        os.close(master)
        return process.wait(timeout=60), output.decode()

    return run


@pytest.fixture
def terminal_environment(stoker_environment):
    environment = {**stoker_environment, "TERM": "xterm"}
    del environment["NO_COLOR"]
    return environment


@pytest.mark.parametrize(
    ("change", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours(at_terminal, terminal_environment, tmp_path, change, coloured):
    image_folder(tmp_path / "d", per_class=2)
    status, output = at_terminal({**terminal_environment, **change}, "check", tmp_path / "d")
    assert status == 0 and "every byte" in output
    assert ("\x1b[" in output) == coloured


def test_no_colours_in_a_pipe(stoker_cli, tmp_path):
    image_folder(tmp_path / "d", per_class=2)
    for environment in ({"NO_COLOR": ""}, {"NO_COLOR": "", "TERM": "xterm", "COLORTERM": "truecolor"}):
        assert "\x1b" not in stoker_cli("check", tmp_path / "d", env=environment).text


@pytest.mark.parametrize("columns", [30, 60, 80, 200])
def test_narrow_and_wide(at_terminal, terminal_environment, tmp_path, columns):
    image_folder(tmp_path / "d", per_class=3)
    environment = {**terminal_environment, "NO_COLOR": "1", "COLUMNS": str(columns)}
    _, output = at_terminal(environment, "check", "d", cwd=tmp_path)
    fields, classes = output.replace("\r\n", "\n").split("\n\n")[1:3]
    for line in [*fields.splitlines(), *classes.splitlines()]:
        assert len(line) <= columns, line
    for word in ("image", "label", "int64", "jpg", "median"):
        assert word in fields
    for word in ("cat", "dog", "eel"):
        assert word in classes


def test_plain_characters_without_utf8(stoker_cli, tmp_path):
    image_folder(tmp_path / "d", per_class=2)
    assert "##" in stoker_cli("check", tmp_path / "d", env={"LC_ALL": "C"}).stdout.encode("ascii").decode()


# --- Progress ------------------------------------------------------------------------------------------


@pytest.fixture
def much_to_read(tmp_path):
    """A second or more of reading that takes no disk: files of zeros with nothing behind them."""
    (tmp_path / "d").mkdir()
    for number in range(200):
        with open(tmp_path / f"d/{number:03d}.bin", "wb") as file:
            file.truncate(64 << 20)
    return tmp_path / "d"


def hold_up(process) -> None:
    """Makes a short run a long one: stops the program until the two seconds have passed that it stays silent."""
    time.sleep(0.1)
    process.send_signal(signal.SIGSTOP)
    time.sleep(2.1)
    process.send_signal(signal.SIGCONT)


def test_progress_on_a_terminal(at_terminal, terminal_environment, much_to_read):
    status, output = at_terminal(terminal_environment, "check", much_to_read, "--jobs", "1", meanwhile=hold_up)
    assert status == 0
    drawn = output.split("\r\x1b[K")
    assert len(drawn) >= 3, output
    assert re.search(r"\d+%", output) and re.search(r"\d .?B/s", output) and " left" in output
    assert all(len(line) < 80 for line in drawn[1:-1])
    # The line is cleaned before the result is printed.
    assert drawn[-1].replace("\x1b[1m", "").startswith(str(much_to_read))


def test_no_progress_for_what_is_quick(at_terminal, terminal_environment, tmp_path):
    image_folder(tmp_path / "d", per_class=2)
    assert "\x1b[K" not in at_terminal(terminal_environment, "check", tmp_path / "d")[1]


def test_no_progress_without_a_terminal(start, terminal_environment, much_to_read):
    process = start(
        terminal_environment, "check", much_to_read, "--jobs", "1", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    hold_up(process)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and errors == b"" and b"\x1b" not in output


def test_second_signal_ends_at_once(start, stoker_environment, much_to_read):
    process = start(stoker_environment, "check", much_to_read, "--jobs", "1", stderr=subprocess.PIPE)
    time.sleep(0.1)
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        process.send_signal(number)
    assert process.communicate(timeout=20)[1] in (b"", b"stoker: interrupted\n")
    assert process.returncode == 130
