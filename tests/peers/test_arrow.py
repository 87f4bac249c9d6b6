# SPDX-License-Identifier: Apache-2.0
"""pyarrow and datasets write, we read; we write, they read."""

import hashlib
import json
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from arrow_tables import NUMBERS, ROWS, rows
from reading import read_dataset
from samples import image_folder

DATA = Path(__file__).resolve().parent.parent / "data"
TABLES = Path(__file__).with_name("arrow_tables.py").read_text()

WRITE = (
    TABLES
    + """
import sys
import pyarrow as pa

TYPES = {
    "image": pa.binary(), "caption": pa.string(), "blob": pa.binary(), "large": pa.large_binary(),
    "longer": pa.large_string(), "fixed": pa.binary(4), "box": pa.list_(pa.float32(), 4),
    "grid": pa.list_(pa.list_(pa.int16(), 3), 2), "tokens": pa.list_(pa.int64()),
    "points": pa.large_list(pa.list_(pa.float64(), 2)), "mask": pa.list_(pa.bool_()),
    "words": pa.list_(pa.string()), "kind": pa.dictionary(pa.int8(), pa.string()),
}
TYPES.update({name: pa.from_numpy_dtype(name) for name in NUMBERS})

def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [word.decode() for word in value]
    return value

def column(name, made):
    values = [plain(row.get(name)) for row in made]
    if name == "float16":
        values = [None if value is None else np.float16(value) for value in values]
    return pa.array(values, type=TYPES[name])

def table(made):
    columns = {name: column(name, made) for name in TYPES}
    meta = [{"depth": row["meta.depth"], "note": row["meta.note"]} for row in made]
    columns["meta"] = pa.array(meta, type=pa.struct([("depth", pa.int32()), ("note", pa.string())]))
    columns["nothing"] = pa.nulls(len(made))
    return pa.table(columns)
"""
)


def same(found, expected) -> bool:
    if isinstance(expected, np.ndarray):
        return (
            isinstance(found, np.ndarray)
            and (found.dtype, found.shape) == (expected.dtype, expected.shape)
            and found.tobytes() == expected.tobytes()
        )
    if isinstance(found, np.ndarray):  # a uint64 that no int64 equals
        return found.shape == () and int(found) == expected
    return found == expected and isinstance(found, str) == isinstance(expected, str)


def assert_rows(path, expected) -> None:
    found = list(read_dataset(path).values())
    assert len(found) == len(expected)
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.keys() == other.keys(), i
        for name, value in other.items():
            assert same(one[name], value), (i, name, one[name], value)


# --- Without pyarrow ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["arrow/file.arrow", "arrow/stream.arrow", "parquet/pages1.parquet", "parquet/pages2.parquet"]
)
def test_golden_files(tmp_path, name):
    """As pyarrow 26 wrote them."""
    path = shutil.copy(DATA / name, tmp_path)
    assert_rows(path, rows(6))


# --- Theirs, read by us ---------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["", "lz4", "zstd"])
@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("batch", [1, 7, ROWS])
def test_what_pyarrow_writes_is_read(peer_arrow, stoker_cli, tmp_path, compression, kind, batch):
    path = tmp_path / "x.arrow"
    peer_arrow(
        WRITE
        + """
made = table(rows())
options = pa.ipc.IpcWriteOptions(compression=sys.argv[2] or None, emit_dictionary_deltas=True)
new = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}[sys.argv[3]]
with new(sys.argv[1], made.schema, options=options) as writer:
    writer.write_table(made, max_chunksize=int(sys.argv[4]))
""",
        path,
        compression,
        kind,
        str(batch),
    )
    assert_rows(path, rows())
    described = stoker_cli("check", path, "--json").json
    assert (described["format"], described["samples"], described["faults"]) == ("arrow", ROWS, [])
    assert stoker_cli("index", path, "--full", "--json").json["faults"] == []
    assert_rows(path, rows())


def test_feather(peer_arrow, tmp_path):
    peer_arrow(WRITE + "import pyarrow.feather as f\nf.write_feather(table(rows()), sys.argv[1])", tmp_path / "x.feather")
    assert_rows(tmp_path / "x.feather", rows())


