# SPDX-License-Identifier: Apache-2.0
"""Indexes and plans that somebody made to lead elsewhere, with checksums that are right: nothing is created, removed or read outside."""

import json
import os
import shutil
import struct
import subprocess

import pytest
from hostile_index import change_manifest, change_segment, index_of
from samples import write_files
from tar_bytes import simple_tar

SECRET = b"the victim's own secret, which nobody else may read"
OUTSIDE = [
    "../thesis.tex",
    "../../thesis.tex",
    "a/../../thesis.tex",
    "/{}/thesis.tex",
    "",
    "./thesis.tex",
    "a//b",
    "x/y.seg",
]


def everything(root) -> dict:
    """What is there, except for the cache of the program."""
    found = {}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name not in (".cache", "home")]
        for name in files:
            path = os.path.join(directory, name)
            found[path] = os.fsencode(os.readlink(path)) if os.path.islink(path) else open(path, "rb").read()
    return found


@pytest.fixture
def packed(stoker_cli, tmp_path):
    """A dataset that `pack` wrote, and next to it a file of the user's."""
    write_files(tmp_path / "source", {f"{i}.txt": b"%d" % i * 50 for i in range(6)})
    stoker_cli("pack", tmp_path / "source", tmp_path / "work/packed")
    (tmp_path / "work/thesis.tex").write_bytes(SECRET)
    (tmp_path / "thesis.tex").write_bytes(SECRET)
    return tmp_path / "work/packed"


def commands_on(dataset, tmp_path):
    place = tmp_path / "place"
    place.mkdir(exist_ok=True)
    return [
        ["check", dataset],
        ["check", dataset, "--quick"],
        ["load", dataset, "--raw"],
        ["stage", dataset, place],
        ["pack", dataset, tmp_path / "again"],
        ["pack", tmp_path / "source", dataset, "--overwrite"],
        ["pack", tmp_path / "source", dataset],
    ]


@pytest.mark.parametrize("name", OUTSIDE)
def test_segments_of_a_manifest(stoker_cli, packed, tmp_path, name):
    """The file that is named exists and is a segment: only its name is wrong."""
    name = name.format(str(tmp_path).strip("/"))
    segment = next(index_of(packed).glob("*.seg"))
    for place in (tmp_path / "work", tmp_path, index_of(packed)):
        shutil.copy(segment, place / "thesis.tex")
    change_manifest(index_of(packed), lambda manifest: manifest["segments"][0].update(file=name))
    before = everything(tmp_path)
    for words in commands_on(packed, tmp_path)[:6]:
        finished = stoker_cli(*words, status=None)
        if words[0] != "pack" or "--overwrite" in words:
            assert finished.returncode != 0, words
            assert "manifest.json" in finished.text and "lead out of the dataset" in finished.text
        after = everything(tmp_path)
        mine = {
            path: data
            for path, data in after.items()
            if not path.startswith((str(tmp_path / "place"), str(tmp_path / "again")))
        }
        assert mine == before, words
        shutil.rmtree(tmp_path / "again", ignore_errors=True)


SAME_LENGTH = {"../thesis.tex": "shard-abc.tar", "/tmp/thesis.tx": "shard-abcd.tar", "a/../../t.tex": "shard-abd.tar"}


@pytest.mark.parametrize("name", SAME_LENGTH)
def test_shards_of_a_segment(stoker_cli, tmp_path, name):
    """`--overwrite` would remove what a segment names; all others would read it."""
    dataset = tmp_path / "work/data"
    write_files(tmp_path / "source", {f"{i}.txt": b"%d" % i * 50 for i in range(6)})
    shard = SAME_LENGTH[name]
    contents = simple_tar({b"a.txt": b"1" * 99, b"b.txt": b"2" * 99})
    write_files(dataset, {shard: contents})
    stoker_cli("index", dataset, "--full")
    times = (dataset / shard).stat()
    for place in (tmp_path / "work/thesis.tex", tmp_path / "t.tex"):
        place.write_bytes(contents)
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
    change_segment(index_of(dataset), 0, shard.encode(), name.encode())
    origin = {"options": {"split": {}}, "fingerprint": 0}
    change_manifest(index_of(dataset), lambda manifest: manifest.update(origin=origin))
    before = everything(tmp_path)
    for words in commands_on(dataset, tmp_path)[:6]:
        finished = stoker_cli(*words, status=None)
        if words[0] != "pack" or "--overwrite" in words:
            assert finished.returncode != 0 and "lead out of the dataset" in finished.text, finished
        shutil.rmtree(tmp_path / "again", ignore_errors=True)
        after = {
            path: data for path, data in everything(tmp_path).items() if not path.startswith(str(tmp_path / "place"))
        }
        assert after == before, words


