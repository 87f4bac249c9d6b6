# SPDX-License-Identifier: Apache-2.0
"""Names that somebody chose with care: kept exactly where they are harmless, refused by name where they are not."""

import os
import subprocess

import pytest
from samples import noise, shards_of, tree, write_files
from tar_bytes import END, all_members, header, member, pax
from tfrecord_bytes import example, record

UNSAFE = {
    "absolute": member(b"/tmp/stoker-evil.txt", b"x"),
    "absolute in pax": pax({b"path": b"/tmp/stoker-evil.txt"}) + member(b"fine.txt", b"x"),
    "absolute GNU long name": member(b"././@LongLink", b"/tmp/stoker-evil.txt\0", kind=b"L") + member(b"x", b"x"),
    "up at the front": member(b"../evil.txt", b"x"),
    "up in the middle": member(b"a/../../evil.txt", b"x"),
    "up at the end": member(b"a/..", b"x"),
    "up in pax": pax({b"path": b"a/../../evil.txt"}) + member(b"fine.txt", b"x"),
    "up through the prefix": header(b"evil.txt", 1, prefix=b"../..") + b"x".ljust(512, b"\0"),
    "NUL in pax": pax({b"path": b"evil\0.txt"}) + member(b"fine.txt", b"x"),
    "empty": member(b"", b"x"),
    "empty in pax": pax({b"path": b""}) + member(b"", b"x"),
}


@pytest.mark.parametrize("what", UNSAFE)
def test_unsafe_names_in_a_tar(stoker_cli, tmp_path, what):
    (tmp_path / "d").mkdir()
    before = member(b"before.txt", b"1")
    (tmp_path / "d/x.tar").write_bytes(before + UNSAFE[what] + member(b"behind.txt", b"2") + END)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert result["samples"] == 2
    (fault,) = result["faults"]
    assert fault["shard"] == "x.tar"
    assert len(before) <= fault["offset"] < len(before) + len(UNSAFE[what])
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed", status=1)
    assert all_members(shards_of(tmp_path / "packed")) == {"before.txt": b"1", "behind.txt": b"2"}
    assert sorted(os.listdir(tmp_path)) == ["d", "home", "packed"]
    assert not os.path.exists("/tmp/stoker-evil.txt")


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"6", b"7", b"Z"])
def test_members_that_are_no_files(stoker_cli, tmp_path, kind):
    """Links, devices, pipes: no bytes of their own. (7 is a contiguous file, which may also be read as a plain one.)"""
    (tmp_path / "d").mkdir()
    special = header(b"special.txt", 0, kind=kind, link=b"before.txt")
    (tmp_path / "d/x.tar").write_bytes(member(b"before.txt", b"1") + special + member(b"behind.txt", b"2") + END)
    finished = stoker_cli("check", tmp_path / "d", "--json", status=None)
    if kind == b"7" and finished.returncode == 0:
        assert finished.json["samples"] == 3
        return
    assert finished.returncode == 1 and finished.json["samples"] == 2
    assert [fault["offset"] for fault in finished.json["faults"]] == [1024]


def test_directories_are_passed_over(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    contents = header(b"dir/", 0, kind=b"5") + member(b"dir/a.txt", b"1") + header(b"old/", 0) + END
    (tmp_path / "d/x.tar").write_bytes(contents)
    assert stoker_cli("check", tmp_path / "d", "--json").json["samples"] == 1


HARMLESS = [
    b"new\nline", b"carriage\rreturn", b"tab\tulator", b"escape\x1b[31mred", b"bell\x07", b"del\x7f",
    b"not utf8 \xff\xfe", b"latin1 \xe9", b"overlong \xc0\xaf", b"surrogate \xed\xa0\x80", b"cut off \xe4\xb8",
    "umlaut ü".encode(), "emoji \U0001f600".encode(), "right to left \u202e".encode(), "combining e\u0301".encode(),
    b" leading space", b"trailing space ", b"quote'\"`$(touch evil)", b"back\\slash", b"star*?[x]", b"percent%2F%00",
    b"-rf", b"--help", b"colon:", b"semi;colon", b"pipe|", b"hash#", b"~", b"a" * 200, b"equals=", b"comma,",
]  # fmt: skip


@pytest.mark.parametrize("form", ["tar", "tfrecord"])
def test_harmless_names_are_kept_exactly(stoker_cli, tmp_path, form):
    files = {name + b".bin": noise(i, 20) for i, name in enumerate(HARMLESS)}
    files.update({b"dir " + name + b"/x.bin": noise(i, 21) for i, name in enumerate(HARMLESS)})
    write_files(tmp_path / "d", files)
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed", "--to", form, "--shard-size", "9K")
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "d")
    import stoker

    dataset = stoker.open(tmp_path / "packed")
    found = {os.fsencode(key): sample["bin"] for key, sample in zip(dataset.keys(), dataset, strict=True)}
    assert found == {name.removesuffix(b".bin"): data for name, data in files.items()}
    for key in found:
        assert dataset[key]["bin"] == dataset[os.fsdecode(key)]["bin"] == found[key]


