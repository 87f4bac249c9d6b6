# SPDX-License-Identifier: Apache-2.0
"""Single wrong bits: in headers, lengths, data and in the index itself. Named, never believed, never a crash."""

import json
import random
import subprocess
import sys

import pytest
from samples import image_folder, multi_file_samples, noise, shards_of, tree
from tar_bytes import BLOCK, END, member, simple_tar
from tfrecord_bytes import example, record

# --- In the data ---------------------------------------------------------------------------------------


def test_every_bit_of_a_tar_header(stoker_cli, tmp_path):
    """A shard per byte of one header, one bit flipped in each: a fault per shard, and the sample behind it is found."""
    (tmp_path / "d").mkdir()
    for at in range(BLOCK):
        contents = bytearray(member(b"a%d.txt" % at, b"data") + member(b"b%d.txt" % at, b"data") + END)
        contents[at] ^= 1 << at % 8
        (tmp_path / f"d/{at:03d}.tar").write_bytes(contents)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    named = {fault["shard"]: fault for fault in result["faults"]}
    missed = [at for at in range(BLOCK) if f"{at:03d}.tar" not in named]
    # In the checksum itself a leading zero may become a space, and what ends it says nothing: the same number.
    assert set(missed) <= {148, 154, 155}
    assert all(fault["offset"] == 0 for fault in named.values())
    assert all("checksum" in fault["cause"] for at, fault in named.items() if not 148 <= int(at[:3]) <= 155)


def test_goes_on_behind_a_bad_tar_header(stoker_cli, tmp_path):
    contents = bytearray(simple_tar({b"a.txt": b"1", b"b.txt": b"2", b"c.txt": b"3"}))
    contents[2 * BLOCK] ^= 0x20
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.tar").write_bytes(contents)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert result["samples"] == 2
    assert [fault["offset"] for fault in result["faults"]] == [2 * BLOCK]


def test_every_bit_of_a_record(stoker_cli, tmp_path):
    """Length, its checksum, the data and its checksum are all covered: no flip goes unseen."""
    data = [record(example({"x": [noise(i, 9)], "n": [i]})) for i in range(3)]
    (tmp_path / "d").mkdir()
    size = len(data[0])
    for at in range(size):
        contents = bytearray(b"".join(data))
        contents[size + at] ^= 1 << at % 8
        (tmp_path / f"d/{at:03d}.tfrecord").write_bytes(contents)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    named = {fault["shard"]: fault for fault in result["faults"]}
    assert sorted(named) == [f"{at:03d}.tfrecord" for at in range(size)]
    assert all(size <= fault["offset"] < 2 * size for fault in named.values())
    # A record with bad data is skipped; behind a bad length the next record cannot be found.
    bad_data = size - 12
    assert 2 * bad_data + 12 <= result["samples"] <= 3 * size - 12


