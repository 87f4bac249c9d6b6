# SPDX-License-Identifier: Apache-2.0
"""`stoker check --compare`: whether two datasets hold the same."""

import shutil

import numpy as np
import pytest
from packed import flip
from samples import image_folder, jpeg, multi_file_samples, noise, npy, shards_of, write_files
from tar_bytes import BLOCK, END, member, simple_tar


@pytest.fixture
def three_forms(stoker_cli, tmp_path):
    """One dataset as folder, tar and tfrecord."""
    multi_file_samples(tmp_path / "folder", 20)
    stoker_cli("pack", tmp_path / "folder", tmp_path / "tar", "--shard-size", "20K", "--shuffle", "5")
    stoker_cli("pack", tmp_path / "folder", tmp_path / "tfrecord", "--to", "tfrecord")
    return tmp_path


def test_equal_across_formats(stoker_cli, three_forms):
    for one, other in (("folder", "tar"), ("tar", "tfrecord"), ("tfrecord", "folder")):
        finished = stoker_cli("check", three_forms / one, "--compare", three_forms / other, "--json")
        comparison = finished.json["comparison"]
        assert comparison["equal"] is True and comparison["compared"] == 20
        assert (comparison["only_here"], comparison["only_there"], comparison["different"]) == (0, 0, 0)


def change(path, how):
    if how == "content":
        (path / "left/sample0005.txt").write_bytes(b"another caption\n")
    elif how == "label":
        (path / "left/sample0005.cls").write_bytes(b"6")
    elif how == "array dtype":
        (path / "left/sample0005.npy").write_bytes(npy(np.arange(6, dtype="float64") / 3))
    elif how == "array shape":
        (path / "left/sample0005.npy").write_bytes(npy((np.arange(6, dtype="float32") / 3).reshape(2, 3)))
    elif how == "field missing":
        (path / "left/sample0005.json").unlink()
    elif how == "field more":
        (path / "left/sample0005.other").write_bytes(b"1")


@pytest.mark.parametrize("how", ["content", "label", "array dtype", "array shape", "field missing", "field more"])
@pytest.mark.parametrize("form", ["tar", "tfrecord"])
def test_one_different_sample_is_named(stoker_cli, three_forms, how, form):
    change(three_forms / "folder", how)
    finished = stoker_cli("check", three_forms / "folder", "--compare", three_forms / form, status=1)
    assert "left/sample0005" in finished.text
    comparison = stoker_cli("check", three_forms / form, "--compare", three_forms / "folder", "--json", status=1).json[
        "comparison"
    ]
    assert comparison["equal"] is False
    assert (comparison["only_here"], comparison["only_there"], comparison["different"]) == (0, 0, 1)
    assert any("left/sample0005" in each for each in comparison["examples"])
    assert stoker_cli("check", three_forms / form, "--compare", three_forms / "folder", "--ignore-keys", status=1)


def test_more_and_fewer_samples(stoker_cli, three_forms):
    for path in (three_forms / "folder/right").glob("sample0004.*"):
        path.unlink()
    write_files(three_forms / "folder", {"right/another.txt": b"1", "right/yet.txt": b"2"})
    comparison = stoker_cli("check", three_forms / "folder", "--compare", three_forms / "tar", "--json", status=1).json[
        "comparison"
    ]
    assert (comparison["only_here"], comparison["only_there"], comparison["different"]) == (2, 1, 0)
    finished = stoker_cli("check", three_forms / "folder", "--compare", three_forms / "tar", status=1)
    for key in ("right/sample0004", "right/another", "right/yet"):
        assert key in finished.text


