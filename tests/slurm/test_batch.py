# SPDX-License-Identifier: Apache-2.0
"""pack, scale and time in jobs of a real Slurm."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from stoker_program import program

HOSTILE = "it's $(touch hacked); `touch hacked`\n\"x\" #"


def contents(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


@pytest.fixture
def place(cluster):
    """A directory that all nodes see, with a folder of samples in it, and what one process makes of it."""
    place = cluster.shared / "batch"
    (place / "photos" / HOSTILE).mkdir(parents=True)
    for i in range(200):
        (place / "photos" / HOSTILE / f"{i:03}.bin").write_bytes(bytes([i]) * 10_000)
    cluster.stoker("pack", place / "photos", place / "alone", "--shard-size", "100k")
    yield place
    shutil.rmtree(place)


def test_pack_by_an_array_gives_what_one_process_gives(cluster, place):
    (place / HOSTILE).mkdir()
    destination = place / HOSTILE / "packed"
    finished = cluster.stoker(
        "pack", place / "photos", destination, "--shard-size", "100k", "--slurm", "--tasks", 4, "--json", cwd=place
    )
    assert finished.json["samples"] == 200 and finished.json["shards_reused"] == finished.json["shards"] == 25
    assert contents(destination) == contents(place / "alone")
    assert not list(cluster.shared.rglob("hacked"))
    logs = [log.read_text() for log in place.glob("stoker-jobs/*/stoker-pack-part-*.log")]
    assert len(logs) == 4 and all("packed" in log for log in logs)


def test_task_that_fails_is_submitted_again(cluster, place):
    line = ["pack", place / "photos", place / "packed", "--shard-size", "100k", "--slurm", "--tasks", 4]
    submitted = cluster.stoker(*line, "--sbatch=--hold", "--no-wait", "--json", cwd=place).json
    plan, parts, last = submitted["jobs"]
    jobs = Path(submitted["directory"])
    cluster.run("scancel", f"{parts}_2")
    # Those that it submits itself must not be held.
    for script in jobs.glob("*.sh"):
        script.write_text(script.read_text().replace("#SBATCH --hold\n", ""))
    cluster.run("scontrol", "release", ",".join([plan, parts, last]))
    end = time.monotonic() + 90
    while not (jobs / "status").exists():
        assert time.monotonic() < end, (jobs / "jobs").read_text()
        time.sleep(0.3)
    assert len((jobs / "jobs").read_text().split()) == 5
    assert contents(place / "packed") == contents(place / "alone")


def test_samples_that_cannot_be_read_fail_no_task(cluster, place):
    """They are said at the end, and are no reason to do it all again."""
    os.mkfifo(place / "photos/odd.bin")
    finished = cluster.stoker(
        "pack", place / "photos", place / "packed", "--slurm", "--tasks", 2, "--json", cwd=place, status=1
    )
    assert [fault["shard"] for fault in finished.json["left_out"]] == ["odd.bin"]
    assert len(next(place.glob("stoker-jobs/*/jobs")).read_text().split()) == 3


@pytest.fixture(scope="module")
def shim(cluster) -> Path:
    """tests/faults/kill_at.c, where all nodes see it."""
    library = cluster.shared / "kill_at.so"
    source = Path(__file__).parents[1] / "faults/kill_at.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def test_task_that_is_killed_in_its_midst_is_submitted_again(cluster, place, shim):
    """SIGKILL after half of a write of a shard, on its node; the others go on, and so does the task when it runs again."""
    line = ["pack", place / "photos", place / "packed", "--shard-size", "100k", "--slurm", "--tasks", 4, "--jobs", 1]
    submitted = cluster.stoker(*line, "--sbatch=--hold", "--no-wait", "--json", cwd=place).json
    jobs = Path(submitted["directory"])
    # The scripts that were submitted are the controller's; those that lie here are for the second time.
    cluster.run("scancel", *submitted["jobs"])
    for script in jobs.glob("*.sh"):
        script.write_text(script.read_text().replace("#SBATCH --hold\n", ""))
    part = jobs / "stoker-pack-part.sh"
    strike = f"""if [[ $SLURM_ARRAY_TASK_ID == 2 && ! -e {jobs}/struck ]]; then
  touch {jobs}/struck
  export LD_PRELOAD={shim} KILL_AT=2 KILL_LEAST=50000 KILL_HOW=half
