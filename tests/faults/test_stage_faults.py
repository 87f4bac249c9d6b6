# SPDX-License-Identifier: Apache-2.0
"""Staging that is killed, doubled, interrupted, and disturbed by other users: what lies there is right, or is not there."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from samples import differences, image_folder, noise, remove_copy, tree, write_files
from stoker_program import clean_environment, program

# 100 for the whole proof: STOKER_STAGE_KILLS=100 pytest tests/faults/test_stage_faults.py -k at_random
KILLS = int(os.environ.get("STOKER_STAGE_KILLS", "12"))
UID = os.geteuid()


@pytest.fixture
def packed(stoker_cli, tmp_path):
    image_folder(tmp_path / "photos", per_class=20)
    stoker_cli("pack", tmp_path / "photos", tmp_path / "packed", "--shard-size", "12K")
    return tmp_path / "packed"


@pytest.fixture
def large(stoker_cli, tmp_path):
    """Takes a moment to copy."""
    write_files(tmp_path / "files", {f"{i:03d}.bin": noise(i % 3, 2_000_000) for i in range(60)})
    stoker_cli("pack", tmp_path / "files", tmp_path / "large", "--shard-size", "8M")
    return tmp_path / "large"


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "place"
    path.mkdir()
    return path


def staged(place) -> Path:
    (data,) = place.glob(f"stoker-{UID}/*/data")
    return data


def left_behind(place) -> list[str]:
    """All but the dataset, what says what it is, and which of its shards are there."""
    found = []
    for path in place.rglob("*"):
        parts = path.relative_to(place).parts
        inner = parts[2:]
        allowed = not inner or inner[0] in ("data", "done") or inner in (("state.json",), ("claims",), ("parts",))
        if not allowed or (parts[1:2] == ("refs",) and len(parts) > 2):
            found.append("/".join(parts))
    return found


def require_whole(stoker_cli, source, place):
    assert left_behind(place) == []
    assert differences(tree(source), tree(staged(place))) == []


def kill_at_random(stoker_cli, stoker_environment, shim, count_calls, source, tmp_path, kills):
    """At random calls and at random moments, in turn; each time to the end afterwards."""
    reference = tmp_path / "reference"
    reference.mkdir()
    calls = count_calls("stage", source, reference)
    whole = tree(staged(reference))
    rng = random.Random(7)
    killed = 0
    for number in range(20 * kills):
        if killed == kills:
            break
        place = tmp_path / "killed"
        place.mkdir()
        words = [program(), "stage", source, place]
        # Most of the time once, now and then again and again before it may end.
        for _ in range(rng.choice((1, 1, 1, 3))):
            how = ("before", "after", "half")[number % 3]
            env = {**stoker_environment, "LD_PRELOAD": str(shim), "KILL_AT": str(1 + rng.randrange(calls)), "KILL_HOW": how}
            done = subprocess.run(words, env=env, capture_output=True, timeout=120)
            assert done.returncode in (0, -signal.SIGKILL), done
            killed += done.returncode != 0
        result = stoker_cli("stage", source, place, "--json").json
        assert result["complete"] and result["verified"]
        assert left_behind(place) == []
        assert differences(whole, tree(staged(place))) == [], f"kill number {killed}"
        shutil.rmtree(place)
    assert killed >= kills


def test_killed_at_random_calls(stoker_cli, stoker_environment, shim, count_calls, packed, tmp_path):
    kill_at_random(stoker_cli, stoker_environment, shim, count_calls, packed, tmp_path, KILLS)


def test_packing_killed_at_random_calls(stoker_cli, stoker_environment, shim, count_calls, tmp_path):
    image_folder(tmp_path / "photos")
    kill_at_random(stoker_cli, stoker_environment, shim, count_calls, tmp_path / "photos", tmp_path, max(4, KILLS // 3))


def test_killed_at_random_moments(stoker_cli, stoker_environment, large, place):
    rng = random.Random(5)
    for _ in range(KILLS):
        process = subprocess.Popen([program(), "stage", large, place], env=stoker_environment, stdout=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.25)
        process.kill()
        process.wait(timeout=60)
        if rng.random() < 0.3:
            stoker_cli("stage", large, place)
            require_whole(stoker_cli, large, place)
            shutil.rmtree(place / f"stoker-{UID}")
    stoker_cli("stage", large, place)
    require_whole(stoker_cli, large, place)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_signals_leave_what_can_be_resumed(stoker_cli, shim, count_calls, packed, tmp_path, name):
    reference, place = tmp_path / "reference", tmp_path / "place"
    reference.mkdir(), place.mkdir()
    calls = count_calls("stage", packed, reference)
    env = {"LD_PRELOAD": str(shim), "KILL_AT": str(calls // 2), "KILL_HOW": name}
    finished = stoker_cli("stage", packed, place, "--jobs", "1", env=env, status=130)
    assert "again" in finished.stderr
    assert left_behind(place) == []
    result = stoker_cli("stage", packed, place, "--json").json
    assert 0 < result["reused_bytes"] < result["bytes"], "what was done is not done again"
    require_whole(stoker_cli, packed, place)


def test_two_at_once_make_one_copy(stoker_cli, stoker_environment, large, place):
    command = [program(), "stage", large, place, "--json"]
    both = [subprocess.Popen(command, env=stoker_environment, stdout=subprocess.PIPE) for _ in range(2)]
    documents = [each.communicate(timeout=120)[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    results = [json.loads(document) for document in documents]
    assert all(result["complete"] and result["verified"] for result in results)
    copied = [result["bytes"] - result["reused_bytes"] for result in results]
    assert sum(copied) == results[0]["bytes"], "each shard came once"
    require_whole(stoker_cli, large, place)


def test_the_first_is_killed_and_the_second_finishes(stoker_environment, stoker_cli, large, place):
    first = subprocess.Popen([program(), "stage", large, place, "--jobs", "1"], env=stoker_environment)
    while not list(place.glob("stoker-*/*/parts/*/*.tar")) and first.poll() is None:
        time.sleep(0.001)
    os.kill(first.pid, signal.SIGSTOP)  # at work, and does not come to an end
    second = subprocess.Popen([program(), "stage", large, place, "--json"], env=stoker_environment, stdout=subprocess.PIPE)
    time.sleep(0.5)
    held = second.poll() is None
    os.kill(first.pid, signal.SIGKILL)
    first.wait(timeout=60)
    document, _ = second.communicate(timeout=120)
    assert second.returncode == 0, document
    assert held, "it waited for what the other one had claimed"
    require_whole(stoker_cli, large, place)


@pytest.mark.parametrize("source", ["large", "files"])
def test_a_process_that_is_stopped_is_not_waited_for_without_end(stoker_environment, stoker_cli, large, tmp_path, place, source):
    """As by `scontrol suspend`: who waits says for whom, and then does the work itself. The first one goes on later, and harms nothing."""
    words = [program(), "stage", tmp_path / source, place]
    first = subprocess.Popen([*words, "--jobs", "1"], env=stoker_environment, stdout=subprocess.DEVNULL)
    begun = "stoker-*/*/parts/*/*.tar" if source == "large" else "stoker-*/*/claims/p*"
    while not [path for path in place.glob(begun) if os.path.lexists(path)] and first.poll() is None:
        time.sleep(0.001)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        second = subprocess.run([*words, "--json"], env=stoker_environment, capture_output=True, text=True, timeout=120)
        assert second.returncode == 0, second
        assert f"process {first.pid} on " in second.stderr and "is stopped (SIGSTOP, or scontrol suspend)" in second.stderr
        assert "ago" in second.stderr and "copying its part here" in second.stderr
        result = json.loads(second.stdout)
        assert result["complete"] and result["verified"]
        assert stoker_cli("check", result["path"], "--json").json["faults"] == []
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert first.wait(timeout=60) == 0
    assert stoker_cli("check", result["path"], "--json").json["samples"] == 60
    if source == "large":
        require_whole(stoker_cli, large, place)


# Where control groups can be frozen on this machine: the file, and what to write to it to freeze and to thaw.
FREEZERS = {
    "/sys/fs/cgroup/freezer": ("freezer.state", "FROZEN", "THAWED"),
    "/sys/fs/cgroup/unified": ("cgroup.freeze", "1", "0"),
    "/sys/fs/cgroup": ("cgroup.freeze", "1", "0"),
}


def frozen_group(mount: str, name: str) -> Path | None:
    """A new control group that can be frozen; nothing where this machine, or container, lets nobody make one."""
    group = Path(mount) / name
    try:
        group.mkdir()
    except OSError:
        return None
    if (group / FREEZERS[mount][0]).exists():
        return group
    group.rmdir()
    return None


def test_a_process_whose_control_group_is_frozen_is_not_waited_for(stoker_environment, large, place):
    """As by `scontrol suspend` where Slurm tracks processes by control groups: no signal, and no state that tells."""
    groups = {mount: frozen_group(mount, f"stoker-test-{os.getpid()}") for mount in FREEZERS}
    if not any(groups.values()):
        pytest.fail(f"no control group can be made in {', '.join(FREEZERS)}: this test needs root and a writable mount of them")
    for number, (mount, group) in enumerate(groups.items()):
        if group is not None:
            (place / str(number)).mkdir()
            frozen_is_not_waited_for(stoker_environment, large, place / str(number), group, *FREEZERS[mount])


def frozen_is_not_waited_for(stoker_environment, large, place, group, name, freeze, thaw):
    words = [program(), "stage", large, place]
    first = subprocess.Popen([*words, "--jobs", "1"], env=stoker_environment, stdout=subprocess.DEVNULL)
    try:
        (group / "cgroup.procs").write_text(str(first.pid))
        while not list(place.glob("stoker-*/*/parts/*/*.tar")) and first.poll() is None:
            time.sleep(0.001)
        (group / name).write_text(freeze)
        second = subprocess.run([*words, "--json"], env=stoker_environment, capture_output=True, text=True, timeout=120)
        assert second.returncode == 0, second
        assert f"process {first.pid} on " in second.stderr and "is stopped (SIGSTOP, or scontrol suspend)" in second.stderr
        assert json.loads(second.stdout)["complete"]
    finally:
        (group / name).write_text(thaw)
        status = first.wait(timeout=60)
        group.rmdir()
    assert status == 0


def test_what_another_one_brings_needs_no_room_twice(stoker_cli, stoker_environment, small_file_system, tmp_path):
    """Room for one copy and a little: who comes second waits for the first instead of saying that it does not fit."""
    write_files(tmp_path / "files", {f"{i:02d}.bin": noise(i, 2_000_000) for i in range(20)})
    stoker_cli("pack", tmp_path / "files", tmp_path / "one")
    place = small_file_system(48_000_000)
    first = subprocess.Popen([program(), "stage", tmp_path / "one", place, "--jobs", "1"], env=stoker_environment)
    while sum(path.stat().st_size for path in place.glob("stoker-*/*/parts/*/*.tar")) < 15_000_000 and first.poll() is None:
        time.sleep(0.0005)
    os.kill(first.pid, signal.SIGSTOP)
    assert list(place.glob("stoker-*/*/parts/*/*.tar")), "stopped in its midst"
    second = subprocess.Popen([program(), "stage", tmp_path / "one", place, "--json"], env=stoker_environment, stdout=subprocess.PIPE)
    while not len(list(place.glob(f"stoker-{UID}/*/parts/*"))) > 1 and second.poll() is None:
        time.sleep(0.001)
    os.kill(first.pid, signal.SIGCONT)
    document, _ = second.communicate(timeout=120)
    assert (first.wait(timeout=60), second.returncode) == (0, 0)
    assert json.loads(document)["complete"]
    require_whole(stoker_cli, tmp_path / "one", place)


FAIL_READS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
static int fails(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  errno = EIO;
  return strstr(path, getenv("FAIL_READS")) != NULL;
}
#define READS(name, arguments, passed)                                        \\
  ssize_t name arguments {                                                    \\
    static ssize_t(*real) arguments;                                          \\
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name);                     \\
    return fails(fd) ? -1 : real passed;                                      \\
  }
READS(pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
READS(pread64, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
READS(preadv, (int fd, const struct iovec *to, int count, off_t at), (fd, to, count, at))
READS(preadv64, (int fd, const struct iovec *to, int count, off64_t at), (fd, to, count, at))
READS(read, (int fd, void *to, size_t size), (fd, to, size))
"""


