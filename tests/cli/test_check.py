# SPDX-License-Identifier: Apache-2.0
"""`stoker check`: what a dataset is, whether every byte is right."""

import shutil

import numpy as np
import pytest
from packed import flip
from samples import image_folder, multi_file_samples, noise, npy, shards_of, tree, write_files
from tar_bytes import BLOCK, END, member, simple_tar
from tfrecord_bytes import example, record


def described(result) -> dict[str, dict]:
    return {field["name"]: field for field in result["fields"]}


# --- What it is -------------------------------------------------------------------------------------


def test_describes_a_folder(stoker_cli, tmp_path):
    files = image_folder(tmp_path / "d", per_class=4)
    write_files(tmp_path / "d", {"eel/extra.jpg": b"12345"})
    result = stoker_cli("check", tmp_path / "d", "--json").json
    assert result["stoker"]["schema"] == 1 and result["stoker"]["command"] == "check"
    assert result["format"] == "folder"
    assert result["samples"] == 13
    assert result["bytes"] == sum(map(len, files.values())) + 5
    assert result["faults"] == []
    fields = described(result)
    assert fields.keys() == {"image", "label"}
    assert fields["image"]["type"] == "bytes" and fields["image"]["present"] == 13
    assert fields["label"]["type"] == "number" and fields["label"]["dtype"] == "int64"
    assert [(each["name"], each["samples"]) for each in result["classes"]] == [("cat", 4), ("dog", 4), ("eel", 5)]


def test_describes_fields_with_types_and_shapes(stoker_cli, tmp_path):
    multi_file_samples(tmp_path / "d", 9)
    write_files(tmp_path / "d", {f"left/sample{i:04d}.fixed.npy": npy(np.zeros((2, 3), "int16")) for i in (1, 3)})
    result = stoker_cli("check", tmp_path / "d", "--json").json
    fields = described(result)
    assert fields.keys() == {"image", "label", "json", "npy", "txt", "fixed"}
    assert {name: field["type"] for name, field in fields.items()} == {
        "image": "bytes", "label": "number", "json": "text", "npy": "array", "txt": "text", "fixed": "array",
    }  # fmt: skip
    assert (fields["npy"]["dtype"], fields["npy"]["shape"]) == ("float32", [-1])
    assert (fields["fixed"]["dtype"], fields["fixed"]["shape"]) == ("int16", [2, 3])
    assert fields["txt"]["present"] == 6 and fields["fixed"]["present"] == 2