@pytest.mark.parametrize("form", ["tar", "tfrecord"])
def test_any_bit_of_a_packed_shard(stoker_cli, tmp_path, form):
    """A full index knows every byte of a shard: 60 random bits, one at a time."""
    multi_file_samples(tmp_path / "source", 4)
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--to", form)
    (shard,) = shards_of(tmp_path / "packed")
    good = shard.read_bytes()
    stoker_cli("check", tmp_path / "packed")
    for seed in range(60):
        contents = bytearray(good)
        bit = random.Random(seed).randrange(8 * len(good))
        contents[bit // 8] ^= 1 << bit % 8
        shard.write_bytes(contents)
        result = stoker_cli("check", tmp_path / "packed", "--json", status=1).json
        assert {fault["shard"] for fault in result["faults"]} == {shard.name}, f"bit {bit}"
    shard.write_bytes(good)
    stoker_cli("check", tmp_path / "packed")


def test_flipped_bit_is_an_error_when_read(stoker_cli, tmp_path):
    import stoker

    image_folder(tmp_path / "source", per_class=4)
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed")
    (shard,) = shards_of(tmp_path / "packed")
    contents = bytearray(shard.read_bytes())
    contents[BLOCK] ^= 1
    shard.write_bytes(contents)
    dataset = stoker.open(tmp_path / "packed")
    with pytest.raises(stoker.CorruptError) as caught:
        dataset[0]
    for word in (shard.name, "cat/cat_000", "image", "512"):
        assert word in str(caught.value)
    assert dataset[1]["label"] == 0, "the others can still be read"


# --- In the index ----------------------------------------------------------------------------------------

# Runs apart, so that a crash is a failure of the test and not of pytest. For every change of a file: opens the dataset
# and reads all of it. Either that raises an error which names `stoker index`, or what was read is right.
READ_WITH_CHANGES = """
import json, os, sys, warnings
import numpy, stoker
warnings.simplefilter("ignore")
dataset, file, changes = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

def read():
    opened = stoker.open(dataset)
    keys = list(opened.keys())
    samples = [{n: v.tobytes() if isinstance(v, numpy.ndarray) else v for n, v in s.items()} for s in opened]
    found = [opened.index_of(key) for key in keys]
    shards = [(s.path, s.size) for s in opened.shards]
    return keys, samples, found, shards, list(opened.fields)

expected = read()
with open(file, "rb") as stream:
    good = stream.read()
outcome = {"raised": 0, "right": 0, "wrong": []}
for change in changes:
    contents = bytearray(good)
    if change[0] == "flip":
        contents[change[1]] ^= change[2]
    elif change[0] == "cut":
        del contents[change[1]:]
    elif change[0] == "zero":
        contents[change[1]:change[1] + change[2]] = bytes(len(contents[change[1]:change[1] + change[2]]))
    elif change[0] == "more":
        contents += bytes(change[1])
    with open(file, "wb") as stream:
        stream.write(contents)
    print("trying", change, file=sys.stderr, flush=True)
    try:
        same = read() == expected
    except stoker.CorruptError as error:
        outcome["raised"] += 1
        if "stoker index" not in str(error):
            outcome["wrong"].append([change, str(error)])
    except Exception as error:
        outcome["wrong"].append([change, repr(error)])
    else:
        outcome["right"] += same
        if not same:
            outcome["wrong"].append([change, "was read, and is not what it was"])
    with open(file, "wb") as stream:
        stream.write(good)
assert read() == expected
print(json.dumps(outcome))
"""


def read_with_changes(dataset, file, changes, environment) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", READ_WITH_CHANGES, dataset, file, json.dumps(changes)],
        capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, f"status {done.returncode}, at the end of:\n{done.stderr[-2000:]}"
    outcome = json.loads(done.stdout)
    assert outcome["wrong"] == []
    assert outcome["raised"] + outcome["right"] == len(changes)
    return outcome


@pytest.fixture
def indexed(stoker_cli, tmp_path):
    """A packed dataset with several segments, and the index of a folder: all kinds of tables."""
    multi_file_samples(tmp_path / "folder", 12)
    stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--shard-size", "15K")
    stoker_cli("index", tmp_path / "folder")
    return tmp_path


def segments_of(dataset):
    return sorted((dataset / ".stoker").rglob("*.seg"))


@pytest.mark.parametrize("dataset", ["packed", "folder"])
def test_every_byte_of_the_manifest(indexed, stoker_environment, dataset):
    manifest = indexed / dataset / ".stoker/manifest.json"
    size = manifest.stat().st_size
    changes = [["flip", at, 1 << at % 8] for at in range(size)]
    changes += [["cut", at] for at in range(0, size, 37)] + [["more", 1], ["zero", 0, size]]
    outcome = read_with_changes(indexed / dataset, manifest, changes, stoker_environment)
    assert outcome["raised"] > len(changes) // 2


@pytest.mark.parametrize("dataset", ["packed", "folder"])
def test_bytes_of_every_segment(indexed, stoker_environment, dataset):
    segments = segments_of(indexed / dataset)
    assert segments
    for number, segment in enumerate(segments[:4]):
        size = segment.stat().st_size
        at = sorted({*range(0, min(size, 200)), *range(size - 64, size), *range(number, size, 11)})
        changes = [["flip", each, 1 << each % 8] for each in at]
        changes += [["cut", each] for each in (0, 1, 3, 4, 8, 16, 63, 64, 100, size // 2, size - 4, size - 1)]
        changes += [["more", 1], ["more", 70_000], ["zero", 0, 64], ["zero", size // 2, 64], ["zero", 0, size]]
        outcome = read_with_changes(indexed / dataset, segment, changes, stoker_environment)
        assert outcome["raised"] > len(changes) // 2, "most bytes of an index matter"


def test_check_says_that_the_index_is_corrupt(indexed, stoker_cli):
    dataset = indexed / "packed"
    manifest = dataset / ".stoker/manifest.json"
    files = [manifest, *segments_of(dataset)[:2]]
    for file in files:
        good = file.read_bytes()
        for seed in range(12):
            contents = bytearray(good)
            contents[random.Random(seed).randrange(len(good))] ^= 1 << seed % 8
            file.write_bytes(contents)
            finished = stoker_cli("check", dataset, status=None)
            if finished.returncode == 0:
                assert file != manifest, "the manifest carries a checksum of itself"
            else:
                assert finished.returncode == 1
                assert "stoker index" in finished.text
        file.write_bytes(good)
    stoker_cli("check", dataset)


def test_index_repairs_a_corrupt_index(indexed, stoker_cli):
    dataset = indexed / "packed"
    for kind in ["manifest", "segment"]:
        file = dataset / ".stoker/manifest.json" if kind == "manifest" else segments_of(dataset)[0]
        contents = bytearray(file.read_bytes())
        contents[len(contents) // 2] ^= 4
        file.write_bytes(contents)
        stoker_cli("check", dataset, status=1)
        stoker_cli("index", dataset, "--full")
        stoker_cli("check", dataset)
        assert segments_of(dataset)
    stoker_cli("check", dataset, "--compare", indexed / "folder")


@pytest.mark.parametrize("how", ["removed", "empty", "of another", "a directory"])
def test_segment_is_not_what_the_manifest_says(indexed, stoker_cli, how):
    dataset = indexed / "packed"
    first, second = segments_of(dataset)[:2]
    if how == "empty":
        first.write_bytes(b"")
    elif how == "of another":
        first.write_bytes(second.read_bytes())
    else:
        first.unlink()
        if how == "a directory":
            first.mkdir()
    finished = stoker_cli("check", dataset, status=1)
    assert "stoker index" in finished.text
    script = f"import stoker\ntry:\n    list(stoker.open({str(dataset)!r}))\nexcept stoker.CorruptError as e:\n    print(e)\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and "stoker index" in done.stdout, done


def test_manifest_that_means_something_else(indexed, stoker_cli):
    """Well-formed, wrong: whatever is in it, no crash and no other file is touched."""
    dataset = indexed / "packed"
    manifest = dataset / ".stoker/manifest.json"
    before = {name: data for name, data in tree(indexed).items() if name != b"packed/.stoker/manifest.json"}
    for contents in (
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\0" * 1000,
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"\xff\xfe{}",
        b"1e999999",
    ):
        manifest.write_bytes(contents)
        finished = stoker_cli("check", dataset, status=1)
        assert "stoker index" in finished.text
    after = {name: data for name, data in tree(indexed).items() if name != b"packed/.stoker/manifest.json"}
    assert before.keys() == after.keys()
