# SPDX-License-Identifier: Apache-2.0
"""What the user may not read or write: named, with the rest done. Root would not notice, so these run as another user."""

import pytest
from samples import image_folder, shards_of, tree
from tar_bytes import all_members, simple_tar


@pytest.fixture
def folder(as_other_user):
    root = as_other_user.directory / "d"
    files = image_folder(root, per_class=3)
    return root, files


def test_unreadable_file(as_other_user, folder):
    root, files = folder
    as_other_user.give(root)
    (root / "cat/cat_001.jpg").chmod(0)
    finished = as_other_user("check", root, status=1)
    assert "cat/cat_001" in finished.text and "ermission denied" in finished.text
    destination = as_other_user.home / "packed"
    finished = as_other_user("pack", root, destination, status=1)
    assert "cat/cat_001" in finished.text and "ermission denied" in finished.text
    found = {n: d for n, d in all_members(shards_of(destination)).items() if n.endswith(".jpg")}
    assert found == {name: data for name, data in files.items() if name != "cat/cat_001.jpg"}
    as_other_user("pack", root, as_other_user.home / "packed2", "--skip-bad")


def test_unreadable_directory(as_other_user, folder):
    root, files = folder
    as_other_user.give(root)
    (root / "dog").chmod(0)
    destination = as_other_user.home / "packed"
    finished = as_other_user("pack", root, destination, status=1)
    (root / "dog").chmod(0o755)
    assert "dog" in finished.text and "ermission denied" in finished.text
    found = {n for n in all_members(shards_of(destination)) if n.endswith(".jpg")}
    assert found == {name for name in files if not name.startswith("dog/")}


def test_directory_that_can_be_listed_but_not_entered(as_other_user, folder):
    root, _ = folder
    as_other_user.give(root)
    (root / "dog").chmod(0o444)
    finished = as_other_user("check", root, status=1)
    (root / "dog").chmod(0o755)
    assert "dog" in finished.text and "ermission denied" in finished.text


def test_unreadable_root(as_other_user, folder):
    root, _ = folder
    as_other_user.give(root)
    root.chmod(0)
    for words in (["check", root], ["index", root], ["pack", root, as_other_user.home / "packed"]):
        finished = as_other_user(*words, status=1)
        assert str(root) in finished.stderr and "ermission denied" in finished.stderr
    root.chmod(0o755)
    assert not (as_other_user.home / "packed").exists()


def test_unreadable_shard(as_other_user):
    root = as_other_user.directory / "d"
    root.mkdir()
    (root / "a.tar").write_bytes(simple_tar({b"a.txt": b"1"}))
    (root / "b.tar").write_bytes(simple_tar({b"b.txt": b"2"}))
    as_other_user.give(root)
    (root / "b.tar").chmod(0)
    for words in (["check", root], ["index", root]):
        finished = as_other_user(*words, status=1)
        assert "b.tar" in finished.text and "ermission denied" in finished.text


def test_read_only_destination(as_other_user, folder):
    root, _ = folder
    shut = as_other_user.directory / "shut"
    shut.mkdir(mode=0o755)
    shut.chmod(0o555)
    for destination in (shut, shut / "packed"):
        finished = as_other_user("pack", root, destination, status=1)
        assert str(destination) in finished.stderr and "ermission denied" in finished.stderr
    assert tree(shut) == {}


def test_unreadable_index(as_other_user):
    """Somebody else's index that we may not read: said, or made anew in our cache, not a crash."""
    root = as_other_user.directory / "d"
    root.mkdir()
    (root / "a.tar").write_bytes(simple_tar({b"a.txt": b"1"}))
    as_other_user.give(root)
    as_other_user("index", root)
    (root / ".stoker").chmod(0)
    finished = as_other_user("check", root, status=None)
    (root / ".stoker").chmod(0o755)
    assert finished.returncode in (0, 1)
    if finished.returncode == 1:
        assert ".stoker" in finished.text and "ermission denied" in finished.text


def test_no_home_and_no_place_beside_the_data(as_other_user, folder):
    root, _ = folder
    root.chmod(0o555)
    nowhere = {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent/cache"}
    finished = as_other_user("index", root, status=1, env=nowhere)
    assert "/nonexistent" in finished.stderr or str(root) in finished.stderr
    # Checking needs no place of its own to write to... or says which.
    finished = as_other_user("check", root, status=None, env=nowhere)
    assert finished.returncode in (0, 1)
