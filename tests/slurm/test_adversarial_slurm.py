# SPDX-License-Identifier: Apache-2.0
"""Failures in jobs are not hidden, copies of others are not removed, and advice can be followed."""

import os
import random
import re
import shutil
import subprocess
import time

import pytest
from samples import image_folder
from tar_bytes import simple_tar

USER = 65534


def shards(path, count=2, size=20_000, seed="x"):
    """Tar shards without an index."""
    path.mkdir(parents=True)
    for shard in range(count):
        files = {b"%d-%d.bin" % (shard, i): random.Random(f"{seed}{shard}{i}").randbytes(size) for i in range(4)}
        (path / f"{path.name}-{shard:06d}.tar").write_bytes(simple_tar(files))
    return path


@pytest.fixture
def work(cluster, request):
    path = cluster.shared / re.sub(r"\W+", "-", request.node.name)
    path.mkdir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


# --- Failures are not hidden ------------------------------------------------------------------------


def test_time_of_a_missing_program(cluster, work):
    """The exit status that the command line has without Slurm, and the cause where the user looks."""
    done = cluster.stoker("time", "--slurm", "--time", "2", "--", "/nosuch/prog", cwd=work, status=None, timeout=120)
    assert done.returncode == 127, repr(done)
    assert "/nosuch/prog" in done.stderr, repr(done)
    assert "is no run directory" not in done.text


def test_pack_of_a_missing_source(cluster, work):
    done = cluster.stoker("pack", "nosuch", "y", "--slurm", "--tasks", "2", cwd=work, status=None, timeout=120)
    assert done.returncode == 1, repr(done)
    assert "nosuch" in done.stderr, repr(done)


def test_scale_of_a_missing_program(cluster, work):
    line = ["scale", "--slurm", "--threads", "1,2", "--repeat", "1", "--", "/nosuch/prog"]
    done = cluster.stoker(*line, cwd=work, status=None, timeout=180)
    assert done.returncode != 0, repr(done)
    assert "/nosuch/prog" in done.text, repr(done)


def test_scale_of_a_failing_program(cluster, work):
    line = [
        "scale",
        "--slurm",
        "--threads",
        "1,2",
        "--repeat",
        "1",
        "--",
        "bash",
        "-c",
        "echo no such luck >&2; exit 7",
    ]
    done = cluster.stoker(*line, cwd=work, status=None, timeout=180)
    assert done.returncode == 7, repr(done)


def test_time_of_a_failing_program(cluster, work):
    done = cluster.stoker("time", "--slurm", "--", "bash", "-c", "exit 7", cwd=work, status=None, timeout=120)
    assert done.returncode == 7, repr(done)


