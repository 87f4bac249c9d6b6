# SPDX-License-Identifier: Apache-2.0
"""pyarrow and datasets write, we read."""

import json
import pathlib

import pytest
import stoker
from arrow_tables import ROWS, rows
from reading import read_dataset
from test_arrow import HUGGING_FACE, WRITE, assert_hugging_face, assert_rows

PARQUET = (
    WRITE
    + """
import json
import pyarrow.parquet as parquet
made = table(rows()).drop_columns(["nothing"])
made = made.set_column(made.schema.get_field_index("kind"), "kind", made["kind"].cast(pa.string()))
parquet.write_table(made, sys.argv[1], **json.loads(sys.argv[2]))
"""
)


def written(peer_arrow, path, **options):
    peer_arrow(PARQUET, path, json.dumps(options))
    return path


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_what_pyarrow_writes_is_read(peer_arrow, stoker_cli, tmp_path, compression, version, dictionary):
    path = written(
        peer_arrow,
        tmp_path / "x.parquet",
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        row_group_size=11,
        data_page_size=300,
        write_batch_size=3,
        write_page_checksum=dictionary,
    )
    assert_rows(path, rows())
    described = stoker_cli("check", path, "--json").json
    assert (described["format"], described["samples"], described["faults"]) == ("parquet", ROWS, [])
    assert stoker_cli("index", path, "--full", "--json").json["faults"] == []
    assert_rows(path, rows())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_other_encodings(peer_arrow, tmp_path, version):
    delta, split = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"
    encodings = {"int8": delta, "int32": delta, "int64": delta, "uint64": delta, "bool": "RLE"}
    encodings |= {"float32": split, "float64": split, "fixed": split, "blob": "DELTA_LENGTH_BYTE_ARRAY"}
    encodings |= {"caption": "DELTA_BYTE_ARRAY", "longer": "DELTA_BYTE_ARRAY", "image": "DELTA_LENGTH_BYTE_ARRAY"}
    options = {"use_dictionary": False, "column_encoding": encodings, "compression": "zstd"}
    path = written(peer_arrow, tmp_path / "x.parquet", data_page_version=version, **options)
    assert_rows(path, rows())


LARGE_PAGES = """
import json, random, sys
import pyarrow as pa
import pyarrow.parquet as parquet
chance = random.Random(7)
def value(i):
    size = chance.choice([0, 10, 20_000, 65_536, 100_000, 400_000])
    return None if i % 17 == 0 else chance.randbytes(size // 2) + bytes([i % 256]) * (size - size // 2)
values = [value(i) for i in range(100)]
made = pa.table({"x": pa.array([values[i % 50] if i < 120 else values[i % 100] for i in range(200)], pa.binary())})
parquet.write_table(made, sys.argv[1], **json.loads(sys.argv[2]))
with open(sys.argv[1] + ".expected", "wb") as file:
    for row in made["x"].to_pylist():
        file.write(b"-\\n" if row is None else row.hex().encode() + b"\\n")
"""


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_a_sample_of_a_large_snappy_page_needs_a_part_of_it(peer_arrow, stoker_cli, tmp_path, version, dictionary):
    path = tmp_path / "x.parquet"
    options = {"data_page_version": version, "use_dictionary": dictionary, "dictionary_pagesize_limit": 1 << 30}
    peer_arrow(LARGE_PAGES, path, json.dumps(options))
    lines = (tmp_path / "x.parquet.expected").read_text().splitlines()
    expected = [None if line == "-" else bytes.fromhex(line) for line in lines]
    assert stoker_cli("index", path, "--full", "--json").json["faults"] == []
    dataset = stoker.open(path)
    read = [dataset[i].get("x") for i in range(len(dataset))]
    assert read == expected
    assert [sample.get("x") for sample in dataset.read_many(range(len(dataset)))] == expected

    def bytes_read():
        return int(pathlib.Path("/proc/self/io").read_text().split()[1])

    dataset = stoker.open(path)
    assert dataset[1]["x"] == expected[1]  # opens the file
    number = next(i for i in range(30, 50) if len(expected[i] or b"") == 100_000)
    before = bytes_read()
    assert dataset[number]["x"] == expected[number]
    # Snappy's parts have 64 KiB; the page has all of the column.
    assert bytes_read() - before < 5 * 65_536 < path.stat().st_size / 10


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_large_values_that_are_stored_as_they_are_stay_unread(peer_arrow, stoker_cli, tmp_path, version):
    path = tmp_path / "x.parquet"
    options = {"data_page_version": version, "use_dictionary": False, "compression": "none"}
    peer_arrow(LARGE_PAGES, path, json.dumps(options))
    lines = (tmp_path / "x.parquet.expected").read_text().splitlines()
    expected = [None if line == "-" else bytes.fromhex(line) for line in lines]

    def bytes_read():
        return int(pathlib.Path("/proc/self/io").read_text().split()[1])

    before = bytes_read()
    dataset = stoker.open(path)
    # A length and the first bytes of each.
    assert bytes_read() - before < len(expected) * 8192 < path.stat().st_size / 4
    assert [dataset[i].get("x") for i in range(len(dataset))] == expected
    assert stoker_cli("index", path, "--full", "--json").json["faults"] == []
    # A length that leads out of its page costs the rows behind it, not those before.
    contents = bytearray(path.read_bytes())
    third = next(value for value in expected[40:] if value and len(value) == 20_000)
    at = contents.index((20_000).to_bytes(4, "little") + third[:64])
    contents[at : at + 4] = b"\xff\xff\xff\x7f"
    (tmp_path / "bad.parquet").write_bytes(contents)
    faults = stoker_cli("check", tmp_path / "bad.parquet", "--json", status=1).json["faults"]
    assert "ends before its values" in faults[0]["cause"]
    found = [row.get("x") for row in read_dataset(tmp_path / "bad.parquet").values()]
    assert len(found) == len(expected) and found[:40] == expected[:40]


