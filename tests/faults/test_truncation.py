# SPDX-License-Identifier: Apache-2.0
"""Files that end too early, at every kind of boundary. None may pass as whole, and what lies before the cut is kept."""

import pytest
from samples import noise, shards_of, write_files
from tar_bytes import BLOCK, END, all_members, member
from tfrecord_bytes import example, record, records

# Three samples of two files; 700 bytes are two blocks, the second with padding.
FILES = {
    b"a.bin": noise("a", 700), b"a.txt": b"first",
    b"b.bin": noise("b", 700), b"b.txt": b"second",
    b"c.bin": noise("c", 700), b"c.txt": b"third",
}  # fmt: skip
ARCHIVE = b"".join(member(name, data) for name, data in FILES.items()) + END
SAMPLE = 5 * BLOCK  # header, two blocks; header, one block
assert len(ARCHIVE) == 3 * SAMPLE + 2 * BLOCK

# Name of the cut -> bytes that are left, samples that are whole before it.
TAR_CUTS = {
    "inside the first header": (100, 0),
    "inside the first checksum": (150, 0),
    "between the first header and its data": (BLOCK, 0),
    "inside the first data": (BLOCK + 300, 0),
    "inside the first padding": (BLOCK + 800, 0),
    "between two files of a sample": (SAMPLE + 3 * BLOCK, 1),
    "inside a header": (SAMPLE + 200, 1),
    "between header and data": (SAMPLE + BLOCK, 1),
    "inside data": (SAMPLE + BLOCK + 300, 1),
    "inside data, at a block": (SAMPLE + 2 * BLOCK, 1),
    "inside padding": (SAMPLE + BLOCK + 701, 1),
    "before the last byte of padding": (2 * SAMPLE - 1, 1),
    "exactly between two samples": (2 * SAMPLE, 2),
    "before the end marker": (3 * SAMPLE, 3),
    "inside the end marker": (3 * SAMPLE + 100, 3),
}


@pytest.fixture
def dataset(tmp_path):
    """Three shards of which the one in the middle is to be cut."""
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / "s-0.tar").write_bytes(member(b"before.txt", b"0") + END)
    (directory / "s-1.tar").write_bytes(ARCHIVE)
    (directory / "s-2.tar").write_bytes(member(b"behind.txt", b"2") + END)
    return directory


@pytest.mark.parametrize("cut", TAR_CUTS)
def test_tar(stoker_cli, dataset, tmp_path, cut):
    left, whole = TAR_CUTS[cut]
    (dataset / "s-1.tar").write_bytes(ARCHIVE[:left])
    result = stoker_cli("check", dataset, "--json", status=1).json
    assert result["faults"], "cut off, and nothing said"
    assert {fault["shard"] for fault in result["faults"]} == {"s-1.tar"}
    assert all(whole * SAMPLE <= fault["offset"] <= left for fault in result["faults"])
    assert stoker_cli("check", dataset, "--quick", status=1)
    finished = stoker_cli("index", dataset, status=1)
    assert "s-1.tar" in finished.text
    # Packing keeps what is whole, also what lies in the shards behind, and says what it could not.
    finished = stoker_cli("pack", dataset, tmp_path / "packed", status=1)
    assert "s-1.tar" in finished.text
    found = all_members(shards_of(tmp_path / "packed"))
    expected = {name.decode(): data for name, data in list(FILES.items())[: 2 * whole]}
    for name, data in found.items():
        assert data == {"before.txt": b"0", "behind.txt": b"2"}.get(name) or data == FILES[name.encode()]
    assert expected.keys() | {"before.txt", "behind.txt"} <= found.keys()
    # A sample of which only padding is missing has all its bytes: it may be there, as a whole.
    assert len(found) <= 2 * whole + 2 + 2


@pytest.mark.parametrize("left", [3 * SAMPLE + BLOCK, 3 * SAMPLE + 2 * BLOCK])
def test_one_zero_block_is_an_end(stoker_cli, dataset, left):
    (dataset / "s-1.tar").write_bytes(ARCHIVE[:left])
    assert stoker_cli("check", dataset, "--json").json["samples"] == 5


def test_empty_tar_file(stoker_cli, dataset):
    (dataset / "s-1.tar").write_bytes(b"")
    result = stoker_cli("check", dataset, "--json", status=1).json
    assert [fault["shard"] for fault in result["faults"]] == ["s-1.tar"]
    assert result["samples"] == 2


def test_bytes_behind_the_end_marker(stoker_cli, dataset):
    (dataset / "s-1.tar").write_bytes(ARCHIVE + bytes(3 * BLOCK))
    assert stoker_cli("check", dataset, "--json").json["samples"] == 5
    # Two archives one behind the other, as `cat a.tar b.tar` makes them: tar reads the first alone, silently.
    (dataset / "s-1.tar").write_bytes(ARCHIVE + member(b"lost.txt", b"?") + END)
    result = stoker_cli("check", dataset, "--json", status=1).json
    (fault,) = result["faults"]
    assert (fault["shard"], fault["offset"]) == ("s-1.tar", len(ARCHIVE))


def test_every_length_of_a_small_tar(stoker_cli, tmp_path):
    """All cuts of one archive at once: a shard per length, a fault per shard."""
    (tmp_path / "d").mkdir()
    shards = set()
    for number, length in enumerate(range(0, 2 * BLOCK + 1, 7)):
        contents = member(b"k%d.txt" % number, b"0123456789") + END
        (tmp_path / f"d/{number:04d}.tar").write_bytes(contents[:length])
        shards.add(f"{number:04d}.tar")
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert {fault["shard"] for fault in result["faults"]} == shards


# --- tfrecord ------------------------------------------------------------------------------------------

