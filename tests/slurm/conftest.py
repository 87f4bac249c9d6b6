# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of four nodes for these tests: one cluster for the session, started when the first test asks for it."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from slurm_cluster import Cluster


@pytest.fixture(scope="session")
def cluster():
    if os.geteuid() != 0:
        pytest.fail("daemons, mount namespaces and a second user need root")
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
    try:
        yield cluster
    finally:
        cluster.control("start", "slurmdbd")
