# SPDX-License-Identifier: Apache-2.0
"""The slow storage: what it shows, what it counts, what it costs at least, and how it ends."""

import filecmp
import mmap
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from samples import differences, image_folder, noise, tree, write_files
from slow_storage import mounted, until


@pytest.fixture
def below(tmp_path):
    path = tmp_path / "below"
    image_folder(path / "photos")
    write_files(path, {"large": noise("large", 3_000_000), "it's a $(name)\n;": b"strange", "empty": b""})
    (path / "link").symlink_to("large")
    return path


def changes(storage, work) -> dict:
    """What was asked for during `work`: those that are not 0."""
    before = storage.operations()
    work()
    after = storage.operations()
    flat = [{**each, **each["kinds"]} for each in (before, after)]
    return {
        name: flat[1][name] - flat[0][name] for name in flat[0] if name != "kinds" and flat[1][name] != flat[0][name]
    }


def test_it_shows_what_lies_there(mount, below):
    storage = mount(below)
    assert differences(tree(storage.path), tree(below)) == []
    before, after = os.stat(below / "large"), os.stat(storage.path / "large")
    assert (before.st_size, before.st_mode, before.st_mtime_ns) == (after.st_size, after.st_mode, after.st_mtime_ns)
    with pytest.raises(FileNotFoundError):
        (storage.path / "missing").read_bytes()
    assert os.statvfs(storage.path).f_bsize == os.statvfs(below).f_bsize


def test_what_is_written_arrives(mount, below):
    storage = mount(below)
    path = storage.path
    write_files(path, {"new/a": noise("a", 2_500_000), "new/b": b"b"})
    with open(path / "new/b", "ab") as file:
        file.write(b"c")
    os.truncate(path / "new/a", 1_000_001)
    os.chmod(path / "new/b", 0o640)
    os.utime(path / "new/b", (1_000_000, 2_000_000))
    os.rename(path / "new", path / "renamed")
    (path / "other").symlink_to("renamed/a")
    os.remove(path / "empty")
    os.mkdir(path / "directory")
    os.rmdir(path / "directory")
    with open(path / "renamed/a", "r+b") as file:
        os.fsync(file.fileno())
    assert differences(tree(path), tree(below)) == []
    assert (below / "renamed/a").read_bytes() == noise("a", 2_500_000)[:1_000_001]
    assert (below / "renamed/b").read_bytes() == b"bc"
    assert os.stat(below / "renamed/b").st_mode & 0o777 == 0o640 and os.stat(below / "renamed/b").st_mtime == 2_000_000
    assert os.readlink(below / "other") == "renamed/a" and not (below / "empty").exists()
    with pytest.raises(FileExistsError):
        os.open(path / "large", os.O_CREAT | os.O_EXCL | os.O_WRONLY)


def test_every_request_is_counted(mount, below):
    storage = mount(below)
    photos = sorted((below / "photos").glob("*/*.jpg"))
    shown = [storage.path / path.relative_to(below) for path in photos]
    size = sum(path.stat().st_size for path in photos)
    # Three class directories, and "photos" itself.
    found = changes(storage, lambda: [path.stat() for path in shown])
    assert found == {"metadata": len(photos) + 4, "lookup": len(photos) + 4}
    found = changes(storage, lambda: [path.read_bytes() for path in shown])
    assert found == {
        "metadata": len(photos),
        "open": len(photos),
        "reads": len(photos),
        "read": len(photos),
        "read_bytes": size,
    }
    # The client has the bytes now, and is told so by each open.
    found = changes(storage, lambda: [path.read_bytes() for path in shown])
    assert "reads" not in found and found["open"] == len(photos)
    found = changes(storage, lambda: (storage.path / "large").read_bytes())
    assert found["read_bytes"] == 3_000_000 and found["reads"] <= 3_000_000 / 4096
    assert changes(storage, lambda: None) == {}


def test_writes_are_counted(mount, below):
    storage = mount(below)
    found = changes(storage, lambda: (storage.path / "new").write_bytes(bytes(2_500_000)))
    assert found["create"] == 1 and found["written_bytes"] == 2_500_000 and found["writes"] <= 2_500_000 / 4096
    found = changes(storage, lambda: os.remove(storage.path / "new"))
    assert found["remove"] == 1


