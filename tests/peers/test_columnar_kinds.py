# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow files of kinds that the projects' own test files have: what is read is what pyarrow reads."""

import datetime
import struct

import numpy as np
import pytest
import stoker
from reading import read_dataset

PAGES = """
import sys
import pyarrow as pa, pyarrow.parquet as parquet
made = pa.table({"n": [7 * i % 40 for i in range(4000)], "t": [f"text {i % 50}" for i in range(4000)]})
parquet.write_table(made, sys.argv[1], compression=sys.argv[2], data_page_version=sys.argv[3], use_dictionary=False)
"""


def values(path):
    return [(row["n"], row["t"]) for row in read_dataset(path).values()]


EXPECTED = [(7 * i % 40, f"text {i % 50}") for i in range(4000)]


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4"])
def test_compressed_pages_that_say_they_are_not(codec, peer_arrow, tmp_path):
    """As Arrow before 3.0 wrote pages of version 2 (ARROW-17100)."""
    path = tmp_path / "x.parquet"
    peer_arrow(PAGES, path, codec, "2.0")
    whole = path.read_bytes()
    # The end of DataPageHeaderV2: lengths of the levels, both fields of one byte or two, then is_compressed.
    patched = whole.replace(b"\x15\x00\x11", b"\x15\x00\x12")
    assert patched != whole
    path.write_bytes(patched)
    assert values(path) == EXPECTED


def test_lengths_of_a_page_that_contradict_each_other(peer_arrow, stoker_cli, tmp_path):
    path = tmp_path / "x.parquet"
    peer_arrow(PAGES, path, "none", "1.0")
    whole = bytearray(path.read_bytes())
    assert whole[4:7] == b"\x15\x00\x15"  # type, then the length without compression
    whole[7] ^= 2
    path.write_bytes(whole)
    found = stoker_cli("check", path, "--json", status=1).json
    assert "not compressed" in found["faults"][0]["cause"] and found["faults"][0]["field"] == "n"


def test_the_codec_lz4_of_older_files(peer_arrow, tmp_path):
    path = tmp_path / "x.parquet"
    peer_arrow(PAGES, path, "lz4", "1.0")
    whole = path.read_bytes()
    patched = whole.replace(b"\x15\x0e\x16", b"\x15\x0a\x16")  # LZ4_RAW, as LZ4
    assert patched != whole
    path.write_bytes(patched)
    assert values(path) == EXPECTED


INT96 = """
import datetime, sys
import pyarrow as pa, pyarrow.parquet as parquet
times = [datetime.datetime(2024, 2, 29, 13, 14, 15, 16), None, datetime.datetime(1969, 12, 31), datetime.datetime(1970, 1, 1)]
made = pa.table({"when": pa.array(times, pa.timestamp("ns")), "n": [1, 2, 3, 4]})
parquet.write_table(made, sys.argv[1], use_deprecated_int96_timestamps=True, use_dictionary=sys.argv[2] == "1")
assert parquet.ParquetFile(sys.argv[1]).schema.column(0).physical_type == "INT96"
"""


@pytest.mark.parametrize("dictionary", "01")
def test_int96_is_nanoseconds(dictionary, peer_arrow, tmp_path):
    peer_arrow(INT96, tmp_path / "x.parquet", dictionary)
    found = [row.get("when") for row in read_dataset(tmp_path / "x.parquet").values()]
    day = 86_400 * 10**9
    moment = datetime.datetime(2024, 2, 29, 13, 14, 15, tzinfo=datetime.timezone.utc).timestamp()
    assert found == [int(moment) * 10**9 + 16_000, None, -day, 0]


def big_endian_schema() -> bytes:
    """A message with an empty schema whose numbers are big-endian; FlatBuffers are little-endian all the same."""
    message = struct.pack("<I6H", 16, 12, 24, 4, 6, 8, 16)  # root, then the table of the message's fields
    message += struct.pack("<ihBxI4xq", 12, 4, 1, 48 - 24, 0)
    schema = struct.pack("<4HihxxI", 8, 12, 4, 8, 8, 1, 4) + struct.pack("<I", 0)
    return message + schema


@pytest.mark.parametrize("name", ["x.stream", "x.arrow", "x.arrow_file"])
def test_big_endian_arrow_is_refused_as_such(name, tmp_path, stoker_cli):
    body = big_endian_schema()
    stream = struct.pack("<Ii", 0xFFFFFFFF, len(body)) + body + struct.pack("<Ii", 0xFFFFFFFF, 0)
    path = tmp_path / name
    path.write_bytes((b"ARROW1\0\0" if name == "x.arrow_file" else b"") + stream)
    what = "file" if name == "x.arrow_file" else "stream"
    assert f"is a big-endian Arrow {what}, which is not read" in stoker_cli("check", path, status=None).text
    if name == "x.arrow":
        return  # by its name: a fault of this shard
    with pytest.raises(stoker.UnsupportedError, match="big-endian Arrow"):
        stoker.open(path)


OLD_STREAM = """
import sys
import pyarrow as pa
made = pa.table({"n": list(range(30)), "t": [f"t{i}" for i in range(30)]})
options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4, use_legacy_format=True)
with pa.ipc.new_stream(sys.argv[1], made.schema, options=options) as writer:
    writer.write_table(made)
"""


@pytest.mark.parametrize("name", ["x.stream", "x.arrow"])
def test_streams_of_before_0_15(name, peer_arrow, tmp_path):
    peer_arrow(OLD_STREAM, tmp_path / name)
    assert (tmp_path / name).read_bytes()[:4] != b"\xff\xff\xff\xff"
    found = list(read_dataset(tmp_path / name).values())
    assert [(row["n"], row["t"]) for row in found] == [(i, f"t{i}") for i in range(30)]


def test_numbers_that_begin_like_an_old_stream_are_none(tmp_path, stoker_cli):
    np.arange(8, 4000, dtype="<u4").tofile(tmp_path / "x.bin")
    assert "begins with the bytes" in stoker_cli("check", tmp_path / "x.bin", status=None).stderr
