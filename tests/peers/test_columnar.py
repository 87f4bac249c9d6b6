# SPDX-License-Identifier: Apache-2.0
"""Arrow and Parquet files that are odd but right, and files that claim more than they hold."""

import gzip
import struct
import zlib

import pytest

PYARROW = """
import sys
import numpy as np
import pyarrow as pa, pyarrow.feather as feather, pyarrow.parquet as parquet
path = sys.argv[1]
"""
# Hostile files must not need more address space than this.
MEMORY = 2 << 30


def fields_of(stoker_cli, path, **options):
    result = stoker_cli("check", path, "--json", memory=MEMORY, **options).json
    return result["samples"], {field["name"]: field for field in result["fields"]}


# --- Right ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.feather", "x.parquet"])
@pytest.mark.parametrize(("full", "shape"), [(100, [-1, 4]), (0, [0, 0])])
def test_empty_lists_come_first(peer_arrow, stoker_cli, tmp_path, name, full, shape):
    """They do not say how long inner lists are: whatever comes batches later does, or nothing."""
    peer_arrow(
        PYARROW
        + """
rows = [[]] * 300 + [[[1.0, 2.0, 3.0, 4.0]]] * int(sys.argv[2])
table = pa.table({"n": range(len(rows)), "boxes": pa.array(rows, pa.list_(pa.list_(pa.float32())))})
if path.endswith("parquet"):
    parquet.write_table(table, path, row_group_size=100)
else:
    feather.write_feather(table, path, chunksize=100)
""",
        tmp_path / name,
        str(full),
    )
    samples, fields = fields_of(stoker_cli, tmp_path / name)
    assert (samples, fields["boxes"]["present"], fields["boxes"]["shape"]) == (300 + full, 300 + full, shape)
    stoker_cli("pack", tmp_path / name, tmp_path / "packed", "--to", "arrow")
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / name)


@pytest.mark.parametrize("name", ["x.arrow", "x.feather", "x.parquet", "x.tar", "x.tfrecord", "x.h5", "x.mdb", "x"])
@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_contents_beat_names(peer_arrow, stoker_cli, tmp_path, name, format):
    write = {"arrow": "feather.write_feather", "parquet": "parquet.write_table"}[format]
    peer_arrow(PYARROW + f'{write}(pa.table({{"n": [1, 2, 3]}}), path)', tmp_path / name)
    result = stoker_cli("check", tmp_path / name, "--json").json
    expected = "feather" if (format, name) == ("arrow", "x.feather") else format
    assert (result["format"], result["samples"], result["faults"]) == (expected, 3, [])


def test_a_member_called_like_a_format(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "PAR1.txt").write_text("x")
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed", "--to", "tar")
    (shard,) = (tmp_path / "packed").glob("*.tar")
    shard = shard.rename(tmp_path / "x.tar")
    assert shard.read_bytes().startswith(b"PAR1")
    assert stoker_cli("check", shard, "--json").json["format"] == "tar"


def test_levels_that_are_not_there(peer_arrow, stoker_cli, tmp_path):
    """parquet-mr says of flat columns that their repetition levels are BIT_PACKED."""
    path = tmp_path / "x.parquet"
    options = 'compression="none", use_dictionary=False, write_statistics=False'
    peer_arrow(PYARROW + f'parquet.write_table(pa.table({{"n": [1, 2, None, 4]}}), path, {options})', path)
    file = bytearray(path.read_bytes())
    at = file.index(bytes([0x15, 8, 0x15, 0, 0x15, 6, 0x15, 6]))  # values, encoding, definition, repetition
    file[at + 7] = 8
    path.write_bytes(file)
    samples, fields = fields_of(stoker_cli, path)
    assert (samples, fields["n"]["present"]) == (4, 3)


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ('"tags": pa.array([["cat"]] * n)', 1_000_000),
        ('"mask": pa.array([[0] * 64] * n)', 100_000),
        ('"i": np.arange(n), "label": np.zeros(n, np.int64)', 1_500_000),
    ],
)
def test_much_of_the_same(peer_arrow, stoker_cli, tmp_path, columns, rows):
    """Runs of equal values take next to nothing, and so does the index of them."""
    script = f"n = {rows}\nparquet.write_table(pa.table({{{columns}}}), path, row_group_size=n)"
    peer_arrow(PYARROW + script, tmp_path / "x.parquet")
    samples, fields = fields_of(stoker_cli, tmp_path / "x.parquet")
    assert samples == rows and all(field["present"] == rows for field in fields.values())


