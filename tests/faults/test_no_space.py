# SPDX-License-Identifier: Apache-2.0
"""A full disk and a failing one: one clear message, exit 1, nothing half-done left, and later it goes on."""

import os
import subprocess

import pytest
from samples import differences, image_folder, noise, tree, write_files
from stoker_program import program

MEGABYTE = 1_000_000


@pytest.fixture
def source(tmp_path):
    write_files(tmp_path / "source", {f"s{i:03d}.bin": noise(i, MEGABYTE // 2) for i in range(40)})
    return tmp_path / "source"


def hidden_outside_index(directory) -> list[bytes]:
    return [
        name for name in tree(directory) if name.split(b"/")[-1].startswith(b".") and not name.startswith(b".stoker")
    ]


@pytest.mark.parametrize("form", ["tar", "tfrecord"])
def test_no_space_left(stoker_cli, source, small_file_system, tmp_path, form):
    options = ["--to", form, "--shard-size", "4M"]
    stoker_cli("pack", source, tmp_path / "whole", *options)
    small = small_file_system(64 * MEGABYTE)
    filler = small / "filler"
    filler.write_bytes(bytes(50 * MEGABYTE))  # 14 MB for 20
    destination = small / "packed"
    finished = stoker_cli("pack", source, destination, *options, status=1)
    assert "space" in finished.stderr.lower()
    assert str(small) in finished.stderr
    # No temporary files: whatever lies there is a whole shard under its final name, or the journal.
    if destination.exists():
        assert hidden_outside_index(destination) == []
        whole = tree(tmp_path / "whole")
        for name, data in tree(destination).items():
            if not name.startswith(b".stoker"):
                assert data == whole[name], name
    filler.unlink()
    stoker_cli("pack", source, destination, *options)
    assert differences(tree(tmp_path / "whole"), tree(destination)) == []


def test_no_space_from_the_first_byte(stoker_cli, source, small_file_system):
    small = small_file_system(1 * MEGABYTE)
    (small / "filler").write_bytes(bytes(small_free(small)))
    finished = stoker_cli("pack", source, small / "packed", status=1)
    assert "space" in finished.stderr.lower()


def small_free(path) -> int:
    facts = os.statvfs(path)
    return facts.f_bavail * facts.f_bsize


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_any_write_may_fail(stoker_cli, count_calls, shim, tmp_path, error):
    """From the n-th call on, writes and syncs fail: message, exit 1, no temporary files, and it can go on."""
    image_folder(tmp_path / "source")
    options = ["--shard-size", "15K", "--jobs", "2"]
    calls = count_calls("pack", tmp_path / "source", tmp_path / "whole", *options)
    whole = tree(tmp_path / "whole")
    for number, at in enumerate(range(1, calls, max(1, calls // 12))):
        destination = tmp_path / f"packed{number}"
        environment = {"LD_PRELOAD": str(shim), "KILL_AT": str(at), "KILL_HOW": error}
        finished = stoker_cli("pack", tmp_path / "source", destination, *options, env=environment, status=None)
        if finished.returncode == 0:
            assert at > calls * 0.9, "only what is tidied up at the end may fail unnoticed"
        else:
            assert finished.returncode == 1
            assert ("No space left on device" if error == "ENOSPC" else "Input/output error") in finished.stderr
            assert str(destination) in finished.stderr
        assert hidden_outside_index(destination) == [] if destination.exists() else True
        stoker_cli("pack", tmp_path / "source", destination, *options)
        assert differences(whole, tree(destination)) == [], f"failed at call {at} of {calls}"


def test_no_space_for_an_index(stoker_cli, small_file_system, home):
    """Beside the data there is no room: an error that says so, or the cache."""
    small = small_file_system(4 * MEGABYTE)
    write_files(small / "d", {f"k{i:05d}.txt": b"" for i in range(500)})
    (small / "filler").write_bytes(bytes(small_free(small)))
    finished = stoker_cli("index", small / "d", "--where", "beside", status=1)
    assert "space" in finished.stderr.lower()
    (small / "filler").unlink()
    stoker_cli("index", small / "d", "--where", "beside")
    assert stoker_cli("check", small / "d", "--json").json["samples"] == 500


def test_output_that_cannot_be_written(stoker_cli, tmp_path):
    """/dev/full as stdout: the result is lost, so that is no success."""
    image_folder(tmp_path / "d", per_class=2)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([program(), "check", tmp_path / "d"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