def test_nothing_is_answered_early(mount, below):
    """At least so long, which no load of the machine makes less."""
    storage = mount(below, "--metadata-ms", "20", "--request-ms", "30", "--rate", "10M")
    begin = time.monotonic()
    found = changes(storage, lambda: (storage.path / "large").read_bytes())
    assert time.monotonic() - begin >= 0.020 * found["metadata"] + 3_000_000 / 10_000_000
    begin = time.monotonic()
    found = changes(storage, lambda: [path.stat() for path in (storage.path / "photos").glob("*/*.jpg")])
    assert time.monotonic() - begin >= 0.020 * found["metadata"] and found["lookup"] == 40


@pytest.mark.parametrize(("option", "counted"), [("--metadata-ms", "open"), ("--request-ms", "read")])
def test_requests_wait_side_by_side(mount, below, option, counted):
    """All of them have come in when the first is answered: one behind the other they would not."""
    names = [f"side{i}" for i in range(4)]
    write_files(below, {name: b"by side" for name in names})
    storage = mount(below, option, "2000")
    for name in names:
        os.stat(storage.path / name)  # names of one directory are not looked up at once
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit((storage.path / name).read_bytes) for name in names]
        until(lambda: storage.operations()["kinds"][counted] == 4)
        assert not any(answer.done() for answer in answers)
        assert {answer.result() for answer in answers} == {b"by side"}


def test_mapped_and_past_the_page_cache(mount, below):
    storage = mount(below)
    expected = (below / "large").read_bytes()
    with open(storage.path / "large", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[:] == expected
    descriptor = os.open(storage.path / "large", os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, 1 << 20) as aligned:
        assert os.preadv(descriptor, [aligned], 1 << 20) == 1 << 20
        assert aligned[:] == expected[1 << 20 : 2 << 20]
    os.close(descriptor)


def test_stoker_works_there(mount, below, stoker_cli, tmp_path):
    storage = mount(below)
    place = tmp_path / "place"
    place.mkdir()
    stoker_cli("pack", storage.path / "photos", storage.path / "packed", "--shard-size", "20K")
    assert stoker_cli("check", storage.path / "packed", "--compare", below / "photos", "--json").json["comparison"][
        "equal"
    ]
    staged = stoker_cli("stage", storage.path / "packed", place, "--json").json
    assert staged["complete"] and staged["verified"]
    for shard in (below / "packed").glob("*.tar"):
        assert filecmp.cmp(shard, f"{staged['path']}/{shard.name}", shallow=False)
    # Maps files, and opens them with O_DIRECT.
    (probed,) = stoker_cli("probe", "--quick", storage.path, "--json").json["places"]
    assert probed["direct"] is True


def test_what_counts_cannot_be_written(mount, below):
    storage = mount(below)
    for change in (
        lambda: open(storage.path / ".operations", "w"),
        lambda: os.truncate(storage.path / ".operations", 0),
    ):
        with pytest.raises(OSError):
            change()
    assert ".operations" not in os.listdir(storage.path), "nobody copies it"


def test_it_ends_with_files_open(mount, below):
    storage = mount(below)
    descriptor = os.open(storage.path / "large", os.O_RDONLY)
    assert storage.end() == 0
    assert not mounted(storage.path)
    with pytest.raises(OSError, match="not connected"):
        os.close(descriptor)


def test_it_ends_with_whoever_started_it(shared_storage, below, tmp_path):
    path = tmp_path / "mounted"
    path.mkdir()
    starter = (
        f"import subprocess, time; subprocess.Popen({[str(shared_storage), str(below), str(path)]!r}); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", starter])
    until(lambda: mounted(path))
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not mounted(path))


@pytest.mark.parametrize(
    ("words", "status", "cause"),
    [
        (["--rate", "fast", "a", "b"], 2, "--rate fast"),
        (["--metadata-ms", "-1", "a", "b"], 2, "--metadata-ms -1"),
        (["--request-ms", "nan", "a", "b"], 2, "--request-ms nan"),
        (["--colour", "1", "a", "b"], 2, "--colour"),
        (["a"], 2, "two directories"),
        (["missing", "b"], 1, "missing: No such file"),
    ],
)
def test_wrong_use_is_said(shared_storage, tmp_path, words, status, cause):
    done = subprocess.run([shared_storage, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status and cause in done.stderr
