# SPDX-License-Identifier: Apache-2.0
"""`stoker index`: random access for a dataset as it is, at two depths, beside the data or in the cache."""

import os
import shutil
import stat

import pytest
from samples import differences, image_folder, multi_file_samples, noise, tree, write_files
from tar_bytes import END, member, simple_tar
from tfrecord_bytes import example, record


@pytest.fixture
def shards(tmp_path):
    """Four tars with 40 samples of two files each."""
    directory = tmp_path / "shards"
    directory.mkdir()
    for number in range(4):
        files = {}
        for i in range(10 * number, 10 * number + 10):
            files[b"k%03d.jpg" % i] = noise(i, 50 * i + 1)
            files[b"k%03d.cls" % i] = b"%d" % (i % 3)
        (directory / f"part-{number}.tar").write_bytes(simple_tar(files))
    return directory


def index_tree(directory):
    return tree(directory / ".stoker")


def test_index_lies_beside_the_data(stoker_cli, shards):
    before = tree(shards)
    result = stoker_cli("index", shards, "--json").json
    assert result["samples"] == 40 and result["shards"] == 4 and result["format"] == "tar"
    assert result["depth"] == "structure" and result["faults"] == []
    assert result["directory"] == str(shards / ".stoker")
    assert (shards / ".stoker/manifest.json").is_file()
    after = {name: data for name, data in tree(shards).items() if not name.startswith(b".stoker")}
    assert differences(before, after) == [], "the data itself is not touched"


def test_says_what_it_did(stoker_cli, shards):
    finished = stoker_cli("index", shards)
    for word in ("40 samples", "4 tar shards", "structure", str(shards / ".stoker")):
        assert word in finished.stdout, word
    assert "full" in stoker_cli("index", shards, "--full").stdout


@pytest.mark.parametrize("depth", [[], ["--full"]])
@pytest.mark.parametrize("kind", ["tar", "folder", "tfrecord"])
def test_jobs_do_not_change_a_byte(stoker_cli, tmp_path, kind, depth):
    source = tmp_path / "source"
    if kind == "folder":
        multi_file_samples(source, 30)
    elif kind == "tar":
        source.mkdir()
        for number in range(6):
            (source / f"{number}.tar").write_bytes(
                simple_tar({b"%d_%d.bin" % (number, i): noise(i, i) for i in range(20)})
            )
    else:
        source.mkdir()
        for number in range(6):
            data = b"".join(record(example({"x": [noise(i, i)], "n": [i]})) for i in range(20))
            (source / f"d-{number:05d}-of-00006").write_bytes(data)
    found = []
    for jobs in ("1", "2", "5"):
        stoker_cli("index", source, "--jobs", jobs, *depth)
        found.append(index_tree(source))
        shutil.rmtree(source / ".stoker")
    assert found[0]
    assert differences(found[0], found[1]) == [] and differences(found[0], found[2]) == []


def test_run_again_reuses_what_is_unchanged(stoker_cli, shards):
    stoker_cli("index", shards, "--full")
    before = index_tree(shards)
    result = stoker_cli("index", shards, "--full", "--json").json
    assert result["segments_reused"] == 4
    assert differences(before, index_tree(shards)) == []


def test_changed_shard_is_indexed_anew(stoker_cli, shards):
    stoker_cli("index", shards, "--full")
    (shards / "part-2.tar").write_bytes(simple_tar({b"new.jpg": b"other", b"k020.jpg": b"x"}))
    result = stoker_cli("index", shards, "--full", "--json").json
    assert result["samples"] == 32 and result["segments_reused"] == 3
    stoker_cli("check", shards)


def test_shard_with_other_bytes_and_the_same_size_is_indexed_anew(stoker_cli, shards):
    stoker_cli("index", shards, "--full")
    path = shards / "part-2.tar"
    contents = bytearray(path.read_bytes())
    contents[512] ^= 0xFF
    path.write_bytes(contents)
    os.utime(path, ns=(1, 1_000_000_000_000_000_000))
    stoker_cli("index", shards, "--full")
    stoker_cli("check", shards)