def test_pages_of_several_gzip_members(peer_arrow, stoker_cli, tmp_path):
    path = tmp_path / "x.parquet"
    peer_arrow(
        PYARROW
        + """
values = np.random.default_rng(1).integers(0, 4, 5000)
options = dict(compression="gzip", compression_level=1, use_dictionary=False, write_statistics=False)
parquet.write_table(pa.table({"n": values}), path, **options)
""",
        path,
    )
    file = path.read_bytes()
    at = file.index(b"\x1f\x8b")
    whole = zlib.decompressobj(31)
    values = whole.decompress(file[at:])
    size = len(file) - at - len(whole.unused_data)
    first, second = gzip.compress(values[:20000], mtime=0), gzip.compress(values[20000:], mtime=0)
    name = b"n" * (size - len(first) - len(second) - 1) + b"\0"  # as long as the one member was
    second = second[:3] + b"\x08" + second[4:10] + name + second[10:]
    path.write_bytes(file[:at] + first + second + file[at + size :])
    assert peer_arrow(PYARROW + "print(len(parquet.read_table(path)))", path).strip() == "5000"
    samples, fields = fields_of(stoker_cli, path)
    assert (samples, fields["n"]["present"]) == (5000, 5000)


def test_splits_in_one_folder(peer_arrow, stoker_cli, tmp_path):
    """As the hub has them: a card, and the files in data/."""
    hub = tmp_path / "hub"
    data = hub / "data"
    data.mkdir(parents=True)
    (hub / "README.md").write_text("# a card\n")
    for split, rows in [("train", 100), ("test", 20)]:
        script = f'parquet.write_table(pa.table({{"text": ["{split}"] * {rows}}}), path)'
        peer_arrow(PYARROW + script, data / f"{split}-00000-of-00001.parquet")
    for path in (hub, data):
        document = stoker_cli("check", path, "--json", status=2).json
        assert [split["path"] for split in document["splits"]] == [f"{path}::test", f"{path}::train"]
        assert f"{data}::train" in stoker_cli("index", path, status=2).stderr
        assert stoker_cli("check", f"{path}::train", "--json").json["samples"] == 100
        assert "no such split" in stoker_cli("check", f"{path}::val", status=1).stderr
    (data / "test-00000-of-00001.parquet").unlink()
    assert stoker_cli("check", hub, "--json").json["samples"] == 100


def test_what_petastorm_and_spark_put_next_to_shards(peer_arrow, stoker_cli, tmp_path):
    script = 'parquet.write_table(pa.table({"id": [1, 2, 3]}), path)'
    for name in ("part-00000-77.snappy.parquet", "_common_metadata", "_metadata"):
        peer_arrow(PYARROW + script, tmp_path / name)
    (tmp_path / "_SUCCESS").write_bytes(b"")
    checked = stoker_cli("check", tmp_path, "--json").json
    assert (checked["format"], checked["samples"]) == ("parquet", 3)


def test_shards_in_sub_directories_are_several_datasets(peer_arrow, stoker_cli, tmp_path):
    """Configurations of the hub, or partitions: their files are no samples."""
    for name in ("de", "en"):
        (tmp_path / name).mkdir()
        script = 'parquet.write_table(pa.table({"text": ["a"]}), path)'
        peer_arrow(PYARROW + script, tmp_path / name / "part-0.parquet")
    (tmp_path / "README.md").write_text("# a card\n")
    assert "holds 2 datasets" in stoker_cli("check", tmp_path, status=2).stderr


def test_shapes_that_parquet_does_not_know(peer_arrow, stoker_cli, tmp_path):
    """Arrow's schema is in the metadata."""
    peer_arrow(
        PYARROW
        + """
tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(24, dtype="float32").reshape(2, 3, 4))
parquet.write_table(pa.table({
    "tensor": tensor,
    "point": pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
    "grid": pa.array([[[1, 2], [3, 4], [5, 6]]] * 2, pa.list_(pa.list_(pa.int16(), 2), 3)),
    "boxes": pa.array([[[1, 2]], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int16(), 2))),
    "none": pa.array([[], []], pa.list_(pa.list_(pa.int16(), 2))),
}), path)
""",
        tmp_path / "x.parquet",
    )
    _, fields = fields_of(stoker_cli, tmp_path / "x.parquet")
    shapes = {name: field["shape"] for name, field in fields.items()}
    assert shapes == {"tensor": [3, 4], "point": [2], "grid": [3, 2], "boxes": [-1, 2], "none": [-1, 2]}


