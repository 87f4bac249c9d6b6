# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: exit 130, says how to go on, leaves nothing half-done, and goes on."""

import fcntl
import os
import pty
import subprocess
import termios
import time

import pytest
from samples import differences, image_folder, noise, tree, write_files
from stoker_program import program
from tar_bytes import simple_tar


def hidden_outside_index(directory) -> list[bytes]:
    return [
        name for name in tree(directory) if name.split(b"/")[-1].startswith(b".") and not name.startswith(b".stoker")
    ]


@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
def test_pack(stoker_cli, count_calls, shim, tmp_path, signal_name, share):
    image_folder(tmp_path / "source", per_class=60)
    options = ["--shard-size", "15K", "--jobs", "2"]
    calls = count_calls("pack", tmp_path / "source", tmp_path / "whole", *options)
    environment = {"LD_PRELOAD": str(shim), "KILL_AT": str(1 + int(share * calls)), "KILL_HOW": signal_name}
    finished = stoker_cli("pack", tmp_path / "source", tmp_path / "packed", *options, env=environment, status=130)
    assert "again" in finished.stderr, "how to go on"
    assert "Traceback" not in finished.stderr
    assert hidden_outside_index(tmp_path / "packed") == []
    result = stoker_cli("pack", tmp_path / "source", tmp_path / "packed", *options, "--json").json
    if share == 0.5:
        assert result["shards_reused"] > 0, "what was done is not done again"
    assert differences(tree(tmp_path / "whole"), tree(tmp_path / "packed")) == []


def test_index(stoker_cli, count_calls, shim, tmp_path):
    data = tmp_path / "d"
    data.mkdir()
    for number in range(12):
        files = {b"%d_%d.bin" % (number, i): noise(i, 900) for i in range(10)}
        (data / f"x{number:02d}.tar").write_bytes(simple_tar(files))
    calls = count_calls("index", data, "--full", "--where", "cache", "--jobs", "1")
    environment = {"LD_PRELOAD": str(shim), "KILL_AT": str(max(1, calls // 3)), "KILL_HOW": "SIGINT"}
    words = ["index", data, "--full", "--where", "beside", "--jobs", "1"]
    stoker_cli(*words, env=environment, status=130)
    assert not (data / ".stoker/manifest.json").exists(), "nothing half-done looks done"
    result = stoker_cli(*words, "--json").json
    assert result["samples"] == 120
    assert result["segments_reused"] > 0, "what was done is not done again"


def test_at_a_terminal(stoker_environment, tmp_path):
    """The real thing: a pseudo-terminal, and the key itself."""
    write_files(tmp_path / "source", {f"{i:05d}.bin": noise(i % 7, 20_000) for i in range(4000)})
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [program(), "pack", tmp_path / "source", tmp_path / "packed", "--jobs", "1", "--shard-size", "1M"],
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env={**stoker_environment, "TERM": "xterm"},
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # its terminal, whose keys send it signals
    )  # fmt: skip
    os.close(slave)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("packed/*.tar")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    os.write(master, b"\x03")
    output = b""
    try:
        while chunk := os.read(master, 65536):
            output += chunk
    except OSError:  # the other end is closed
        pass
    os.close(master)
    status = process.wait(timeout=60)
    assert status == 130, (status, output[-500:])
    assert b"again" in output


def test_two_at_once_do_not_destroy_each_other(stoker_environment, stoker_cli, tmp_path):
    """The same pack started twice: one result, the right one, whoever does the work."""
    image_folder(tmp_path / "source", per_class=60)
    words = ["pack", tmp_path / "source", "--shard-size", "15K"]
    stoker_cli(*words, tmp_path / "whole")
    command = [program(), *words, tmp_path / "packed"]
    both = [
        subprocess.Popen(command, env=stoker_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    results = [(each.communicate(timeout=120)[1], each.returncode) for each in both]
    assert all(status in (0, 1) for _, status in results), results
    assert any(status == 0 for _, status in results), results
    stoker_cli(*words, tmp_path / "packed")
    assert differences(tree(tmp_path / "whole"), tree(tmp_path / "packed")) == []


def test_reader_that_goes_away(tmp_path, stoker_environment):
    """`stoker check d | head -1` is no failure and no noise."""
    image_folder(tmp_path / "d")
    script = f"set -o pipefail; {program()} check {tmp_path}/d | head -c 1; echo; echo status ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=stoker_environment)
    assert "status 0" in done.stdout and done.stderr == ""


def test_closed_descriptors(tmp_path, stoker_environment):
    """Started without stdin, stdout or stderr: no message ends up in a data file."""
    image_folder(tmp_path / "source", per_class=2)
    for i, closed in enumerate(("<&-", ">&-", "2>&-", "<&- >&- 2>&-")):
        script = f"{program()} pack {tmp_path}/source {tmp_path}/packed{i} {closed}"
        subprocess.run(["bash", "-c", script], env=stoker_environment, capture_output=True, timeout=60)
        done = subprocess.run(
            [program(), "check", tmp_path / f"packed{i}"], env=stoker_environment, capture_output=True
        )
        assert done.returncode == 0, done
