# SPDX-License-Identifier: Apache-2.0
"""`stoker probe`: what it says about places and the machine, within which bounds, and that it leaves nothing behind."""

import datetime
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from samples import jpeg, noise, write_files
from stoker_program import program

# Little data and time: nothing here is about how fast anything is.
LITTLE = ["--bytes", "32M", "--seconds", "1", "--threads", "2"]
MEGABYTE = 1_000_000

RATE = {
    "what": str,
    "unit": str,
    "block_bytes": int,
    "threads": int,
    "cold": bool,
    "how": str,
    "per_s": (int, float),
    "least": (int, float),
    "most": (int, float),
    "amount": int,
    "seconds": (int, float),
    "repeats": int,
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.fixture
def only_place(stoker_cli, place):
    """Measures storage and files of one place."""

    def run(*words, path=place, status=0, **options):
        finished = stoker_cli(
            "probe", path, "--only", "storage,files", *LITTLE, *words, "--json", status=status, **options
        )
        [measured] = finished.json["places"]
        return measured

    return run


def mounted_type(path: Path) -> str:
    """By /proc/mounts: the longest mount point, the last of equal ones."""
    best = ("", "")
    for line in Path("/proc/mounts").read_text().splitlines():
        _, point, kind = line.split()[:3]
        if path.resolve().is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def check_rates(rates):
    for rate in rates:
        assert rate.keys() == RATE.keys()
        for name, kind in RATE.items():
            assert isinstance(rate[name], kind), (name, rate)
        assert 0 < rate["least"] <= rate["per_s"] <= rate["most"]
        assert 1 <= rate["repeats"] <= 3 and rate["amount"] > 0 and rate["seconds"] > 0
        # The mean of the repeats lies within them, whatever each of them took.
        mean = rate["amount"] / rate["seconds"]
        assert 0.999 * rate["least"] <= mean <= 1.001 * rate["most"], rate


# --- A place ---------------------------------------------------------------------------------------


def test_place(only_place, place):
    before = os.statvfs(place)
    measured = only_place()
    assert measured["path"] == str(place) and measured["problem"] is None and measured["writable"] is True
    assert measured["type"] == mounted_type(place)
    assert os.path.ismount(measured["mount"]) and place.resolve().is_relative_to(measured["mount"])
    assert measured["total_bytes"] == before.f_blocks * before.f_frsize
    assert abs(measured["free_bytes"] - before.f_bavail * before.f_frsize) < 5e9  # others write there as well
    assert measured["total_inodes"] == (before.f_files or None)
    check_rates(measured["rates"])
    kinds = {(rate["what"], rate["threads"]) for rate in measured["rates"]}
    for what in ("read", "write", "random_read", "random_write", "create", "stat", "open", "small_read"):
        assert {(what, 1), (what, 2)} <= kinds
    for headline, what in [
        ("read_bytes_per_s", "read"), ("write_bytes_per_s", "write"), ("random_writes_per_s", "random_write"),
        ("creates_per_s", "create"), ("opens_per_s", "open"), ("stats_per_s", "stat"), ("small_reads_per_s", "small_read"),
    ]:  # fmt: skip
        of_kind = [rate for rate in measured["rates"] if rate["what"] == what]
        cold = [rate for rate in of_kind if rate["cold"]]
        assert measured[headline] == max(rate["per_s"] for rate in cold or of_kind)
    pages = [r for r in measured["rates"] if r["what"] == "random_read" and r["block_bytes"] == 4096]
    assert measured["random_reads_per_s"] in [rate["per_s"] for rate in pages]
    assert list(place.iterdir()) == []


def test_cold_is_proven(only_place):
    measured = only_place()
    for rate in measured["rates"]:
        if rate["cold"] and rate["what"] in ("read", "random_read", "small_read"):
            proof = re.search(r"mincore: ([0-9.]+) % in memory", rate["how"])
            assert rate["how"] == "O_DIRECT" or float(proof[1]) <= 1
    if measured["type"] not in ("tmpfs", "ramfs"):
        assert {rate["cold"] for rate in measured["rates"] if rate["what"] == "read"} == {True, False}


NO_DIRECT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

static int refuse(const char* name, const char* path, int flags, va_list more) {
  int (*real)(const char*, int, ...) = dlsym(RTLD_NEXT, name);
  if (flags & O_DIRECT) {
    errno = EINVAL;
    return -1;
  }
  return real(path, flags, flags & O_CREAT ? va_arg(more, int) : 0);
}
#define REFUSE(name)                         \
  int name(const char* path, int flags, ...) { \
    va_list more;                            \
    va_start(more, flags);                   \
    int result = refuse(#name, path, flags, more); \
    va_end(more);                            \
    return result;                           \
  }
REFUSE(open)
REFUSE(open64)
"""


def test_without_o_direct(only_place, tmp_path):
    """Then the file is forgotten, and mincore has the proof."""
    (tmp_path / "no_direct.c").write_text(NO_DIRECT)
    library = tmp_path / "no_direct.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "no_direct.c", "-ldl"], check=True)
    measured = only_place(env={"LD_PRELOAD": str(library)})
    assert measured["direct"] is False and measured["problem"] is None
    check_rates(measured["rates"])
    writes = {rate["how"] for rate in measured["rates"] if rate["what"] == "write"}
    if measured["type"] in ("tmpfs", "ramfs"):
        assert writes == {"memory"}
        return
    assert writes == {"fdatasync every 16 MiB"}
    for what in ("read", "random_read"):
        reads = [rate for rate in measured["rates"] if rate["what"] == what]
        assert any(rate["cold"] and "mincore: 0.0 % in memory" in rate["how"] for rate in reads)
        assert any(not rate["cold"] and rate["how"] == "memory" for rate in reads)
        # Read once only: what was read is in memory by then.
        for rate in reads:
            if rate["cold"]:
                assert rate["amount"] * (1 if what == "read" else rate["block_bytes"]) <= 3 * measured["file_bytes"]


def test_memory_is_never_cold(only_place, small_file_system):
    measured = only_place(path=small_file_system(200 * MEGABYTE))
    assert measured["type"] == "tmpfs" and measured["rates"]
    assert not any(rate["cold"] for rate in measured["rates"])
    check_rates(measured["rates"])


def written_by_us_and_ended_children() -> int:
    return int(re.search(r"^wchar: (\d+)$", Path("/proc/self/io").read_text(), re.MULTILINE)[1])


def test_no_more_is_written_than_stated(only_place):
    """The kernel counts what is handed to write() and its like."""
    before = written_by_us_and_ended_children()
    measured = only_place()
    written = written_by_us_and_ended_children() - before
    profile = 200_000  # at most, with the document
    assert measured["written_bytes"] <= written <= measured["written_bytes"] + profile
    assert 0 < measured["written_bytes"] <= 32 * MEGABYTE


def test_less_is_written_where_space_is_short(only_place, small_file_system):
    small = small_file_system(60 * MEGABYTE)
    free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
    measured = only_place("--bytes", "1G", path=small)
    assert measured["problem"] is None and 0 < measured["written_bytes"] <= free / 4
    assert list(small.iterdir()) == []


def test_too_little_for_so_many_threads(stoker_cli, tmp_path):
    words = ["--bytes", "8MiB", "--seconds", "1", "--threads", "64", "--only", "storage", "--json"]
    [measured] = stoker_cli("probe", tmp_path, *words, status=1).json["places"]
    assert "too little to write with that many threads" in measured["problem"]


def test_several_places_and_copies(stoker_cli, tmp_path):
    places = [tmp_path / "a", tmp_path / "b"]
    for each in places:
        each.mkdir()
    result = stoker_cli("probe", *places, "--only", "copies", *LITTLE, "--json").json
    assert [each["path"] for each in result["places"]] == [str(each) for each in places]
    assert {(copy["from"], copy["to"]) for copy in result["copies"]} == {
        (str(places[0]), str(places[1])),
        (str(places[1]), str(places[0])),
    }
    check_rates([copy["rate"] for copy in result["copies"]])
    assert result["written_bytes"] == sum(each["written_bytes"] for each in result["places"])
    assert all(list(each.iterdir()) == [] for each in places)


def test_the_same_place_twice_is_measured_once(stoker_cli, place):
    (place.parent / "link").symlink_to(place)
    result = stoker_cli("probe", place, place.parent / "link", "--only", "files", *LITTLE, "--json").json
    assert [each["same_as"] for each in result["places"]] == [None, str(place)]
    assert result["places"][1]["rates"] == []


# --- Well-known places -----------------------------------------------------------------------------


def test_well_known_places(stoker_cli, tmp_path):
    names = ["SCRATCH", "SLURM_TMPDIR", "TMPDIR", "PROJECT", "DATA", "SCRATCH_FAST"]
    for name in names:
        (tmp_path / name).mkdir()
    environment = {name: str(tmp_path / name) for name in names}
    environment |= {"SCRATCH_GONE": str(tmp_path / "gone"), "SCRATCHY": str(tmp_path)}
    here = tmp_path / "here"
    here.mkdir()
    result = stoker_cli("probe", "--only", "files", *LITTLE, "--json", env=environment, cwd=here).json
    known = {each["known_as"]: each for each in result["places"]}
    assert {f"${name}" for name in names} <= known.keys() and "$SCRATCH_GONE" not in known and "$SCRATCHY" not in known
    for name in names:
        assert known[f"${name}"]["path"] == environment[name]
        assert known[f"${name}"]["purpose"] and known[f"${name}"]["deleted"]
    assert known["$SLURM_TMPDIR"]["deleted"] == "when the job ends"
    assert ("/dev/shm" in known) == os.path.isdir("/dev/shm")
    assert result["places"][-1]["path"] == str(here)
    # One file system is measured once.
    measured = [each for each in result["places"] if each["rates"]]
    devices = [os.stat(each["path"]).st_dev for each in measured]
    assert len(devices) == len(set(devices))
    for each in result["places"]:
        assert (each["same_as"] is None) == (each in measured)


def test_a_folder_in_a_well_known_place(only_place, place):
    measured = only_place(env={"SCRATCH": str(place.parent)})
    assert measured["known_as"] is None and "shared storage" in measured["purpose"]


# --- Places that cannot be measured, or not all of them ---------------------------------------------


def test_missing_place(stoker_cli, place):
    finished = stoker_cli("probe", place, place / "gone", "--only", "files", *LITTLE, "--json", status=1)
    here, gone = finished.json["places"]
    assert here["problem"] is None and here["opens_per_s"] > 0
    assert "No such file" in gone["problem"] and gone["free_bytes"] is None and gone["rates"] == []
    assert "No such file" in stoker_cli("probe", place / "gone", "--only", "files", status=1).stdout


def test_file_as_place(stoker_cli, place):
    (place / "file").write_bytes(b"x")
    finished = stoker_cli("probe", place / "file", *LITTLE, "--only", "storage", "--json", status=1)
    assert "should be a directory" in finished.json["places"][0]["problem"]


def test_not_writable_place(as_other_user):
    """Reads are measured on what is there."""
    folder = as_other_user.directory / "theirs"
    write_files(folder, {"large.bin": noise(1, 3 * MEGABYTE), **{f"s/{i}": b"x" * 100 for i in range(20)}})
    words = ["--only", "storage,files", *LITTLE, "--json"]
    [measured] = as_other_user("probe", folder, *words, status=1).json["places"]
    assert measured["writable"] is False and measured["written_bytes"] == 0
    assert "cannot be written" in measured["problem"] and "files that are there" in measured["problem"]
    assert measured["file_bytes"] == 3 * MEGABYTE
    assert measured["read_bytes_per_s"] > 0 and measured["opens_per_s"] > 0
    assert measured["write_bytes_per_s"] is None and measured["creates_per_s"] is None
    empty = as_other_user.directory / "empty"
    empty.mkdir()
    [measured] = as_other_user("probe", empty, *words, status=1).json["places"]
    assert "nothing measured" in measured["problem"] and measured["rates"] == []


def test_read_only_file_system(only_place, small_file_system):
    small = small_file_system(60 * MEGABYTE)
    write_files(small, {"a.bin": noise(1, 2 * MEGABYTE)})
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    measured = only_place(path=small, status=1)
    assert measured["writable"] is False and "cannot be written" in measured["problem"]
    assert measured["read_bytes_per_s"] > 0 and measured["write_bytes_per_s"] is None


def test_full_place(only_place, small_file_system):
    small = small_file_system(20 * MEGABYTE)
    free = os.statvfs(small).f_bavail * os.statvfs(small).f_frsize
    (small / "filler").write_bytes(bytes(free))
    measured = only_place(path=small, status=1)
    assert "too little room" in measured["problem"] and measured["written_bytes"] == 0
    assert measured["read_bytes_per_s"] > 0
    assert [each.name for each in small.iterdir()] == ["filler"]


def test_no_inodes_left(only_place, tmp_path):
    """A file system that takes data but few files: fewer are made, and nothing fails."""
    small = tmp_path / "few"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60M,nr_inodes=40", "tmpfs", small], check=True)
    try:
        measured = only_place(path=small, status=None)
        assert measured["written_bytes"] <= 60 * MEGABYTE / 4
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


# --- Nothing is left behind ------------------------------------------------------------------------


def start_and_stop(environment, place, how) -> int:
    command = [program(), "probe", place, "--only", "files", "--seconds", "60", "--bytes", "64M"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(place.glob(".stoker-probe-*/files-1/0/*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(how)
    return process.wait(timeout=60)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(stoker_environment, place, how):
    assert start_and_stop(stoker_environment, place, how) == 130
    assert list(place.iterdir()) == []


def test_killed(stoker_environment, only_place, place):
    assert start_and_stop(stoker_environment, place, signal.SIGKILL) == -signal.SIGKILL
    [left] = place.iterdir()
    assert left.name.startswith(f".stoker-probe-{socket.gethostname()}-")
    assert not list(left.glob("data*")), "large files have no name"
    only_place()
    assert list(place.iterdir()) == []


def test_others_at_work_are_left_alone(only_place, place):
    """A directory of another host that is young, and one that is no directory of ours."""
    young, old, unlike = (
        place / ".stoker-probe-other-host-abc",
        place / ".stoker-probe-old-host-abc",
        place / ".stoker-x",
    )
    for each in (young, old, unlike):
        each.mkdir()
    two_days_ago = time.time() - 2 * 86400
    os.utime(old, (two_days_ago, two_days_ago))
    only_place()
    assert sorted(place.iterdir()) == sorted([young, unlike])


# --- The machine -----------------------------------------------------------------------------------


def test_machine(stoker_cli, place):
    result = stoker_cli("probe", place, "--only", "memory,decode,gpu", *LITTLE, "--json").json
    assert result["host"] == socket.gethostname() and os.uname().release in result["kernel"]
    measured_at = datetime.datetime.strptime(result["measured_at"], "%Y-%m-%dT%H:%M:%SZ")
    assert abs((datetime.datetime.utcnow() - measured_at).total_seconds()) < 300
    total = int(re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())[1]) * 1024
    assert result["memory_bytes"] == total and 0 < result["memory_available_bytes"] <= total
    check_rates(result["memory"] + result["decode"])
    assert {"copy", "shm_read", "shm_write"} == {rate["what"] for rate in result["memory"]}
    assert result["decode_per_core_per_s"] == [r["per_s"] for r in result["decode"] if r["threads"] == 1][0]
    assert "generated" in result["photos"]
    nodes = sorted(int(each.name[4:]) for each in Path("/sys/devices/system/node").glob("node[0-9]*"))
    assert [node["number"] for node in result["numa"]] == nodes
    assert bool(result["gpus"]) != any("no GPU" in note for note in result["notes"])


def test_usable_cores(place, stoker_environment):
    command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), program(), "probe", place, "--only", "decode"]
    done = subprocess.run([*command, *LITTLE, "--json"], env=stoker_environment, capture_output=True, check=True)
    result = json.loads(done.stdout)
    assert result["cores"] == 1 and result["core_limits"]["affinity"] == 1
    assert result["core_limits"]["machine"] == os.cpu_count()
    assert [rate["threads"] for rate in result["decode"]] == [1]


def test_cores_that_slurm_granted(stoker_cli, place):
    words = ["probe", place, "--only", "gpu", "--json"]
    result = stoker_cli(*words, env={"SLURM_CPUS_PER_TASK": "1"}).json
    assert result["cores"] == 1 and result["core_limits"]["slurm"] == 1
    assert stoker_cli(*words).json["core_limits"]["slurm"] is None


def test_own_photos(stoker_cli, place, tmp_path):
    write_files(tmp_path / "photos", {**{f"a/{i}.jpg": jpeg(i, 60, 40) for i in range(5)}, "a/notes.txt": b"no photo"})
    words = ["probe", place, "--only", "decode", *LITTLE, "--json"]
    result = stoker_cli(*words, "--photos", tmp_path / "photos").json
    assert result["photos"].startswith("5 of ") and result["decode_per_core_per_s"] > 0
    write_files(tmp_path / "texts", {"a.txt": b"no photo"})
    assert "no photo" in stoker_cli(*words, "--photos", tmp_path / "texts", status=1).stderr
    assert "no such folder" in stoker_cli(*words, "--photos", tmp_path / "gone", status=1).stderr


# --- Profiles, text, wrong use ---------------------------------------------------------------------


def test_profiles(stoker_cli, tmp_path, home):
    places = [tmp_path / "a", tmp_path / "b c"]
    for each in places:
        each.mkdir()
    result = stoker_cli("probe", *places, "--only", "files,copies", *LITTLE, "--json").json
    machines = home / ".cache/stoker/machines"
    assert sorted(map(Path, result["profiles"])) == sorted(machines.iterdir()) and len(result["profiles"]) == 2
    for path, measured in zip(result["profiles"], result["places"]):
        assert Path(path).name.startswith(f"{socket.gethostname()}--")
        profile = json.loads(Path(path).read_text())
        assert profile["places"] == [measured]
        for name in ("host", "kernel", "version", "measured_at", "cores", "memory_bytes", "copies"):
            assert profile[name] == result[name]
    stoker_cli("probe", places[0], "--only", "files", *LITTLE)
    assert len(list(machines.iterdir())) == 2, "one for each host and place"


def test_output_file(stoker_cli, place, tmp_path, home):
    output = tmp_path / "profile.json"
    result = stoker_cli("probe", place, "--only", "files", *LITTLE, "--output", output, "--json").json
    assert result["profiles"] == [str(output)] and not (home / ".cache").exists()
    assert json.loads(output.read_text())["places"] == result["places"]


def test_text(stoker_cli, place):
    text = stoker_cli("probe", place, *LITTLE).stdout
    assert str(place) in text and "random reads/s" in text
    for line in ("cores: ", "memory: ", "decode: ", "profile: ", "next: "):
        assert f"\n{line}" in text
    assert re.search(r"\nmeasured in .*, .*B written and removed again\n", text)


def test_wrong_use(stoker_cli, place):
    for words in (["--seconds", "0"], ["--threads", "0"], ["--bytes", "1k"], ["--bytes", "x"], ["--only", "stroage"]):
        assert words[0] in stoker_cli("probe", place, *words, status=2).stderr
    assert "did you mean 'storage'" in stoker_cli("probe", place, "--only", "stroage", status=2).stderr
    assert "should be a file" in stoker_cli("probe", place, "--only", "gpu", "--output", place, status=2).stderr