fi
"""
    part.write_text(part.read_text().replace("set -euo pipefail\n", "set -euo pipefail\n" + strike, 1))
    numbers = []
    for name, after in (("plan", ""), ("part", "afterok"), ("finish", "afterany")):
        more = [f"--dependency={after}:{':'.join(numbers)}"] if after else []
        numbers.append(cluster.run("sbatch", "--parsable", *more, jobs / f"stoker-pack-{name}.sh", cwd=place).stdout.strip())
    (jobs / "jobs").write_text("\n".join(numbers) + "\n")
    end = time.monotonic() + 90
    unfinished = set()
    while not (jobs / "status").exists():
        unfinished |= {path.name for path in (place / "packed").glob(".*.stoker-tmp")}
        assert time.monotonic() < end, (jobs / "jobs").read_text()
        time.sleep(0.02)
    assert (jobs / "status").read_text() == "0\n"
    assert cluster.wait(f"{numbers[1]}_2") == "FAILED"
    # The shell's 137, from which sacct takes 128 away.
    assert cluster.run("sacct", "-nXP", "-j", f"{numbers[1]}_2", "-o", "ExitCode").stdout == "9:0\n"
    assert "killed by signal 9" in cluster.stoker("job", f"{numbers[1]}_2").stdout
    assert unfinished and len((jobs / "jobs").read_text().split()) == 5
    assert contents(place / "packed") == contents(place / "alone")


def test_plan_and_parts_by_hand(cluster, place):
    line = ["pack", place / "photos", place / "packed", "--shard-size", "100k"]
    refused = cluster.stoker(*line, "--part", "1/2", status=2)
    assert "--plan" in refused.stderr
    assert "25 tar shards" in cluster.stoker(*line, "--plan").stdout
    assert "13 tar shards" in cluster.stoker(*line, "--part", "1/2").stdout
    assert cluster.stoker(*line, "--json").json["shards_reused"] == 13
    assert contents(place / "packed") == contents(place / "alone")
    for wrong in ("0/2", "3/2", "x", "1/", "1/2/3"):
        assert "2/4" in cluster.stoker(*line, "--part", wrong, status=2).stderr


def test_scripts_are_shown_and_nothing_is_submitted(cluster, place):
    line = ["pack", place / "photos", place / "packed", "--slurm", "--print", "--partition", "p", "--time", "1:00:00"]
    shown = cluster.stoker(*line, cwd=place).stdout
    assert shown.count("#SBATCH --partition=p\n#SBATCH --time=1:00:00\n") == 3
    assert not (place / "stoker-jobs").exists() and not (place / "packed").exists()


@pytest.mark.parametrize("value", ["a b", "$(id)", "a\n#SBATCH --uid=0", "'"])
def test_values_that_are_more_than_a_value_are_refused(cluster, place, value):
    line = ["pack", place / "photos", place / "packed", "--slurm"]
    assert "sbatch" in cluster.stoker(*line, "--partition", value, status=2).stderr
    assert "sbatch" in cluster.stoker(*line, f"--sbatch=--comment={value}", status=2).stderr
    assert not (place / "packed").exists()


def test_what_sbatch_refuses_is_said(cluster, place):
    line = ["pack", place / "photos", place / "packed", "--slurm"]
    assert "nowhere" in cluster.stoker(*line, "--partition", "nowhere", status=1, cwd=place).stderr
    nothing = cluster.stoker(*line, status=1, env={"PATH": "/nonexistent"}, cwd=place)
    assert "sbatch: not found" in nothing.stderr


def waiting(cluster, place, **options):
    words = [program(), "pack", place / "photos", place / "packed", "--slurm", "--sbatch=--hold"]
    started = subprocess.Popen(words, env=cluster.environment, cwd=place, **options)
    end = time.monotonic() + 60
    while not list(place.glob("stoker-jobs/*/jobs")):
        assert time.monotonic() < end
        time.sleep(0.1)
    time.sleep(0.5)
    return started, next(place.glob("stoker-jobs/*/jobs")).read_text().split()


def queue(cluster) -> set[str]:
    return set(cluster.run("squeue", "-h", "-o", "%F").stdout.split())


def test_whoever_stops_waiting_leaves_the_jobs(cluster, place):
    started, jobs = waiting(cluster, place, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    started.send_signal(signal.SIGINT)
    assert f"scancel {' '.join(jobs)}" in started.communicate(timeout=60)[1]
    assert started.returncode == 130
    assert set(jobs) <= queue(cluster)
    cluster.run("scancel", *jobs)


def test_or_cancels_them_when_asked(cluster, place):
    mine, theirs = pty.openpty()
    started, jobs = waiting(cluster, place, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    started.send_signal(signal.SIGINT)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(mine, 1000)
    os.write(mine, b"y\n")
    assert started.wait(60) == 130
    os.close(mine)
    end = time.monotonic() + 30
    while set(jobs) & queue(cluster):
        assert time.monotonic() < end
        time.sleep(0.2)


def test_scale_by_jobs(cluster, place):
    command = ["bash", "-c", 'sleep 0.1; echo "rate: $((OMP_NUM_THREADS * 10))"']
    line = ["scale", "--threads", "1,2,4", "--repeat", 2, "--pattern", "rate: ([0-9.]+)", "--slurm", "--json", "--"]
    found = cluster.stoker(*line, *command, cwd=place, timeout=120).json
    assert [(width["n"], width["runs"], width["samples_per_s"]) for width in found["points"]] == [(1, 2, 10), (2, 2, 20), (4, 2, 40)]
    wanted = {"stoker-scale-1|1", "stoker-scale-2|2", "stoker-scale-4|4"}
    end = time.monotonic() + 30
    while not wanted <= set(cluster.run("sacct", "-n", "-P", "-X", "-o", "JobName,AllocCPUS").stdout.split()):
        assert time.monotonic() < end
        time.sleep(0.3)


def test_width_that_fails_does_not_spoil_the_others(cluster, place):
    command = ["bash", "-c", '[[ $OMP_NUM_THREADS != 2 ]] && echo "rate: 1"']
    line = ["scale", "--threads", "1,2", "--repeat", 1, "--pattern", "rate: ([0-9.]+)", "--slurm", "--json", "--"]
    found = cluster.stoker(*line, *command, cwd=place, timeout=120).json
    assert [width["n"] for width in found["points"]] == [1]
    assert any(remark.startswith("2 threads failed with exit status 1: ") for remark in found["remarks"])


@pytest.mark.parametrize(("command", "status"), [(["false"], 1), (["/nosuch/prog"], 127)])
def test_sweep_whose_every_run_fails(cluster, place, command, status):
    line = ["scale", "--threads", "1,2", "--repeat", 1, "--slurm", "--", *command]
    finished = cluster.stoker(*line, cwd=place, timeout=120, status=status)
    assert re.search(r"stoker: job \d+: ", finished.stderr)
    if status == 127:
        assert "/nosuch/prog: cannot be run: No such file or directory" in finished.stderr
        assert "1 thread: 1 of 1 runs was not recorded." in finished.stdout
    else:
        assert "1 thread failed with exit status 1" in finished.stdout and "2 threads failed" in finished.stdout


def test_source_that_is_not_there(cluster, place):
    finished = cluster.stoker("pack", "nosuch", "packed", "--slurm", cwd=place, timeout=120, status=1)
    assert re.search(rf"stoker: job \d+: {re.escape(str(place / 'nosuch'))}: .*[Nn]o such file", finished.stderr)


@pytest.mark.parametrize("json_too", [False, True])
def test_command_that_is_not_there(cluster, place, json_too):
    line = ["time", "--slurm", *(["--json"] if json_too else []), "--", "/nosuch/prog"]
    finished = cluster.stoker(*line, cwd=place, timeout=120, status=127)
    message = finished.json["error"]["message"] if json_too else finished.stderr
    assert re.search(r"job \d+: /nosuch/prog: cannot be run: No such file or directory", message)


def test_job_that_somebody_cancels(cluster, place):
    words = [program(), "time", "--slurm", "--", "sleep", "300"]
    started = subprocess.Popen(words, env=cluster.environment, cwd=place, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not list(place.glob("stoker-jobs/*/stoker-time-*.log")):
        assert time.monotonic() < end
        time.sleep(0.1)
    (job,) = next(place.glob("stoker-jobs/*/jobs")).read_text().split()
    cluster.run("scancel", job)
    assert f"job {job} was cancelled by root (0)" in started.communicate(timeout=90)[1]
    assert started.returncode == 1


def test_time_by_a_job(cluster, place):
    finished = cluster.stoker("time", "--slurm", "--json", "--", "bash", "-c", "sleep 1; exit 3", cwd=place, status=3)
    run = json.loads(finished.stdout)
    assert run["exit_status"] == 3 or run["runs"][0]["exit_status"] == 3


def test_controller_that_does_not_answer_for_a_while_ends_no_waiting(cluster, place):
    """squeue fails twice and then is the real one, as while a controller is restarted."""
    programs = place / "programs"
    programs.mkdir()
    real = shutil.which("squeue")
    (programs / "squeue").write_text(f"""#!/bin/sh
echo . >> {place}/asked
if [ "$(wc -l < {place}/asked)" -le 2 ]; then echo 'Unable to contact slurm controller' >&2; exit 1; fi
exec {real} "$@"
""")
    (programs / "squeue").chmod(0o755)
    line = ["time", "--slurm", "--json", "--", "bash", "-c", "sleep 4; exit 3"]
    finished = cluster.stoker(*line, cwd=place, status=3, env={"PATH": f"{programs}:{os.environ['PATH']}"})
    assert finished.stderr.count("Unable to contact slurm controller") == 1 and "asking again" in finished.stderr
    assert len((place / "asked").read_text().split()) > 2
