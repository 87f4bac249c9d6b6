# SPDX-License-Identifier: Apache-2.0
"""stoker.job: what a Slurm job asked for and what it used. The members have the names that --json prints."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from typing import Any, Union, overload

from stoker import _core

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


@dataclass(frozen=True)
class JobFinding:
    """Something to change in a job script."""

    __module__ = "stoker"

    what: str
    #: As in "#SBATCH --mem=5G"; None where no line would change it.
    line: str | None


@dataclass(frozen=True, repr=False)
class JobResult:
    """What a job, a task of an array or a component asked for, was granted and used."""

    __module__ = "stoker"

    id: str
    name: str
    user: str
    partition: str
    state: str
    state_in_words: str
    reason: str | None
    exit_status: int
    signal: int
    nodes: list[str]
    wait_s: float | None
    asked: dict[str, Any]
    granted: dict[str, Any]
    used: dict[str, Any]
    #: Shares of what was granted: "cpu", "memory", "time", "gpu"; None where not known.
    efficiency: dict[str, float | None]
    findings: tuple[JobFinding, ...]
    steps: list[dict[str, Any]]
    wasted_core_s: float
    #: All that --json prints.
    document: dict[str, Any]
    #: "job", "array" or "heterogeneous"
    kind: str = "job"
    #: The tasks of an array, the components of a heterogeneous job.
    parts: tuple[JobResult, ...] = ()
    #: What `stoker time` measured in it.
    runs: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    #: {"uid": 2003, "user": "eve"} of a job that somebody cancelled; "user" is None where the number has no name.
    cancelled_by: dict[str, Any] | None = None

    @classmethod
    def _of(cls, given: dict[str, Any]) -> JobResult:
        made = {
            **given,
            "findings": tuple(JobFinding(each["what"], each["line"]) for each in given["findings"]),
            "parts": tuple(cls._of(part) for part in given.get("parts", ())),
            "runs": tuple(given.get("runs", ())),
            "notes": tuple(given.get("notes", ())),
            "document": given,
        }
        return cls(**{field.name: made[field.name] for field in fields(cls) if field.name in made})

    def __repr__(self) -> str:
        def percent(share: float | None) -> str:
            return "n/a" if share is None else f"{share:.0%}"

        return (
            f"<JobResult: {self.id}, {self.state}, CPU {percent(self.efficiency['cpu'])}, "
            f"memory {percent(self.efficiency['memory'])}, {len(self.findings)} findings>"
        )


@overload
def job(id: int | str, *, run: Path | None = None) -> JobResult: ...
@overload
def job(id: list[int | str] | list[int] | list[str] | tuple[int | str, ...]) -> list[JobResult]: ...
@overload
def job(*, days: int = 7, user: str | None = None) -> list[JobResult]: ...
def job(
    id: int | str | list[int | str] | list[int] | list[str] | tuple[int | str, ...] | None = None,
    *,
    run: Path | None = None,
    days: int = 7,
    user: str | None = None,
) -> JobResult | list[JobResult]:
    """Say what a Slurm job asked for, was granted and used, and which lines of its script to change.

    id: 123, "123_4" (a task of an array), "123+1" (a component); of a list, all of them; without one, your jobs, the
        most wasteful first.
    run: a run of time() in the job; looked for in stoker-runs/ of the directory it was submitted from where not given.
    days: without an id, the jobs of so many days.
    user: without an id, the jobs of this user.
    """
    if id is not None and not isinstance(id, (int, str)):
        if run is not None:
            raise ValueError("run: is a run of one job, and several are asked for")
        return [JobResult._of(json.loads(_core.job(id=str(each), run=None))) for each in id]
    if id is not None:
        return JobResult._of(json.loads(_core.job(id=str(id), run=run)))
    if not 1 <= days <= 3650:
        raise ValueError(f"days {days}: should be a whole number from 1 to 3,650")
    return [JobResult._of(each) for each in json.loads(_core.user_jobs(user=user or "", days=days))["jobs"]]
