# SPDX-License-Identifier: Apache-2.0
"""Two real users of one node: what mallory prepared must not run as alice, be believed by her, or stop her."""

import functools
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hostile import nested, who_can_swap
from samples import differences, image_folder, jpeg, noise, shards_of, tree
from tar_bytes import simple_tar

# Which files the interpreter took its modules from, the installation's own aside.
WHERE = """
import json, os, sys
mine = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
paths = [path for path in mine if path] + os.environ.get("PYTHONPATH", "").split(":")
print("PATHS", json.dumps([path for path in paths if path and not path.startswith(("/usr/", "<"))]))
"""


def paths_of(text: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith("PATHS ")]
    return json.loads(line.removeprefix("PATHS "))


@pytest.mark.parametrize("mode", [0o1777, 0o777])
@pytest.mark.parametrize("prepared", ["nothing", "directory", "open directory", "link"])
def test_nobody_can_swap_the_hook(mode, prepared, node):
    """What Python imports in a measured command is in no directory that somebody else can rename or write."""
    here = node.place("work", mode)
    theirs = node.directory / "theirs"
    theirs.mkdir()
    node.mallory.own(theirs, 0o777)
    if prepared == "link":
        (here / "stoker-runs").symlink_to(theirs)
        os.chown(here / "stoker-runs", node.mallory.uid, node.mallory.uid, follow_symlinks=False)
    elif prepared != "nothing":
        (here / "stoker-runs").mkdir()
        node.mallory.own(here / "stoker-runs", 0o777 if prepared == "open directory" else 0o755)
    timed = node.alice.stoker("time", "--plain", "--", "/usr/bin/python3", "-c", WHERE, cwd=here, status=None)
    if timed.returncode != 0:
        assert "stoker-runs" in timed.stderr or str(here) in timed.stderr, repr(timed)
        return
    used = paths_of(timed.stdout)
    weak = {path: why for path in used if (why := who_can_swap(path, node.alice.uid))}
    assert not weak, f"others can swap what is imported: {weak}"
    assert not list(theirs.iterdir()), "recorded through mallory's link"
    if prepared in ("directory", "open directory"):
        assert not list((here / "stoker-runs").iterdir()), "recorded in mallory's directory"


def test_code_planted_in_a_foreign_stoker_runs_does_not_run(node):
    """Mallory's process swaps every hook directory that appears in his stoker-runs for one with code of his own."""
    here = node.place("work", 0o1777)
    runs = here / "stoker-runs"
    runs.mkdir()
    node.mallory.own(runs, 0o777)
    proof = here / "proof"
    swap = f"""
import os, sys, time
root, end = {str(runs)!r}, time.time() + 60
payload = "open({str(proof)!r}, 'a').write(str(__import__('os').getuid()) + chr(10))\\n"
while time.time() < end and not os.path.exists(root + "/stop"):
    for name in os.listdir(root):
        old = os.path.join(root, name)
        if name.startswith(".old") or not os.path.isdir(old):
            continue
        if os.stat(old).st_uid == os.getuid():
            continue
        time.sleep(0.3)
        os.rename(old, os.path.join(root, ".old" + name))
        os.makedirs(old + "/hook")
        for each in ("sitecustomize.py", "usercustomize.py", "_stoker_hook.py", "_stoker_recorder.py"):
            open(os.path.join(old, "hook", each), "w").write(payload)
"""
    watcher = subprocess.Popen(
        ["/usr/bin/python3", "-c", swap], user=node.mallory.uid, group=node.mallory.uid, extra_groups=[]
    )
    try:
        sleepy = "sleep 2; exec /usr/bin/python3 -c 'print(1)'"
        for _ in range(2):
            node.alice.stoker("time", "--plain", "--", "bash", "-c", sleepy, cwd=here, status=None)
    finally:
        watcher.kill()
        watcher.wait()
    ran_as = proof.read_text().split() if proof.exists() else []
    assert str(node.alice.uid) not in ran_as, "mallory's code ran as alice"


FAKE_SBATCH = """#!/bin/bash
echo "$@" > "$HOME/sbatch.arguments"
cat > "$HOME/sbatch.input" < /dev/null
echo 4711
"""