def test_added_and_removed_shards(stoker_cli, shards):
    stoker_cli("index", shards)
    (shards / "part-3.tar").unlink()
    (shards / "other.tar").write_bytes(simple_tar({b"z.jpg": b"z"}))
    result = stoker_cli("index", shards, "--json").json
    assert result["samples"] == 31 and result["shards"] == 4
    # What described the removed shard goes too.
    fresh = index_tree(shards)
    shutil.rmtree(shards / ".stoker")
    stoker_cli("index", shards)
    assert differences(fresh, index_tree(shards)) == []


def test_missing_number_is_named(stoker_cli, shards):
    (shards / "part-1.tar").unlink()
    finished = stoker_cli("index", shards, status=1)
    assert "part-1.tar" in finished.text


def test_structure_then_full(stoker_cli, shards):
    stoker_cli("index", shards)
    result = stoker_cli("index", shards, "--full", "--json").json
    assert result["depth"] == "full"
    upgraded = index_tree(shards)
    shutil.rmtree(shards / ".stoker")
    stoker_cli("index", shards, "--full")
    assert differences(upgraded, index_tree(shards)) == []


def test_where_cache(stoker_cli, shards, home):
    before = tree(shards)
    result = stoker_cli("index", shards, "--where", "cache", "--json").json
    assert result["directory"].startswith(str(home / ".cache"))
    assert result["in_cache"] is True
    assert differences(before, tree(shards)) == []
    check = stoker_cli("check", shards, "--json").json
    assert check["index"]["directory"] == result["directory"]


def test_single_file(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.tar").write_bytes(simple_tar({b"a.jpg": b"a"}))
    (tmp_path / "d/y.tar").write_bytes(simple_tar({b"b.jpg": b"b", b"c.jpg": b"c"}))
    assert stoker_cli("index", tmp_path / "d/x.tar", "--json").json["samples"] == 1
    assert (tmp_path / "d/.stoker/x.tar/manifest.json").is_file()
    assert stoker_cli("index", tmp_path / "d", "--json").json["samples"] == 3


def test_data_that_cannot_be_written_is_indexed_in_the_cache(as_other_user):
    shared = as_other_user.directory / "shared"
    image_folder(shared)
    shared.chmod(0o555)
    result = as_other_user("index", shared, "--json").json
    assert result["directory"].startswith(str(as_other_user.home))
    assert result["samples"] == 36
    finished = as_other_user("index", shared)
    assert str(as_other_user.home) in finished.stdout, "says where"
    as_other_user("index", shared, "--where", "beside", status=1)
    assert as_other_user("check", shared, "--json").json["samples"] == 36


def test_index_is_readable_by_those_who_can_read_the_data(stoker_cli, shards):
    shards.chmod(0o750)
    for path in shards.iterdir():
        path.chmod(0o640)
    old = os.umask(0o077)
    try:
        stoker_cli("index", shards)
    finally:
        os.umask(old)
    for path in [shards / ".stoker", *(shards / ".stoker").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & stat.S_IRGRP, path
        assert not mode & stat.S_IROTH, path
        assert not path.is_dir() or mode & stat.S_IXGRP, path


def test_hidden_and_own_files_are_not_samples(stoker_cli, tmp_path):
    write_files(tmp_path / "d", {"a.jpg": b"1", ".hidden.jpg": b"2"})
    assert stoker_cli("index", tmp_path / "d", "--json").json["samples"] == 1
    again = stoker_cli("index", tmp_path / "d", "--json").json
    assert again["samples"] == 1, "the index is not part of the data"


def test_faults_are_named(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    contents = bytearray(simple_tar({b"a.jpg": b"1", b"b.jpg": b"2", b"c.jpg": b"3"}))
    contents[1024 + 5] ^= 1
    (tmp_path / "d/x.tar").write_bytes(contents)
    finished = stoker_cli("index", tmp_path / "d", status=1)
    assert "x.tar" in finished.text and "1024" in finished.text and "checksum" in finished.text


def test_empty_folder(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    finished = stoker_cli("index", tmp_path / "d", status=1)
    assert str(tmp_path / "d") in finished.stderr
    assert tree(tmp_path / "d") == {}


def test_a_tar_without_members_has_no_samples(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.tar").write_bytes(END)
    (tmp_path / "d/y.tar").write_bytes(member(b"a.jpg", b"1") + END)
    result = stoker_cli("index", tmp_path / "d", "--json").json
    assert result["samples"] == 1 and result["shards"] == 2