def test_what_could_not_be_read_for_a_moment_is_tried_again(stoker_cli, tmp_path, place):
    """An I/O error of one run does not decide about the next."""
    (tmp_path / "fail_reads.c").write_text(FAIL_READS)
    library = tmp_path / "fail_reads.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "fail_reads.c", "-ldl"], check=True)
    write_files(tmp_path / "files", {f"{i:02d}.bin": noise(i, 5000) for i in range(20)})
    failing = {"LD_PRELOAD": str(library), "FAIL_READS": "/files/1"}
    first = stoker_cli("stage", tmp_path / "files", place, "--json", env=failing, status=1).json
    assert first["samples"] == 10 and len(first["faults"]) == 10
    assert {fault["cause"].rpartition(": ")[2] for fault in first["faults"]} == {"Input/output error"}
    again = stoker_cli("stage", tmp_path / "files", place, "--json")
    assert "10 left out when packed (I/O error); trying them again" in again.stderr or again.json["samples"] == 20
    assert again.json["samples"] == 20 and again.json["faults"] == [] and again.json["verified"]


def test_the_source_changes_meanwhile(stoker_cli, stoker_environment, large, place):
    """Named, and nothing of it arrives."""
    shards = sorted(large.glob("*.tar"))
    first = subprocess.Popen(
        [program(), "stage", large, place, "--jobs", "1"], env=stoker_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not list(place.glob("stoker-*/*/parts/*/*.tar")) and first.poll() is None:
        time.sleep(0.0005)
    os.kill(first.pid, signal.SIGSTOP)
    (part,) = place.glob("stoker-*/*/parts/*/*.tar")
    source = large / part.name
    with open(source, "r+b") as file:
        file.seek(source.stat().st_size // 2)
        file.write(b"changed meanwhile")
    os.kill(first.pid, signal.SIGCONT)
    output, errors = first.communicate(timeout=120)
    assert first.returncode == 1
    # As a file that changed, or as one with samples that are not the index's, if not a byte of it had been read.
    assert part.name.encode() in output + errors
    assert not list(place.glob(f"stoker-*/*/data/{part.name}"))
    assert left_behind(place) == [] and len(shards) > 3


def test_the_place_disappears(stoker_cli, stoker_environment, large, place):
    before = tree(large)
    process = subprocess.Popen(
        [program(), "stage", large, place, "--jobs", "1"], env=stoker_environment, stderr=subprocess.PIPE
    )
    while not list(place.glob("stoker-*/*/parts/*/*.tar")) and process.poll() is None:
        time.sleep(0.0005)
    os.kill(process.pid, signal.SIGSTOP)
    place.rename(place.with_name("elsewhere"))
    shutil.rmtree(place.with_name("elsewhere"))
    os.kill(process.pid, signal.SIGCONT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert b"disappeared" in errors and b"source is untouched" in errors
    assert differences(before, tree(large)) == []


# --- Other users ----------------------------------------------------------------------------------


def test_two_users_do_not_see_each_other(stoker_cli, as_other_user, scratch, shared):
    stoker_cli("stage", shared, scratch)
    theirs = as_other_user("stage", shared, scratch, "--json").json
    assert theirs["reused_bytes"] == 0 and theirs["verified"]
    assert {path.name: path.stat().st_mode & 0o777 for path in scratch.iterdir()} == {
        f"stoker-{UID}": 0o700,
        "stoker-65534": 0o700,
    }
    listed = as_other_user("stage", "--list", scratch, "--json").json["staged"]
    assert [item["owner"] for item in listed] == [65534]
    as_other_user("stage", "--clean", "--all", scratch)
    assert [path.name for path in scratch.iterdir()] == [f"stoker-{UID}"], "others' files are never touched"
    require_whole(stoker_cli, shared, scratch)


@pytest.mark.parametrize("kind", ["link", "directory", "file"])
def test_a_name_that_somebody_has_taken(stoker_cli, as_other_user, scratch, shared, kind):
    """The other user waits for root to write through what was put there."""
    target = as_other_user.directory / "target"
    target.mkdir()
    trap = scratch / f"stoker-{UID}"
    if kind == "link":
        trap.symlink_to(target)
    elif kind == "directory":
        trap.mkdir(mode=0o777)
    else:
        trap.write_text("mine")
    os.chown(trap, 65534, 65534, follow_symlinks=False)
    before = tree(scratch)
    finished = stoker_cli("stage", shared, scratch, status=1)
    assert str(trap) in finished.stderr and "another place" in finished.stderr
    assert list(target.iterdir()) == [] and differences(before, tree(scratch)) == []
    assert stoker_cli("stage", "--list", scratch, "--json").json["staged"] == []
    stoker_cli("stage", "--clean", "--all", scratch, status=1)
    assert differences(before, tree(scratch)) == []
    # Where nobody has named a place, another one is chosen.
    chosen = stoker_cli("stage", shared, "--json", env={"TMPDIR": str(scratch)}, status=None)
    if chosen.returncode == 0:
        assert chosen.json["place"] != str(scratch)
        remove_copy(chosen.json["path"])


def test_links_inside_are_not_followed(stoker_cli, tmp_path, packed, place):
    """Whoever got hold of our directory for a moment: what it planted there leads nowhere."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep")
    stoker_cli("stage", packed, place)
    data = staged(place)
    shard = sorted(data.glob("*.tar"))[0]
    shard.unlink()
    shard.symlink_to(precious / "file")
    stoker_cli("stage", packed, place)
    assert not shard.is_symlink() and (precious / "file").read_text() == "keep"
    (data / "linked").symlink_to(precious)
    (data.parent / "parts/somebody").symlink_to(precious)
    stoker_cli("stage", "--clean", place)
    assert (precious / "file").read_text() == "keep" and list(place.iterdir()) == []


def test_anybody_may_rename_there(stoker_cli, packed, place):
    place.chmod(0o777)  # and no sticky bit
    assert "sticky" in stoker_cli("stage", packed, place, status=1).stderr
    assert list(place.iterdir()) == []


def test_a_group_may_read(stoker_cli, as_other_user, scratch, shared):
    """Nobody's group: root is let in because it is root, so it stages for that group as nobody."""
    group = subprocess.run(["id", "-gn", "nobody"], capture_output=True, text=True, check=True).stdout.strip()
    result = as_other_user("stage", shared, scratch, "--group", group, "--json").json
    top = scratch / "stoker-65534"
    assert top.stat().st_mode & 0o7777 == 0o2750 and top.stat().st_gid == 65534
    reader = subprocess.run(
        [as_other_user.program, "check", result["path"]], user=1, group=65534, extra_groups=[],
        env=clean_environment(as_other_user.home), capture_output=True,
    )  # fmt: skip
    assert reader.returncode == 0, reader
    # Another one of the group uses that copy, and while it runs nobody cleans it.
    home = as_other_user.directory / "home of 1"
    home.mkdir()
    os.chown(home, 1, 65534)
    member = {"user": 1, "group": 65534, "extra_groups": [], "env": clean_environment(home), "capture_output": True}
    again = subprocess.run([as_other_user.program, "stage", shared, scratch, "--group", group, "--json"], **member)
    assert again.returncode == 0, again
    found = json.loads(again.stdout)
    assert found["path"] == result["path"] and found["reused_bytes"] == found["bytes"] and found["verified"]
    stranger = subprocess.run(["ls", top], user=1, group=1, extra_groups=[], capture_output=True)
    assert stranger.returncode != 0
    assert "not in it" in as_other_user("stage", shared, scratch, "--group", "root", status=2).stderr
