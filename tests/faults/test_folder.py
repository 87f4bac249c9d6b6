# SPDX-License-Identifier: Apache-2.0
"""Folders with more in them than files: links, sockets, pipes, loops. Reported, never silently left out, never waited on."""

import os

import pytest
from samples import jpeg, make_socket, shards_of, write_files
from tar_bytes import all_members


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "d"
    write_files(root, {"a/x.jpg": jpeg(1), "b/y.jpg": jpeg(2)})
    return root


def named(finished) -> str:
    return " ".join(f"{fault['shard']} {fault['sample']} {fault['cause']}" for fault in finished.json["faults"])


@pytest.mark.parametrize("what", ["socket", "fifo", "device"])
def test_special_files(stoker_cli, folder, tmp_path, what):
    path = folder / "a/special.jpg"
    if what == "socket":
        make_socket(path)
    elif what == "fifo":
        os.mkfifo(path)
    elif os.geteuid() == 0:
        os.mknod(path, 0o20644, os.makedev(1, 5))  # /dev/zero: reading it to its end takes for ever
    else:
        path.symlink_to("/dev/zero")
    finished = stoker_cli("check", folder, "--json", status=1, timeout=20)
    assert finished.json["samples"] == 2
    assert "special" in named(finished)
    finished = stoker_cli("pack", folder, tmp_path / "packed", status=1, timeout=20)
    assert "special" in finished.text
    assert {name for name in all_members(shards_of(tmp_path / "packed")) if name.endswith("jpg")} == {
        "a/x.jpg",
        "b/y.jpg",
    }


def test_links_out_of_the_root(stoker_cli, folder, tmp_path):
    write_files(tmp_path / "outside", {"secret.jpg": b"secret", "dir/more.jpg": b"more"})
    (folder / "a/file.jpg").symlink_to(tmp_path / "outside/secret.jpg")
    (folder / "a/relative.jpg").symlink_to("../../outside/secret.jpg")
    (folder / "a/directory").symlink_to(tmp_path / "outside/dir")
    (folder / "linkedclass").symlink_to(tmp_path / "outside")
    finished = stoker_cli("check", folder, "--json", status=1)
    assert finished.json["samples"] == 2
    for word in ("a/file", "a/relative", "a/directory", "linkedclass"):
        assert word in named(finished)
    stoker_cli("pack", folder, tmp_path / "packed", status=1)
    assert b"secret" not in all_members(shards_of(tmp_path / "packed")).values()


def test_broken_links(stoker_cli, folder):
    (folder / "a/broken.jpg").symlink_to("nowhere.jpg")
    (folder / "a/self.jpg").symlink_to("self.jpg")
    finished = stoker_cli("check", folder, "--json", status=1)
    assert finished.json["samples"] == 2
    assert "a/broken" in named(finished) and "a/self" in named(finished)


def test_links_within_the_root_are_read_or_named(stoker_cli, folder):
    (folder / "b/again.jpg").symlink_to("../a/x.jpg")
    finished = stoker_cli("check", folder, "--json", status=None)
    assert finished.json["samples"] == 3 or "b/again" in named(finished)


def test_a_loop_of_directories_ends(stoker_cli, folder):
    (folder / "a/loop").symlink_to("..")
    finished = stoker_cli("check", folder, "--json", status=None, timeout=20)
    assert finished.returncode in (0, 1)
    assert finished.json["samples"] == 2 and "loop" in named(finished)


def test_the_root_itself_may_be_a_link(stoker_cli, folder, tmp_path):
    (tmp_path / "alias").symlink_to(folder)
    result = stoker_cli("check", tmp_path / "alias", "--json").json
    assert result["samples"] == 2 and result["faults"] == []


def test_deep_directories(stoker_cli, tmp_path):
    """Path of 20 components of 100 bytes: far beyond what tar headers hold, within what Linux allows."""
    path = "/".join(["d" * 100] * 20) + "/x.jpg"
    write_files(tmp_path / "d", {path: jpeg(1), "e/y.jpg": jpeg(2)})
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed")
    found = all_members(shards_of(tmp_path / "packed"))
    assert found[path] == jpeg(1)


def test_a_file_that_shrinks_while_it_is_packed(stoker_cli, folder, tmp_path):
    """Indexed at one size, cut before it is read: named, not padded with zeros."""
    stoker_cli("index", folder)
    (folder / "a/x.jpg").write_bytes(jpeg(1)[:10])
    finished = stoker_cli("pack", folder, tmp_path / "packed", status=None)
    found = all_members(shards_of(tmp_path / "packed")) if (tmp_path / "packed").exists() else {}
    if finished.returncode == 0:
        assert found["a/x.jpg"] == jpeg(1)[:10], "packs what is there now"
    else:
        assert "a/x" in finished.text
        assert "a/x.jpg" not in found


def test_mixed_with_other_things(stoker_cli, tmp_path):
    """A tar in a folder of pictures is one of its files, or the folder is refused: no guess that loses data."""
    write_files(tmp_path / "d", {"a.jpg": jpeg(1), "b.jpg": jpeg(2), "notes.tar": b"not a tar"})
    finished = stoker_cli("check", tmp_path / "d", "--json", status=None)
    if finished.returncode == 0:
        assert finished.json["format"] == "folder" and finished.json["samples"] == 3
    else:
        assert "notes.tar" in finished.text or "a.jpg" in finished.text