def test_overwrite_removes_what_pack_could_have_written(stoker_cli, tmp_path):
    """A file of the user's in the destination itself has no name that pack gives."""
    source, destination = tmp_path / "thesis", tmp_path / "destination"
    write_files(source, {f"{i}.txt": b"%d" % i * 50 for i in range(6)})
    stoker_cli("pack", source, destination)
    (shard,) = destination.glob("*.tar")
    mine = destination / ("thesis.tex".ljust(len(shard.name), "x"))
    mine.write_bytes(SECRET)
    change_segment(index_of(destination), 0, shard.name.encode(), mine.name.encode())
    before = everything(tmp_path)
    finished = stoker_cli("pack", source, destination, "--overwrite", "--shuffle", "1", status=1)
    assert "removes nothing" in finished.stderr and mine.name in finished.stderr
    assert everything(tmp_path) == before


@pytest.mark.parametrize("kind", ["structure", "full"])
def test_files_of_a_folder(stoker_cli, tmp_path, kind):
    """The path of a whole file is its key and suffix."""
    dataset = tmp_path / "work/data"
    write_files(dataset, {"aaaaaaaaaaaaa.txt": b"7" * len(SECRET), "b.txt": b"8"})
    write_files(tmp_path, {"work/secret/.txt": SECRET, "work/in/../secret.txt": SECRET})
    stoker_cli("index", dataset, "--where", "beside", *(["--full"] if kind == "full" else []))
    (dataset / "aaaaaaaaaaaaa.txt").unlink()
    change_segment(index_of(dataset), 0, b"aaaaaaaaaaaaa", b"../../x/../wo"[:6] + b"/secret"[:7])
    finished = stoker_cli("load", dataset, "--raw", status=None)
    assert SECRET.decode() not in finished.text
    for words in (["check", dataset], ["check", dataset, "--quick"]):
        finished = stoker_cli(*words, status=1)
        assert "lead out of the dataset" in finished.text, finished


@pytest.mark.parametrize("length", [2**64 - 500, 2**63, 2**64 - 1, 10**6])
def test_lengths_whose_sums_overflow(stoker_cli, tmp_path, length):
    dataset = tmp_path / "data"
    write_files(dataset, {"a.tar": simple_tar({b"a.txt": b"1" * 10, b"b.txt": b"2" * 700, b"c.txt": b"3" * 33})})
    stoker_cli("index", dataset, "--full")
    change_segment(index_of(dataset), 0, struct.pack("<QQ", 1536, 700), struct.pack("<QQ", 1536, length))
    for words in (["check", dataset], ["check", dataset, "--quick"], ["load", dataset, "--raw"]):
        finished = stoker_cli(*words, status=None, memory=8 << 30)
        assert finished.returncode in (0, 1), finished
    assert stoker_cli("check", dataset, status=None).returncode == 1


def test_numbers_of_samples_whose_sum_overflows(stoker_cli, packed):
    def change(manifest):
        manifest["segments"] = [dict(manifest["segments"][0]) for _ in range(3)]
        for entry, samples in zip(manifest["segments"], (2**63, 2**63 - 10, 16)):
            entry.update(samples=samples)

    change_manifest(index_of(packed), change)
    for words in (["check", packed], ["load", packed, "--raw"]):
        finished = stoker_cli(*words, status=1)
        assert "more samples than there can be" in finished.text, finished


@pytest.mark.parametrize("name", ["../thesis.tex", "/tmp/thesis.tex", "..", ".stoker/manifest.json", "a/b", ".hidden"])
@pytest.mark.parametrize("where", ["shard", "directory", "ending"])
def test_plans(stoker_cli, packed, tmp_path, name, where):
    """A plan is resumed by the one who runs the same command, and `--overwrite` removes what it names."""
    destination = tmp_path / "work/begun"
    stoker_cli("pack", tmp_path / "source", destination, "--plan")
    path = destination / ".stoker/pack/plan.json"
    plan = json.loads(path.read_text())
    if where == "shard":
        plan["datasets"][0]["shards"][0]["name"] = name
    elif where == "directory":
        plan["datasets"][0]["directory"] = name
    else:
        plan["endings"] = ["/../" + name]
    path.write_text(json.dumps(plan))
    before = everything(tmp_path)
    for options in ([], ["--overwrite"], ["--overwrite", "--shuffle", "3"], ["--part", "1/1"]):
        finished = stoker_cli("pack", tmp_path / "source", destination, *options, status=1)
        assert "plan.json" in finished.stderr and "it names" in finished.stderr, finished
        assert everything(tmp_path) == before


