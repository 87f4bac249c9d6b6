# SPDX-License-Identifier: Apache-2.0
"""`stoker stage` with a command, for jobs that have ended, and where the source cannot be seen."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from samples import noise, write_files
from staged import bytes_of, files_of, pack_photos
from stoker_program import program

UID = os.geteuid()


@pytest.fixture
def packed(stoker_cli, tmp_path):
    return pack_photos(stoker_cli, tmp_path)


def test_a_command_runs_beside_the_copy_and_it_is_removed_behind_it(stoker_cli, packed, place):
    look = 'test "$1" = "$STOKER_STAGED" && ls "$1" && exit 7'
    finished = stoker_cli("stage", packed, place, "--", "sh", "-c", look, "sh", "{}", status=7)
    assert finished.stdout.split() == files_of(packed)
    assert "staged" in finished.stderr and list(place.iterdir()) == []
    assert "cannot be run" in stoker_cli("stage", packed, place, "--", "no-such-program", status=127).stderr
    assert list(place.iterdir()) == []


def test_a_command_that_is_told_to_end(stoker_environment, packed, place):
    """As Slurm does at the time limit: the command gets the signal, and the copy is removed."""
    process = subprocess.Popen(
        [program(), "stage", packed, place, "--", "sh", "-c", "echo began; exec sleep 100"],
        env=stoker_environment, stdout=subprocess.PIPE, text=True,
    )
    assert process.stdout.readline() == "began\n"
    process.terminate()
    assert process.wait(timeout=60) == 128 + 15
    assert list(place.iterdir()) == []


def test_a_copy_that_was_staged_before_stays_after_a_command(stoker_cli, packed, place):
    """Only what was brought for the command goes with it."""
    path = stoker_cli("stage", packed, place, "--json").json["path"]
    stoker_cli("stage", packed, place, "--", "true")
    (item,) = stoker_cli("stage", "--list", place, "--json").json["staged"]
    assert item["path"] == path and item["complete"] and item["keep"]


def test_a_copy_is_kept_after_a_command_where_that_is_asked_for(stoker_cli, packed, place):
    stoker_cli("stage", packed, place, "--keep", "--", "true")
    stoker_cli("stage", packed, place, "--", "true")
    (item,) = stoker_cli("stage", "--list", place, "--json").json["staged"]
    assert item["complete"] and item["keep"]
    assert len(stoker_cli("stage", "--clean", place, "--json").json["removed"]) == 1


@pytest.fixture
def squeue(tmp_path):
    """squeue(77, 78): these are the jobs that Slurm has from now on. Returns what to add to the environment."""
    tools = tmp_path / "tools"
    tools.mkdir()

    def jobs(*numbers):
        (tools / "squeue").write_text("#!/bin/sh\n" + "".join(f"echo {number}\n" for number in numbers))
        (tools / "squeue").chmod(0o755)
        return {"PATH": f"{tools}:{os.environ['PATH']}"}

    return jobs


@pytest.fixture
def other(stoker_cli, tmp_path):
    write_files(tmp_path / "more", {f"{i}.bin": noise(i, 3000) for i in range(5)})
    stoker_cli("pack", tmp_path / "more", tmp_path / "other")
    return tmp_path / "other"


def listed_sources(stoker_cli, place, env) -> list[str]:
    return sorted(item["source"] for item in stoker_cli("stage", "--list", place, "--json", env=env).json["staged"])


def test_copies_of_ended_jobs_go_when_something_is_staged(stoker_cli, packed, other, place, tmp_path, squeue):
    folder, kept = tmp_path / "more", tmp_path / "kept"
    shutil.copytree(other, kept)
    env = squeue(77, 78)
    stoker_cli("stage", packed, place, env={**env, "SLURM_JOB_ID": "77"})
    stoker_cli("stage", folder, place, env={**env, "SLURM_JOB_ID": "78"})
    stoker_cli("stage", kept, place, "--keep", env={**env, "SLURM_JOB_ID": "77"})
    env = squeue(78)
    stoker_cli("stage", "--list", place, env=env)
    result = stoker_cli("stage", other, place, "--json", env={**env, "SLURM_JOB_ID": "78"}).json
    assert result["removed_copies"] == 1 and result["removed_bytes"] > bytes_of(packed)
    assert listed_sources(stoker_cli, place, env) == sorted(map(str, [folder, kept, other]))
    env = squeue(99)
    assert "removed: 2 copies of jobs" in stoker_cli("stage", packed, place, env={**env, "SLURM_JOB_ID": "99"}).stdout
    assert listed_sources(stoker_cli, place, env) == sorted(map(str, [kept, packed]))


def test_the_copy_of_an_ended_job_serves_the_next_one(stoker_cli, packed, place, squeue):
    stoker_cli("stage", packed, place, env={**squeue(77), "SLURM_JOB_ID": "77"})
    result = stoker_cli("stage", packed, place, "--json", env={**squeue(78), "SLURM_JOB_ID": "78"}).json
    assert result["reused_bytes"] == result["bytes"] and result["removed_copies"] == 0


def test_jobs_of_another_cluster_are_not_known_here(stoker_cli, packed, other, place, squeue):
    """Scratch may be shared by several clusters, each of which counts its jobs itself."""
    stoker_cli("stage", packed, place, env={**squeue(77), "SLURM_JOB_ID": "77", "SLURM_CLUSTER_NAME": "elsewhere"})
    assert stoker_cli("stage", other, place, "--json", env=squeue(78)).json["removed_copies"] == 0


def test_a_command_that_is_killed_leaves_nothing_beyond_the_next_stage(stoker_cli, stoker_environment, packed, other, place):
    process = subprocess.Popen(
        [program(), "stage", packed, place, "--", "sh", "-c", "echo $$; exec sleep 100"],
        env=stoker_environment, stdout=subprocess.PIPE, text=True,
    )
    command = int(process.stdout.readline())
    process.kill()
    process.wait()
    os.kill(command, 9)
    assert stoker_cli("stage", other, place, "--json").json["removed_copies"] == 1


def test_what_an_ended_job_needed_is_cleaned_by_its_number(stoker_cli, packed, other, place, tmp_path, squeue):
    """As an epilog does, while the job is still listed as completing."""
    env = squeue(77, 78)
    stoker_cli("stage", packed, place, env={**env, "SLURM_JOB_ID": "77"})
    stoker_cli("stage", other, place, env={**env, "SLURM_JOB_ID": "78"})
    stoker_cli("stage", tmp_path / "more", place, "--keep", env={**env, "SLURM_JOB_ID": "77"})
    assert [Path(item["source"]) for item in stoker_cli("stage", "--clean", "--job", "77", place, "--json", env=env).json["removed"]] == [packed]
    assert listed_sources(stoker_cli, place, env) == sorted(map(str, [other, tmp_path / "more"]))
    assert "number" in stoker_cli("stage", "--clean", "--job", "x", status=2).stderr


def test_a_copy_that_somebody_needs_stays_behind_a_command(stoker_cli, packed, place):
    job = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "PATH": "/bin:/usr/bin"}
    stoker_cli("stage", packed, place, env={**job, "PATH": "/nowhere"})
    stoker_cli("stage", packed, place, "--", "/bin/true", env={**job, "PATH": "/nowhere"})
    (item,) = stoker_cli("stage", "--list", place, "--json", env={"PATH": "/nowhere"}).json["staged"]
    assert item["complete"] and item["references"] == ["job,77"]


def test_a_command_is_not_run_beside_a_part(stoker_cli, packed, place):
    shard = sorted(packed.glob("*.tar"))[3]
    contents = bytearray(shard.read_bytes())
    contents[600] ^= 1
    shard.write_bytes(contents)
    finished = stoker_cli("stage", packed, place, "--", "echo", "ran", status=1)
    assert finished.stdout == "" and "was not run" in finished.stderr and shard.name in finished.stderr


def test_the_copy_of_a_source_that_cannot_be_seen(stoker_cli, packed, place):
    path = stoker_cli("stage", packed, place, "--json").json["path"]
    packed.rename(packed.with_name("elsewhere"))
    found = stoker_cli("stage", packed, place, "--json").json
    assert found["path"] == path and found["complete"] and found["reused_bytes"] == found["bytes"]
    assert stoker_cli("stage", packed, place, "--", "echo", "{}").stdout == path + "\n"
    assert stoker_cli("stage", packed, place, "--json").json["path"] == path, "it stays for the next"
    assert "cannot open" in stoker_cli("stage", packed.with_name("other"), place, status=1).stderr
    sorted(packed.parent.glob("place/*/*/data/*.tar"))[0].unlink()
    assert "--before-job" in stoker_cli("stage", packed, place, status=1).stderr


def test_wrong_use_of_commands_and_jobs(stoker_cli, packed, place):
    for words, said in [
        (("--then", "x"), "--before-job"),
        (("--print",), "--before-job"),
        (("--before-job", "--then", "/no/such.sh"), "is no file"),
        (("--json", "--", "true"), "--json"),
        (("--before-job", "--", "true"), "--before-job"),
    ]:
        assert said in stoker_cli("stage", packed, place, *words, status=2).stderr
