# SPDX-License-Identifier: Apache-2.0
"""`stoker stage` in jobs of a real Slurm: on every node, shared by jobs, cleaned when they are gone, stopped by SIGTERM."""

import json
import os
import re
import shlex
import time
from pathlib import Path

import pytest
from samples import image_folder
from slurm_cluster import NOBODY
from stoker_program import program


@pytest.fixture(scope="module")
def packed(cluster):
    """On what all nodes see, readable by all."""
    image_folder(cluster.shared / "photos", per_class=20)
    cluster.stoker("pack", cluster.shared / "photos", cluster.shared / "pack ed'", "--shard-size", "12K")
    return cluster.shared / "pack ed'"


def words(*all_of_them) -> str:
    return " ".join(shlex.quote(str(word)) for word in all_of_them)


def output(cluster, job, user=0) -> str:
    return (cluster.shared / f"jobs-{user}/{job}.out").read_text()


def document(text: str) -> dict:
    return json.loads(text[text.index("{\n") :])


def test_one_command_for_all_nodes(cluster, packed):
    stage, check = words(program(), "stage", packed, "/scr", "--json"), words(program(), "check")
    # Each node's own copy is looked at there.
    look = f"srun --overlap -N4 -n4 bash -c '{check} /scr/stoker-0/*/data >/dev/null && echo good on $SLURMD_NODENAME'"
    clean = f"srun --overlap -N4 -n4 {words(program(), 'stage', '--clean', '/scr')}"
    job = cluster.submit(f"{stage} > doc.$SLURM_JOB_ID; {look}; {clean}; ls -A /scr", "-N4")
    assert cluster.wait(job) == "COMPLETED", output(cluster, job)
    result = document((cluster.shared / f"jobs-0/doc.{job}").read_text())
    assert sorted(node["node"] for node in result["nodes"]) == ["n1", "n2", "n3", "n4"]
    assert result["complete"] and result["verified"] and result["reused_bytes"] == 0
    assert result["bytes"] == 4 * result["nodes"][0]["bytes"] and result["place"] == "/scr"
    text = output(cluster, job)
    assert all(f"good on n{number}" in text for number in (1, 2, 3, 4))
    assert text.count("freed") == 4 and text.rstrip().endswith("copy"), "nothing is left on the first node"


def test_a_task_of_srun_stages_on_its_own_node(cluster, packed):
    stage = words(program(), "stage", packed, "/scr", "--json")
    job = cluster.submit(f"srun -N1 -n1 -w n2 {stage}; srun -N2 -n2 {words(program(), 'stage', '--clean', '/scr')}", "-N2", "-w", "n1,n2")
    assert cluster.wait(job) == "COMPLETED", output(cluster, job)
    text = output(cluster, job)
    assert '"node": "n2"' in text and '"nodes"' not in text
    assert "freed 0 B" in text and "in 1 copy" in text


def test_jobs_share_a_copy_and_the_last_one_cleans(cluster, packed):
    stage, clean = words(program(), "stage", packed, "/scr", "--json"), words(program(), "stage", "--clean", "/scr", "--json")
    listed = words(program(), "stage", "--list", "/scr", "--json")
    first = cluster.submit(f"{stage} >/dev/null; touch first; while [ ! -e go ]; do sleep 0.1; done; rm go first", "-w", "n3")
    marker = cluster.shared / "jobs-0/first"
    end = time.monotonic() + 60
    while not marker.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert marker.exists(), output(cluster, first)
    second = cluster.submit(f"{stage} >staged; {clean} >cleaned; {listed} >listed", "-w", "n3")
    assert cluster.wait(second) == "COMPLETED"
    staged, cleaned, found = (
        json.loads((cluster.shared / "jobs-0" / name).read_text()) for name in ("staged", "cleaned", "listed")
    )
    assert staged["complete"] and staged["reused_bytes"] == staged["bytes"], "the copy of the first job served"
    assert cleaned["removed"] == [] and [item["references"] for item in found["staged"]] == [[f"job,{first}"]]
    (cluster.shared / "jobs-0/go").touch()
    cluster.wait(first)
    # A job that has ended needs nothing, whether it said so or not.
    third = cluster.submit(clean, "-w", "n3")
    assert cluster.wait(third) == "COMPLETED"
    assert len(document(output(cluster, third))["removed"]) == 1