@pytest.mark.parametrize("save", ["save_to_disk(path)", "to_parquet(path)"])
def test_shapes_that_datasets_states(peer_arrow, stoker_cli, tmp_path, save):
    path = tmp_path / "x.parquet"
    peer_arrow(
        PYARROW
        + f"""
from datasets import Array2D, Dataset, Features
made = {{"a": [np.ones((4, 5), "float32")] * 3, "b": [np.ones((k, 5), "float32") for k in (1, 2, 3)]}}
features = Features(a=Array2D((4, 5), "float32"), b=Array2D((None, 5), "float32"))
Dataset.from_dict(made, features=features).{save}
""",
        path,
    )
    _, fields = fields_of(stoker_cli, path)
    assert (fields["a"]["shape"], fields["b"]["shape"]) == ([4, 5], [-1, 5])


def test_saved_without_samples(peer_arrow, stoker_cli, tmp_path):
    peer_arrow(PYARROW + "from datasets import Dataset\nDataset.from_dict({'n': []}).save_to_disk(path)", tmp_path / "d")
    assert "a dataset without samples" in stoker_cli("check", tmp_path / "d", status=1).stderr


# --- Hostile --------------------------------------------------------------------------------------------

FLATBUFFERS = """
import struct
def number(kind, b, at): return struct.unpack_from("<" + kind, b, at)[0]
def field(b, table, i):
    slots = table - number("i", b, table)
    return table + number("H", b, slots + 4 + 2 * i)
def follow(b, at): return at + number("I", b, at)
"""


def test_batches_that_share_a_body(peer_arrow, stoker_cli, tmp_path):
    """The footer lists small messages whose own lengths reach to the end of the file."""
    peer_arrow(
        PYARROW
        + FLATBUFFERS
        + """
import io
count, rows = 1000, 100_000
schema = pa.schema([("n", pa.int8())])
message = pa.record_batch([pa.array([0] * rows, pa.int8())], schema=schema).serialize().to_pybytes()
size = 8 + number("i", message, 4)
empty = io.BytesIO()
with pa.ipc.new_file(empty, schema) as writer:
    for _ in range(count):
        writer.write_batch(pa.record_batch([pa.array([], pa.int8())], schema=schema))
whole = empty.getvalue()
length = number("i", whole, len(whole) - 10)
footer = bytearray(whole[len(whole) - 10 - length : len(whole) - 10])
made = b"ARROW1\\0\\0" + schema.serialize().to_pybytes()
blocks = follow(footer, field(footer, follow(footer, 0), 3))
for i in range(count):
    struct.pack_into("<qiiq", footer, blocks + 4 + 24 * i, len(made) + i * size, size, 0, 0)
made += message[:size] * count + message[size:]
made += b"\\xff\\xff\\xff\\xff\\0\\0\\0\\0" + footer + struct.pack("<i", length) + b"ARROW1"
open(path, "wb").write(made)
""",
        tmp_path / "x.arrow",
    )
    result = stoker_cli("check", tmp_path / "x.arrow", "--json", status=1, memory=MEMORY).json
    assert result["samples"] == 100_000
    assert "reaches into the next one" in result["faults"][0]["cause"]


def test_columns_that_share_a_buffer(peer_arrow, stoker_cli, tmp_path):
    peer_arrow(
        PYARROW
        + FLATBUFFERS
        + """
columns, rows = 2000, 4_000_000
schema = pa.schema([(f"c{i}", pa.int8()) for i in range(columns)])
message = pa.record_batch([pa.array([0], pa.int8())] * columns, schema=schema).serialize().to_pybytes()
size = 8 + number("i", message, 4)
m = bytearray(message[8:size])
root = follow(m, 0)
struct.pack_into("<q", m, field(m, root, 3), rows)
batch = follow(m, field(m, root, 2))
struct.pack_into("<q", m, field(m, batch, 0), rows)
nodes, buffers = follow(m, field(m, batch, 1)), follow(m, field(m, batch, 2))
for i in range(columns):
    struct.pack_into("<qq", m, nodes + 4 + 16 * i, rows, 0)
    struct.pack_into("<qqqq", m, buffers + 4 + 32 * i, 0, 0, 0, rows)
end = b"\\xff\\xff\\xff\\xff\\0\\0\\0\\0"
open(path, "wb").write(schema.serialize().to_pybytes() + message[:8] + m + bytes(rows) + end)
""",
        tmp_path / "x.arrow",
    )
    result = stoker_cli("check", tmp_path / "x.arrow", "--json", status=1, memory=MEMORY).json
    assert "buffers overlap" in result["faults"][0]["cause"]