def test_time_of_a_job_that_is_cancelled(cluster, work):
    """scancel by hand: said as such, by whom, not as a missing run directory."""
    copy = cluster.shared / "stoker"
    cluster.stoker("--version")
    process = subprocess.Popen(
        [copy, "time", "--slurm", "--", "sleep", "100"],
        env=cluster.environment,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        end = time.monotonic() + 60
        job = ""
        while not job and time.monotonic() < end:
            lines = cluster.run("squeue", "-h", "-t", "R", "-o", "%i %Z").stdout.splitlines()
            job = next((line.split()[0] for line in lines if str(work) in line), "")
            time.sleep(0.3)
        assert job, "the job did not start"
        cluster.run("scancel", job)
        out, err = process.communicate(timeout=90)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode not in (0, 2)
    assert job in out + err and "cancel" in (out + err).lower(), out + err
    assert "no run.json" not in out + err


# --- Copies of others stay --------------------------------------------------------------------------


def staged_on(cluster, place) -> dict:
    """What is staged at a place on all four nodes, by the base name of the source."""
    found = cluster.run("srun", "-N4", "--ntasks-per-node=1", "bash", "-c", f"ls {place}/stoker-0 2>/dev/null || true")
    return found.stdout


def test_a_command_on_several_nodes_keeps_other_copies(cluster, work):
    """stage B; then a job on the same nodes with stage A -- CMD: B is still there on each of them."""
    first, second = shards(work / "aaa"), shards(work / "bbb", seed="y")
    stoker = cluster.shared / "stoker"
    cluster.stoker("--version")
    # --keep: copies of jobs that have ended go with the next stage.
    job = cluster.submit(f"{stoker} stage {second} /scr --keep", "-N2")
    assert cluster.wait(job) == "COMPLETED"
    script = f"{stoker} stage {first} /scr -- srun --overlap true"
    job = cluster.submit(script, "-N2")
    assert cluster.wait(job) == "COMPLETED"
    left = staged_on(cluster, "/scr")
    assert left.count("bbb-") == 2, left
    assert "aaa-" not in left, "the copy of the job itself was not removed"
    cluster.run("srun", "-N4", "bash", "-c", f"{stoker} stage --clean /scr; rm -rf /scr/stoker-0")


def test_what_a_job_brought_before_stays(cluster, work):
    """--before-job puts a copy on scratch for the next jobs; a later stage … -- CMD there does not delete it."""
    data, scratch = shards(work / "archive"), work / "scratch"
    scratch.mkdir()
    done = cluster.stoker("stage", "--before-job", data, scratch, "--json", cwd=work)
    assert cluster.wait(done.json["job"]) == "COMPLETED"
    copies = [path for path in scratch.rglob("*.tar")]
    assert len(copies) == 2
    other = shards(work / "other", seed="z")
    stoker = cluster.shared / "stoker"
    for source in (data, other):
        job = cluster.submit(f"{stoker} stage {source} {scratch} -- true", "-N1")
        assert cluster.wait(job) == "COMPLETED"
    assert [path for path in copies if not path.exists()] == []


def test_a_cancelled_job_leaves_no_copies_for_ever(cluster, work):
    """Copies of an ended job go at the latest with the next stage at that place."""
    data, other = shards(work / "ended"), shards(work / "next", seed="n")
    stoker = cluster.shared / "stoker"
    cluster.stoker("--version")
    job = cluster.submit(f"{stoker} stage {data} /scr -- sleep 300", "-N1", "-w", "n1")
    end = time.monotonic() + 60
    while "ended-" not in staged_on_one(cluster, "n1"):
        assert time.monotonic() < end, "never staged"
        time.sleep(0.5)
    cluster.run("scancel", "--signal=KILL", "--full", str(job))
    cluster.wait(job)
    job = cluster.submit(f"{stoker} stage {other} /scr", "-N1", "-w", "n1")
    assert cluster.wait(job) == "COMPLETED"
    assert "ended-" not in staged_on_one(cluster, "n1")


def staged_on_one(cluster, node: str) -> str:
    line = ["srun", "-N1", "-w", node, "--overlap", "bash", "-c", "ls /scr/stoker-0 2>/dev/null || true"]
    return cluster.run(*line).stdout


# --- Messages of several nodes ----------------------------------------------------------------------


def test_a_full_disk_on_a_node_is_said_with_its_name(cluster, work):
    """Not `?` and `failed`: the node, the place, what is needed and what is free."""
    data = shards(work / "large", count=2, size=3_000_000)
    stoker = cluster.shared / "stoker"
    cluster.stoker("--version")
    fill = "mkdir -p /scr/small && mount -t tmpfs -o size=1m tmpfs /scr/small && chmod 1777 /scr/small"
    try:
        cluster.run("srun", "-N1", "-w", "n2", "bash", "-c", fill)
        cluster.run("srun", "-N1", "-w", "n1", "bash", "-c", "mkdir -p /scr/small && chmod 1777 /scr/small")
        job = cluster.submit(f"{stoker} stage {data} /scr/small", "-N2", "-w", "n1,n2")
        assert cluster.wait(job) == "FAILED"
        text = (cluster.shared / "jobs-0" / f"{job}.out").read_text()
        assert re.search(
            r"n2: /scr/small: .*24.* MB needed, .* MB free|n2: /scr/small.*needs 24.* MB, .* free", text
        ), text
    finally:
        cluster.run("srun", "-N1", "-w", "n2", "bash", "-c", "umount /scr/small", status=None)
        cluster.run("srun", "-N2", "-w", "n1,n2", "bash", "-c", "rm -rf /scr/small", status=None)


def test_a_time_limit_is_said(cluster, work):
    """job N reached its time limit of 1 min: ask for more with --time. (A limit of a minute is the shortest there is.)"""
    line = ["time", "--slurm", "--time", "1", "--", "sleep", "300"]
    done = cluster.stoker(*line, cwd=work, status=None, timeout=240)
    assert done.returncode == 1, repr(done)
    assert re.search(r"job \d+ reached its time limit of 1 min 00 s: ask for more with --time; logs", done.stderr), repr(done)


# --- job --------------------------------------------------------------------------------------------


def test_job_of_an_unknown_user_fails(cluster):
    done = cluster.stoker("job", "--user", "nosuchuser", status=None)
    assert done.returncode == 1, repr(done)
    assert "nosuchuser" in done.stderr


def test_job_takes_several_ids(cluster):
    first = cluster.submit("true")
    second = cluster.submit("true")
    cluster.wait(first)
    cluster.wait(second)
    done = cluster.stoker("job", str(first), str(second))
    assert f"job {first}" in done.stdout and f"job {second}" in done.stdout


def test_advice_for_memory_per_core_can_be_followed(cluster):
    """A script with --mem-per-cpu is told to change that; sbatch refuses --mem next to it."""
    job = cluster.submit("sleep 12", "-c2", "--mem-per-cpu=3000M")
    cluster.wait(job)
    findings = cluster.stoker("job", str(job), "--json").json["findings"]
    lines = [each["line"] for each in findings if each["line"] and "--mem" in each["line"]]
    assert lines, "6 GB for a job that sleeps, and no advice: this test has to be adapted"
    for line in lines:
        assert "--mem=" not in line, f"sbatch refuses {line} next to --mem-per-cpu"
        words = [word for word in line.replace("#SBATCH", "").split() if word.startswith("--")]
        cluster.run("sbatch", "--test-only", "-c2", "--mem-per-cpu=3000M", *words, "--wrap", "true")


def test_a_pending_array_says_how_many_tasks_it_has(cluster):
    job = cluster.submit("true", "--array=1-10", "--begin=now+1hour")
    try:
        done = cluster.stoker("job", str(job))
        assert "10 tasks" in done.stdout, repr(done)
        assert "1 task " not in done.stdout
    finally:
        cluster.run("scancel", str(job))


def test_a_running_job_gets_no_final_advice(cluster):
    job = cluster.submit("sleep 60", "-c2", "--mem=1G", "--time=30")
    try:
        cluster.wait(job, "RUNNING")
        time.sleep(13)  # advice on cores comes for jobs of 10 seconds and more
        done = cluster.stoker("job", str(job))
        if "#SBATCH" in done.stdout:
            assert re.search(r"so far|until now|still runs|not final|yet", done.stdout), repr(done)
        assert not re.search(r"#SBATCH --time", done.stdout), "advice on the time of a job that still runs"
    finally:
        cluster.run("scancel", str(job))


def test_who_cancelled_a_job_is_said(cluster):
    job = cluster.submit("sleep 60", user=USER)
    cluster.wait(job, "RUNNING")
    cluster.run("scancel", str(job))
    cluster.wait(job)
    done = cluster.stoker("job", str(job))
    assert re.search(r"cancelled.*root", done.stdout, re.IGNORECASE), repr(done)


# --- Another user's stoker-jobs ---------------------------------------------------------------------


def test_jobs_are_not_written_into_the_directory_of_another(cluster, work):
    """Pre-created and open to all: its owner could swap what the job runs."""
    work.chmod(0o1777)
    theirs = work / "stoker-jobs"
    theirs.mkdir()
    os.chown(theirs, 64_002, 64_002)
    theirs.chmod(0o777)
    line = ["time", "--slurm", "--", "true"]
    done = cluster.stoker(*line, user=USER, cwd=work, status=None, timeout=120, env={"HOME": str(user_home(cluster))})
    assert not list(theirs.iterdir()), "written into the directory of another user"
    if done.returncode != 0:
        assert "stoker-jobs" in done.stderr


def user_home(cluster):
    home = cluster.shared / "home-of-nobody"
    home.mkdir(exist_ok=True)
    os.chown(home, USER, USER)
    return home


def test_pack_in_jobs_is_that_of_one_process(cluster, work):
    """What is advised where a job fails works: the same command again."""
    image_folder(work / "photos", per_class=4)
    cluster.stoker("pack", "photos", "here", "--shard-size", "8K", cwd=work)
    cluster.stoker("pack", "photos", "there", "--shard-size", "8K", "--slurm", "--tasks", "2", cwd=work, timeout=180)
    names = sorted(path.name for path in (work / "here").glob("*.tar"))
    assert [(work / "here" / name).read_bytes() for name in names] == [
        (work / "there" / name).read_bytes() for name in names
    ]