EXAMPLES = [example({"__key__": [b"k%d" % i], "n": [i], "x": [noise(i, 100)]}) for i in range(3)]
RECORDS = [record(data) for data in EXAMPLES]
SIZE = len(RECORDS[0])

TFRECORD_CUTS = {
    "inside the first length": (5, 0),
    "behind the first length": (8, 0),
    "inside the first checksum": (10, 0),
    "between length and data": (12, 0),
    "inside the first data": (60, 0),
    "inside a length": (SIZE + 5, 1),
    "inside the checksum of a length": (SIZE + 11, 1),
    "between length and data of a record": (SIZE + 12, 1),
    "inside data": (SIZE + 40, 1),
    "between data and checksum": (2 * SIZE - 4, 1),
    "inside the last checksum": (2 * SIZE - 1, 1),
}


@pytest.fixture
def tf_dataset(tmp_path):
    directory = tmp_path / "d"
    directory.mkdir()
    (directory / "s-0.tfrecord").write_bytes(record(example({"__key__": [b"before"], "x": [b"0"], "n": [7]})))
    (directory / "s-1.tfrecord").write_bytes(b"".join(RECORDS))
    (directory / "s-2.tfrecord").write_bytes(record(example({"__key__": [b"behind"], "x": [b"2"], "n": [8]})))
    return directory


@pytest.mark.parametrize("cut", TFRECORD_CUTS)
def test_tfrecord(stoker_cli, tf_dataset, tmp_path, cut):
    left, whole = TFRECORD_CUTS[cut]
    (tf_dataset / "s-1.tfrecord").write_bytes(b"".join(RECORDS)[:left])
    result = stoker_cli("check", tf_dataset, "--json", status=1).json
    (fault,) = result["faults"]
    assert fault["shard"] == "s-1.tfrecord"
    assert whole * SIZE <= fault["offset"] <= left
    assert result["samples"] == whole + 2
    finished = stoker_cli("index", tf_dataset, status=1)
    assert "s-1.tfrecord" in finished.text
    finished = stoker_cli("pack", tf_dataset, tmp_path / "packed", "--to", "tfrecord", status=1)
    assert "s-1.tfrecord" in finished.text
    (shard,) = shards_of(tmp_path / "packed")
    assert records(shard.read_bytes())[1:-1] == EXAMPLES[:whole]


def test_empty_tfrecord_file(stoker_cli, tf_dataset):
    """No record is a valid TFRecord file, and also what a full disk leaves behind: must be visible."""
    (tf_dataset / "s-1.tfrecord").write_bytes(b"")
    finished = stoker_cli("check", tf_dataset, "--json", status=None)
    assert finished.json["samples"] == 2
    if finished.returncode == 0:
        assert finished.json["shards"] == 3
    else:
        assert [fault["shard"] for fault in finished.json["faults"]] == ["s-1.tfrecord"]


def test_cut_between_two_records_is_noticed_when_indexed(stoker_cli, tf_dataset):
    """The file alone cannot tell: a record less is a valid file. The index can."""
    stoker_cli("index", tf_dataset)
    (tf_dataset / "s-1.tfrecord").write_bytes(b"".join(RECORDS)[: 2 * SIZE])
    for options in ([], ["--quick"]):
        finished = stoker_cli("check", tf_dataset, *options, status=1)
        assert "s-1.tfrecord" in finished.text


@pytest.mark.parametrize("form", ["tar", "tfrecord"])
def test_packed_shard_cut_between_two_samples(stoker_cli, tmp_path, form):
    write_files(tmp_path / "source", {f"k{i}.bin": noise(i, 1000) for i in range(6)})
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--to", form)
    (shard,) = shards_of(tmp_path / "packed")
    contents = shard.read_bytes()
    if form == "tar":
        cut = 3 * (BLOCK + 1024)
    else:
        cut = sum(16 + len(data) for data in records(contents)[:3])
    shard.write_bytes(contents[:cut])
    finished = stoker_cli("check", tmp_path / "packed", status=1)
    assert shard.name in finished.text
    import stoker

    dataset = stoker.open(tmp_path / "packed")
    with pytest.raises((stoker.CorruptError, OSError)) as caught:
        list(dataset)
    assert shard.name in str(caught.value)


# --- folder ---------------------------------------------------------------------------------------------


def test_empty_file_in_a_folder_is_an_empty_sample(stoker_cli, tmp_path):
    write_files(tmp_path / "d", {"a.bin": b"", "b.bin": b"1"})
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed")
    assert all_members(shards_of(tmp_path / "packed")) == {"a.bin": b"", "b.bin": b"1"}


@pytest.mark.parametrize("command", [["check"], ["index"], ["pack"]])
def test_empty_folder(stoker_cli, tmp_path, command):
    (tmp_path / "d").mkdir()
    words = [*command, tmp_path / "d"] + ([tmp_path / "packed"] if command == ["pack"] else [])
    finished = stoker_cli(*words, status=1)
    assert str(tmp_path / "d") in finished.stderr
    assert not (tmp_path / "packed").exists()
    # Nothing but empty directories is empty too.
    (tmp_path / "d/sub/sub").mkdir(parents=True)
    stoker_cli(*words, status=1)


def test_empty_single_file(stoker_cli, tmp_path):
    """Nothing is no tar. It is a TFRecord file without records, as sharded writers make them: that is said."""
    (tmp_path / "x.tar").write_bytes(b"")
    finished = stoker_cli("check", tmp_path / "x.tar", status=1)
    assert "x.tar" in finished.text
    (tmp_path / "x.tfrecord").write_bytes(b"")
    finished = stoker_cli("check", tmp_path / "x.tfrecord", status=None)
    assert finished.returncode in (0, 1)
    assert "0 samples" in finished.text or "empty" in finished.text
