# SPDX-License-Identifier: Apache-2.0
"""`stoker pack` into a directory that holds a pack already: nothing old may pass for new."""

import os
import shutil
import subprocess

import pytest
from samples import image_folder, shards_of, tree, write_files
from stoker_program import program
from tar_bytes import all_members, member, simple_tar

SPLIT = ("--split", "train=0.8,val=0.2")


def texts(directory, count, word):
    write_files(directory, {f"{i:03d}.txt": f"{word} {i:03d}".encode() for i in range(count)})
    return directory


@pytest.mark.parametrize(
    "again",
    [
        ("other", *SPLIT),
        ("source", *SPLIT, "--shuffle", "7"),
        ("source", "--split", "train=0.5,test=0.5"),
        ("other",),
    ],
    ids=["another source", "another order", "other splits", "no split"],
)
def test_finished_splits_are_never_taken_for_those_of_another_pack(stoker_cli, tmp_path, again):
    texts(tmp_path / "source", 30, "old")
    texts(tmp_path / "other", 30, "new")
    stoker_cli("pack", tmp_path / "source", tmp_path / "out", *SPLIT)
    before = tree(tmp_path / "out")
    refused = stoker_cli("pack", tmp_path / again[0], tmp_path / "out", *again[1:], status=2)
    assert "--overwrite" in refused.stderr
    assert tree(tmp_path / "out") == before
    stoker_cli("pack", tmp_path / again[0], tmp_path / "out", *again[1:], "--overwrite")
    stoker_cli("pack", tmp_path / again[0], tmp_path / "fresh", *again[1:])
    assert tree(tmp_path / "out") == tree(tmp_path / "fresh")


def test_source_modified_after_the_pack_is_not_already_packed(stoker_cli, tmp_path):
    texts(tmp_path / "source", 5, "old")
    stoker_cli("pack", tmp_path / "source", tmp_path / "out")
    assert "already packed" in stoker_cli("pack", tmp_path / "source", tmp_path / "out").stdout
    changed = tmp_path / "source/003.txt"
    changed.write_bytes(b"new 003")
    later = os.stat(tmp_path / "out/.stoker/manifest.json").st_mtime_ns + 10**9
    os.utime(changed, ns=(later, later))
    refused = stoker_cli("pack", tmp_path / "source", tmp_path / "out", status=2)
    assert "modified after" in refused.stderr and "--compare" in refused.stderr
    stoker_cli("pack", tmp_path / "source", tmp_path / "out", "--overwrite")
    assert all_members(shards_of(tmp_path / "out"))["003.txt"] == b"new 003"


def test_good_sample_is_kept_when_a_damaged_one_elsewhere_has_its_key(stoker_cli, tmp_path):
    link = member(b"k.jpg", b"", kind=b"2", link=b"elsewhere")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.tar").write_bytes(simple_tar({b"k.jpg": b"good", b"l.jpg": b"2"}))
    (tmp_path / "d/b.tar").write_bytes(link + simple_tar({b"m.jpg": b"3"}))
    result = stoker_cli("pack", tmp_path / "d", tmp_path / "out", "--skip-bad", "--json").json
    assert result["samples"] == 3 and [fault["shard"] for fault in result["left_out"]] == ["b.tar"]
    assert all_members(shards_of(tmp_path / "out")) == {"k.jpg": b"good", "l.jpg": b"2", "m.jpg": b"3"}


def kill_in_the_middle(source, destination, stoker_environment, *options):
    """Begins a pack and kills it behind its second shard; false where it was done before."""
    process = subprocess.Popen(
        [program(), "pack", source, destination, "--shard-size", "30K", "-j", "1", *options],
        env=stoker_environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None:
        plan = (destination / ".stoker/pack/plan.json").exists()
        segments = list((destination / ".stoker").glob("*.seg")) if plan else []
        if len(segments) >= 2:
            process.kill()
            process.wait()
            return True
    return False


def test_overwrite_goes_on_after_a_kill(stoker_cli, stoker_environment, tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    image_folder(source, per_class=400)
    assert any(
        kill_in_the_middle(source, out, stoker_environment, "--overwrite") or shutil.rmtree(out) for _ in range(20)
    )
    result = stoker_cli("pack", source, out, "--shard-size", "30K", "--overwrite", "--json").json
    assert result["shards_reused"] >= 1
    stoker_cli("pack", source, tmp_path / "fresh", "--shard-size", "30K")
    assert tree(out) == tree(tmp_path / "fresh")


@pytest.mark.parametrize("what", ["plan.json", "source/manifest.json"])
def test_damaged_plan_says_what_to_do(stoker_cli, stoker_environment, tmp_path, what):
    source, out = tmp_path / "source", tmp_path / "out"
    image_folder(source, per_class=400)
    assert any(kill_in_the_middle(source, out, stoker_environment) or shutil.rmtree(out) for _ in range(20))
    damaged = out / ".stoker/pack" / what
    damaged.write_bytes(b"{") if what == "plan.json" else damaged.unlink()
    for options in [(), ("--overwrite",)]:
        refused = stoker_cli("pack", source, out, "--shard-size", "30K", *options, status=1)
        assert "is damaged" in refused.stderr and "remove the destination and run again" in refused.stderr


def test_damaged_manifest_says_what_to_do(stoker_cli, tmp_path):
    texts(tmp_path / "source", 5, "old")
    stoker_cli("pack", tmp_path / "source", tmp_path / "out")
    (tmp_path / "out/.stoker/manifest.json").write_bytes(b"x")
    refused = stoker_cli("pack", tmp_path / "source", tmp_path / "out", "--overwrite", status=1)
    assert "choose another directory, or remove this one" in refused.stderr


def test_full_index_of_a_pack_keeps_what_pack_knows(stoker_cli, tmp_path):
    texts(tmp_path / "100%", 5, "old")
    stoker_cli("pack", tmp_path / "100%", tmp_path / "out")
    before = tree(tmp_path / "out")
    for options in [(), ("--full",)]:
        stoker_cli("index", tmp_path / "out", *options)
        assert tree(tmp_path / "out") == before
    assert "already packed" in stoker_cli("pack", tmp_path / "100%", tmp_path / "out").stdout


def test_long_names_of_sources_and_splits(stoker_cli, tmp_path):
    source = texts(tmp_path / ("ü" * 120), 3, "old")
    stoker_cli("pack", source, tmp_path / "out")
    assert [len(path.name.encode()) <= 255 for path in shards_of(tmp_path / "out")] == [True]
    stoker_cli("check", tmp_path / "out")
    refused = stoker_cli("pack", source, tmp_path / "b", "--split", f"{'s' * 200}=1", status=2)
    assert "too long" in refused.stderr
    assert "UTF-8" in stoker_cli("pack", source, tmp_path / "b", "--split", b"\xff=1", status=2).stderr
    assert not (tmp_path / "b").exists()


def test_files_beside_shards_are_counted(stoker_cli, tmp_path):
    write_files(tmp_path / "d", {"x.tar": simple_tar({b"a.jpg": b"1"}), "photo.png": b"2", "labels.csv": b"3"})
    finished = stoker_cli("pack", tmp_path / "d", tmp_path / "out")
    assert "2 files next to the shards" in finished.stdout
    assert stoker_cli("index", tmp_path / "d", "--json").json["unlisted"] == 2
