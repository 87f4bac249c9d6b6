# SPDX-License-Identifier: Apache-2.0
"""Containers that users start without privileges: each user is root in their own, and all share the places of a node."""

import os
import subprocess

import pytest
from stoker_program import Finished, clean_environment

USERS = (1, 2)


@pytest.fixture
def user(as_other_user, user_namespaces):
    """user(1, "stage", …): runs the program as that user; `inside`: as root of a user namespace of theirs."""
    if os.geteuid() != 0:
        pytest.fail("needs two users: run the tests as root")

    def run(number, *words, inside=True, status=0, env=None) -> Finished:
        home = as_other_user.directory / f"home of {number}"
        home.mkdir(exist_ok=True)
        os.chown(home, number, number)
        finished = subprocess.run(
            [*(["unshare", "--user", "--map-root-user"] if inside else []), as_other_user.program, *words],
            user=number,
            group=number,
            extra_groups=[],
            cwd=home,
            env={**clean_environment(home), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        return Finished(finished).require(status)

    return run


def test_two_users_who_are_both_root_stage_to_one_place(user, scratch, shared):
    for number in USERS:
        staged = user(number, "stage", shared, scratch, "--json").json
        assert staged["complete"] and staged["path"].startswith(f"{scratch}/stoker-{number}/")
    assert sorted(path.name for path in scratch.iterdir()) == ["stoker-1", "stoker-2"]
    for number in USERS:
        (own,) = user(number, "stage", "--list", scratch, "--json").json["staged"]
        assert own["own"] and own["directory"].startswith(f"{scratch}/stoker-{number}/")


def test_a_user_inside_and_outside_shares_one_copy(user, scratch, shared):
    inside = user(1, "stage", shared, scratch, "--json").json
    outside = user(1, "stage", shared, scratch, "--json", inside=False).json
    assert outside["path"] == inside["path"] and outside["reused_bytes"] == outside["bytes"]


@pytest.mark.parametrize("cleaned_inside", [True, False])
def test_what_a_job_inside_needs_is_not_cleaned_from_outside(user, scratch, shared, cleaned_inside):
    """A reference names the owner of the copy: by the same number on both sides."""
    user(1, "stage", shared, scratch, inside=not cleaned_inside, env={"SLURM_JOB_ID": "4711"})
    # Slurm cannot be asked: the job may run.
    unknown = {"PATH": f"/nonexistent:{os.environ['PATH'] if cleaned_inside else ''}"}
    kept = user(1, "stage", "--clean", scratch, "--json", inside=cleaned_inside, env=unknown).json
    assert [item["references"] for item in kept["kept"]] == [["job,4711"]] and kept["removed"] == []