def test_describes_tfrecord(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    for number in range(2):
        data = b"".join(
            record(example({"x": [b"ab"], "n": [i], "f": [0.5, 1.5], "many": [b"a", b"bc"]})) for i in range(5)
        )
        (tmp_path / f"d/t-{number:05d}-of-00002").write_bytes(data)
    result = stoker_cli("check", tmp_path / "d", "--json").json
    assert result["format"] == "tfrecord" and result["samples"] == 10 and result["shards"] == 2
    fields = described(result)
    assert {name: field["type"] for name, field in fields.items()} == {
        "x": "bytes", "n": "number", "f": "array", "many": "list",
    }  # fmt: skip
    assert (fields["f"]["dtype"], fields["f"]["shape"]) == ("float32", [2])
    assert fields["n"]["dtype"] == "int64"


def test_text_output(stoker_cli, tmp_path):
    image_folder(tmp_path / "d", per_class=4)
    finished = stoker_cli("check", tmp_path / "d")
    for word in ("folder", "12", "image", "label", "cat", "dog", "eel", "bytes", "number"):
        assert word in finished.stdout, word
    assert "\x1b" not in finished.text


def test_leaves_nothing_behind(stoker_cli, tmp_path, home):
    image_folder(tmp_path / "d")
    before = tree(tmp_path / "d")
    stoker_cli("check", tmp_path / "d")
    assert tree(tmp_path / "d") == before
    assert [name for name, data in tree(home).items() if data != "directory"] == []


def test_index_depth_is_said(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.tar").write_bytes(simple_tar({b"a.jpg": b"1"}))
    assert stoker_cli("check", tmp_path / "d", "--json").json["index"] is None
    stoker_cli("index", tmp_path / "d")
    assert stoker_cli("check", tmp_path / "d", "--json").json["index"]["depth"] == "structure"
    stoker_cli("index", tmp_path / "d", "--full")
    assert stoker_cli("check", tmp_path / "d", "--json").json["index"]["depth"] == "full"


# --- Faults ------------------------------------------------------------------------------------------


def test_good_dataset(stoker_cli, packed):
    result = stoker_cli("check", packed, "--json").json
    assert result["faults"] == [] and result["samples"] == 36


def test_flipped_bit_in_data_is_named(stoker_cli, packed):
    shard = shards_of(packed)[1]
    key = shard.read_bytes()[:100].rstrip(b"\0").decode()
    assert key.endswith(".jpg")
    flip(shard, BLOCK + 10, 3)
    finished = stoker_cli("check", packed, status=1)
    for word in (shard.name, key.removesuffix(".jpg"), "512", "image", "checksum"):
        assert word in finished.text, word
    result = stoker_cli("check", packed, "--json", status=1).json
    (fault,) = [fault for fault in result["faults"] if fault["sample"]]
    assert (fault["shard"], fault["offset"], fault["field"]) == (shard.name, 512, "image")
    assert fault["sample"] == key.removesuffix(".jpg")


def test_every_fault_is_named_not_the_first_only(stoker_cli, packed):
    for shard in shards_of(packed):
        flip(shard, BLOCK)
    result = stoker_cli("check", packed, "--json", status=1).json
    assert {fault["shard"] for fault in result["faults"]} == {shard.name for shard in shards_of(packed)}


def test_flipped_bit_in_padding_is_noticed(stoker_cli, packed):
    """Not part of any sample, but not the bytes that were packed either."""
    shard = shards_of(packed)[0]
    flip(shard, shard.stat().st_size - 1)
    result = stoker_cli("check", packed, "--json", status=1).json
    assert result["faults"][0]["shard"] == shard.name


def test_quick_reads_no_payload(stoker_cli, packed):
    shard = shards_of(packed)[0]
    flip(shard, BLOCK)
    stoker_cli("check", packed, "--quick")
    with open(shard, "ab") as file:
        file.write(b"\0" * 512)
    finished = stoker_cli("check", packed, "--quick", status=1)
    assert shard.name in finished.text


def test_shard_of_other_size(stoker_cli, packed):
    shard = shards_of(packed)[2]
    contents = shard.read_bytes()
    for changed in (contents[:-512], contents + bytes(512), b""):
        shard.write_bytes(changed)
        finished = stoker_cli("check", packed, status=1)
        assert shard.name in finished.text
        assert str(len(contents)) in finished.text or "size" in finished.text or "changed" in finished.text


def test_shard_with_other_bytes_of_the_same_size(stoker_cli, packed):
    first, second = shards_of(packed)[:2]
    contents = first.read_bytes()
    first.write_bytes(noise(1, len(contents)))
    finished = stoker_cli("check", packed, status=1)
    assert first.name in finished.text
    assert second.name not in finished.text


def test_vanished_shard(stoker_cli, packed):
    shard = shards_of(packed)[1]
    shard.unlink()
    for options in ([], ["--quick"]):
        finished = stoker_cli("check", packed, *options, status=1)
        assert shard.name in finished.text


def test_shard_nobody_indexed(stoker_cli, packed):
    """A shard beside the indexed ones: its samples would be missed by everybody who reads."""
    shutil.copy(shards_of(packed)[0], packed / "zzz-000000.tar")
    finished = stoker_cli("check", packed, status=1)
    assert "zzz-000000.tar" in finished.text


def test_vanished_and_changed_files_of_a_folder(stoker_cli, tmp_path):
    image_folder(tmp_path / "d")
    stoker_cli("index", tmp_path / "d", "--full")
    (tmp_path / "d/cat/cat_003.jpg").unlink()
    (tmp_path / "d/dog/dog_004.jpg").write_bytes(b"shorter or longer")
    flip(tmp_path / "d/eel/eel_006.jpg", 0)
    finished = stoker_cli("check", tmp_path / "d", status=1)
    for name in ("cat/cat_003", "dog/dog_004", "eel/eel_006"):
        assert name in finished.text
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert len(result["faults"]) == 3


def test_duplicate_keys(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.tar").write_bytes(simple_tar({b"one.jpg": b"1", b"two.jpg": b"2"}))
    (tmp_path / "d/b.tar").write_bytes(simple_tar({b"one.jpg": b"3"}))
    finished = stoker_cli("check", tmp_path / "d", status=1)
    assert "one" in finished.text and "b.tar" in finished.text
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert [(fault["shard"], fault["sample"]) for fault in result["faults"]] == [("b.tar", "one")]


def test_duplicate_key_in_one_shard(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    contents = member(b"one.jpg", b"1") + member(b"two.jpg", b"2") + member(b"one.jpg", b"3") + END
    (tmp_path / "d/a.tar").write_bytes(contents)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert [fault["sample"] for fault in result["faults"]] == ["one"]


def test_same_field_twice_in_a_sample(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.tar").write_bytes(member(b"one.txt", b"1") + member(b"one.txt", b"2") + END)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert [fault["sample"] for fault in result["faults"]] == ["one"]


@pytest.mark.parametrize(
    ("name", "contents"),
    [("x.cls", b"seven"), ("x.cls", b""), ("x.cls", b"99999999999999999999"), ("x.npy", b"\x93NUMPY")],
)
def test_value_that_is_not_of_its_type(stoker_cli, tmp_path, name, contents):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.tar").write_bytes(simple_tar({b"w.cls": b"1", name.encode(): contents, b"y.cls": b"2"}))
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    (fault,) = result["faults"]
    assert (fault["shard"], fault["sample"]) == ("a.tar", "x")
    assert fault["offset"] == 2 * BLOCK + BLOCK


def test_missing_shard_of_a_numbered_set(stoker_cli, tmp_path):
    """TensorFlow's names say how many there are: train-00000-of-00003."""
    (tmp_path / "d").mkdir()
    for number in (0, 2):
        (tmp_path / f"d/train-{number:05d}-of-00003").write_bytes(record(example({"x": [b"1"], "n": [number]})))
    finished = stoker_cli("check", tmp_path / "d", status=1)
    assert "train-00001-of-00003" in finished.text


def test_damage_beside_a_sample_is_named_as_well(stoker_cli, packed):
    """One bit in a sample, one in the header of another: two faults, each where it is."""
    shard = shards_of(packed)[0]
    contents = shard.read_bytes()
    header = contents.index(b"ustar", 2 * BLOCK) - 257
    flip(shard, BLOCK + 10)
    flip(shard, header + 5)
    result = stoker_cli("check", packed, "--json", status=1).json
    assert [fault["offset"] for fault in result["faults"]] == [BLOCK, header]
    assert "header" in result["faults"][1]["cause"]


def test_damaged_header_is_named_where_it_is(stoker_cli, packed):
    shard = shards_of(packed)[1]
    header = shard.read_bytes().index(b"ustar", 2 * BLOCK) - 257
    flip(shard, header + 5)
    (fault,) = stoker_cli("check", packed, "--json", status=1).json["faults"]
    assert (fault["shard"], fault["offset"]) == (shard.name, header)


def test_damaged_padding_beside_damaged_samples(stoker_cli, packed):
    """No scan can name it, but samples that are damaged too must not hide it."""
    shard = shards_of(packed)[0]
    contents = shard.read_bytes()
    length = int(contents[124:135], 8)
    assert length % BLOCK
    flip(shard, BLOCK)
    flip(shard, BLOCK + length)
    result = stoker_cli("check", packed, "--json", status=1).json
    assert [bool(fault["sample"]) for fault in result["faults"]] == [False, True]
    assert "between the samples" in result["faults"][0]["cause"]


def test_damaged_frame_of_a_record(stoker_cli, tmp_path):
    multi_file_samples(tmp_path / "source", 5)
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--to", "tfrecord")
    (shard,) = shards_of(tmp_path / "packed")
    length = int.from_bytes(shard.read_bytes()[:8], "little")
    flip(shard, 12 + length)  # the checksum of the first record
    (fault,) = stoker_cli("check", tmp_path / "packed", "--json", status=1).json["faults"]
    assert "record" in fault["cause"] and fault["offset"] == 12


def test_faults_of_before_are_no_change(stoker_cli, tmp_path):
    """What was damaged when it was indexed is named once, and does not count as a change between samples."""
    (tmp_path / "d").mkdir()
    records = [record(example({"x": [noise(i, 9)], "n": [i]})) for i in range(3)]
    contents = bytearray(b"".join(records))
    contents[len(records[0]) + 30] ^= 1
    (tmp_path / "d/x.tfrecord").write_bytes(contents)
    stoker_cli("index", tmp_path / "d", "--full", status=None)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert not any("between the samples" in fault["cause"] for fault in result["faults"])
    flip(tmp_path / "d/x.tfrecord", len(contents) - 20)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert not any("between the samples" in fault["cause"] for fault in result["faults"])


@pytest.mark.parametrize("options", [[], ["--quick"]])
@pytest.mark.parametrize("depth", [[], ["--full"]])
def test_file_that_joins_a_sample(stoker_cli, tmp_path, depth, options):
    image_folder(tmp_path / "d", per_class=3)
    stoker_cli("index", tmp_path / "d", *depth)
    stoker_cli("check", tmp_path / "d", *options)
    write_files(tmp_path / "d", {"cat/cat_001.json": b"{}"})
    finished = stoker_cli("check", tmp_path / "d", *options, status=1)
    assert "cat/cat_001.json: is not in the index" in finished.text
    # As many files as before, but not the same.
    (tmp_path / "d/dog/dog_002.jpg").unlink()
    finished = stoker_cli("check", tmp_path / "d", *options, status=1)
    assert "2 faults" in finished.text
    assert "cat/cat_001.json: is not in the index" in finished.text and "dog/dog_002.jpg" in finished.text


@pytest.mark.parametrize("options", [[], ["--quick"]])
@pytest.mark.parametrize("depth", [[], ["--full"]])
def test_index_of_a_list(stoker_cli, tmp_path, depth, options):
    """Files that the list does not name are no samples, and no fault."""
    image_folder(tmp_path / "d", per_class=4)
    (tmp_path / "list.csv").write_text("path,caption\ncat/cat_001.jpg,one\ndog/dog_002.jpg,two\n")
    stoker_cli("index", tmp_path / "d", "--list", tmp_path / "list.csv", *depth)
    finished = stoker_cli("check", tmp_path / "d", *options)
    assert "folder, 2 samples in 2 files" in finished.text
    assert "left alone: 10 files that the list does not name" in finished.text
    stoker_cli("check", tmp_path / "d", "--compare", tmp_path / "d", *options)
    # A file of a sample that it names is another matter.
    write_files(tmp_path / "d", {"cat/cat_001.json": b"{}", "cat/cat_002.json": b"{}"})
    finished = stoker_cli("check", tmp_path / "d", *options, status=1)
    assert "1 fault\n" in finished.text and "cat/cat_001.json: is not in the index" in finished.text


def test_faults_of_whole_files_have_no_offset(stoker_cli, tmp_path):
    image_folder(tmp_path / "d", per_class=3)
    stoker_cli("index", tmp_path / "d", "--full")
    (tmp_path / "d/cat/cat_000.jpg").unlink()
    (tmp_path / "d/dog/dog_000.jpg").write_bytes(b"other")
    flip(tmp_path / "d/eel/eel_000.jpg", 0)
    write_files(tmp_path / "d", {"eel/new.jpg": b"1"})
    finished = stoker_cli("check", tmp_path / "d", status=1)
    assert "4 faults" in finished.text and "offset" not in finished.text


def test_empty_part_of_a_split(stoker_cli, tmp_path):
    image_folder(tmp_path / "source", per_class=3)
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--split", "train=1,val=0.000001")
    empty = [path for path in (tmp_path / "packed/train", tmp_path / "packed/val") if not shards_of(path)]
    assert len(empty) == 1
    for options in ([], ["--quick"], ["--compare", empty[0]]):
        finished = stoker_cli("check", empty[0], *options)
        assert "0 samples" in finished.text and "no files" not in finished.text
    (empty[0] / "stray.tar").write_bytes(simple_tar({b"a.jpg": b"1"}))
    assert "stray.tar: is not in the index" in stoker_cli("check", empty[0], status=1).text


def test_missing_dataset(stoker_cli, tmp_path):
    finished = stoker_cli("check", tmp_path / "nowhere", status=None)
    assert finished.returncode in (1, 2)
    assert str(tmp_path / "nowhere") in finished.stderr
