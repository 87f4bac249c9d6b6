# SPDX-License-Identifier: Apache-2.0
"""Datasets on their way to where they are read faster."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stoker import _core
from stoker._commands import Path, _jobs
from stoker._dataset import Dataset, _open


@dataclass(frozen=True)
class StageResult:
    """What stage() brought where. The members have the names that --json prints."""

    __module__ = "stoker"

    source: str
    place: str
    #: Why this place was chosen; "" where it was given.
    why: str
    #: To be opened, where all of it is there.
    path: str
    format: str
    #: The files of a folder have become a few shards.
    packed: bool
    samples: int
    shards: int
    #: Of all shards, and of those that lie there.
    bytes: int
    staged_bytes: int
    #: Of them: was there, or came from other processes.
    reused_bytes: int
    missing_shards: int
    complete: bool
    verified: bool
    #: All of that in this call; otherwise some of it when it was staged, at `verified_at` (seconds since 1970) or later.
    verified_now: bool
    verified_at: int | None
    #: Shards that were damaged at the place, and copied again.
    repaired: tuple[str, ...]
    #: Another member of the group packed it, and that it is correct is that user's word: the user's number.
    trusts: int | None
    #: The source's index had no checksums: the copy's has.
    checksums_made: bool
    #: Samples whose bytes in the source are not those that were indexed, as dicts.
    faults: tuple[dict[str, Any], ...]
    #: Whether it pays: times and epochs, each None where nobody has measured.
    payoff: dict[str, Any]
    seconds: float

    @classmethod
    def _of(cls, text: str) -> StageResult:
        document = json.loads(text)
        values = {name: document[name] for name in cls.__dataclass_fields__}
        return cls(**{**values, "faults": tuple(values["faults"]), "repaired": tuple(values["repaired"])})


def _notify(text: str) -> None:
    """Who is waited for, and what of others is not used: while it happens, at the line that called stoker."""
    warnings.warn(text, RuntimeWarning, stacklevel=3)


def stage(
    dataset: Path,
    place: Path | None = None,
    *,
    partial: bool = False,
    group: str | None = None,
    jobs: int | None = None,
    keep: bool = False,
    verify: bool = False,
) -> StageResult:
    """Bring a dataset near the GPU: to `place`, a directory, or to the place of this node with the most room.

    Every sample is verified on the way; what is there already is used again. Stopped at any moment and run again, it goes on.

    partial: where not all of it fits, what fits; a Loader with stage= reads the rest from the source.
    group: let this group of users read the copy.
    jobs: threads to use.
    keep: the copy stays after the job that this is part of, until `stoker stage --clean`.
    verify: read what is there already, and copy again what is damaged.

    Warns (RuntimeWarning) while it waits for another process that stages the same.
    """
    return StageResult._of(
        _core.stage(
            dataset=dataset,
            place=place,
            partial=partial,
            group=group or "",
            jobs=_jobs(jobs),
            keep=keep,
            verify=verify,
            notify=_notify,
        )
    )


class Staging:
    """A dataset that is read while it arrives."""

    def __init__(self, data: Path, place: Path | None) -> None:
        path = os.path.abspath(os.fspath(data))
        self._core: _core.Staging | None = None
        self._warned = False
        try:
            self._core = _core.Staging(dataset=path, place=place, partial=True)
        except OSError as error:
            if place is not None:
                raise
            # Nobody has asked for one place: it is a pity that there is none, no mistake.
            warnings.warn(f"not staged, read from the source instead: {error}", RuntimeWarning, stacklevel=4)
            self.dataset: Dataset = _open(path, None, None, True, None)
            return
        self._core.start()
        # Small files become other shards than those of the source: they are read when all are there.
        if self._core.packed:
            result = StageResult._of(self._core.wait(_notify))
            self.dataset = _open(result.path, None, None, True, None)
        else:
            self.dataset = _open(path, None, None, True, self._core.root)

    def warn(self) -> None:
        """Training goes on without a copy, but whoever trains should know."""
        if self._core is not None:
            self._core.pass_on_notices(_notify)
        cause = None if self._warned or self._core is None else self._core.failure()
        if cause is not None:
            self._warned = True
            warnings.warn(f"not staged, read from the source instead: {cause}", RuntimeWarning, stacklevel=3)

    def wait(self) -> StageResult | None:
        """None where there is no place to stage to."""
        if self._core is None:
            return None
        return StageResult._of(self._core.wait(_notify))


def staged(data: Any, place: Path | None) -> list[Staging]:
    given = [data] if isinstance(data, (str, bytes, os.PathLike)) else data
    if isinstance(given, Dataset) or not isinstance(given, Sequence) or any(isinstance(one, Dataset) for one in given):
        raise ValueError("stage: takes paths, not datasets that are open")
    if not given:
        raise ValueError("data: no dataset given")
    return [Staging(one, place) for one in given]
