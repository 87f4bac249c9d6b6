# SPDX-License-Identifier: Apache-2.0
"""The commands that measure, as functions, with the same words as options."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Literal, Union

from stoker import _apart, _core
from stoker._measure_results import ProbeResult, ReportResult, ScaleResult, TimeResult

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Part = Literal["storage", "files", "copies", "memory", "decode", "gpu"]
_PARTS = ("storage", "files", "copies", "memory", "decode", "gpu")
_MOST_WIDTH = 1_000_000
_MOST_REPEATS = 10_000


def _whole(name: str, number: int, least: int, most: int) -> int:
    if not least <= number <= most:
        raise ValueError(f"{name} {number}: should be a whole number from {least} to {most:,}")
    return number


def _words(command: Sequence[Path]) -> list[str]:
    if isinstance(command, (str, bytes)) or not command:
        raise ValueError('command: should be a list of words, as in ["python", "train.py"]')
    return [os.fsdecode(word) for word in command]


def _path(path: Path | None) -> str | None:
    return None if path is None else os.fsdecode(path)


def time(
    command: Sequence[Path],
    *,
    run: Path | None = None,
    pattern: str | None = None,
    hook: bool = True,
    repeat: int = 1,
) -> TimeResult:
    """Run a training command and measure it: samples a second, where it becomes steady, waiting, what it used.

    command: its words, as in ["python", "train.py"]. What it writes goes where our own output goes. That it fails is a result.
    run: where the run is recorded; must not exist. A new directory in stoker-runs/ where not given.
    pattern: for what is not Python: a regular expression with a group around samples a second in its output.
    hook: watch the data iterators of Python frameworks in it.
    repeat: run it so many times, each in a directory of its own; the interval is then over runs.
    """
    if repeat > 1 and run is not None:
        raise ValueError("run and repeat: each run has a directory of its own")
    return TimeResult._of(
        _apart.call(
            "time",
            command=_words(command),
            directory=_path(run),
            hook=hook,
            pattern=pattern,
            repeats=_whole("repeat", repeat, 1, _MOST_REPEATS),
        )
    )


def scale(
    command: Sequence[Path],
    *,
    threads: Iterable[int] = (),
    procs: Iterable[int] = (),
    gpus: Iterable[int] = (),
    nodes: Iterable[int] = (),
    weak: bool = False,
    repeat: int = 3,
    output: Path | None = None,
    pattern: str | None = None,
    hook: bool = True,
    pin: bool = True,
    seed: int | None = None,
    predict: Iterable[int] = (),
) -> ScaleResult:
    """Run a command at several numbers of threads, processes, GPUs or nodes: what each brings, and how many to ask for.

    Stopped and called again with the same output, it goes on. That a run fails is a result: `failed`.

    command: its words; "{n}" in them becomes the width.
    threads, procs, gpus, nodes: the widths, as in threads=[1, 2, 4]; one of the four.
    weak: at width n the command does n times the work.
    repeat: runs at each width.
    output: where the runs are recorded; a new directory in stoker-scale/ where not given.
    pattern, hook: as for time().
    pin: n threads or processes may run on n cores only.
    seed: of the random order of the runs.
    predict: widths to say what to expect at; at most 4 times what was measured.
    """
    axes = {"threads": [*threads], "procs": [*procs], "gpus": [*gpus], "nodes": [*nodes]}
    given = [name for name, widths in axes.items() if widths]
    if len(given) != 1:
        raise ValueError("how many of what? One of threads, procs, gpus, nodes, as in threads=[1, 2, 4]")
    (axis,) = given
    return ScaleResult._of(
        _apart.call(
            "scale",
            command=_words(command),
            axis=axis,
            widths=sorted({_whole(axis, n, 1, _MOST_WIDTH) for n in axes[axis]}),
            directory=_path(output),
            repeats=_whole("repeat", repeat, 1, _MOST_REPEATS),
            weak=weak,
            pin=pin,
            hook=hook,
            pattern=pattern,
            seed=None if seed is None else _whole("seed", seed, 0, 2**64 - 1),
            predict=[_whole("predict", n, 1, _MOST_WIDTH) for n in predict],
        )
    )


def probe(
    *places: Path,
    quick: bool = False,
    bytes: int | str | None = None,
    seconds: float | None = None,
    threads: int = 16,
    photos: Path | None = None,
    only: Iterable[Part] = (),
    output: Path | None = None,
) -> ProbeResult:
    """Measure this machine: storage, memory, cores, decoding, GPU. A place that cannot be measured says so in its `problem`.

    places: directories; the well-known ones and the current one where none are given.
    quick: a rough answer: 256 MiB and 2 seconds for each place.
    bytes: the most that is written to a place: bytes, or text such as "1GiB", which is the default.
    seconds: how long a place is measured, about; 8 where not given.
    threads: the most threads that read and write at once.
    photos: a folder whose photos are decoded instead of generated ones.
    only: some of "storage", "files", "copies", "memory", "decode", "gpu".
    output: write one profile there, not one per place to the user's cache.
    """
    parts: list[str] = [only] if isinstance(only, str) else [*only]
    for part in parts:
        if part not in _PARTS:
            raise ValueError(f"only {part!r}: should be some of {', '.join(_PARTS)}")
    if seconds is None:
        seconds = 2 if quick else 8
    if not 0 < seconds <= 3600:
        raise ValueError(f"seconds {seconds}: should be a number above 0, at most 3600")
    if bytes is None:
        bytes = "256MiB" if quick else "1GiB"
    return ProbeResult._of(
        json.loads(
            _core.probe(
                places=[*places],
                bytes=str(bytes),
                seconds=seconds,
                threads=_whole("threads", threads, 1, 1024),
                photos=photos,
                only=parts,
                output=output,
            )
        )
    )


def report(
    *runs: Path,
    output: Path | None = None,
    format: Literal["html", "json", "csv", "steps", "markdown", "tensorboard"] | None = None,
    units: Iterable[float] = (),
    unit: str = "",
) -> ReportResult:
    """Show runs to a person: as one page that needs nothing else, or as TensorBoard event files, Markdown, JSON or CSV.

    runs: run directories; the others are compared with the first.
    output: what is written; nothing where neither this nor format is given.
    format: by the suffix of output where not given; "report" with its suffix is written where only this is.
    units: how many cores, GPUs … each run had, for the scaling curve; its ranks where not given.
    unit: what they count: "core", "GPU", "node".
    """
    if not runs:
        raise ValueError('a run is missing, as in report("stoker-runs/DATE")')
    counts = [*units]
    if not all(number > 0 for number in counts):
        raise ValueError(f"units {counts}: should be numbers above zero such as [1, 2, 4]")
    return ReportResult._of(
        json.loads(_core.report(runs=[*runs], output=output, format=format or "", units=counts, unit=unit))
    )
