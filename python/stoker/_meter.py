# SPDX-License-Identifier: Apache-2.0
"""Measuring a training from within its script: `for batch in stoker.watch(loader):`, or `with meter.step(samples=n):`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from . import _core, _recorder

T = TypeVar("T")
_now = time.perf_counter_ns


class Meter:
    """Records steps in a run directory, as `stoker time` does; within `stoker time`, in that of the run.

    `run` is a directory that does not exist yet, which the ranks of a distributed training share; without it, a new one in
    `stoker-runs/`. Recording never raises.
    """

    __module__ = "stoker"

    def __init__(self, run: str | os.PathLike[str] | None = None) -> None:
        self.run = os.environ.get("STOKER_RUN", "")
        if not self.run:
            self.run = self._begin(os.fspath(run) if run is not None else "")
        self._recorder = _recorder.Recorder(self.run)
        self._step: _Step | None = None

    @staticmethod
    def _begin(run: str) -> str:
        rank, world = _recorder.find_rank()
        if run and world > 1:  # the first rank that comes makes it, the others join it
            try:
                return _core.begin_run(run, sys.argv)
            except FileExistsError:
                return os.path.realpath(run)
        return _core.begin_run(run, sys.argv)

    def watch(self, batches: Iterable[T], name: str | None = None) -> Watched[T]:
        """The same batches; each is a step from when it is there until the next one is asked for."""
        return Watched(self._recorder, batches, name)

    def step(self, samples: int = 0) -> _Step:
        """`with meter.step(samples=256):` around what a step does; the time before it counts as waiting for data."""
        step = self._step
        if step is None:
            step = self._step = _Step(self._recorder)
        step.samples = samples
        return step

    def flush(self) -> None:
        """Writes what is recorded now, instead of within a second."""
        self._recorder.flush(wait=True)

    def summary(self) -> dict[str, Any]:
        """What the run says until now: the members of `stoker time --json`."""
        self.flush()
        summary: dict[str, Any] = json.loads(_core.run_summary(self.run))
        return summary


class Watched(Iterable[T]):
    """Something iterated over, whose steps are recorded each time."""

    def __init__(self, recorder: _recorder.Recorder, batches: Iterable[T], name: str | None) -> None:
        self._batches = batches
        self._recorder = recorder
        number = recorder.add_loader(name or type(batches).__name__)
        recorder.loaders[number]["explicit"] = True
        self._watch = _recorder.Watch(recorder, number)

    def __iter__(self) -> Iterator[T]:
        return _recorder.WatchedIterator(iter(self._batches), self._watch)

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]


class _Step:
    __slots__ = ("_recorder", "_append", "_loader", "_begin", "_end", "samples")

    def __init__(self, recorder: _recorder.Recorder) -> None:
        self._recorder = recorder
        self._loader = recorder.add_loader("Meter.step")
        recorder.loaders[self._loader]["explicit"] = True
        self._append = recorder.rows.append
        self._end = _now()
        self.samples = 0

    def __enter__(self) -> None:
        self._begin = _now()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end = _now()
        begin = self._begin
        self._append((self._loader, 0, 0, end, begin - self._end, end - begin, self.samples, -1))
        self._end = end
        if end >= self._recorder.flush_at:
            self._recorder.flush()


_meter: Meter | None = None


def watch(batches: Iterable[T], name: str | None = None) -> Watched[T]:
    """`for batch in stoker.watch(loader):` records every step of it; see Meter."""
    global _meter
    if _meter is None:
        _meter = Meter()
    return _meter.watch(batches, name)