def test_filters_of_the_user_hide_no_job(cluster, packed):
    """What squeue shows is the user's to choose; which copies are needed is not. Tidying up by age takes nothing from a job either."""
    stage, clean = words(program(), "stage", packed, "/scr"), words(program(), "stage", "--clean", "/scr")
    filters = "SQUEUE_STATES=PENDING SQUEUE_PARTITION=short SQUEUE_ACCOUNT=none SQUEUE_NAMES=x SQUEUE_USERS=nobody"
    script = f"{stage} >/dev/null; {clean} --older 1d; env -u SLURM_JOB_ID {filters} {clean}; {clean}"
    job = cluster.submit(script, "-w", "n2")
    assert cluster.wait(job) == "COMPLETED"
    text = output(cluster, job)
    assert text.count(f"used by job {job}") == 2, text
    assert text.rstrip().endswith("in 1 copy"), text


@pytest.fixture
def private_jobs(cluster):
    """The site shows users their own jobs only; until the test ends."""
    path = cluster.directory / "slurm.conf"
    before = path.read_text()
    path.write_text(before + "PrivateData=jobs\n")
    cluster.run("scontrol", "reconfigure")
    yield
    path.write_text(before)
    cluster.run("scontrol", "reconfigure")


def test_jobs_that_the_site_hides_keep_what_they_share(cluster, packed, private_jobs):
    place = cluster.shared / "scratch of all"
    place.mkdir(mode=0o1777)
    place.chmod(0o1777)
    group = cluster.run("id", "-gn", "nobody").stdout.strip()
    staged = cluster.stoker("stage", packed, place, "--group", group, "--json", user=NOBODY).json
    copy = Path(staged["path"]).parent.name
    job = cluster.submit("sleep 60", "--mem=100M")
    cluster.wait(job, "RUNNING")
    assert str(job) not in cluster.run("squeue", "-h", "-o", "%A", user=NOBODY).stdout.split()
    # Root is in no group of nobody's: what it would leave as a member.
    refs = place / "stoker-0/refs"
    refs.mkdir(parents=True)
    (refs / f"{NOBODY}:{copy}@job,{job}").touch()
    for path in (refs.parent, refs):
        os.chown(path, 0, NOBODY)
        path.chmod(0o2750)
    kept = cluster.stoker("stage", "--clean", place, "--json", user=NOBODY).json
    assert [item["references"] for item in kept["kept"]] == [[f"job,{job}"]]
    cluster.run("scancel", job)


def test_a_source_that_changed_is_staged_again_in_a_job(cluster):
    """The job that stages is not in its own way; what it has staged before is."""
    photos = cluster.shared / "changing"
    image_folder(photos, per_class=3)
    stage, clean = words(program(), "stage", photos, "/scr"), words(program(), "stage", "--clean", "/scr")
    cluster.run("srun", "-w", "n2", "bash", "-c", stage)
    (photos / "cat/new.jpg").write_bytes(b"new")
    job = cluster.submit(f"{stage} --json >again || exit 1; echo newer >{photos}/cat/newer.jpg; {stage}; {clean}", "-w", "n2")
    assert cluster.wait(job) == "COMPLETED", output(cluster, job)
    assert json.loads((cluster.shared / "jobs-0/again").read_text())["samples"] == 10
    assert f"the copy is in use (job,{job})" in output(cluster, job)


def test_cancelled_jobs_leave_what_can_be_resumed(cluster, packed):
    """SIGTERM comes before SIGKILL; a shim-free race, so only what must always hold is asked for."""
    stage = words(program(), "stage", packed, "/scr")
    job = cluster.submit(f"touch running; exec srun {stage} -j 1", "-w", "n4")
    end = time.monotonic() + 60
    while not (cluster.shared / "jobs-0/running").exists() and time.monotonic() < end:
        time.sleep(0.02)
    cluster.run("scancel", job)
    cluster.wait(job)
    after = cluster.submit(
        f"{stage} --json; ls -A /scr/stoker-0/*/parts /scr/stoker-0/*/claims; {words(program(), 'stage', '--clean', '/scr')}", "-w", "n4"
    )
    assert cluster.wait(after) == "COMPLETED"
    text = output(cluster, after)
    assert '"complete": true' in text and '"verified": true' in text
    assert text.count("stoker-0/") >= 2 and "\nvm," not in text