def flat_table(buffer: bytearray, slots) -> tuple[int, dict[int, int]]:
    """Appends a FlatBuffers table: where it lies, and where its slots do."""
    size = 4 + 2 * (max(number for number, _ in slots) + 1)
    buffer.extend(bytes(-(len(buffer) + size) % 8))
    head = len(buffer)
    buffer.extend(bytes(size) + struct.pack("<i", size))
    table, places = head + size, {}
    for number, value in slots:
        buffer.extend(bytes(-len(buffer) % len(value)))
        places[number] = len(buffer)
        struct.pack_into("<H", buffer, head + 4 + 2 * number, len(buffer) - table)
        buffer.extend(value)
    struct.pack_into("<HH", buffer, head, size, len(buffer) - table)
    return table, places


def test_columns_that_share_a_name(stoker_cli, tmp_path):
    """60,000 entries of the schema are one column with a long name."""
    count, name, reference = 60_000, b"n" * 700_000, bytes(4)
    b = bytearray(4)

    def refer(at, to):
        struct.pack_into("<I", b, at, to - at)

    message, slots = flat_table(b, [(3, bytes(8)), (2, reference), (0, struct.pack("<h", 4)), (1, b"\x01")])
    refer(0, message)
    schema, schema_slots = flat_table(b, [(1, reference)])
    refer(slots[2], schema)
    b.extend(bytes(-len(b) % 4))
    vector = len(b)
    b.extend(struct.pack("<I", count) + bytes(4 * count))
    refer(schema_slots[1], vector)
    field, field_slots = flat_table(b, [(0, reference), (3, reference), (2, b"\x02")])
    for i in range(count):
        refer(vector + 4 + 4 * i, field)
    kind, _ = flat_table(b, [(0, struct.pack("<i", 32)), (1, b"\x01")])
    refer(field_slots[3], kind)
    b.extend(bytes(-len(b) % 4))
    refer(field_slots[0], len(b))
    b.extend(struct.pack("<I", len(name)) + name + b"\0")
    b.extend(bytes(-len(b) % 8))
    mark = b"\xff\xff\xff\xff"
    (tmp_path / "x.arrow").write_bytes(mark + struct.pack("<i", len(b)) + bytes(b) + mark + bytes(4))
    result = stoker_cli("check", tmp_path / "x.arrow", "--json", status=1, memory=MEMORY).json
    assert "names of columns" in result["faults"][0]["cause"]


def varint(number: int) -> bytes:
    low = number & 127
    return bytes([low]) if number < 128 else bytes([low | 128]) + varint(number >> 7)


def thrift(*fields) -> bytes:
    """A struct of (id, type, value)."""
    made, last = b"", 0
    for number, kind, value in fields:
        made += bytes([number - last << 4 | kind]) + value
        last = number
    return made + b"\0"


def thrift_list(items) -> bytes:
    return bytes([0xFC]) + varint(len(items)) + b"".join(items)


def test_rows_without_bytes(stoker_cli, tmp_path):
    """Row groups without a page."""
    rows, groups = varint(2 << 20), 40
    leaf = thrift((1, 5, varint(4)), (3, 5, varint(2)), (4, 8, b"\x01x"))
    schema = thrift_list([thrift((4, 8, b"\x01r"), (5, 5, varint(2))), leaf])
    column = thrift((1, 5, varint(4)), (4, 5, b"\0"), (5, 6, rows), (7, 6, b"\0"), (9, 6, varint(8)))
    group = thrift((1, 9, thrift_list([thrift((3, 12, column))])), (3, 6, rows))
    footer = thrift((1, 5, varint(4)), (2, 9, schema), (3, 6, varint(2 * groups << 20)), (4, 9, thrift_list([group] * groups)))
    (tmp_path / "x.parquet").write_bytes(b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1")
    result = stoker_cli("check", tmp_path / "x.parquet", "--json", status=1, memory=MEMORY).json
    assert result["samples"] == 0
    assert "a row group of 0 bytes claims 1048576 rows" in result["faults"][0]["cause"]