def test_views_and_delta_dictionaries(peer_arrow, tmp_path):
    peer_arrow(
        """
import sys
import pyarrow as pa
words = ["short", "rather longer than twelve bytes", "", None]
view = pa.array(words, type=pa.string_view())
with pa.ipc.new_stream(sys.argv[1], pa.schema([("v", pa.string_view()), ("d", pa.dictionary(pa.int32(), pa.string()))]),
                       options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as writer:
    for values in (["a", "b"], ["a", "b", "c"]):
        indices = pa.array([0, 1, len(values) - 1, None], type=pa.int32())
        d = pa.DictionaryArray.from_arrays(indices, pa.array(values))
        writer.write_batch(pa.record_batch([view, d], names=["v", "d"]))
""",
        tmp_path / "x.arrow",
    )
    found = list(read_dataset(tmp_path / "x.arrow").values())
    words = ["short", "rather longer than twelve bytes", ""]
    assert [row.get("v") for row in found] == [*words, None] * 2
    assert [row.get("d") for row in found] == ["a", "b", "b", None, "a", "b", "c", None]


def test_what_cannot_be_read_is_named(peer_arrow, stoker_cli, tmp_path):
    peer_arrow(
        """
import decimal, sys
import pyarrow as pa
made = pa.table({
    "n": pa.array([1, 2]),
    "price": pa.array([decimal.Decimal("1.50"), None]),
    "when": pa.array([5, 6], type=pa.timestamp("us")),
    "pairs": pa.array([[("a", 1)], []], type=pa.map_(pa.string(), pa.int64())),
    "boxes": pa.array([[{"x": 1}], []]),
    "ragged": pa.array([[[1], [2, 3]], [[4, 5], [6, 7]]]),
})
with pa.ipc.new_file(sys.argv[1], made.schema) as writer:
    writer.write_table(made)
""",
        tmp_path / "x.arrow",
    )
    result = stoker_cli("check", tmp_path / "x.arrow", "--json", status=1).json
    assert {fault["field"] for fault in result["faults"]} == {"price", "pairs", "boxes", "ragged"}
    found = list(read_dataset(tmp_path / "x.arrow").values())
    assert [(row["n"], row["when"]) for row in found] == [(1, 5), (2, 6)]


def test_a_stream_that_was_cut_off(peer_arrow, stoker_cli, tmp_path):
    """Between two batches: the whole ones are read, and it is said."""
    ends = json.loads(
        peer_arrow(
            """
import json, sys
import pyarrow as pa
ends = []
with open(sys.argv[1], "wb") as file, pa.ipc.new_stream(file, pa.schema([("n", pa.int64())])) as writer:
    for k in range(3):
        writer.write_batch(pa.record_batch([pa.array(range(10))], names=["n"]))
        file.flush()
        ends.append(file.tell())
print(json.dumps(ends))
""",
            tmp_path / "x.arrow",
        )
    )
    whole = (tmp_path / "x.arrow").read_bytes()
    for size, rows_left in [(ends[1], 20), (ends[1] + 30, 20), (ends[0], 10)]:
        (tmp_path / "x.arrow").write_bytes(whole[:size])
        result = stoker_cli("check", tmp_path / "x.arrow", "--json", status=1).json
        assert result["samples"] == rows_left
        assert "cut off" in result["faults"][0]["cause"] or "truncated" in result["faults"][0]["cause"]


HUGGING_FACE = """
import io, sys
import numpy as np
from PIL import Image as Picture
from datasets import Array2D, ClassLabel, Dataset, DatasetDict, Features, Image, Sequence, Value

def encoded(i):
    pixels = (np.arange(8 * 12 * 3).reshape(8, 12, 3) * (i + 1) % 256).astype("uint8")
    file = io.BytesIO()
    Picture.fromarray(pixels).save(file, "PNG" if i % 2 else "JPEG")
    return file.getvalue()

features = Features({
    "img": Image(), "fine": ClassLabel(names=["cat", "dog", "bird"]), "caption": Value("string"),
    "emb": Array2D((2, 3), "float32"), "boxes": Sequence(Sequence(Value("float32"), length=4)),
})
made = [
    {"img": {"bytes": encoded(i), "path": f"x{i}.png" if i % 2 else None}, "fine": i % 3, "caption": f"c{i}",
     "emb": np.arange(6).reshape(2, 3) + i, "boxes": [[k, 1, 2, i] for k in range(i % 3)]}
    for i in range(30)
]
dataset = Dataset.from_list(made, features=features)
"""


