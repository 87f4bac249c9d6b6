# SPDX-License-Identifier: Apache-2.0
"""Loader.save_on_signal: a training process that is told to go, and one that goes on where it was."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import stoker
from samples import write_files

TRAIN = """
import sys, time
import stoker
loader = stoker.Loader(sys.argv[1], 4, fields=["label"])
loader.save_on_signal(sys.argv[2])
loader.resume(sys.argv[2])
try:
    for epoch in range(2):
        for batch in loader:
            print(*batch["sample"].tolist(), flush=True)
            time.sleep(float(sys.argv[3]))
except stoker.Preempted as told:
    print("saved to", told.path, flush=True)
    raise
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("preempted")
    write_files(root / "files", {f"{i:02d}.cls": str(i).encode() for i in range(40)})
    stoker.pack(root / "files", root / "packed")
    return root / "packed"


def start(dataset, state, pause):
    command = [sys.executable, "-c", TRAIN, str(dataset), str(state), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_saved_between_batches_and_resumed(dataset, tmp_path, number):
    state = tmp_path / "loader.json"
    whole, _ = start(dataset, tmp_path / "other.json", 0).communicate(timeout=60)
    process = start(dataset, state, 0.1)
    begun = [process.stdout.readline() for _ in range(3)]
    process.send_signal(number)
    more, errors = process.communicate(timeout=60)
    *rest, last = more.splitlines(keepends=True)
    assert process.returncode == 128 + number, errors
    assert last == f"saved to {state}\n" and "Traceback" not in errors
    saved = json.loads(state.read_text())
    trained = len(begun) + len(rest)
    assert saved["epoch"] * 40 + saved["position"] == 4 * trained
    after, errors = start(dataset, state, 0).communicate(timeout=60)
    assert "".join(begun + rest) + after == whole[: len("".join(begun + rest) + after)], errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["loader.json"] or "other.json" not in state.name


def test_a_second_signal_ends_it(dataset, tmp_path):
    process = start(dataset, tmp_path / "loader.json", 30)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == -signal.SIGTERM
    assert not (tmp_path / "loader.json").exists()


def test_what_was_there_before_is_called_too(dataset, tmp_path):
    called = []
    before = signal.signal(signal.SIGUSR1, lambda *_: called.append(1))
    try:
        loader = stoker.Loader(dataset, 4, fields=["label"])
        loader.save_on_signal(tmp_path / "state.json", [signal.SIGUSR1])
        with pytest.raises(stoker.Preempted) as told:
            for _ in loader:
                signal.raise_signal(signal.SIGUSR1)
        assert called == [1] and told.value.code == 128 + signal.SIGUSR1
        assert json.loads((tmp_path / "state.json").read_text())["position"] == 4
    finally:
        signal.signal(signal.SIGUSR1, before)
    other = stoker.Loader(dataset, 4, fields=["label"])
    assert not other.resume(tmp_path / "missing.json")
    assert other.resume(tmp_path / "state.json")
    assert sum(len(batch["label"]) for batch in other) == 36


def test_without_a_path_it_is_only_raised(dataset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGUSR1)
    try:
        loader = stoker.Loader(dataset, 4, fields=["label"])
        loader.save_on_signal(signals=[signal.SIGUSR1])
        with pytest.raises(stoker.Preempted) as told:
            for _ in loader:
                signal.raise_signal(signal.SIGUSR1)
        assert told.value.path is None and loader.state_dict()["position"] == 4
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert list(tmp_path.iterdir()) == []