def test_same_text_written_differently_is_equal(stoker_cli, tmp_path):
    """Values are compared, not their spelling."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/x.tar").write_bytes(simple_tar({b"k.cls": b"7", b"k.jpg": b"x"}))
    (tmp_path / "b/x.tar").write_bytes(simple_tar({b"k.cls": b" 007\n", b"k.jpg": b"x"}))
    stoker_cli("check", tmp_path / "a", "--compare", tmp_path / "b")


def test_ignore_keys(stoker_cli, tmp_path):
    for name, keys in (("a", "xyz"), ("b", "pqr"), ("c", "pqr")):
        (tmp_path / name).mkdir()
        data = [b"1", b"2", b"2"] if name != "c" else [b"1", b"1", b"2"]
        (tmp_path / name / "d.tar").write_bytes(
            simple_tar({f"{key}.jpg".encode(): each for key, each in zip(keys, data, strict=True)})
        )
    stoker_cli("check", tmp_path / "a", "--compare", tmp_path / "b", status=1)
    stoker_cli("check", tmp_path / "a", "--compare", tmp_path / "b", "--ignore-keys")
    # As multisets: one 1 and two 2 are not two 1 and one 2.
    stoker_cli("check", tmp_path / "a", "--compare", tmp_path / "c", "--ignore-keys", status=1)


def test_a_dataset_equals_itself_shuffled_and_resharded(stoker_cli, three_forms):
    stoker_cli("pack", three_forms / "tar", three_forms / "again", "--shuffle", "99", "--shard-size", "7K")
    stoker_cli("check", three_forms / "again", "--compare", three_forms / "tar")


def test_compare_really_reads_the_bytes(stoker_cli, packed):
    """A stale index must not make two datasets look equal."""
    copy = packed.parent / "copy"
    shutil.copytree(packed, copy)
    stoker_cli("check", packed, "--compare", copy)
    flip(shards_of(copy)[0], BLOCK + 1)
    finished = stoker_cli("check", packed, "--compare", copy, status=1)
    assert shards_of(copy)[0].name in finished.text or "cat/cat_000" in finished.text


def test_images_are_compared_byte_by_byte(stoker_cli, tmp_path):
    write_files(tmp_path / "a", {"x.jpg": jpeg(1)})
    write_files(tmp_path / "b", {"x.jpeg": jpeg(1)})
    write_files(tmp_path / "c", {"x.jpg": jpeg(1) + b"\0"})
    stoker_cli("check", tmp_path / "a", "--compare", tmp_path / "b")
    stoker_cli("check", tmp_path / "a", "--compare", tmp_path / "c", status=1)


# --- Comparing with a dataset that is not as its index says ------------------------------------------------


def test_compare_reads_numbers_from_their_bytes(stoker_cli, packed):
    """A number lies in the index as well, but the bytes of the shard are what others read."""
    copy = packed.parent / "copy"
    shutil.copytree(packed, copy)
    shard = shards_of(copy)[0]
    header = shard.read_bytes().index(b".cls\0")
    header -= header % BLOCK
    flip(shard, header + BLOCK)
    for options in ([], ["--ignore-keys"]):
        finished = stoker_cli("check", packed, "--compare", copy, *options, status=1)
        assert "same samples" not in finished.text
        assert "in the second: " + shard.name in finished.text and "label" in finished.text


def test_compare_with_files_that_nobody_indexed(stoker_cli, packed, tmp_path):
    copy = packed.parent / "copy"
    shutil.copytree(packed, copy)
    (copy / "zzz-000000.tar").write_bytes(simple_tar({b"more.jpg": b"1"}))
    finished = stoker_cli("check", packed, "--compare", copy, status=1)
    assert f"{copy}/zzz-000000.tar: is not in the index" in finished.text
    assert "same samples" not in finished.text
    result = stoker_cli("check", packed, "--compare", copy, "--json", status=1).json
    assert result["comparison"]["equal"] is False and result["comparison"]["examples"]
    image_folder(tmp_path / "folder", per_class=3)
    image_folder(tmp_path / "other", per_class=3)
    stoker_cli("index", tmp_path / "other", "--full")
    stoker_cli("check", tmp_path / "folder", "--compare", tmp_path / "other")
    write_files(tmp_path / "other", {"cat/cat_001.json": b"{}"})
    finished = stoker_cli("check", tmp_path / "folder", "--compare", tmp_path / "other", status=1)
    assert f"{tmp_path}/other/cat/cat_001.json: is not in the index" in finished.text


@pytest.mark.parametrize("depth", [None, [], ["--full"]])
def test_compare_with_a_truncated_shard(stoker_cli, tmp_path, depth):
    """What could not be taken in when it was indexed may differ: nothing is proven."""
    members = {f"k{i}.jpg".encode(): noise(i, 700) for i in range(4)}
    whole = simple_tar(members)
    for name, contents in (
        ("a", simple_tar(dict(list(members.items())[:3]))),
        ("b", whole[: 3 * 3 * BLOCK + BLOCK + 9]),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.tar").write_bytes(contents)
    if depth is not None:
        stoker_cli("index", tmp_path / "b", *depth, status=None)
    finished = stoker_cli("check", tmp_path / "a", "--compare", tmp_path / "b", status=1)
    assert f"{tmp_path}/b/x.tar" in finished.text and "same samples" not in finished.text
    single = stoker_cli("check", tmp_path / "a", "--compare", tmp_path / "b/x.tar", status=1)
    assert f"{tmp_path}/b/x.tar: offset" in single.text


def test_compare_with_a_shard_that_changed(stoker_cli, packed):
    copy = packed.parent / "copy"
    shutil.copytree(packed, copy)
    shard = shards_of(copy)[1]
    shard.unlink()
    finished = stoker_cli("check", packed, "--compare", copy, status=1)
    assert f"{shard}: is missing" in finished.text


def test_compare_with_duplicate_keys(stoker_cli, tmp_path):
    for name, contents in (
        ("once", member(b"one.jpg", b"1") + member(b"two.jpg", b"2")),
        ("twice", member(b"one.jpg", b"1") + member(b"two.jpg", b"2") + member(b"one.jpg", b"1")),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.tar").write_bytes(contents + END)
    for here, there, counts in (("once", "twice", (0, 1, 0)), ("twice", "once", (1, 0, 0))):
        words = ("check", tmp_path / here, "--compare", tmp_path / there)
        comparison = stoker_cli(*words, "--json", status=1).json["comparison"]
        assert comparison["equal"] is False
        assert (comparison["only_here"], comparison["only_there"], comparison["different"]) == counts
        (why,) = comparison["examples"]
        assert "'one' is more than once" in why and "duplicate key" in why
        assert why in stoker_cli(*words, status=1).text


def test_compare_holds_few_large_samples_at_once(stoker_cli, tmp_path):
    """32 samples of 12 MiB on each side: far from all of them fit into memory."""
    for name in "ab":
        (tmp_path / name).mkdir()
        for i in range(32):
            with open(tmp_path / name / f"{i:02d}.bin", "wb") as file:
                file.write(b"%d" % i)
                file.truncate(12 << 20)
    for options in ([], ["--ignore-keys"]):
        stoker_cli("check", tmp_path / "a", "--compare", tmp_path / "b", "--quick", "-j1", *options, memory=256 << 20)


def test_list_belongs_to_the_dataset_that_is_checked(stoker_cli, packed, tmp_path):
    keys = sorted(path.relative_to(tmp_path / "source") for path in (tmp_path / "source").glob("*/*.jpg"))
    (tmp_path / "list.csv").write_text("path\n" + "".join(f"{key}\n" for key in keys))
    finished = stoker_cli("check", packed, "--compare", tmp_path / "source", "--list", tmp_path / "list.csv", status=1)
    assert f"the list is for {packed}, not for {tmp_path}/source" in finished.stderr