@pytest.mark.parametrize("mode", [0o1777, 0o777])
@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("command", ["time", "stage"])
def test_nobody_can_swap_a_job_script(mode, prepared, command, node):
    """A job script waits in a queue for hours: it is in a directory that nobody else can rename or write."""
    here = node.place("work", mode)
    if prepared:
        (here / "stoker-jobs").mkdir()
        node.mallory.own(here / "stoker-jobs", 0o777)
    tools = node.directory / "tools"
    tools.mkdir()
    for name in ("sbatch", "squeue", "sacct", "scontrol", "scancel", "srun", "sinfo"):
        (tools / name).write_text(FAKE_SBATCH if name == "sbatch" else "#!/bin/sh\nexit 0\n")
        (tools / name).chmod(0o755)
    env = {"PATH": f"{tools}:{os.environ['PATH']}"}
    if command == "time":
        line = ["time", "--slurm", "--no-wait", "--", "true"]
    else:
        (node.alice.home / "data").mkdir()
        (node.alice.home / "data/x-000000.tar").write_bytes(simple_tar({b"1.bin": b"1"}))
        (node.alice.home / "scratch").mkdir()
        node.alice.own(node.alice.home)
        line = ["stage", "--before-job", node.alice.home / "data", node.alice.home / "scratch"]
    submitted = node.alice.stoker(*line, env=env, cwd=here, status=None)
    given = node.alice.home / "sbatch.arguments"
    if submitted.returncode != 0 and not given.exists():
        assert "stoker-jobs" in submitted.stderr or str(here) in submitted.stderr, repr(submitted)
        return
    scripts = [word for word in given.read_text().split() if word.startswith("/") or "stoker-jobs" in word]
    # The messages name the directory that is not used.
    words = scripts + [word for word in submitted.stdout.split() if word.startswith("/") and str(here) in word]
    weak = {}
    for word in words:
        path = here / word.split("=", 1)[-1].rstrip(":,")
        if path.exists() and path != here and (why := who_can_swap(path, node.alice.uid)):
            weak[word] = why
    assert not weak, f"others can swap what the job will run: {weak}"


# --- stage --group ----------------------------------------------------------------------------------


@pytest.fixture
def source(node) -> Path:
    """A dataset with a full index that everybody may read, of the site."""
    path = node.directory / "project/train"
    path.mkdir(parents=True)
    for shard in range(3):
        files = {b"%02d%03d.bin" % (shard, i): noise(f"{shard}-{i}", 2000) for i in range(20)}
        (path / f"train-{shard:06d}.tar").write_bytes(simple_tar(files))
    subprocess.run(
        [node.directory / "stoker", "index", "--full", path, "--where", "beside"], check=True, capture_output=True
    )
    for each in [path.parent, path, *path.rglob("*")]:
        each.chmod(0o755 if each.is_dir() else 0o644)
    return path


def shard_bytes(path) -> list[bytes]:
    return [shard.read_bytes() for shard in shards_of(Path(path))]


def poison(copy: Path) -> None:
    """Other values in each shard; size and time stay."""
    for shard in shards_of(copy):
        about = shard.stat()
        data = bytearray(shard.read_bytes())
        data[512 : 512 + 2000] = bytes(2000)
        mode = shard.stat().st_mode
        shard.chmod(0o644)
        shard.write_bytes(data)
        shard.chmod(mode)
        os.utime(shard, ns=(about.st_mtime_ns, about.st_mtime_ns))


def staged_by_mallory(node, source, place) -> Path:
    group = node.group_name
    staged = node.mallory.stoker("stage", source, place, "--group", group, "--json")
    return Path(staged.json["path"])


@pytest.mark.parametrize("index", ["kept", "made anew", "of shards that he swapped"])
def test_wrong_data_of_a_member_is_not_verified(index, node, source):
    """Mallory's copy has other bytes and an index that fits them: alice compares with the source's index."""
    place = node.place("scratch", 0o1777)
    copy = staged_by_mallory(node, source, place)
    poison(copy)
    if index != "kept":
        shutil.rmtree(copy / ".stoker")
        node.mallory.stoker("index", "--full", copy, "--where", "beside")
    if index == "of shards that he swapped":
        for each in (copy / ".stoker").rglob("*"):
            os.utime(each, ns=(10**18, 10**18))
    for each in [copy, *copy.rglob("*")]:
        os.chown(each, node.mallory.uid, node.shared_group, follow_symlinks=False)
        each.chmod(0o2750 if each.is_dir() else 0o640)
    staged = node.alice.stoker("stage", source, place, "--group", node.group_name, "--json", status=None)
    if staged.returncode == 0:
        assert shard_bytes(staged.json["path"]) == shard_bytes(source), "alice was given mallory's values"


