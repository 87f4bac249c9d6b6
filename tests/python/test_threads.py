# SPDX-License-Identifier: Apache-2.0
"""Many threads, the GIL let go, and Ctrl-C in the middle of long work."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import stoker
from every_format import COUNT, KEYS, fields_of, open_quietly, same
from tar_bytes import BLOCK, END, header


def test_threads(dataset):
    def read(seed: int) -> bool:
        numbers = [(seed * 7 + i) % COUNT for i in range(COUNT)]
        whole = all(same(found, fields_of(key)) for found, key in zip(dataset, KEYS))
        many = zip(dataset.read_many(numbers), numbers)
        one = all(same(dataset[KEYS[number]], fields_of(KEYS[number])) for number in numbers)
        return whole and one and all(same(found, fields_of(KEYS[number])) for found, number in many)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(40)))


def test_threads_open_the_same_dataset(packed):
    with ThreadPoolExecutor(8) as pool:
        assert all(len(list(ds)) == COUNT for ds in pool.map(lambda _: stoker.open(packed), range(20)))


def test_one_iterator_from_two_threads(tmp_path):
    """As a generator: one at a time. No sample comes twice, none is lost."""
    sparse_tar(tmp_path / "x.tar", members=400, size=200_000)
    ds = open_quietly(tmp_path)
    iterator = iter(ds)
    found, refused = [], []

    def read() -> None:
        while True:
            try:
                found.append(len(next(iterator)["bin"]))
            except ValueError as error:
                assert "another thread" in str(error)
                refused.append(error)
                time.sleep(0.001)
            except StopIteration:
                return

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200_000] * 400


def sparse_tar(path: Path, members: int, size: int) -> None:
    """A tar of zeros that takes hardly any space on the disk."""
    stride = BLOCK + -(-size // BLOCK) * BLOCK
    with open(path, "wb") as file:
        for i in range(members):
            file.seek(i * stride)
            file.write(header(b"%06d.bin" % i, size))
        file.seek(members * stride)
        file.write(END)


class Ticker:
    """A thread of Python code; `longest` is the longest time for which nobody let it run."""

    def __enter__(self) -> "Ticker":
        self.longest = 0.0
        self.stop = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        time.sleep(0.05)
        self.begin = time.monotonic()
        self.longest = 0.0
        return self

    def run(self) -> None:
        last = time.monotonic()
        while not self.stop:
            time.sleep(0.001)
            now = time.monotonic()
            self.longest = max(self.longest, now - last)
            last = now

    def __exit__(self, *_) -> None:
        self.seconds = time.monotonic() - self.begin
        self.stop = True
        self.thread.join()


class Alarm(Exception):
    pass


@pytest.fixture
def long_work(tmp_path):
    """Some 100 GB of zeros in a sparse file."""
    (tmp_path / "data").mkdir()
    sparse_tar(tmp_path / "data/x.tar", members=20_000, size=5_000_000)
    yield tmp_path / "data"
    shutil.rmtree(tmp_path)  # what pack() had written takes space


@pytest.fixture
def alarm():
    """Raises Alarm in the main thread after so many seconds."""

    def ring(*_) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def work_on(name: str, data: Path, seconds: float) -> None:
    """Until the alarm rings, or about so long."""
    if name == "check":
        stoker.check(data)
    elif name == "index":
        stoker.index(data, full=True, where="cache")
    elif name == "pack":
        stoker.pack(data, data.parent / "to", shard_size="20M", limit=1000)
    else:
        dataset = open_quietly(data)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            dataset.read_many(range(100))


@pytest.mark.parametrize("name", ["check", "index", "pack", "read_many"])
def test_gil_is_let_go(long_work, alarm, name):
    """Python code in another thread goes on all the time: no call holds the GIL for as long as it reads."""
    open_quietly(long_work)
    with Ticker() as ticker:
        if name == "read_many":
            work_on(name, long_work, 0.5)
        else:
            alarm(0.5)
            with pytest.raises(Alarm):
                work_on(name, long_work, 0.5)
    assert ticker.longest < max(0.1, ticker.seconds / 6)


@pytest.mark.parametrize("name", ["check", "index", "pack"])
def test_what_a_signal_handler_raises_stops_the_work(long_work, alarm, name):
    begin = time.monotonic()
    alarm(0.5)
    with pytest.raises(Alarm):
        if name == "pack":
            stoker.pack(long_work, long_work.parent / "to", shard_size="20M", limit=1000)
        elif name == "index":
            stoker.index(long_work, full=True)
        else:
            stoker.check(long_work)
    assert time.monotonic() - begin < 10
    assert not (long_work.parent / "to/.stoker/manifest.json").exists()


def test_a_handler_that_raises_nothing_stops_nothing(tmp_path):
    (tmp_path / "data").mkdir()
    sparse_tar(tmp_path / "data/x.tar", members=100, size=5_000_000)
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        assert stoker.check(tmp_path / "data").good
        end = time.monotonic()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung and rung[0] < end, "handled during the work"


@pytest.mark.parametrize("call", ["check(path)", "index(path, full=True)", "pack(path, path + '-to', limit=1000)"])
def test_ctrl_c(long_work, call):
    """The real thing: a process, SIGINT, KeyboardInterrupt."""
    script = f"import sys, stoker\npath = sys.argv[1]\nprint('ready', flush=True)\nstoker.{call}"
    process = subprocess.Popen(
        [sys.executable, "-c", script, long_work], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - begin < 10
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert process.returncode == -signal.SIGINT


def test_goes_on_after_an_interrupt(tmp_path, alarm):
    (tmp_path / "data").mkdir()
    sparse_tar(tmp_path / "data/x.tar", members=200, size=5_000_000)
    alarm(0.1)
    with contextlib.suppress(Alarm):
        stoker.pack(tmp_path / "data", tmp_path / "to", shard_size="20M")
    alarm(0)  # where all was done before it rang
    result = stoker.pack(tmp_path / "data", tmp_path / "to", shard_size="20M")
    assert (result.samples, result.shards, result.left_out) == (200, 67, ())
    for shard in (tmp_path / "to").glob("*.tar"):
        os.truncate(shard, 0)


def test_work_in_a_thread_that_is_not_the_main_one(packed):
    """Only the main thread can handle signals; the others work all the same."""
    with ThreadPoolExecutor(2) as pool:
        assert all(result.good for result in pool.map(lambda _: stoker.check(packed), range(4)))
