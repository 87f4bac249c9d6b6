# SPDX-License-Identifier: Apache-2.0
"""Run directories as `stoker time` leaves them (docs/formats/run.md), with steps that a test chooses."""

import json
import random
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

NANO = 1_000_000_000
BEGIN_NS = 5_000 * NANO  # of the monotonic clock
TIME_OF_DAY_NS = 1_777_777_777 * NANO
STEP_COLUMNS = ("loader", "epoch", "kind", "end_ns", "wait_ns", "step_ns", "samples", "gpu_ns")
RESOURCE_COLUMNS = ("time_ns", "cpu_ns", "anonymous_bytes", "gpu_busy_billionths")


@dataclass
class Step:
    wait_s: float
    step_s: float
    samples: int
    epoch: int = 0


def write_columns(path: Path, names: tuple[str, ...], rows: list[tuple[int, ...]], about: dict) -> None:
    description = json.dumps(
        {"rows": len(rows), "columns": [{"name": name, "type": "i8"} for name in names], "about": about}
    ).encode()
    body = b"".join(struct.pack(f"<{len(rows)}q", *column) for column in zip(*rows))
    block = b"SBLK" + struct.pack("<IQ", len(description), len(body)) + description + body
    path.write_bytes(b"stoker-columns 1\n" + block + struct.pack("<I", zlib.crc32(block)))


def write_run(
    directory: Path,
    ranks: list[list[Step]],
    *,
    command=("python", "train.py"),
    host="node1",
    loader="DataLoader(batch_size=32)",
    cores=4,
    looks_every_s=0.25,
) -> Path:
    """A run whose ranks make these steps, all beginning after one second; half of the cores are busy."""
    directory.mkdir(parents=True)
    seconds = 1.0
    for rank, steps in enumerate(ranks):
        now = 1.0
        rows = []
        for step in steps:
            now += step.wait_s + step.step_s
            times = (BEGIN_NS + round(now * NANO), round(step.wait_s * NANO), round(step.step_s * NANO))
            rows.append((0, step.epoch, 0, *times, step.samples, -1))
        about = {"host": host, "pid": 100 + rank, "rank": rank, "world": len(ranks), "loaders": [{"name": loader}]}
        write_columns(directory / f"steps-node1-{100 + rank}.columns", STEP_COLUMNS, rows, about)
        seconds = max(seconds, now)
    looks = [
        (round(i * looks_every_s * NANO), round(i * looks_every_s * cores / 2 * NANO), 2_000_000_000 + i * 1000, -NANO)
        for i in range(int(seconds / looks_every_s) + 1)
    ]
    write_columns(directory / "resources.columns", RESOURCE_COLUMNS, looks, {})
    info = {
        "schema": 1,
        "stoker": "0.1.0",
        "command": list(command),
        "host": host,
        "started": "2026-05-03T03:09:37Z",
        "cores": cores,
        "memory_limit_bytes": 16_000_000_000,
        "slurm_job": "",
        "clock_begin_ns": BEGIN_NS,
        "time_of_day_begin_ns": TIME_OF_DAY_NS,
        "ended": True,
        "seconds": seconds,
        "exit_status": 0,
        "signal": 0,
        "cpu_seconds": seconds * cores / 2,
        "peak_memory_bytes": 2_100_000_000,
        "read_bytes": 3_000_000_000,
        "read_disk_bytes": 1_000_000_000,
    }
    (directory / "run.json").write_text(json.dumps(info))
    return directory


def warming_up(count: int, *, seed=1, step_s=0.05, waits=0.4, warm_up=0.1, samples=32) -> list[Step]:
    """Steps of which the first part takes three times as long; `waits` of each is waiting."""
    chance = random.Random(seed)
    steps = []
    for i in range(count):
        length = step_s * chance.gauss(1, 0.08) * (3 if i < count * warm_up else 1)
        length = max(length, step_s / 10) * (8 if chance.random() < 0.003 else 1)
        wait = length * min(0.95, max(0.0, chance.gauss(waits, 0.08)))
        steps.append(Step(wait, length - wait, samples, i * 4 // count))
    return steps