# --- What stays and what goes ------------------------------------------------------------------------

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/site.md"


@pytest.fixture(scope="module")
def other(cluster):
    image_folder(cluster.shared / "other photos", per_class=5)
    cluster.stoker("pack", cluster.shared / "other photos", cluster.shared / "other")
    return cluster.shared / "other"


def staged_on(cluster, *nodes) -> dict[str, list[str]]:
    """The sources of the copies at /scr, node by node, looked at from within a job that stages nothing."""
    found = {}
    for node in nodes:
        listed = cluster.run("srun", "-w", node, program(), "stage", "--list", "/scr", "--json").json["staged"]
        found[node] = sorted(Path(item["source"]).name for item in listed)
    return found


def clean_all(cluster, *nodes):
    for node in nodes:
        cluster.run("srun", "-w", node, program(), "stage", "--clean", "/scr")


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert path.exists()


def test_a_command_on_several_nodes_leaves_other_copies(cluster, packed, other):
    """Those that were kept, those that the job staged for itself, and the same dataset where the job needs it elsewhere."""
    photos = cluster.shared / "other photos"
    stage = f"{words(program())} stage"
    look = f"srun -N2 -n2 {stage} --list /scr --json >listed.$SLURM_JOB_ID"
    job = cluster.submit(
        f"set -e; {stage} {words(other)} /scr --keep; {stage} {words(photos)} /scr; {stage} {words(photos)} /scr -- true; "
        f"{stage} {words(packed)} /scr -- true; {look}", "-N2", "-w", "n1,n2",
    )  # fmt: skip
    assert cluster.wait(job) == "COMPLETED", output(cluster, job)
    listed = (cluster.shared / f"jobs-0/listed.{job}").read_text()
    assert listed.count(f'"source": "{other}"') == listed.count(f'"source": "{photos}"') == 2, listed
    assert "pack ed" not in listed
    # What was kept stays after the job; what was the job's goes when something else is staged there.
    after = cluster.submit(f"{stage} {words(packed)} /scr -- true", "-N2", "-w", "n1,n2")
    assert cluster.wait(after) == "COMPLETED", output(cluster, after)
    assert staged_on(cluster, "n1", "n2") == {"n1": ["other"], "n2": ["other"]}
    clean_all(cluster, "n1", "n2")


def test_one_clean_for_all_nodes(cluster, packed):
    stage = f"{words(program())} stage"
    job = cluster.submit(f"trap '{stage} --clean /scr' EXIT; {stage} {words(packed)} /scr >/dev/null", "-N3", "-w", "n1,n2,n3")
    assert cluster.wait(job) == "COMPLETED", output(cluster, job)
    assert len(re.findall(r"^n[123]: freed [0-9.]+ kB in 1 copy$", output(cluster, job), re.MULTILINE)) == 3, output(cluster, job)
    assert staged_on(cluster, "n1", "n2", "n3") == {"n1": [], "n2": [], "n3": []}


def test_one_list_for_all_nodes(cluster, packed):
    stage = f"{words(program())} stage"
    job = cluster.submit(
        f"{stage} {words(packed)} /scr >/dev/null; {stage} --list /scr; {stage} --list /scr --json >listed; "
        f"PATH=/nonexistent {stage} --list /scr --json >alone 2>said; {stage} --clean /scr", "-N2", "-w", "n1,n2",
    )  # fmt: skip
    assert cluster.wait(job) == "COMPLETED", output(cluster, job)
    # Columns, or where they do not fit, a block of lines for each copy.
    nodes = re.findall(r"^(?:node +)?(n\d) *(?:$| +/scr)", output(cluster, job), re.MULTILINE)
    assert nodes == ["n1", "n2"], output(cluster, job)
    listed, alone = (json.loads((cluster.shared / "jobs-0" / name).read_text())["staged"] for name in ("listed", "alone"))
    assert [(item["node"], item["references"]) for item in listed] == [("n1", [f"job,{job}"]), ("n2", [f"job,{job}"])]
    assert [item["node"] for item in alone] == ["n1"]
    said = (cluster.shared / "jobs-0/said").read_text()
    assert "only what is staged on n1 is listed, one of 2 nodes of this job" in said
    assert "srun --ntasks-per-node=1 stoker stage --list" in said