def test_a_member_cannot_swap_the_copy_of_another(node, source):
    """In a group-writable place without the sticky bit a member renames what alice staged and puts his own there."""
    place = node.place("scratch", 0o770, node.shared_group)
    group = node.group_name
    first = node.alice.stoker("stage", source, place, "--group", group, "--json", status=None)
    if first.returncode != 0:
        assert str(place) in first.stderr
        return
    copy = Path(first.json["path"])
    assert shard_bytes(copy) == shard_bytes(source)
    top = next(path for path in [copy, *copy.parents] if path.parent == place)
    node.mallory.run("bash", "-c", f"mv {top} {top}.old && cp -r {top}.old {top}", status=None)
    assert copy.exists(), "mallory could not copy what he may read"
    poison(copy)
    shutil.rmtree(copy / ".stoker")
    node.mallory.stoker("index", "--full", copy, "--where", "beside")
    for each in [top, *top.rglob("*")]:
        os.chown(each, node.mallory.uid, node.shared_group, follow_symlinks=False)
    again = node.alice.stoker("stage", source, place, "--group", group, "--json", status=None)
    if again.returncode == 0:
        assert shard_bytes(again.json["path"]) == shard_bytes(source), "alice was given mallory's values"


def test_a_member_cannot_add_shards_to_the_copy(node, source, fresh_python):
    """A shard that the source does not have must not become samples."""
    place = node.place("scratch", 0o1777)
    copy = staged_by_mallory(node, source, place)
    (copy / "train-000003.tar").write_bytes(simple_tar({b"evil.bin": b"evil"}))
    shutil.rmtree(copy / ".stoker")
    node.mallory.stoker("index", "--full", copy, "--where", "beside")
    for each in [copy, *copy.rglob("*")]:
        os.chown(each, node.mallory.uid, node.shared_group, follow_symlinks=False)
        each.chmod(0o2750 if each.is_dir() else 0o640)
    staged = node.alice.stoker("stage", source, place, "--group", node.group_name, "--json", status=None)
    if staged.returncode == 0:
        assert shard_bytes(staged.json["path"]) == shard_bytes(source)


# --- stage --list -----------------------------------------------------------------------------------


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 << 30)


STATES = {
    "deep": lambda path: path.write_text(nested()),
    "deep in a member": lambda path: path.write_text('{"source": ' + nested() + "}"),
    "fifo": make_fifo,
    "huge": make_huge,
    "link": lambda path: path.symlink_to("/etc/passwd"),
    "directory": lambda path: path.mkdir(),
    "empty": lambda path: path.write_text(""),
    "wrong types": lambda path: path.write_text('{"source": 17, "bytes": "x", "version": [], "shards": -1}'),
    "not UTF-8": lambda path: path.write_bytes(b'{"source": "\xff\xfe\x00"}'),
}


@pytest.mark.parametrize("kind", sorted(STATES))
def test_a_hostile_state_does_not_break_the_list(kind, node, source):
    place = node.place("scratch", 0o1777)
    node.alice.stoker("stage", source, place)
    copy = staged_by_mallory(node, source, place).parent
    (copy / "state.json").unlink()
    STATES[kind](copy / "state.json")
    shown = node.alice.stoker("stage", "--list", place, "--json", timeout=30)
    assert str(source) in [each["source"] for each in shown.json["staged"] if each["own"]]
    node.alice.stoker("stage", "--list", place, timeout=30)
    node.alice.stoker("stage", source, place, timeout=30)
    node.alice.stoker("stage", "--clean", place, timeout=30)
    assert (copy / "state.json").is_symlink() or (copy / "state.json").exists(), "mallory's file was removed"


def test_names_of_others_do_not_reach_the_terminal(node, source):
    """An escape sequence in a name that another user chose could rewrite what alice sees."""
    place = node.place("scratch", 0o1777)
    node.alice.stoker("stage", source, place)
    copy = staged_by_mallory(node, source, place)
    state = copy.parent / "state.json"
    members = json.loads(state.read_text())
    hostile = "/x\x1b[2J\x1b]0;owned\x07\n  and another line"

    def change(value):
        if isinstance(value, dict):
            return {key: change(each) for key, each in value.items()}
        return hostile if value == str(source) else value

    state.write_text(json.dumps(change(members)))
    evil = copy.parent.with_name("\x1b[31mred-0123456789abcdef")
    shutil.copytree(copy.parent, evil, symlinks=True)
    node.mallory.own(evil)
    shown = node.alice.stoker("stage", "--list", place, status=None)
    assert "\x1b" not in shown.text and "\x07" not in shown.text


