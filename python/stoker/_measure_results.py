# SPDX-License-Identifier: Apache-2.0
"""What the commands that measure return. The members have the names that --json prints, which docs/commands explains."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from stoker import _core

T = TypeVar("T")


def _made(cls: type[T], given: dict[str, Any], **converted: Any) -> T:
    """Of the members that the class knows; a later version of the library may have more."""
    names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    return cls(**{name: value for name, value in {**given, **converted}.items() if name in names})


@dataclass(frozen=True)
class Interval:
    """A measured figure, and where the truth lies with a probability of 95 %."""

    __module__ = "stoker"

    value: float
    low: float
    #: None where there is no end.
    high: float | None

    @classmethod
    def _of(cls, given: dict[str, Any] | None) -> Interval | None:
        return None if given is None else _made(cls, given)


@dataclass(frozen=True)
class SteadyState:
    """Where the steady part of a run begins."""

    __module__ = "stoker"

    #: "flat", "warm-up", "slow-down" or "no steady state"
    kind: str
    from_step: int | None
    from_s: float | None
    from_epoch: float | None
    #: Why there is none.
    cause: str | None


@dataclass(frozen=True)
class StepTimes:
    """How long a step takes, waiting included, in seconds."""

    __module__ = "stoker"

    median: float
    p5: float
    p25: float
    p75: float
    p95: float
    p99: float
    jitter: float


@dataclass(frozen=True)
class Rank:
    """One process that trained."""

    __module__ = "stoker"

    rank: int
    host: str
    steps: int
    samples: int
    mean_step_s: float
    lag_s: float
    wait_share: float


@dataclass(frozen=True)
class Finding:
    """Something to change, and how."""

    __module__ = "stoker"

    what: str
    change: str


@dataclass(frozen=True, repr=False)
class TimeResult:
    """What time() measured. With several runs, the last one, but `samples_per_s` over all."""

    __module__ = "stoker"

    #: The run directory.
    run: str
    #: The command's own; 128 + n where signal n ended it.
    exit_status: int
    signal: int
    seconds: float
    #: What the steps were taken from; "" where none were seen.
    source: str
    samples_per_s: Interval | None
    #: Otherwise the rate is in steps.
    counts_samples: bool
    wait_share: float | None
    gpu_share: float | None
    steady_state: SteadyState
    steps: int
    samples: int
    epochs: int
    step_s: StepTimes | None
    events: tuple[str, ...]
    ranks: tuple[Rank, ...]
    straggler: int | None
    cores: int
    cpu_seconds: float
    peak_memory_bytes: int
    memory_limit_bytes: int
    read_bytes: int
    read_disk_bytes: int
    write_disk_bytes: int
    left_running: int
    findings: tuple[Finding, ...]
    damage: tuple[str, ...]
    trouble: str
    #: Directories of all runs.
    runs: tuple[str, ...]
    #: All that --json prints.
    document: dict[str, Any]

    @classmethod
    def _of(cls, given: dict[str, Any]) -> TimeResult:
        steady = given["steady_state"]
        return _made(
            cls,
            given,
            samples_per_s=Interval._of(given["samples_per_s"]),
            steady_state=_made(SteadyState, steady, kind=steady["class"]),
            step_s=given["step_s"] and _made(StepTimes, given["step_s"]),
            events=tuple(given["events"]),
            ranks=tuple(_made(Rank, each) for each in given["ranks"]),
            findings=tuple(_made(Finding, each) for each in given["findings"]),
            damage=tuple(given["damage"]),
            runs=tuple(each["run"] for each in given["runs"]),
            document=given,
        )

    def __repr__(self) -> str:
        unit = "samples/s" if self.counts_samples else "steps/s"
        rate = f"{self.samples_per_s.value:,.4g} {unit}" if self.samples_per_s else "no rate"
        waits = "" if self.wait_share is None else f", waiting {self.wait_share:.0%}"
        failed = f", exit status {self.exit_status}" if self.exit_status else ""
        return f"<TimeResult: {rate}{waits}, {self.seconds:.3g} s{failed}, in {self.run}>"


@dataclass(frozen=True)
class ScalePoint:
    """All runs at one width."""

    __module__ = "stoker"

    n: int
    #: Of these three the one that `measured` names; the others are None.
    samples_per_s: float | None
    steps_per_s: float | None
    seconds: float | None
    interval: Interval | None
    speedup: float
    percent_of_ideal: float
    runs: int


@dataclass(frozen=True)
class ScaleFit:
    """A law of scaling, fitted to the points."""

    __module__ = "stoker"

    #: "amdahl", "gustafson" or "usl"
    model: str
    gamma: Interval | None
    alpha: Interval | None
    #: Only of "usl".
    beta: Interval | None
    relative_error: float
    #: Advice and predictions follow this one.
    best: bool


@dataclass(frozen=True)
class ScalePrediction:
    """What to expect at a width."""

    __module__ = "stoker"

    n: int
    rate: Interval | None
    #: Why there is none.
    refused: str | None


@dataclass(frozen=True)
class ScaleRun:
    """One run of the command at one width."""

    __module__ = "stoker"

    n: int
    repeat: int
    run: str
    exit_status: int
    seconds: float
    rate: float | None
    #: It had been run before.
    found: bool


@dataclass(frozen=True, repr=False)
class ScaleResult:
    """What scale() measured."""

    __module__ = "stoker"

    #: The directory of the sweep.
    output: str
    axis: str
    scaling: str
    #: "samples_per_s", "steps_per_s" or "seconds"
    measured: str
    seed: int
    points: tuple[ScalePoint, ...]
    fits: tuple[ScaleFit, ...]
    advice: str
    doubt: str | None
    ask_for: int | None
    hurts_beyond: int | None
    predictions: tuple[ScalePrediction, ...]
    remarks: tuple[str, ...]
    runs: tuple[ScaleRun, ...]
    #: The run that ended the sweep: it did not end well.
    failed: ScaleRun | None
    #: All that --json prints.
    document: dict[str, Any]

    @classmethod
    def _of(cls, given: dict[str, Any]) -> ScaleResult:
        rates: dict[str, Any] = {"samples_per_s": None, "steps_per_s": None, "seconds": None}
        greek = ("gamma", "alpha", "beta")
        return _made(
            cls,
            given,
            points=tuple(
                _made(ScalePoint, {**rates, **each}, interval=Interval._of(each["interval"])) for each in given["points"]
            ),
            fits=tuple(
                _made(ScaleFit, each, **{name: Interval._of(each[name]) for name in greek}) for each in given["fits"]
            ),
            predictions=tuple(
                _made(ScalePrediction, each, rate=Interval._of(each["rate"])) for each in given["predictions"]
            ),
            remarks=tuple(given["remarks"]),
            runs=tuple(_made(ScaleRun, each) for each in given["runs"]),
            failed=given["failed"] and _made(ScaleRun, given["failed"]),
            document=given,
        )

    def __repr__(self) -> str:
        failed = f"FAILED at {self.failed.n} with exit status {self.failed.exit_status}, " if self.failed else ""
        return f"<ScaleResult: {failed}{self.advice or 'nothing measured'} In {self.output}>"


@dataclass(frozen=True)
class Place:
    """A directory on some storage, as probe() found it. Rates are the best over all numbers of threads, cold where they could be;
    None where they were not measured."""

    __module__ = "stoker"

    path: str
    known_as: str | None
    purpose: str
    deleted: str
    type: str
    mount: str
    free_bytes: int | None
    free_inodes: int | None
    writable: bool
    same_as: str | None
    problem: str | None
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    random_reads_per_s: float | None
    random_writes_per_s: float | None
    creates_per_s: float | None
    opens_per_s: float | None
    stats_per_s: float | None
    small_reads_per_s: float | None


@dataclass(frozen=True)
class Gpu:
    """A GPU that this process sees."""

    __module__ = "stoker"

    name: str
    memory_bytes: int


@dataclass(frozen=True, repr=False)
class ProbeResult:
    """What probe() measured of this machine."""

    __module__ = "stoker"

    host: str
    measured_at: str
    cpu: str
    #: That this process may use.
    cores: int
    memory_bytes: int
    memory_limit_bytes: int | None
    decode_per_core_per_s: float | None
    gpus: tuple[Gpu, ...]
    places: tuple[Place, ...]
    notes: tuple[str, ...]
    written_bytes: int
    seconds: float
    #: The files that keep it.
    profiles: tuple[str, ...]
    #: All that --json prints, with every single rate.
    document: dict[str, Any]

    @classmethod
    def _of(cls, given: dict[str, Any]) -> ProbeResult:
        return _made(
            cls,
            given,
            gpus=tuple(_made(Gpu, each) for each in given["gpus"]),
            places=tuple(_made(Place, each) for each in given["places"]),
            notes=tuple(given["notes"]),
            profiles=tuple(given["profiles"]),
            document=given,
        )

    def __repr__(self) -> str:
        return (
            f"<ProbeResult: {self.host}, {self.cores} cores, {_core.format_bytes(self.memory_bytes)}, "
            f"{len(self.gpus)} GPUs, places {', '.join(place.path for place in self.places)}>"
        )


@dataclass(frozen=True)
class RunComparison:
    """A run beside the first one of a report."""

    __module__ = "stoker"

    run: str
    baseline: str
    #: "faster", "slower" or "no difference"; None where one has no rate.
    verdict: str | None
    ratio: Interval | None
    text: str


@dataclass(frozen=True, repr=False)
class ReportResult:
    """What report() says, and what it wrote."""

    __module__ = "stoker"

    #: None where nothing was written.
    output: str | None
    format: str | None
    bytes: int
    #: What each run says, in a sentence or two.
    verdicts: tuple[str, ...]
    comparisons: tuple[RunComparison, ...]
    #: All that --json prints: figures, series, scaling.
    document: dict[str, Any]

    @classmethod
    def _of(cls, given: dict[str, Any]) -> ReportResult:
        return _made(
            cls,
            given,
            verdicts=tuple(each["verdict"] for each in given["runs"]),
            comparisons=tuple(
                _made(RunComparison, each, ratio=Interval._of(each["ratio"])) for each in given["comparisons"]
            ),
            document=given,
        )

    def __repr__(self) -> str:
        written = f"{self.output}, {_core.format_bytes(self.bytes)} of {self.format}" if self.output else "not written"
        return f"<ReportResult: {len(self.verdicts)} runs, {written}>"