def test_a_node_without_room_says_so(cluster, packed):
    tiny = "/scr/tiny"
    prepare = f"srun -N2 -n2 mkdir {tiny}; srun -N1 -n1 -w n2 mount -t tmpfs -o size=64k tmpfs {tiny}"
    undo = f"srun -N1 -n1 -w n2 umount {tiny}; srun -N2 -n2 rm -r {tiny}"
    stage = words(program(), "stage", packed, tiny)
    job = cluster.submit(f"{prepare}; {stage}; echo status $?; {stage} -- true; {undo}", "-N2", "-w", "n1,n2")
    assert cluster.wait(job) == "COMPLETED", output(cluster, job)
    text = output(cluster, job)
    assert re.search(r"^n2: /scr/tiny: [0-9.]+ kB needed, [0-9.]+ kB free", text, re.MULTILINE), text
    assert "status 1" in text and "the command was not run" in text


def test_cancelled_jobs_leave_nothing_beyond_the_next_stage(cluster, packed, other):
    job = cluster.submit(f"{words(program(), 'stage', packed, '/scr')}; touch cancelled-staged; sleep 600", "-N2", "-w", "n1,n2")
    wait_for(cluster.shared / "jobs-0/cancelled-staged")
    cluster.run("scancel", job)
    cluster.wait(job)
    after = cluster.submit(f"{words(program(), 'stage', other, '/scr')}", "-N2", "-w", "n1,n2")
    assert cluster.wait(after) == "COMPLETED", output(cluster, after)
    assert staged_on(cluster, "n1", "n2") == {"n1": ["other"], "n2": ["other"]}
    clean_all(cluster, "n1", "n2")


@pytest.fixture
def epilog(cluster):
    """The epilog that the guide shows, on every node; until the test ends."""
    (script,) = re.findall(r"```bash\n(#!/bin/bash\n# Epilog.*?)```", GUIDE.read_text(), re.DOTALL)
    assert "/usr/local/bin/stoker" in script
    cluster.stoker("--version")  # puts it where every user reaches it
    path = cluster.directory / "epilog"
    path.write_text(script.replace("/usr/local/bin/stoker", str(cluster.shared / "stoker")))
    path.chmod(0o755)
    conf = cluster.directory / "slurm.conf"
    before = conf.read_text()
    conf.write_text(before + f"Epilog={path}\n")
    cluster.run("scontrol", "reconfigure")
    yield
    conf.write_text(before)
    cluster.run("scontrol", "reconfigure")


def test_the_epilog_of_the_guide(cluster, packed, other, epilog):
    """On all nodes of a job that was cancelled, also of another user; what was kept, and what others need, stays."""
    stage, both = words(cluster.shared / "stoker", "stage"), ("-N2", "-w", "n1,n2")
    for user in (0, NOBODY):
        marker = cluster.shared / f"jobs-{user}/epilog-staged"
        job = cluster.submit(
            f"{stage} {words(packed)} /scr; {stage} {words(other)} /scr --keep; touch epilog-staged; sleep 600", *both, user=user
        )
        wait_for(marker)
        cluster.run("scancel", job)
        cluster.wait(job)
        end = time.monotonic() + 60
        while cluster.run("squeue", "-h", "-j", job, status=None).stdout.strip() and time.monotonic() < end:
            time.sleep(0.2)
        for node in ("n1", "n2"):
            line = ("srun", "-w", node, cluster.shared / "stoker", "stage", "--list", "/scr", "--json")
            listed = cluster.run(*line, user=user).json["staged"]
            assert [Path(item["source"]).name for item in listed if item["own"]] == ["other"], (user, node)
            cluster.run("srun", "-w", node, cluster.shared / "stoker", "stage", "--clean", "/scr", user=user)
    assert "drain" not in cluster.run("sinfo", "-h", "-o", "%t").stdout