@pytest.mark.parametrize(
    "change", [{"first": 5, "last": 2}, {"first": 0, "last": 2**63}, {"first": 2**61, "last": 2**61 + 1}]
)
def test_a_plan_of_more_samples_than_there_are(stoker_cli, packed, tmp_path, change):
    destination = tmp_path / "work/begun"
    stoker_cli("pack", tmp_path / "source", destination, "--plan")
    path = destination / ".stoker/pack/plan.json"
    plan = json.loads(path.read_text())
    plan["datasets"][0]["shards"][0].update(change)
    path.write_text(json.dumps(plan))
    finished = stoker_cli("pack", tmp_path / "source", destination, status=1, memory=4 << 30)
    assert "the plan of an unfinished pack is damaged" in finished.stderr


@pytest.mark.parametrize(
    "options", [[], ["--overwrite"], ["--split", "train=0.5,val=0.5"], ["--split", "train=0.5,val=0.5", "--overwrite"]]
)
def test_nothing_is_written_or_removed_through_a_link(stoker_cli, packed, tmp_path, options):
    """A link in the destination that leads to what the user has elsewhere."""
    split = "--split" in options
    destination = tmp_path / "work/destination"
    stoker_cli("pack", tmp_path / "source", destination, *options)
    precious = tmp_path / "precious"
    linked = destination / "train" if split else index_of(destination)
    shutil.move(linked, precious)
    linked.symlink_to(precious)
    before = everything(tmp_path)
    finished = stoker_cli("pack", tmp_path / "source", destination, "--shuffle", "1", *options, status=1)
    assert str(linked.name) in finished.stderr and (
        "is a link" in finished.stderr or "did not write" in finished.stderr
    )
    assert everything(tmp_path) == before


def test_overwrite_still_replaces_what_pack_wrote(stoker_cli, packed, tmp_path):
    stoker_cli("pack", tmp_path / "source", packed, "--overwrite", "--shuffle", "1")
    assert stoker_cli("check", packed, "--json").json["samples"] == 6
    for split in ("train=0.5,val=0.5", "train=0.9,test=0.1"):
        stoker_cli("pack", tmp_path / "source", packed, "--overwrite", "--split", split)
    assert sorted(path.name for path in packed.iterdir()) == ["test", "train"]


# --- Two users -------------------------------------------------------------------------------------


@pytest.fixture
def attack(as_other_user, tmp_path, stoker_cli):
    """nobody makes a dataset; root, who opens it, has a secret."""
    if os.geteuid() != 0:
        pytest.fail("needs two users: run the tests as root")
    dataset = as_other_user.directory / "theirs"
    write_files(dataset, {"shard-abc.tar": simple_tar({b"a.txt": b"1" * 99})})
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o700)
    (secret / "key.tar").write_bytes(simple_tar({b"a.txt": SECRET + b"." * (99 - len(SECRET))}))
    (secret / "key.tar").chmod(0o600)
    as_other_user.give(dataset)
    return dataset, secret / "key.tar"


def test_a_link_of_another_user_to_a_file_of_ours(as_other_user, attack, stoker_cli, tmp_path):
    dataset, secret = attack
    as_other_user("index", dataset)
    times = (dataset / "shard-abc.tar").stat()
    os.utime(secret, ns=(times.st_atime_ns, times.st_mtime_ns))
    (dataset / "shard-abc.tar").unlink()
    (dataset / "shard-abc.tar").symlink_to(secret)
    os.chown(dataset / "shard-abc.tar", 65534, 65534, follow_symlinks=False)
    (tmp_path / "place").mkdir()
    for words in (
        ["pack", dataset, tmp_path / "packed"],
        ["stage", dataset, tmp_path / "place"],
        ["load", dataset, "--raw"],
    ):
        finished = stoker_cli(*words, status=None)
        assert "is a link of user 65534 that leads out of the dataset" in finished.text, finished
    assert not any(SECRET in data for path, data in everything(tmp_path).items() if path != str(secret))


