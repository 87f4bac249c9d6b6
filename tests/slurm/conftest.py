# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of four nodes for these tests: one cluster for the session, started when the first test asks for it."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from stoker_program import Finished, clean_environment, program

SCRIPT = Path(__file__).with_name("cluster")
NOBODY = 65534


class Cluster:
    def __init__(self, directory: Path):
        self.directory = directory
        self.shared = directory / "shared"  # what all nodes and users see
        self.environment = {**clean_environment(self.shared), "SLURM_CONF": str(directory / "slurm.conf")}

    def control(self, *words: str) -> str:
        """One of the script's own words: control("stop", "slurmdbd")."""
        return subprocess.run(
            [SCRIPT, *words, self.directory], check=True, timeout=120, stdout=subprocess.PIPE, text=True
        ).stdout

    def run(self, *command, user: int = 0, status: int | None = 0, timeout=60, env=None, cwd=None) -> Finished:
        """A command that knows the cluster, by default in the directory that all nodes share."""
        as_user = {"user": user, "group": user, "extra_groups": []} if user else {}
        return Finished(
            subprocess.run(
                [str(word) for word in command],
                env={**self.environment, **(env or {})},
                cwd=cwd or self.shared,
                timeout=timeout,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                **as_user,
            )
        ).require(status)

    def stoker(self, *arguments, **options) -> Finished:
        return self.run(program(), *arguments, **options)

    def submit(self, script: str, *options: str, user: int = 0) -> int:
        """The number of the job that runs this text under bash."""
        home = self.shared / f"jobs-{user}"
        home.mkdir(exist_ok=True)
        os.chown(home, user, user)
        line = ["sbatch", "--parsable", "--output=%j.out", *options, "--wrap", script]
        return int(self.run(*line, user=user, cwd=home).stdout.split(";")[0])

    def state(self, job: int | str) -> str:
        """What accounting says of the job as a whole; nothing where it does not know it yet."""
        lines = self.run("sacct", "-X", "-n", "-P", "-D", "-j", job, "-o", "State").stdout.split("\n")
        return lines[0].split(" ")[0]

    def wait(self, job: int | str, *states: str, seconds: float = 90) -> str:
        """Until the job is in one of these states; without any, until it has ended."""
        wanted = states or ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL")
        end = time.monotonic() + seconds
        while (state := self.state(job)) not in wanted:
            assert time.monotonic() < end, f"job {job} is {state or 'unknown'}, expected one of {wanted}"
            time.sleep(0.2)
        return state


@pytest.fixture(scope="session")
def cluster():
    if os.geteuid() != 0:
        pytest.skip("daemons, mount namespaces and a second user need root")
    # Where every user can go, which is not so in pytest's own directories.
    directory = Path(tempfile.mkdtemp(prefix="stoker-cluster-", dir="/tmp"))
    made = Cluster(directory)
    try:
        made.control("up")
        yield made
    finally:
        made.control("down")
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def without_database(cluster):
    """The accounting database is down; it comes back after the test."""
    cluster.control("stop", "slurmdbd")
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.control, "start", "slurmdbd")
        yield cluster