def test_hugging_face(peer_arrow, stoker_cli, tmp_path):
    peer_arrow(HUGGING_FACE + "dataset.to_parquet(sys.argv[1])", tmp_path / "train-00000-of-00002.parquet")
    result = stoker_cli("check", tmp_path, "--json", status=1).json
    assert [one["name"] for one in result["classes"]] == ["cat", "dog", "bird"]
    assert "missing" in result["faults"][0]["cause"]
    assert_hugging_face(tmp_path / "train-00000-of-00002.parquet", peer_arrow)


def test_what_cannot_be_read_is_named(peer_arrow, stoker_cli, tmp_path):
    peer_arrow(
        """
import decimal, sys
import pyarrow as pa
import pyarrow.parquet as parquet
made = pa.table({
    "n": pa.array([1, 2]),
    "price": pa.array([decimal.Decimal("1.50"), None]),
    "pairs": pa.array([[("a", 1)], []], type=pa.map_(pa.string(), pa.int64())),
    "boxes": pa.array([[{"x": 1}], []]),
    "squeezed": pa.array([1, 2]),
})
parquet.write_table(made, sys.argv[1], compression={"squeezed": "brotli", "n": "snappy"})
""",
        tmp_path / "x.parquet",
    )
    result = stoker_cli("check", tmp_path / "x.parquet", "--json", status=1).json
    assert {fault["field"] for fault in result["faults"]} == {"price", "pairs", "boxes", "squeezed"}
    assert [row["n"] for row in read_dataset(tmp_path / "x.parquet").values()] == [1, 2]


def test_damaged_page(peer_arrow, stoker_cli, tmp_path):
    """A page that fails its checksum costs its rows and no others."""
    path = written(peer_arrow, tmp_path / "x.parquet", compression="none", write_page_checksum=True, row_group_size=10)
    whole = path.read_bytes()
    at = whole.index(b"\xff\xd8\xff\x0f")  # the image of row 15
    path.write_bytes(whole[:at] + b"\x00" + whole[at + 1 :])
    result = stoker_cli("check", path, "--json", status=1).json
    assert any("checksum of the page" in fault["cause"] for fault in result["faults"])
    found = list(read_dataset(path).values())
    assert [i for i, row in enumerate(found) if "image" not in row] == list(range(10, 20))
    assert len(found) == ROWS and all(found[i]["meta.depth"] == 3 * i for i in range(ROWS))


def test_without_its_footer(peer_arrow, stoker_cli, tmp_path):
    path = written(peer_arrow, tmp_path / "x.parquet")
    path.write_bytes(path.read_bytes()[:-20])
    assert "footer is missing" in stoker_cli("check", path, status=None).text
