# SPDX-License-Identifier: Apache-2.0
"""The cluster that the other tests stand on: nodes that share no local disk, two users, daemons that come and go."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from slurm_cluster import NOBODY, Cluster


def processes_of(directory: Path) -> list[int]:
    """The daemons, by their environment, and what runs on the nodes, by their mounts."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            daemon = f"STOKER_CLUSTER_DAEMON={directory}".encode() in (folder / "environ").read_bytes().split(b"\0")
            on_node = f"stoker-cluster:{directory}:" in (folder / "mountinfo").read_text()
        except OSError:
            continue
        if daemon or on_node:
            found.append(int(folder.name))
    return found


def test_nodes_share_no_local_disk(cluster):
    script = "touch /tmp/$SLURMD_NODENAME /scr/$SLURMD_NODENAME /dev/shm/$SLURMD_NODENAME; sleep 1; echo /tmp/n? /scr/* /dev/shm/*"
    lines = cluster.run("srun", "-N4", "bash", "-c", script).stdout.splitlines()
    assert sorted(lines) == [f"/tmp/{node} /scr/{node} /dev/shm/{node}" for node in ("n1", "n2", "n3", "n4")]
    shown = cluster.run("srun", "-N4", "bash", "-c", "rm /tmp/n? /scr/n?; echo > $SLURMD_NODENAME; ls n?").stdout
    assert "n1" in shown


def test_another_user_submits(cluster):
    job = cluster.submit("id -u", user=NOBODY)
    assert cluster.wait(job) == "COMPLETED"
    assert (cluster.shared / f"jobs-{NOBODY}/{job}.out").read_text() == f"{NOBODY}\n"


def test_up_again_changes_nothing(cluster):
    line = f"export SLURM_CONF={cluster.directory}/slurm.conf\n"
    assert cluster.control("up") == line
    assert "does not run" not in cluster.control("status")


def test_after_a_crash(cluster):
    """Beside another cluster: all daemons killed in the midst of a job; up and down put things in order, and only their own."""
    crashed = Cluster(Path(tempfile.mkdtemp(prefix="stoker-cluster-", dir="/tmp")))
    try:
        crashed.control("up")
        job = crashed.submit("sleep 1000")
        crashed.wait(job, "RUNNING")
        for process in processes_of(crashed.directory):
            if b"slurm_script" not in Path(f"/proc/{process}/cmdline").read_bytes():
                os.kill(process, signal.SIGKILL)
        with pytest.raises(subprocess.CalledProcessError):
            crashed.control("status")
        crashed.control("up")
        assert crashed.state(job) == ""  # a new one, which knows nothing of it
        assert crashed.run("srun", "-N4", "hostname").stdout.count("\n") == 4
    finally:
        crashed.control("down")
    assert not processes_of(crashed.directory)
    assert not crashed.directory.exists()
    assert "does not run" not in cluster.control("status")


def test_keeps_off_other_directories(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for word in ("up", "down"):
        with pytest.raises(subprocess.CalledProcessError):
            Cluster(tmp_path).control(word)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
