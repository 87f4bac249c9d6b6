# SPDX-License-Identifier: Apache-2.0
"""Staging where others do it too: members of a group who share a copy, and strangers who would rather disturb."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from samples import write_files
from stoker_program import Finished, clean_environment

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


def run_as_member(as_other_user, *words):
    home = as_other_user.directory / "home of 1"
    home.mkdir(exist_ok=True)
    os.chown(home, 1, NOBODY)
    return Finished(
        subprocess.run(
            [as_other_user.program, *words], user=1, group=NOBODY, extra_groups=[], env=clean_environment(home), capture_output=True
        )
    )


@pytest.mark.parametrize("how", ["a shard", "a shard and the index"])
def test_a_members_copy_of_other_contents_is_not_used(as_other_user, group, scratch, shared, how):
    """Whether by damage or on purpose: what is compared is the index of the source, not that of the copy."""
    copied = as_other_user("stage", shared, scratch, "--group", group, "--json").json["path"]
    shard = sorted(Path(copied).glob("*.tar"))[1]
    contents = bytearray(shard.read_bytes())
    contents[540:560] = b"wrong" * 4  # within the first sample: a member's header has 512 bytes
    shard.write_bytes(contents)
    if how == "a shard and the index":
        shutil.rmtree(Path(copied) / ".stoker")
        as_other_user("index", "--full", copied)
        as_other_user("check", copied, "--json")
    used = run_as_member(as_other_user, "stage", shared, scratch, "--group", group, "--json").require(0)
    assert used.json["path"] != copied and used.json["verified"] and used.json["verified_now"]
    assert f"not used: {Path(copied).parent} of nobody (65534)" in used.stderr
    assert ("its index is not" in used.stderr) == (how != "a shard")
    assert run_as_member(as_other_user, "check", used.json["path"], "--compare", shared, "--json").json["comparison"]["equal"]
    assert not list((scratch / "stoker-1/refs").iterdir()), "nothing holds the copy that is not used"


def test_a_members_copy_is_read_before_it_is_called_verified(as_other_user, group, scratch, shared):
    first = as_other_user("stage", shared, scratch, "--group", group, "--json").json
    again = run_as_member(as_other_user, "stage", shared, scratch, "--group", group).require(0)
    assert first["path"] in again.stdout and "verified: every sample, read again now" in again.stdout


def test_what_another_member_packed_is_that_members_word(as_other_user, group, scratch):
    photos = photos_for_all(as_other_user.directory)
    first = as_other_user("stage", photos, scratch, "--group", group, "--json").json
    used = run_as_member(as_other_user, "stage", photos, scratch, "--group", group, "--json").require(0).json
    assert used["path"] == first["path"] and used["complete"] and not used["verified"] and used["trusts"] == NOBODY
    text = run_as_member(as_other_user, "stage", photos, scratch, "--group", group).stdout
    assert "not verified: nobody (65534) packed it" in text


def test_a_place_where_a_group_may_rename(as_other_user, stoker_cli, group, scratch, shared):
    """A member could replace the directory of another one; the sticky bit prevents that."""
    scratch.chmod(0o770)
    os.chown(scratch, 0, NOBODY)
    refused = as_other_user("stage", shared, scratch, status=1).stderr
    assert f"members of group {group}" in refused and "chmod +t" in refused
    assert list(scratch.iterdir()) == []
    scratch.chmod(0o1770)
    assert as_other_user("stage", shared, scratch, "--json").json["complete"]
    # A group of the user's own name, without other members, is what many systems give to each user.
    own = scratch / "own"
    own.mkdir()
    own.chmod(0o775)
    assert stoker_cli("stage", shared, own, "--json").json["complete"]


def test_a_place_below_one_where_anybody_may_rename(stoker_cli, scratch, shared):
    below = scratch / "mine"
    below.mkdir()
    scratch.chmod(0o777)
    refused = stoker_cli("stage", shared, below, status=1).stderr
    assert str(below) in refused and f"{scratch} is world-writable without the sticky bit" in refused


@pytest.mark.parametrize(
    "state",
    ['{"complete": "x"}', '{"source": "%zz", "complete": []}', "[]", "\0", '{"a":' * 50_000, "[" * 100_000, " " * 2_000_000],
    ids=["complete is no boolean", "names of no bytes", "a list", "a zero", "deep objects", "deep lists", "too large"],
)
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
    document = stoker_cli("stage", "--list", scratch, "--json").json
    listed = document["staged"]
    passed_over = {item["directory"]: item["why"] for item in document["passed_over"]}
    assert "too deep" in passed_over[str(theirs)] or "state.json" in passed_over[str(theirs)]
    if state[0] != "{" or len(state) > 1000:
        assert "state.json" in passed_over[str(theirs.parent / "plain")]
        said = stoker_cli("stage", "--list", scratch).stdout
        assert f"passed over: {theirs.parent}/plain of nobody (65534)" in said
    assert UID in [item["owner"] for item in listed]
    assert not any(item["complete"] for item in listed if item["owner"] == NOBODY)
    assert len(stoker_cli("stage", "--clean", scratch, "--json").json["removed"]) == 1
