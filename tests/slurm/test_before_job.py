# SPDX-License-Identifier: Apache-2.0
"""`stoker stage --before-job`, the site's file, and commands that run beside a copy, on a real Slurm.

The archive is a directory that one node alone has, that of the partition for transfers; what all nodes share is scratch.
"""

import json
import shlex

import pytest
from samples import image_folder
from stoker_program import program

SITE = """
[slurm]
account = "root"
time = "5"
[transfer]
partition = "copy"
sbatch = ["--comment=of-the-site"]
[[place]]
path = "$SCRATCH"
purge_days = 30
"""


@pytest.fixture(scope="module")
def site(cluster):
    """What commands of a user of this site have in their environment."""
    file = cluster.shared / "site.toml"
    file.write_text(SITE)
    scratch = cluster.shared / "scratch"
    scratch.mkdir()
    return {"STOKER_SITE": str(file), "SCRATCH": str(scratch)}


@pytest.fixture(scope="module")
def archive(cluster):
    """A dataset that only n4 sees."""
    image_folder(cluster.shared / "to archive", per_class=20)
    cluster.stoker("pack", cluster.shared / "to archive", cluster.shared / "to archive.packed", "--shard-size", "12K")
    job = cluster.submit("mkdir -p /scr/archive && cp -r ../to\\ archive.packed '/scr/archive/tr ain'", "-w", "n4")
    assert cluster.wait(job) == "COMPLETED"
    yield "/scr/archive/tr ain"
    cluster.wait(cluster.submit("rm -r /scr/archive", "-w", "n4"))


def training_script(cluster, archive):
    """Says where the dataset lies, on a node that does not see the archive, and looks at every byte of it."""
    script = cluster.shared / "train.sh"
    stage = f"{shlex.quote(str(program()))} stage {shlex.quote(archive)} $SCRATCH --json"
    script.write_text(
        "#!/bin/bash\n#SBATCH --output=%j.out --nodelist=n1\nset -e\n"
        f"test ! -e {shlex.quote(archive)}\n"
        f"path=$({stage} | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"path\"])')\n"
        f'{shlex.quote(str(program()))} check --json "$path"\n'
    )
    return script


def test_the_training_job_begins_when_the_dataset_is_there(cluster, site, archive):
    train = training_script(cluster, archive)
    submitted = cluster.stoker("stage", "--before-job", archive, "--then", train, "--json", env=site).json
    assert submitted["dependency"] == f"afterok:{submitted['job']}" and submitted["place"] == site["SCRATCH"]
    waiting = cluster.run("squeue", "-h", "-j", f"{submitted['job']},{submitted['then']}", "-o", "%i %P %a %k %E").stdout
    first = next(line for line in waiting.splitlines() if line.startswith(submitted["job"]))
    assert first.split()[1:3] == ["copy", "root"] and "of-the-site" in first
    assert cluster.wait(submitted["then"]) == "COMPLETED", (cluster.shared / f"{submitted['then']}.out").read_text()
    checked = json.loads((cluster.shared / f"{submitted['then']}.out").read_text())
    assert checked["samples"] == 60 and checked["faults"] == []

    (listed,) = cluster.stoker("stage", "--list", "--json", env=site).json["staged"]
    assert listed["source"] == archive and 29.9 < listed["purged_in_days"] <= 30 and listed["place"] == site["SCRATCH"]
    assert cluster.stoker("stage", "--clean", "--json", env=site).json["removed"] == [], "what nodes share is not a node's"


def test_what_the_site_has_deleted_is_brought_again(cluster, site, archive):
    brought = cluster.stoker("stage", "--before-job", archive, "--json", env=site).json
    assert cluster.wait(brought["job"]) == "COMPLETED"
    (copy,) = cluster.stoker("stage", "--list", "--json", env=site).json["staged"]
    lost = sorted((cluster.shared / copy["path"]).glob("*.tar"))[1]
    whole = lost.read_bytes()
    lost.unlink()
    refused = cluster.stoker("stage", archive, site["SCRATCH"], env=site, status=1)
    assert "1 of " in refused.stderr and "--before-job again" in refused.stderr
    again = cluster.stoker("stage", "--before-job", archive, "--json", env=site).json
    assert cluster.wait(again["job"]) == "COMPLETED"
    assert lost.read_bytes() == whole
    found = cluster.stoker("stage", archive, site["SCRATCH"], "--json", env=site).json
    assert found["complete"] and found["path"] == copy["path"]