def test_clean_follows_no_link_of_another_user(node, source):
    """Below alice's own directory mallory has no rights, but in the place he makes links under likely names."""
    place = node.place("scratch", 0o1777)
    treasure = node.alice.home / "treasure"
    treasure.mkdir()
    (treasure / "thesis.tex").write_text("work")
    node.alice.own(node.alice.home)
    (place / f"stoker-{node.alice.uid}").symlink_to(treasure)
    os.chown(place / f"stoker-{node.alice.uid}", node.mallory.uid, node.mallory.uid, follow_symlinks=False)
    before = tree(treasure)
    node.alice.stoker("stage", "--clean", "--all", place, status=None)
    node.alice.stoker("stage", source, place, status=None)
    assert not differences(before, tree(treasure))


# --- Modes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modes", [[0o600, 0o600], [0o644, 0o600], [0o640, 0o640]])
@pytest.mark.parametrize("full", [True, False])
def test_an_index_is_no_more_readable_than_the_shards(modes, full, node):
    """Keys, labels and values of a private dataset must not be readable through its index."""
    data = node.directory / "private"
    data.mkdir()
    for number, mode in enumerate(modes):
        shard = data / f"x-{number:06d}.tar"
        shard.write_bytes(simple_tar({b"patient-%d.cls" % number: b"3", b"patient-%d.jpg" % number: jpeg(number)}))
        shard.chmod(mode)
    node.alice.own(data, 0o755)
    node.alice.stoker("index", *(["--full"] if full else []), data, "--where", "beside")
    shards = {f"x-{number:06d}.tar": mode for number, mode in enumerate(modes)}

    def allowed(name: str) -> int:
        """What describes one shard may be as readable as that one; the rest as all of them."""
        described = [mode for shard, mode in shards.items() if name.startswith(shard)] or modes
        return functools.reduce(int.__and__, described) & 0o044

    open_files = {
        str(path.relative_to(data)): oct(path.stat().st_mode & 0o777)
        for path in (data / ".stoker").rglob("*")
        if path.is_file() and path.stat().st_mode & 0o044 & ~allowed(path.name)
    }
    assert not open_files, f"readable by others than the shards: {open_files}"
    read = node.mallory.run("bash", "-c", f"cat {data}/.stoker/* 2>/dev/null", status=None)
    for number, mode in enumerate(modes):
        assert mode & 0o004 or f"patient-{number}" not in read.stdout


def test_an_index_of_private_files_of_a_folder_is_private(node):
    data = node.directory / "private"
    (data / "cat").mkdir(parents=True)
    for number in range(3):
        path = data / f"cat/patient{number}.txt"
        path.write_text("diagnosis")
        path.chmod(0o600)
    node.alice.own(data, 0o755)
    node.alice.stoker("index", "--full", data, "--where", "beside")
    read = node.mallory.run("bash", "-c", f"cat {data}/.stoker/* 2>/dev/null", status=None)
    assert "patient" not in read.stdout


def test_a_pack_of_private_files_with_a_strict_umask_is_private(node):
    """With umask 077 neither shards nor index of what pack writes can be read by others."""
    image_folder(node.directory / "photos", per_class=3)
    packed = node.directory / "packed"
    packed.mkdir()
    node.alice.own(packed, 0o755)
    node.alice.stoker("pack", node.directory / "photos", packed, umask=0o077)
    shards = shards_of(packed)
    allowed = 0o777
    for shard in shards:
        allowed &= shard.stat().st_mode
    open_files = [
        str(path)
        for path in (packed / ".stoker").rglob("*")
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) & 0o044 & ~allowed
    ]
    assert not open_files


def test_a_staged_copy_of_private_shards_is_private(node):
    """Staged by alice for herself, nobody else reads values or keys at the place."""
    data = node.alice.home / "private"
    data.mkdir()
    (data / "x-000000.tar").write_bytes(simple_tar({b"patient.txt": b"diagnosis"}))
    (data / "x-000000.tar").chmod(0o600)
    node.alice.own(data, 0o755)
    place = node.place("scratch", 0o1777)
    node.alice.stoker("stage", data, place)
    seen = node.mallory.run("bash", "-c", f"grep -rl patient {place} 2>/dev/null", status=None)
    assert seen.stdout == ""


# --- Names of users ---------------------------------------------------------------------------------


def test_whose_directory_it_is_is_said_by_name(node, source):
    """belongs to NAME (number), not the number alone."""
    place = node.place("scratch", 0o1777)
    theirs = place / f"stoker-{node.alice.uid}"
    theirs.mkdir()
    os.chown(theirs, 1, 1)
    theirs.chmod(0o700)
    staged = node.alice.stoker("stage", source, place, status=1)
    assert "daemon (1)" in staged.stderr, repr(staged)
