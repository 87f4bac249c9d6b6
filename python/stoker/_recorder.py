# SPDX-License-Identifier: Apache-2.0
"""Writes the steps of a training to its run directory. Plain Python 3.7 without dependencies: `stoker time` also puts it into
interpreters that have no stoker. The layout is docs/formats/run.md.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import socket
import struct
import sys
import time
import weakref
import zlib
from collections.abc import Iterator
from typing import Any, Callable

now = time.perf_counter_ns

# Rows are written when so much time has passed since the last ones: what a kill can cost.
FLUSH_NS = 1_000_000_000
COLUMNS = ("loader", "epoch", "kind", "end_ns", "wait_ns", "step_ns", "samples", "gpu_ns")
KIND_STEP, KIND_END, KIND_MARK = 0, 1, 2


def find_rank() -> tuple[int, int]:
    """Rank and number of ranks as launchers say it: torchrun, Slurm, Open MPI, MPICH; 0 of 1 without one."""
    env = os.environ
    for rank, world in (
        ("RANK", "WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
    ):
        if env.get(rank, "").isdigit() and env.get(world, "").isdigit():
            return int(env[rank]), int(env[world])
    return 0, 1


class Recorder:
    """The steps of this process, in one file of the run directory. Never raises: what is measured must go on."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.failure: str | None = None
        self.loaders: list[dict[str, Any]] = []
        self.watches: weakref.WeakSet[Watch] = weakref.WeakSet()
        self.rows: list[tuple[int, ...]] = []  # each as COLUMNS says
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)
        atexit.register(self.close)

    def _begin(self) -> None:
        # After a fork: what is not written yet is the parent's. The list stays: others hold on to it.
        del self.rows[:]
        self._pending: list[tuple[int, Any, Any]] = []  # (where in rows, event at the begin, event at the end)
        self.flush_at = now() + FLUSH_NS
        self._file: int | None = None
        self._told = 0
        self._pid = os.getpid()
        for watch in list(self.watches):
            watch.forget()

    def add_loader(self, name: str, batch_size: int | None = None, training: bool = True) -> int:
        """The number under which steps of this loader are recorded."""
        self.loaders.append({"name": name, "batch_size": batch_size, "training": training})
        return len(self.loaders) - 1

    def step(
        self, loader: int, epoch: int, end: int, wait: int, step: int, samples: int, kind: int = KIND_STEP
    ) -> None:
        self.rows.append((loader, epoch, kind, end, wait, step, samples, -1))
        if end >= self.flush_at:
            self.flush()

    def step_with_events(
        self, loader: int, epoch: int, end: int, wait: int, step: int, samples: int, first: Any, last: Any
    ) -> None:
        """The same, with two CUDA events between which the device worked on it; asked for later, without waiting."""
        self._pending.append((len(self.rows), first, last))
        self.step(loader, epoch, end, wait, step, samples)

    def mark(self, name: str, begin: int, end: int) -> None:
        """Something beside the steps, such as a checkpoint."""
        names = [each["name"] for each in self.loaders]
        loader = names.index(name) if name in names else self.add_loader(name, training=False)
        self.step(loader, 0, end, 0, end - begin, 0, KIND_MARK)

    def _settle(self, wait: bool) -> int:
        """Fills in what the device has finished; returns how many rows can be written."""
        done = 0
        try:
            for where, first, last in self._pending:
                if wait:
                    last.synchronize()
                elif not last.query():
                    break
                self.rows[where] = (*self.rows[where][:-1], int(first.elapsed_time(last) * 1e6))
                done += 1
        except Exception:  # a device in trouble is the training's business
            del self._pending[:]
            return len(self.rows)
        ready = self._pending[done][0] if done < len(self._pending) else len(self.rows)
        self._pending = [(where - ready, first, last) for where, first, last in self._pending[done:]]
        return ready

    def flush(self, wait: bool = False, ended: bool = False) -> None:
        self.flush_at = now() + FLUSH_NS
        if self.failure is not None:
            del self.rows[:]
            del self._pending[:]
            return
        count = self._settle(wait)
        rows = self.rows[:count]
        del self.rows[:count]
        if not rows and self._told == len(self.loaders) and not (ended and self._file is not None):
            return
        try:
            self._write(rows, {"ended": True} if ended else {})
        except Exception as error:
            self.failure = str(error)

    def _open(self) -> dict[str, Any]:
        name = os.path.join(self.directory, f"steps-{socket.gethostname().split('.')[0]}-{self._pid}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        for number in range(100):  # the hook may have one in this process, too
            try:
                self._file = os.open(f"{name}-{number}.columns" if number else f"{name}.columns", flags, 0o666)
                break
            except FileExistsError:
                continue
        assert self._file is not None
        os.write(self._file, b"stoker-columns 1\n")
        rank, world = find_rank()
        return {
            "host": socket.gethostname(),
            "pid": self._pid,
            "rank": rank,
            "world": world,
            "program": [str(word).encode("utf-8", "replace").decode() for word in getattr(sys, "argv", [])][:50],
            "python": sys.version.split()[0],
            # What to add to the clock of the steps to get the time of day.
            "time_of_day_ns": int(time.time() * 1e9) - now(),
        }

    def _write(self, rows: list[tuple[int, ...]], about: dict[str, Any]) -> None:
        if self._file is None:
            about.update(self._open())
        if self._told < len(self.loaders):
            about["loaders"] = self.loaders
            self._told = len(self.loaders)
        description = json.dumps(
            {"rows": len(rows), "columns": [{"name": name, "type": "i8"} for name in COLUMNS], "about": about}
        ).encode()
        columns = [array.array("q", column) for column in zip(*rows)]
        if sys.byteorder != "little":
            for column in columns:
                column.byteswap()
        body = b"".join(column.tobytes() for column in columns)
        block = b"SBLK" + struct.pack("<IQ", len(description), len(body)) + description + body
        block += struct.pack("<I", zlib.crc32(block) & 0xFFFFFFFF)
        assert self._file is not None
        if os.write(self._file, block) != len(block):
            self.failure = "the block was not written whole"

    def close(self) -> None:
        if self._pid == os.getpid():
            for watch in list(self.watches):
                watch.dropped()
            self.flush(wait=True, ended=True)


def count_samples(batch: Any) -> int:
    """How many samples a batch has, by its first array; 0 where that cannot be seen. Never raises."""
    try:
        return _count_first(batch)
    except Exception:  # a batch may be anything
        return 0


def counter_for(batch: Any, size: int | None) -> Callable[[Any], int]:
    """What counts batches like this one, of which a loader says that they have `size` samples."""
    try:
        if not size or count_samples(batch) == size:
            return count_samples
        if len(batch) == size:
            return len
        if isinstance(batch, (list, tuple)) and len(batch[0]) == size:
            return lambda each: len(each[0])
        if hasattr(batch, "values"):
            for name, value in batch.items():
                if count_samples(value) == size:
                    return lambda each: count_samples(each[name])
    except Exception:
        pass
    return count_samples


def _count_first(batch: Any) -> int:
    for _ in range(8):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) else 1
        if isinstance(batch, (list, tuple)):
            if not batch:
                return 0
            if isinstance(batch[0], (str, bytes, int, float)):
                return len(batch)
            batch = batch[0]
        elif hasattr(batch, "values") and hasattr(batch, "keys"):
            batch = next(iter(batch.values()), None)
        else:
            return 0
    return 0