def test_what_was_brought_before_stays_after_a_command(cluster, site, archive):
    """Also where the source can be seen, as in the partition for transfers."""
    brought = cluster.stoker("stage", "--before-job", archive, "--json", env=site).json
    assert cluster.wait(brought["job"]) == "COMPLETED"
    stage = f"{shlex.quote(str(program()))} stage {shlex.quote(archive)} {shlex.quote(site['SCRATCH'])} -- true"
    job = cluster.submit(f"test -e {shlex.quote(archive)} && {stage}", "-w", "n4")
    assert cluster.wait(job) == "COMPLETED", (cluster.shared / f"jobs-0/{job}.out").read_text()
    (copy,) = cluster.stoker("stage", "--list", "--json", env=site).json["staged"]
    assert copy["source"] == archive and copy["complete"] and copy["keep"]


def test_a_transfer_that_fails_ends_the_training_job(cluster, site):
    train = training_script(cluster, "/scr/not there")
    submitted = cluster.stoker("stage", "--before-job", "/scr/not there", "--then", train, "--json", env=site).json
    assert cluster.wait(submitted["then"]) == "CANCELLED"
    assert cluster.wait(submitted["job"]) == "FAILED"
    refused = cluster.stoker("stage", "/scr/not there", site["SCRATCH"], env=site, status=1)
    assert "/scr/not there" in refused.stderr


def test_script_is_shown_with_what_the_site_says(cluster, site):
    hostile = "/scr/it's $(touch hacked); x"
    line = ["stage", "--before-job", hostile, "--print"]
    shown = cluster.stoker(*line, env=site).stdout
    for option in ("--partition=copy", "--account=root", "--comment=of-the-site"):
        assert f"#SBATCH {option}\n" in shown
    assert "--partition=short" in cluster.stoker(*line, "--partition", "short", env=site).stdout
    assert [hostile in shlex.split(text) for text in shown.splitlines() if " stage " in text] == [True]
    packing = cluster.stoker("pack", "photos", "packed", "--slurm", "--print", "--time", "9", env=site).stdout
    assert packing.count("#SBATCH --account=root\n") == packing.count("#SBATCH --time=9\n") == 3
    bad = cluster.shared / "bad.toml"
    bad.write_text("[slurm]\npartition = 1\n")
    refused = cluster.stoker(*line, env={**site, "STOKER_SITE": str(bad)}, status=1)
    assert f"{bad}: line 2, column 13" in refused.stderr


def test_a_command_beside_the_copy_on_every_node(cluster, packed_for_command):
    """One line in the script of a job; behind it nothing is left on any node, also at a place that is not well known."""
    check = f"{shlex.quote(str(program()))} check {{}} >/dev/null && echo good on $SLURMD_NODENAME {{}}"
    stage = f"{shlex.quote(str(program()))} stage {shlex.quote(str(packed_for_command))} /scr/mine"
    make = "srun -N3 -n3 mkdir -p /scr/mine"
    job = cluster.submit(f"{make}; {stage} -- srun --overlap -N3 -n3 bash -c {shlex.quote(check)}; srun -N3 -n3 ls -A /scr/mine; srun -N3 -n3 rmdir /scr/mine", "-N3", "-w", "n1,n2,n3")
    assert cluster.wait(job) == "COMPLETED"
    text = (cluster.shared / f"jobs-0/{job}.out").read_text()
    assert all(f"good on n{number} /scr/mine/stoker-0/" in text for number in (1, 2, 3)), text
    assert not [line for line in text.splitlines() if line == "stoker-0"], "every node was cleaned"


@pytest.fixture
def packed_for_command(cluster):
    image_folder(cluster.shared / "beside", per_class=10)
    cluster.stoker("pack", cluster.shared / "beside", cluster.shared / "beside.packed", "--shard-size", "12K")
    return cluster.shared / "beside.packed"
