# SPDX-License-Identifier: Apache-2.0
"""Lengths that cannot be: every one is a fault with its offset, costs no memory, and ends the program in good order."""

import struct

import pytest
from samples import write_files
from tar_bytes import BLOCK, END, base256, header, member, padded, pax
from tfrecord_bytes import delimited, example, masked, record, varint

MEMORY = 1 << 31  # enough for threads and buffers, far less than the lengths claim
GOOD = member(b"good.txt", b"fine")
HUGE = [2**31, 2**32 + 5, 2**33 - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64]


def record_of(text: bytes) -> bytes:
    return member(b"PaxHeaders/x", text, kind=b"x")


TARS = {
    "octal 8 GiB": header(b"x.txt", 0, size_field=b"77777777777"),
    "octal without end": header(b"x.txt", 0, size_field=b"777777777777"),
    "not a number": header(b"x.txt", 0, size_field=b"zzzzzzzzzzz"),
    "minus": header(b"x.txt", 0, size_field=b"-0000000012"),
    "negative base-256": header(b"x.txt", 0, size_field=b"\xff" * 12),
    "largest base-256": header(b"x.txt", 0, size_field=b"\x80" + b"\xff" * 11),
    **{f"base-256 {value}": header(b"x.txt", 0, size_field=base256(value)) for value in HUGE},
    **{f"pax {value}": pax({b"size": b"%d" % value}) + header(b"x.txt", 0) for value in HUGE},
    "pax size of 40 digits": pax({b"size": b"9" * 40}) + header(b"x.txt", 0),
    "pax size negative": pax({b"size": b"-1"}) + header(b"x.txt", 0),
    "pax size no number": pax({b"size": b"many"}) + header(b"x.txt", 0),
    "pax size empty with octal": pax({b"size": b""}) + header(b"x.txt", 0, size_field=b"77777777777"),
    "pax record of length 0": record_of(b"0 path=x\n") + header(b"x.txt", 0),
    "pax record too long": record_of(b"9999 path=x.txt\n") + header(b"x.txt", 0),
    "pax record of 2^64": record_of(b"18446744073709551616 path=x.txt\n") + header(b"x.txt", 0),
    "pax record without equals": record_of(b"9 abcdef\n") + header(b"x.txt", 0),
    "pax record without number": record_of(b"path=x.txt\n") + header(b"x.txt", 0),
    "pax header itself huge": header(b"PaxHeaders/x", 0, kind=b"x", size_field=base256(2**62)),
    "GNU long name huge": header(b"././@LongLink", 0, kind=b"L", size_field=base256(2**62)),
    "GNU long name of 5 GB": header(b"././@LongLink", 0, kind=b"L", size_field=base256(5 * 10**9)),
    "GNU long link huge": header(b"././@LongLink", 0, kind=b"K", size_field=base256(2**64 - 1)),
    "long name at the end": member(b"././@LongLink", b"y" * 200 + b"\0", kind=b"L"),
    "pax header at the end": pax({b"path": b"y.txt"}),
    "long names without end": member(b"././@LongLink", b"y" * 200 + b"\0", kind=b"L") * 50,
}


@pytest.mark.parametrize("what", TARS)
def test_tar(stoker_cli, tmp_path, what):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/bad.tar").write_bytes(GOOD + TARS[what] + END)
    (tmp_path / "d/other.tar").write_bytes(member(b"other.txt", b"fine") + END)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1, memory=MEMORY, timeout=20).json
    assert result["faults"] and {fault["shard"] for fault in result["faults"]} == {"bad.tar"}
    assert all(len(GOOD) <= fault["offset"] <= len(GOOD) + len(TARS[what]) for fault in result["faults"])
    # What is good before it and beside it stays.
    assert 2 <= result["samples"] <= 3
    stoker_cli("index", tmp_path / "d", status=1, memory=MEMORY, timeout=20)
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed", status=1, memory=MEMORY, timeout=20)


def test_pax_size_is_the_size(stoker_cli, tmp_path):
    """The other way round: a right pax size with nonsense in the header is no fault."""
    (tmp_path / "d").mkdir()
    contents = pax({b"size": b"5"}) + header(b"x.txt", 0, size_field=b"00000000000") + padded(b"hello")
    (tmp_path / "d/x.tar").write_bytes(contents + GOOD + END)
    assert stoker_cli("check", tmp_path / "d", "--json").json["samples"] == 2


def length_only(value: int) -> bytes:
    head = struct.pack("<Q", value)
    return head + masked(head) + b"x" * 50


GOOD_RECORD = record(example({"x": [b"fine"], "n": [1]}))