def test_links_that_are_followed(as_other_user, attack, stoker_cli, tmp_path):
    """Our own, and those of another user to files of theirs: shards on another file system, a cache of downloads."""
    dataset, secret = attack
    shard = dataset / "shard-abc.tar"
    for owner, target in ((0, secret), (65534, as_other_user.directory / "store.tar")):
        if target != secret:
            shutil.copy(secret, target)
            os.chown(target, owner, owner)
        shard.unlink()
        shard.symlink_to(target)
        os.chown(shard, owner, owner, follow_symlinks=False)
        packed = tmp_path / f"packed-{owner}"
        stoker_cli("pack", dataset, packed)
        assert SECRET in next(packed.glob("*.tar")).read_bytes()


def test_a_companion_that_is_a_link_is_not_copied(as_other_user, attack, stoker_cli, tmp_path):
    """`stage` copies row indexes without looking into them."""
    dataset, secret = attack
    as_other_user("index", dataset, "--full")
    rows = next(index_of(dataset).glob("*.seg")).with_suffix(".rows")
    rows.unlink(missing_ok=True)
    rows.symlink_to(secret)
    os.chown(rows, 65534, 65534, follow_symlinks=False)
    (tmp_path / "place").mkdir()
    stoker_cli("stage", dataset, tmp_path / "place", status=None)
    assert not any(SECRET in data for path, data in everything(tmp_path / "place").items())


def test_an_index_directory_that_is_a_link_of_another_user(as_other_user, attack, stoker_cli, tmp_path):
    dataset, _ = attack
    ours = tmp_path / "ours"
    write_files(ours, {"manifest.json": b"ours", "x.seg": b"ours", "y.stoker-tmp": b"ours"})
    index_of(dataset).symlink_to(ours)
    os.chown(index_of(dataset), 65534, 65534, follow_symlinks=False)
    before = everything(ours)
    stoker_cli("index", dataset, status=None)
    stoker_cli("check", dataset, status=None)
    assert everything(ours) == before


def test_an_index_that_anybody_could_put_there(as_other_user, scratch, stoker_cli):
    """In a directory where all may write, a stranger's index says nothing about a file of ours."""
    shard = scratch / "mine.tar"
    shard.write_bytes(simple_tar({b"a.txt": b"right", b"b.txt": b"wrong"}))
    shutil.copy(shard, as_other_user.directory / "mine.tar")
    made = as_other_user.directory / "theirs"
    made.mkdir()
    (made / "mine.tar").write_bytes(simple_tar({b"other.txt": b"right", b"b.txt": b"wrong"}))
    as_other_user.give(made)
    as_other_user("index", made / "mine.tar")
    shutil.copytree(index_of(made), index_of(scratch))
    as_other_user.give(index_of(scratch))
    found = stoker_cli("check", shard, "--json").json
    assert found["index"] != str(index_of(scratch) / "mine.tar") if "index" in found else True
    packed = as_other_user.directory / "packed"
    stoker_cli("pack", shard, packed)
    assert b"other.txt" not in next(packed.glob("*.tar")).read_bytes()
    result = stoker_cli("index", shard, "--json").json
    assert not result["directory"].startswith(str(scratch)), result


@pytest.mark.parametrize("namespace", [["unshare", "-U"], ["unshare", "-Ur"]])
def test_users_that_a_namespace_does_not_have(as_other_user, user_namespaces, scratch, stoker_cli, namespace):
    """In a container without privileges all other users have one number: that two files have it says nothing."""
    owner, attacker, victim = 3001, 3002, 3003
    data = scratch / "data"
    write_files(data, {"a.bin": b"right"})
    data.chmod(0o1777)
    write_files(scratch / "made", {"a.bin": b"wrong", "b.bin": b"more"})
    stoker_cli("index", scratch / "made", "--where", "beside")
    shutil.move(scratch / "made/.stoker", data / ".stoker")
    for path in [data / ".stoker", *(data / ".stoker").rglob("*")]:
        os.chown(path, attacker, attacker)
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in [data, data / "a.bin"]:
        os.chown(path, owner, owner)
    home = scratch / "home"
    home.mkdir()
    os.chown(home, victim, victim)

    def check() -> dict:
        checked = subprocess.run(
            [*namespace, as_other_user.program, "check", "--json", data],
            user=victim, group=victim, extra_groups=[], cwd="/", capture_output=True,
            env={"PATH": os.environ["PATH"], "HOME": str(home)},
        )  # fmt: skip
        assert checked.returncode == 0, checked.stderr
        return json.loads(checked.stdout)

    assert check()["samples"] == 1
    # The one in the cache is the user's own, inside of the namespace and outside of it.
    indexed = subprocess.run(
        [*namespace, as_other_user.program, "index", "--json", data],
        user=victim, group=victim, extra_groups=[], cwd="/", capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
    )  # fmt: skip
    assert indexed.returncode == 0, indexed.stderr
    assert str(home) in json.loads(indexed.stdout)["directory"]
    assert check()["samples"] == 1