def assert_hugging_face(path, peer_arrow) -> None:
    found = list(read_dataset(path).values())
    images = peer_arrow(HUGGING_FACE + 'import hashlib\nfor i in range(30): print(hashlib.sha256(encoded(i)).hexdigest())')
    assert [hashlib.sha256(row["image"]).hexdigest() for row in found] == images.split()
    for i, row in enumerate(found):
        assert (row["label"], row["caption"], row.get("image.path")) == (i % 3, f"c{i}", f"x{i}.png" if i % 2 else None)
        assert same(row["emb"], (np.arange(6).reshape(2, 3) + i).astype("float32"))
        assert same(row["boxes"], np.array([[k, 1, 2, i] for k in range(i % 3)], "float32").reshape(-1, 4))


def test_saved_datasets(peer_arrow, stoker_cli, tmp_path):
    peer_arrow(HUGGING_FACE + 'dataset.save_to_disk(sys.argv[1] + "/one", num_shards=3)', tmp_path)
    assert_hugging_face(tmp_path / "one", peer_arrow)
    result = stoker_cli("check", tmp_path / "one", "--json").json
    assert [one["name"] for one in result["classes"]] == ["cat", "dog", "bird"]
    assert result["shards"] == 3
    (tmp_path / "one" / "data-00001-of-00003.arrow").unlink()
    assert "missing" in stoker_cli("check", tmp_path / "one", status=1).text


def test_splits_are_named(peer_arrow, stoker_cli, tmp_path):
    """Whatever they are called: dataset_dict.json says that they are splits."""
    script = 'DatasetDict(a=dataset, b=dataset.select(range(10))).save_to_disk(sys.argv[1] + "/two")'
    peer_arrow(HUGGING_FACE + script, tmp_path)
    document = stoker_cli("check", tmp_path / "two", "--json", status=2).json
    assert [split["path"] for split in document["splits"]] == [f"{tmp_path}/two::a", f"{tmp_path}/two::b"]
    for path, samples in ((tmp_path / "two" / "a", 30), (f"{tmp_path}/two::a", 30), (f"{tmp_path}/two::b", 10)):
        assert stoker_cli("check", path, "--json").json["samples"] == samples


def test_a_dict_of_one_split_is_that_dataset(peer_arrow, stoker_cli, tmp_path):
    peer_arrow(HUGGING_FACE + 'DatasetDict(train=dataset).save_to_disk(sys.argv[1] + "/one")', tmp_path)
    for path in (tmp_path / "one", f"{tmp_path}/one::train", tmp_path / "one" / "train"):
        assert stoker_cli("check", path, "--json").json["samples"] == 30


# --- Ours, read by them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["arrow", "feather"])
def test_every_type_survives(peer_arrow, stoker_cli, tmp_path, format):
    peer_arrow(
        WRITE + "made = table(rows())\nwith pa.ipc.new_file(sys.argv[1], made.schema) as w: w.write_table(made)",
        tmp_path / "x.arrow",
    )
    stoker_cli("pack", tmp_path / "x.arrow", tmp_path / "packed", "--to", format)
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "x.arrow")
    (shard,) = (tmp_path / "packed").glob(f"*.{format}")
    printed = peer_arrow(
        TABLES
        + """
import json, sys
import pyarrow as pa
source = open(sys.argv[1], "rb").read()
reader = pa.ipc.open_stream(source) if sys.argv[1].endswith(".arrow") else pa.ipc.open_file(source)
table = reader.read_all()
table.validate(full=True)
for name in NUMBERS:
    assert table.schema.field(name).type == pa.from_numpy_dtype(name), table.schema
names = ("caption", "int64", "tokens", "box", "grid", "float32", "bool")
print(json.dumps([{name: row[name] for name in names} for row in table.to_pylist()]))
""",
        shard,
    )
    for found, expected in zip(json.loads(printed), rows(), strict=True):
        for name, value in found.items():
            expected_value = expected.get(name)
            if isinstance(expected_value, np.ndarray):
                expected_value = expected_value.tolist()
            assert value == expected_value, name
    shutil.rmtree(tmp_path / "packed/.stoker")  # what pack said about it, and what a scan finds
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "x.arrow")