@pytest.mark.parametrize(
    "value", [51, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 17, 2**64 - 16, 2**64 - 12, 2**64 - 1]
)
@pytest.mark.parametrize("first", [True, False])
def test_tfrecord(stoker_cli, tmp_path, value, first):
    """The checksum of the length is right: it is a length that somebody meant."""
    (tmp_path / "d").mkdir()
    before = b"" if first else GOOD_RECORD
    (tmp_path / "d/bad.tfrecord").write_bytes(before + length_only(value))
    (tmp_path / "d/other.tfrecord").write_bytes(GOOD_RECORD)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1, memory=MEMORY, timeout=20).json
    (fault,) = result["faults"]
    assert (fault["shard"], fault["offset"]) == ("bad.tfrecord", len(before))
    assert str(value) in fault["cause"]
    assert result["samples"] == 2 - first
    stoker_cli("index", tmp_path / "d", status=1, memory=MEMORY, timeout=20)


def feature_map(body: bytes) -> bytes:
    """An Example with one feature `x` whose Feature message is `body`."""
    return delimited(1, delimited(1, delimited(1, b"x") + delimited(2, body)))


EXAMPLES = {
    "bytes longer than the record": feature_map(varint(1 << 3 | 2) + varint(100) + b"ab"),
    "bytes of 2^63": feature_map(varint(1 << 3 | 2) + varint(2**63) + b"ab"),
    "bytes of 2^64-1": feature_map(varint(1 << 3 | 2) + varint(2**64 - 1) + b"ab"),
    "varint without end": feature_map(varint(1 << 3 | 2) + b"\xff" * 12),
    "floats of 3 bytes": feature_map(delimited(2, delimited(1, b"abc"))),
    "int64 cut off": feature_map(delimited(3, delimited(1, b"\x80"))),
    "group that does not end": feature_map(b"\x0b" * 200),
    "wire type 7": feature_map(b"\x0f\x00"),
    "tag 0": feature_map(b"\x00\x00"),
    "map entry longer than the map": delimited(1, b"\x0a\xff\xff\xff\xff\x0f"),
}


@pytest.mark.parametrize("what", EXAMPLES)
def test_example_that_is_none(stoker_cli, tmp_path, what):
    """In a shard of Examples; the record's own checksums are right."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.tfrecord").write_bytes(GOOD_RECORD + record(EXAMPLES[what]) + GOOD_RECORD)
    result = stoker_cli("check", tmp_path / "d", "--json", status=1, memory=MEMORY, timeout=20).json
    (fault,) = result["faults"]
    assert fault["shard"] == "x.tfrecord"
    assert len(GOOD_RECORD) <= fault["offset"] < 2 * len(GOOD_RECORD) + len(EXAMPLES[what])
    assert result["samples"] in (2, 3)


@pytest.mark.parametrize("what", EXAMPLES)
def test_plain_records_may_look_like_anything(stoker_cli, tmp_path, what):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.tfrecord").write_bytes(record(EXAMPLES[what]) * 2)
    finished = stoker_cli("check", tmp_path / "d", "--json", status=None, memory=MEMORY, timeout=20)
    assert finished.returncode in (0, 1)
    if finished.returncode == 0:
        assert [field["name"] for field in finished.json["fields"]] == ["data"]


NPY = b"\x93NUMPY\x01\x00"


def npy_with(text: bytes) -> bytes:
    text = text.ljust(118)
    return NPY + struct.pack("<H", len(text)) + text


ARRAYS = {
    "no header": NPY,
    "header of 65535 bytes": NPY + b"\xff\xff{}",
    "version 9": b"\x93NUMPY\x09\x00" + struct.pack("<H", 10) + b" " * 10,
    "version 2 header of 4 GB": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
    "shape of 2^63": npy_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }"),
    "shape that overflows": npy_with(b"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
    "shape of 2^40": npy_with(b"{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,), }"),
    "negative shape": npy_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"),
    "too little data": npy_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }") + bytes(11),
    "too much data": npy_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }") + bytes(13),
    "objects": npy_with(b"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }") + bytes(24),
    "not a dictionary": npy_with(b"['<f4', False, (3,)]") + bytes(12),
    "nested": npy_with(b"{'descr': " + b"(" * 90),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_npy(stoker_cli, tmp_path, what):
    good = npy_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }") + bytes(12)
    write_files(tmp_path / "d", {"a.npy": good, "b.npy": ARRAYS[what], "c.npy": good})
    result = stoker_cli("check", tmp_path / "d", "--json", status=1, memory=MEMORY, timeout=20).json
    (fault,) = result["faults"]
    assert "b" in (fault["sample"], fault["shard"].removesuffix(".npy"))
    script_status = stoker_cli("pack", tmp_path / "d", tmp_path / "packed", status=None, memory=MEMORY, timeout=20)
    assert script_status.returncode in (0, 1), "original bytes are kept, or left out by name"


def test_many_tiny_members(stoker_cli, tmp_path):
    """Empty files and empty names of headers do not stop it, and cost no more than their headers."""
    (tmp_path / "d").mkdir()
    contents = b"".join(header(b"%05d.bin" % i, 0) for i in range(5000)) + END
    assert len(contents) == 5000 * BLOCK + len(END)
    (tmp_path / "d/x.tar").write_bytes(contents)
    assert stoker_cli("check", tmp_path / "d", "--json", memory=MEMORY).json["samples"] == 5000