def test_a_cache_that_somebody_else_has_made(as_other_user, scratch, shared):
    cache = scratch / "cache"
    (cache / "stoker/index").mkdir(parents=True)
    for path in (cache, cache / "stoker", cache / "stoker/index"):
        os.chown(path, 1, 1)
        path.chmod(0o777)
    finished = as_other_user("index", shared, "--where", "cache", env={"XDG_CACHE_HOME": str(cache)}, status=1)
    assert "somebody else has made this directory" in finished.stderr and "XDG_CACHE_HOME" in finished.stderr
    assert not any((cache / "stoker/index").iterdir())


def test_without_a_home_nothing_in_tmp_is_believed(as_other_user, shared):
    finished = as_other_user("index", shared, "--where", "cache", env={"HOME": "", "XDG_CACHE_HOME": ""}, status=None)
    assert "/tmp/.cache" not in finished.text


# --- Modes -----------------------------------------------------------------------------------------


def modes(directory) -> set[str]:
    return {oct(path.stat().st_mode & 0o777) for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_an_index_is_no_more_readable_than_the_shards(stoker_cli, tmp_path, umask):
    dataset = tmp_path / "data"
    write_files(dataset, {"a.tar": simple_tar({b"a.txt": b"1"}), "b.tar": simple_tar({b"b.txt": b"1"})})
    dataset.chmod(0o755)
    (dataset / "a.tar").chmod(0o600)
    (dataset / "b.tar").chmod(0o644)
    old = os.umask(umask)
    try:
        for options in ([], ["--full"]):
            stoker_cli("index", dataset, *options)
            index = index_of(dataset)
            assert index.stat().st_mode & 0o077 == 0
            assert (index / "manifest.json").stat().st_mode & 0o077 == 0
            assert next(index.glob("a.tar*.seg")).stat().st_mode & 0o077 == 0
            assert next(index.glob("b.tar*.seg")).stat().st_mode & 0o044 == 0o044
        (dataset / "b.tar").chmod(0o600)
        stoker_cli("index", dataset, "--full")
        assert all(int(mode, 8) & 0o077 == 0 for mode in modes(index_of(dataset)))
    finally:
        os.umask(old)


def test_a_folder_of_private_files(stoker_cli, tmp_path, home):
    dataset = tmp_path / "data"
    write_files(dataset, {f"cat/{i}.txt": b"1" for i in range(5)})
    dataset.chmod(0o755)
    (dataset / "cat/3.txt").chmod(0o600)
    stoker_cli("index", dataset, "--where", "beside")
    assert {int(mode, 8) & 0o077 for mode in modes(index_of(dataset))} == {0}
    stoker_cli("pack", dataset, tmp_path / "packed", "--plan")
    plan = tmp_path / "packed/.stoker/pack"
    assert {int(mode, 8) & 0o077 for mode in modes(plan)} == {0} and plan.stat().st_mode & 0o077 == 0
    stoker_cli("index", dataset, "--where", "cache")
    assert (home / ".cache/stoker").stat().st_mode & 0o077 == 0


def test_the_groups_bits_are_for_the_shards_group(stoker_cli, tmp_path):
    """Not for the primary group of the one who makes the index."""
    if os.geteuid() != 0:
        pytest.fail("gives files to another group: run the tests as root")
    dataset = tmp_path / "data"
    write_files(dataset, {"a.tar": simple_tar({b"a.txt": b"1"})})
    dataset.chmod(0o755)
    os.chown(dataset / "a.tar", 0, 65534)
    (dataset / "a.tar").chmod(0o640)
    stoker_cli("index", dataset)
    for path in index_of(dataset).iterdir():
        status = path.stat()
        assert status.st_mode & 0o077 == 0o040 and status.st_gid == 65534, path
