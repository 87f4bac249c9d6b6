# SPDX-License-Identifier: Apache-2.0
"""The cluster that the other tests stand on: nodes that share no local disk, two users, daemons that come and go."""

from slurm_cluster import NOBODY


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