def cuda_events() -> Any:
    """Makes CUDA events where this process already uses a GPU through torch; never touches the driver first."""
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return None
        return torch.cuda.Event
    except Exception:
        return None


class Watch:
    """The steps of one iterator: ask() before each batch is asked for, got() when it is there, end() behind the last."""

    __slots__ = (
        "_recorder",
        "_append",
        "loader",
        "epoch",
        "_asked",
        "_got",
        "_wait",
        "_samples",
        "_event",
        "_last",
        "__weakref__",
    )

    def __init__(self, recorder: Recorder, loader: int) -> None:
        self._recorder = recorder
        self._append = recorder.rows.append
        self.loader = loader
        self.epoch = 0
        self._got: int | None = None
        self._event: Any = None
        self._last: int | None = None
        recorder.watches.add(self)

    def ask(self) -> None:
        asked = self._asked = now()
        if self._got is not None:
            self._finish(asked)

    def _finish(self, asked: int) -> None:
        assert self._got is not None
        step = self._last = asked - self._got
        self._got = None
        if self._event is not None:
            self._finish_on_device(asked, step)
            return
        self._append((self.loader, self.epoch, KIND_STEP, asked, self._wait, step, self._samples, -1))
        if asked >= self._recorder.flush_at:
            self._recorder.flush()

    def _finish_on_device(self, asked: int, step: int) -> None:
        first, self._event = self._event, None
        try:
            last = type(first)(enable_timing=True)
            last.record()
            self._recorder.step_with_events(
                self.loader, self.epoch, asked, self._wait, step, self._samples, first, last
            )
        except Exception:
            self._recorder.step(self.loader, self.epoch, asked, self._wait, step, self._samples)

    def got(self, samples: int) -> None:
        self._samples = samples
        if "torch" in sys.modules:
            make = cuda_events()
            if make is not None:
                try:
                    self._event = make(enable_timing=True)
                    self._event.record()
                except Exception:
                    self._event = None
        got = self._got = now()
        self._wait = got - self._asked

    def forget(self) -> None:
        """What was begun is another process's."""
        self._got = None
        self._event = None

    def end(self) -> None:
        """The iterator is at its end: how long it took to say so, and the next epoch begins."""
        end = now()
        self._recorder.step(self.loader, self.epoch, end, end - self._asked, 0, 0, KIND_END)
        self.epoch += 1

    def dropped(self) -> None:
        """Nobody will ask again. Where the last step ended was not seen: at most as far as twice the one before it."""
        if self._got is not None:
            end = now()
            if self._last is not None:
                end = min(end, self._got + 2 * self._last)
            self._finish(end)

    def __del__(self) -> None:
        try:
            self.dropped()
        except Exception:  # the interpreter may be half gone
            pass


class WatchedIterator:
    """An iterator whose steps are recorded."""

    __slots__ = ("_next", "_iterator", "_watch", "_count")

    def __init__(
        self, iterator: Iterator[Any], watch: Watch, count: Callable[[Any], int] = count_samples
    ) -> None:
        self._iterator = iterator
        self._next = iterator.__next__
        self._watch = watch
        self._count = count

    def __iter__(self) -> WatchedIterator:
        return self

    def __next__(self) -> Any:
        watch = self._watch
        watch.ask()
        try:
            batch = self._next()
        except StopIteration:
            watch.end()
            raise
        watch.got(self._count(batch))
        return batch

    def __del__(self) -> None:
        try:
            self._watch.dropped()
        except Exception:  # the interpreter may be half gone
            pass