def test_300_byte_names(stoker_cli, tmp_path):
    """Longer than ustar can hold: in a folder as a path, in a tar also as one component."""
    path = b"/".join([b"p" * 99, b"q" * 100, b"r" * 95 + b".bin"])
    assert len(path) == 300
    write_files(tmp_path / "d", {path: b"1", b"s" * 251 + b".bin": b"2"})
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed")
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "d")
    name = b"t" * 296 + b".bin"
    (tmp_path / "tars").mkdir()
    (tmp_path / "tars/pax.tar").write_bytes(pax({b"path": name}) + member(b"x", b"3") + END)
    (tmp_path / "tars/gnu.tar").write_bytes(
        member(b"././@LongLink", b"u" + name + b"\0", kind=b"L") + member(b"x", b"4") + END
    )
    stoker_cli("pack", tmp_path / "tars", tmp_path / "again", "--to", "tfrecord")
    stoker_cli("pack", tmp_path / "again", tmp_path / "back")
    assert all_members(shards_of(tmp_path / "back")) == {name.decode(): b"3", "u" + name.decode(): b"4"}


def test_messages_are_safe_to_print(stoker_cli, tmp_path):
    """A name must not take over the terminal, nor fake a second line of output."""
    (tmp_path / "d").mkdir()
    hostile = b"\x1b[2Jcleared\nall is well\r\x07\xff.txt"
    contents = pax({b"path": hostile}) + member(b"x", b"1") + pax({b"path": b"/" + hostile}) + member(b"x", b"2")
    contents += pax({b"path": hostile}) + member(b"x", b"3")
    (tmp_path / "d/x.tar").write_bytes(contents + END)
    for words in (["check"], ["check", "--json"], ["index"], ["pack", "--json"], ["pack"]):
        where = [tmp_path / f"packed{len(words)}"] if words[0] == "pack" else []
        finished = stoker_cli(words[0], tmp_path / "d", *where, *words[1:], status=1)
        for character in "\x1b\r\x07":
            assert character not in finished.text
        assert "\nall is well" not in finished.text
        finished.text.encode("utf-8")  # no stray bytes
        assert "cleared" in finished.text
        if "--json" in words:
            assert finished.json


def test_hostile_file_names_of_shards(stoker_cli, tmp_path):
    names = [b"new\nline.tar", b"\xff\xfe.tar", b"-x.tar", b"$(touch evil).tar", b"\x1b[31m.tar"]
    for i, name in enumerate(names):
        write_files(tmp_path / "d", {name: member(b"k%d.txt" % i, b"1") + END})
    stoker_cli("index", tmp_path / "d", "--full")
    assert stoker_cli("check", tmp_path / "d", "--json").json["samples"] == 5
    write_files(tmp_path / "d", {name: b"broken" for name in names})
    finished = stoker_cli("check", tmp_path / "d", status=1)
    assert "\x1b" not in finished.text
    finished.text.encode("utf-8")


def test_keys_that_collide_in_another_format(stoker_cli, tmp_path):
    """A tfrecord key may hold what no file name can: it must survive, or be named, when written as tar."""
    (tmp_path / "d").mkdir()
    keys = [b"with.dot", b"/absolute", b"../up", b"", b"a/../b", b"nul\0", b"plain", b".hidden", b"a//b", b"trailing/"]
    data = b"".join(record(example({"__key__": [key], "x": [b"%d" % i]})) for i, key in enumerate(keys))
    (tmp_path / "d/x.tfrecord").write_bytes(data)
    finished = stoker_cli("pack", tmp_path / "d", tmp_path / "packed", "--json", status=None)
    result = finished.json
    assert result["samples"] + len(result["left_out"]) >= len(keys), "nothing silently lost"
    out = tmp_path / "out"
    out.mkdir()
    for shard in shards_of(tmp_path / "packed"):
        done = subprocess.run(["tar", "-xf", shard, "-C", out], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == ""
    assert sum(name.endswith(b".x") for name in tree(out)) == result["samples"]
    reread = stoker_cli("check", tmp_path / "packed", "--json").json
    assert reread["samples"] == result["samples"]
    if finished.returncode == 0:
        stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "d")
