# SPDX-License-Identifier: Apache-2.0
"""Directories that are removed by their names, where another user can rename: nothing but what was made for that goes."""

import os
import subprocess

import pytest
from stoker_program import Finished, clean_environment

VICTIM = 1

# Renames a directory of the victim to that of a probe as soon as there is one, so that it is removed in its place.
SWAP = """
import os, sys
place = sys.argv[1]
print("ready", flush=True)
while True:
    for name in os.listdir(place):
        if name.startswith((".stoker-probe-", "stoker-scratch-")):
            try:
                os.rename(f"{place}/{name}", f"{place}/taken")
                os.rename(f"{place}/work", f"{place}/{name}")
                sys.exit()
            except FileNotFoundError:
                pass
"""


@pytest.fixture(params=[0o777, 0o770], ids=["everybody", "a group"])
def place(as_other_user, request):
    """Where others may rename; a directory of the victim is in it."""
    if os.geteuid() != 0:
        pytest.fail("needs two users: run the tests as root")
    path = as_other_user.directory / "place"
    (path / "work").mkdir(parents=True)
    (path / "work/thesis.tex").write_text("years of work")
    os.chown(path, 0, 65534)
    path.chmod(request.param)
    for each in (path / "work", path / "work/thesis.tex"):
        os.chown(each, VICTIM, VICTIM)
    return path


@pytest.fixture
def victim(as_other_user):
    home = as_other_user.directory / "home of 1"
    home.mkdir()
    os.chown(home, VICTIM, VICTIM)

    def run(*words, env=None) -> Finished:
        return Finished(
            subprocess.run(
                [as_other_user.program, *words],
                user=VICTIM,
                group=VICTIM,
                extra_groups=[65534],
                cwd=home,
                env={**clean_environment(home), **(env or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=120,
            )
        )

    return run


def host_name() -> str:
    return os.uname().nodename


def thesis(place) -> list[str]:
    return [path.read_text() for path in place.rglob("thesis.tex")]


@pytest.mark.parametrize("name", [".stoker-probe-{}-aaaaaa", "stoker-scratch-{},00000000,1,1,1-aaaaaa"])
def test_work_that_was_renamed_to_a_leftover(as_other_user, place, victim, shared, name):
    own = as_other_user.directory / "own"
    own.mkdir()
    os.chown(own, VICTIM, VICTIM)
    os.rename(place / "work", place / name.format(host_name()))
    victim("probe", place, "--quick", "--only", "storage,files", "--bytes", "16M", "--seconds", "1").require(0)
    victim("pack", shared, place / "packed", env={"TMPDIR": str(place)}).require(0)
    victim("stage", shared, own, env={"TMPDIR": str(place)}).require(0)
    assert thesis(place) == ["years of work"]


@pytest.mark.parametrize("name", [".stoker-probe-{}-aaaaaa", "stoker-scratch-{},00000000,1,1,1-aaaaaa"])
def test_leftovers_where_nobody_else_renames(as_other_user, victim, shared, name):
    """What the names above are for: what a killed process left goes."""
    place = as_other_user.directory / "own"
    left = place / name.format(host_name())
    left.mkdir(parents=True)
    for each in (place, left):
        os.chown(each, VICTIM, VICTIM)
    victim("probe", place, "--quick", "--only", "storage,files", "--bytes", "16M", "--seconds", "1").require(0)
    victim("pack", shared, place / "packed", env={"TMPDIR": str(place)}).require(0)
    victim("stage", shared, place, env={"TMPDIR": str(place)}).require(0)
    assert not left.exists()


def test_work_that_takes_the_place_of_what_is_removed_in_the_end(place, victim):
    words = ["/usr/bin/python3", "-c", SWAP, place]
    swap = subprocess.Popen(words, user=65534, group=65534, extra_groups=[], stdout=subprocess.PIPE)
    assert swap.stdout.readline() == b"ready\n"
    try:
        victim("probe", place, "--quick", "--only", "storage,files", "--bytes", "16M", "--seconds", "1").require(0)
        assert swap.wait(timeout=60) == 0
    finally:
        swap.kill()
        swap.wait()
    assert thesis(place) == ["years of work"]
