# SPDX-License-Identifier: Apache-2.0
"""Staging where others do it too: members of a group who share a copy, and strangers who would rather disturb."""

import json
import os
import subprocess

import pytest
from samples import write_files
from stoker_program import clean_environment

UID = os.geteuid()
NOBODY = 65534


@pytest.fixture
def member(as_other_user):
    """Runs the program as another one of nobody's group, uid 1."""
    home = as_other_user.directory / "home of 1"
    home.mkdir()
    os.chown(home, 1, NOBODY)

    def run(*words):
        done = subprocess.run(
            [as_other_user.program, *words], user=1, group=NOBODY, extra_groups=[], env=clean_environment(home), capture_output=True
        )
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    return run


@pytest.fixture
def group() -> str:
    return subprocess.run(["id", "-gn", "nobody"], capture_output=True, text=True, check=True).stdout.strip()


def photos_for_all(directory):
    photos = directory / "photos"
    write_files(photos, {f"{i}.bin": bytes([i]) * 3000 for i in range(10)})
    photos.chmod(0o755)
    return photos


def test_a_copy_of_yesterday_is_not_shared(as_other_user, member, group, scratch):
    """What is packed has its name from the source's path: a member's copy may be of other contents."""
    photos = photos_for_all(as_other_user.directory)
    first = as_other_user("stage", photos, scratch, "--group", group, "--json").json
    same = member("stage", photos, scratch, "--group", group, "--json")
    assert (same["path"], same["samples"]) == (first["path"], 10)
    write_files(photos, {"new.bin": b"new"})
    changed = member("stage", photos, scratch, "--group", group, "--json")
    assert changed["samples"] == 11 and changed["path"] != first["path"] and changed["verified"]


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_what_was_staged_for_one_alone_can_be_given_to_a_group(as_other_user, member, group, scratch, shared, umask):
    photos = photos_for_all(as_other_user.directory)
    for source in (shared, photos):
        before = os.umask(umask)
        try:
            mine = as_other_user("stage", source, scratch, "--json").json["path"]
            as_other_user("stage", source, scratch, "--group", group)
        finally:
            os.umask(before)
        theirs = member("stage", source, scratch, "--group", group, "--json")
        assert theirs["path"] == mine and theirs["reused_bytes"] == theirs["bytes"]
        assert member("check", mine, "--json")["samples"] == theirs["samples"]


def test_a_members_reference_counts_also_where_it_staged_alone_before(as_other_user, member, group, scratch, shared):
    """Its directory of references was for itself; the owner of the shared copy must be able to look into it."""
    photos = photos_for_all(as_other_user.directory)
    member("stage", photos, scratch, "--json")
    as_other_user("stage", shared, scratch, "--group", group)
    found = member("stage", shared, scratch, "--group", group, "--json")
    refs = scratch / "stoker-1/refs"
    assert refs.stat().st_mode & 0o7777 == 0o2750 and refs.stat().st_gid == NOBODY
    copy = os.path.basename(os.path.dirname(found["path"]))
    reference = refs / f"{NOBODY}:{copy}@job,1"
    reference.touch()
    os.chown(reference, 1, NOBODY)
    kept = as_other_user("stage", "--clean", scratch, "--json", env={"PATH": "/nonexistent"}).json
    assert [item["references"] for item in kept["kept"]] == [["job,1"]], "Slurm cannot be asked: it may run"


def test_strangers_cannot_keep_a_copy(stoker_cli, scratch, shared):
    """Names of copies can be guessed; who may not read them does not need them."""
    result = stoker_cli("stage", shared, scratch, "--json").json
    copy = os.path.basename(os.path.dirname(result["path"]))
    refs = scratch / f"stoker-{NOBODY}/refs"
    refs.mkdir(parents=True)
    (refs / f"{UID}:{copy}@job,1").touch()
    for path in (refs.parent, refs):
        os.chown(path, NOBODY, NOBODY)
    cleaned = stoker_cli("stage", "--clean", scratch, "--json", env={"PATH": "/nonexistent"}).json
    assert len(cleaned["removed"]) == 1 and cleaned["kept"] == []


@pytest.mark.parametrize("state", ['{"complete": "x"}', '{"source": "%zz", "complete": []}', "[]", "\0"])
def test_strangers_cannot_spoil_the_list(stoker_cli, scratch, shared, state):
    stoker_cli("stage", shared, scratch)
    theirs = scratch / f"stoker-{NOBODY}/copy"
    deep = theirs / "data" / "/".join(["d"] * 400)
    deep.mkdir(parents=True)
    (theirs / "state.json").write_text(state)
    (theirs.parent / "plain").mkdir()
    (theirs.parent / "plain/state.json").write_text(state)
    for path in (theirs.parent, theirs, theirs.parent / "plain"):
        os.chown(path, NOBODY, NOBODY)
    listed = stoker_cli("stage", "--list", scratch, "--json").json["staged"]
    assert UID in [item["owner"] for item in listed]
    assert not any(item["complete"] for item in listed if item["owner"] == NOBODY)
    assert len(stoker_cli("stage", "--clean", scratch, "--json").json["removed"]) == 1