def test_datasets_opens_what_we_write(peer_arrow, stoker_cli, tmp_path):
    files = image_folder(tmp_path / "folder")
    stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--to", "arrow")
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "folder")
    printed = peer_arrow(
        """
import json, sys
from datasets import Image, load_from_disk
dataset = load_from_disk(sys.argv[1]).cast_column("image", Image(decode=False))
print(json.dumps([
    [row["__key__"].decode(), row["image"]["path"], dataset.features["label"].int2str(row["label"]), len(row["image"]["bytes"])]
    for row in dataset
]))
""",
        tmp_path / "packed",
    )
    found = {tuple(row) for row in json.loads(printed)}
    expected = set()
    for name, data in files.items():
        key = name[: name.rindex(".")]
        expected.add((key, name.rpartition("/")[2], key.partition("/")[0], len(data)))
    assert found == expected


def test_names_of_classes_are_theirs(peer_arrow, stoker_cli, tmp_path):
    for name in ("50%", "a%20b", "ü"):
        (tmp_path / "folder" / name).mkdir(parents=True)
        (tmp_path / "folder" / name / "1.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--to", "arrow")
    shutil.rmtree(tmp_path / "packed" / ".stoker")
    names = ["50%", "a%20b", "ü"]
    classes = stoker_cli("check", tmp_path / "packed", "--json").json["classes"]
    assert [unquote(one["name"]) for one in classes] == names
    script = 'import sys\nfrom datasets import load_from_disk\nprint(load_from_disk(sys.argv[1]).features["label"].names)'
    assert peer_arrow(script, tmp_path / "packed").strip() == str(names)


def test_paths_of_images_stay(peer_arrow, stoker_cli, tmp_path):
    """Also those that are what would have been made up from the key."""
    peer_arrow(
        """
import sys
import pyarrow as pa, pyarrow.feather as feather
image = [b"\\xff\\xd8\\xff\\xe0" + bytes([i]) for i in range(3)]
table = {"__key__": ["a", "b", "c"], "image": image, "image.path": ["a.jpg", None, "else/b.jpg"]}
feather.write_feather(pa.table(table), sys.argv[1])
""",
        tmp_path / "x.feather",
    )
    stoker_cli("pack", tmp_path / "x.feather", tmp_path / "packed", "--to", "arrow")
    shutil.rmtree(tmp_path / "packed" / ".stoker")
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "x.feather")


def test_text_that_is_not_utf8_is_left_out(peer_arrow, stoker_cli, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_bytes(b"caf\xe9")
    (tmp_path / "texts" / "b.txt").write_bytes("café".encode())
    result = stoker_cli("pack", tmp_path / "texts", tmp_path / "packed", "--to", "arrow", status=1)
    assert "sample 'a', field txt: text that is not UTF-8" in result.text
    script = 'import sys\nfrom datasets import load_from_disk\nprint(load_from_disk(sys.argv[1])["txt"][:])'
    assert peer_arrow(script, tmp_path / "packed").strip() == "['café']"


def test_large_samples_make_small_batches(peer_arrow, stoker_cli, tmp_path):
    """A batch's offsets count to 2 GiB."""
    peer_arrow(
        """
import struct, sys
import pyarrow as pa
size = 9 << 20
views = struct.pack("<i4sii", size, b"UUUU", 0, 0) * 20  # of one buffer
clips = pa.Array.from_buffers(pa.binary_view(), 20, [None, pa.py_buffer(views), pa.py_buffer(b"U" * size)])
with pa.ipc.new_stream(sys.argv[1], pa.schema([("clip", pa.binary_view())])) as writer:
    writer.write_batch(pa.record_batch([clips], names=["clip"]))
""",
        tmp_path / "x.arrow",
    )
    stoker_cli("pack", tmp_path / "x.arrow", tmp_path / "packed", "--to", "feather")
    (shard,) = (tmp_path / "packed").glob("*.feather")
    script = "import sys\nimport pyarrow as pa\nprint(pa.ipc.open_file(pa.memory_map(sys.argv[1])).num_record_batches)"
    assert peer_arrow(script, shard).strip() == "10"


def test_every_number_has_a_column():
    assert set(NUMBERS) <= set(rows(1, nulls=False)[0])
