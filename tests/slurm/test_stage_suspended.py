# SPDX-License-Identifier: Apache-2.0
"""A job of a real Slurm that is suspended or cancelled in the middle of staging, and the job that comes next."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from samples import noise, write_files
from slurm_cluster import Cluster
from stoker_program import program

NODE = "n3"
FAULTS = Path(__file__).resolve().parents[1] / "adversarial/fault_read.c"


@pytest.fixture(scope="module")
def source(cluster) -> Path:
    write_files(cluster.shared / "files", {f"{i:02d}.bin": noise(i, 20_000) for i in range(20)})
    cluster.stoker("pack", cluster.shared / "files", cluster.shared / "held", "--shard-size", "50K")
    return cluster.shared / "held"


class Held:
    """A job that has claimed a shard and does not get its bytes while the file `hold` exists."""

    def __init__(self, cluster: Cluster, source: Path, library: Path):
        self.cluster = cluster
        self.hold = cluster.shared / "hold"
        self.hold.touch()
        self.place = cluster.directory / f"nodes/{NODE}/scr/stoker-0"
        faults = f"LD_PRELOAD={library} FAULT_NAME={source.name}/files-0 FAULT_HOLD={self.hold}"
        self.job = cluster.submit(f"{faults} {program()} stage {source} /scr -j 1 --json > held.json", "-w", NODE)
        self.until(lambda: list(self.place.glob("*/claims/*")), "has claimed nothing", seconds=20)

    def until(self, happened, otherwise: str, seconds=60) -> None:
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, f"job {self.job} ({self.state()}) {otherwise}: {self.said()}"
            time.sleep(0.05)

    def said(self) -> str:
        path = self.cluster.shared / f"jobs-0/{self.job}.out"
        return path.read_text() if path.exists() else "no output yet"

    def state(self) -> str:
        return self.cluster.run("squeue", "-h", "-j", self.job, "-o", "%T", status=None).stdout.strip()


@pytest.fixture
def held(cluster, source, tmp_path):
    library = cluster.shared / "fault_read.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", library, FAULTS, "-ldl"], check=True)
    job = Held(cluster, source, library)
    yield job
    job.hold.unlink(missing_ok=True)
    cluster.run("scancel", job.job, status=None)
    cluster.run("scontrol", "resume", job.job, status=None)
    job.until(lambda: job.state() in ("", "COMPLETED", "CANCELLED", "FAILED"), "does not end")
    cluster.run("srun", "-w", NODE, program(), "stage", "--clean", "--all", "/scr")


def test_a_suspended_job_does_not_hold_up_the_next(cluster, source, held):
    """The next job of the user says which process it waits for and why, and then copies that part itself."""
    cluster.run("scontrol", "suspend", held.job)
    held.until(lambda: held.state() == "SUSPENDED", "is not suspended")
    held.hold.unlink()  # nothing but the suspension keeps it from going on
    begin = time.monotonic()
    second = cluster.submit(f"{program()} stage {source} /scr --json > second.json", "-w", NODE)
    assert cluster.wait(second) == "COMPLETED", (cluster.shared / f"jobs-0/{second}.out").read_text()
    assert time.monotonic() - begin > 10 and held.state() == "SUSPENDED"
    said = (cluster.shared / f"jobs-0/{second}.out").read_text()
    assert "claimed a part of this copy" in said and "is stopped (SIGSTOP, or scontrol suspend): waiting 10 s" in said
    assert "copying its part here" in said
    result = json.loads((cluster.shared / "jobs-0/second.json").read_text())
    assert result["complete"] and result["verified"]

    # The first goes on where it was: what it writes is the same, and its copy is the same one.
    cluster.run("scontrol", "resume", held.job)
    assert cluster.wait(held.job) == "COMPLETED"
    first = json.loads((cluster.shared / "jobs-0/held.json").read_text())
    assert first["complete"] and first["path"] == result["path"]
    compared = cluster.run("srun", "-w", NODE, program(), "check", first["path"], "--compare", source, "--json").json
    assert compared["comparison"]["equal"] and compared["faults"] == []


def test_what_a_job_that_was_cancelled_in_the_middle_left_goes_with_the_next_stage(cluster, held):
    write_files(cluster.shared / "few", {"0.bin": noise(0, 20_000)})
    cluster.stoker("pack", cluster.shared / "few", cluster.shared / "next")
    assert [path.name.partition("-")[0] for path in held.place.glob("*-*")] == ["held"]
    cluster.run("scancel", "--signal=KILL", "--full", held.job)
    held.until(lambda: held.state() == "", "does not end")
    # This cluster knows processes by their parents, and loses those whose shell is killed; control groups would end them.
    (mark,) = [path.name for path in held.place.glob("refs/*@process,*")]
    os.kill(int(mark.split(",")[4]), signal.SIGKILL)
    after = cluster.submit(f"{program()} stage {cluster.shared / 'next'} /scr --json > after.json", "-w", NODE)
    assert cluster.wait(after) == "COMPLETED", (cluster.shared / f"jobs-0/{after}.out").read_text()
    assert json.loads((cluster.shared / "jobs-0/after.json").read_text())["removed_copies"] == 1
    assert [path.name.partition("-")[0] for path in held.place.glob("*-*")] == ["next"]
