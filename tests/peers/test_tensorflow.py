# SPDX-License-Identifier: Apache-2.0
"""TensorFlow and the `tfrecord` package write, we read; we write, they read."""

import io
import json

import numpy as np
import pytest
from reading import assert_same_samples, read_dataset, samples_of
from samples import image_folder, multi_file_samples, noise, shards_of
from tfrecord_bytes import crc32c, example, record, records

WRITE = """
import sys
import tensorflow as tf
directory, compression = sys.argv[1], sys.argv[2]

def features(i):
    lists = {
        "key": tf.train.BytesList(value=[b"sample %d" % i]),
        "image/encoded": tf.train.BytesList(value=[bytes([i, 255 - i]) * (i * 7)]),
        "image/class/label": tf.train.Int64List(value=[i - 3]),
        "score": tf.train.FloatList(value=[i / 8]),
        "box": tf.train.FloatList(value=[i + k / 4 for k in range(4)]),
        "tokens": tf.train.Int64List(value=[-2**63, 2**63 - 1, *range(i)]),
        "words": tf.train.BytesList(value=[b"a" * k for k in range(2 + i % 3)]),
        "none of int64": tf.train.Int64List(value=[]),
        "none of float": tf.train.FloatList(value=[]),
        "none of bytes": tf.train.BytesList(value=[]),
    }
    if i % 4 == 0:
        del lists["score"]
    kinds = {tf.train.BytesList: "bytes_list", tf.train.Int64List: "int64_list", tf.train.FloatList: "float_list"}
    return {name: tf.train.Feature(**{kinds[type(value)]: value}) for name, value in lists.items()}

for shard in range(3):
    options = tf.io.TFRecordOptions(compression_type=compression)
    with tf.io.TFRecordWriter(f"{directory}/train-{shard:05d}-of-00003", options) as writer:
        for i in range(10 * shard, 10 * shard + 10):
            writer.write(tf.train.Example(features=tf.train.Features(feature=features(i))).SerializeToString())
"""


def expected_samples() -> dict[str, dict]:
    found = {}
    for i in range(30):
        sample = {
            "key": b"sample %d" % i,
            "image/encoded": bytes([i, 255 - i]) * (i * 7),
            "image/class/label": i - 3,
            "score": np.float32(i / 8),
            "box": np.array([i + k / 4 for k in range(4)], "float32"),
            "tokens": np.array([-(2**63), 2**63 - 1, *range(i)], "int64"),
            "words": [b"a" * k for k in range(2 + i % 3)],
            "none of int64": np.array([], "int64"),
            "none of float": np.array([], "float32"),
            "none of bytes": [],
        }
        if i % 4 == 0:
            del sample["score"]
        found[f"train-{i // 10:05d}-of-00003-{i % 10:08d}"] = sample
    return found


@pytest.fixture
def written(peer_tensorflow, tmp_path):
    directory = tmp_path / "written"
    directory.mkdir()
    peer_tensorflow(WRITE, directory, "")
    return directory


def assert_same_numbers(found, expected) -> None:
    assert list(found) == list(expected)
    for key, fields in expected.items():
        assert found[key].keys() == fields.keys(), key
        for name, value in fields.items():
            read = found[key][name]
            if isinstance(value, (int, np.floating)):
                assert isinstance(read, (int, float)) and read == value, (key, name, read)
            elif isinstance(value, np.ndarray):
                assert read.dtype == value.dtype and np.array_equal(read, value), (key, name, read)
            else:
                assert read == value, (key, name, read)


# --- Theirs, read by us ---------------------------------------------------------------------------------


def test_what_tensorflow_writes_is_read(written):
    assert_same_numbers(read_dataset(written), expected_samples())


def test_what_tensorflow_writes_is_checked(stoker_cli, written):
    result = stoker_cli("check", written, "--json").json
    assert (result["format"], result["samples"], result["shards"], result["faults"]) == ("tfrecord", 30, 3, [])
    assert stoker_cli("index", written, "--full", "--json").json["faults"] == []


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_compressed(peer_tensorflow, stoker_cli, written, tmp_path, compression):
    (tmp_path / "small").mkdir()
    peer_tensorflow(WRITE, tmp_path / "small", compression)
    assert sum(map(len, map(bytes, [p.read_bytes() for p in shards_of(tmp_path / "small")]))) < sum(
        p.stat().st_size for p in shards_of(written)
    )
    stoker_cli("pack", tmp_path / "small", tmp_path / "packed", "--to", "tfrecord")
    stoker_cli("check", tmp_path / "packed", "--compare", written)
    finished = stoker_cli("index", tmp_path / "small", status=1)
    assert "stoker pack" in finished.stderr


def test_splits_of_tensorflow_datasets(peer_tensorflow, stoker_cli, tmp_path):
    """The directory of a version: shards of all splits, and what describes them."""
    script = """
import sys
import tensorflow as tf
for split, shards in (("train", 2), ("test", 1)):
    for shard in range(shards):
        with tf.io.TFRecordWriter(f"{sys.argv[1]}/mnist-{split}.tfrecord-{shard:05d}-of-{shards:05d}") as writer:
            for i in range(5):
                feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
                writer.write(tf.train.Example(features=tf.train.Features(feature={"label": feature})).SerializeToString())
"""
    peer_tensorflow(script, tmp_path)
    (tmp_path / "dataset_info.json").write_text('{"name": "mnist", "splits": [{"name": "train"}]}')
    (tmp_path / "features.json").write_text('{"pythonClassName": "FeaturesDict"}')
    document = stoker_cli("check", tmp_path, "--json", status=2).json
    assert [(split["name"], split["files"]) for split in document["splits"]] == [("test", 1), ("train", 2)]
    checked = stoker_cli("check", f"{tmp_path}::train", "--json").json
    assert (checked["format"], checked["samples"], checked["fault_count"]) == ("tfrecord", 10, 0)
    assert [field["name"] for field in checked["fields"]] == ["label"]


def test_plain_records(peer_tensorflow, tmp_path):
    script = """
import sys
import tensorflow as tf
with tf.io.TFRecordWriter(sys.argv[1]) as writer:
    for i in range(12):
        writer.write(b"plain \\xff record " * i + bytes([255]))
"""
    (tmp_path / "d").mkdir()
    peer_tensorflow(script, tmp_path / "d/p.tfrecord")
    found = read_dataset(tmp_path / "d")
    assert found == {f"p-{i:08d}": {"data": b"plain \xff record " * i + b"\xff"} for i in range(12)}


def test_what_the_tfrecord_package_writes_is_read(peer_webdataset, tmp_path):
    script = """
import sys, tfrecord
writer = tfrecord.TFRecordWriter(sys.argv[1])
for i in range(5):
    writer.write({"x": (bytes([i]) * i, "byte"), "n": (i, "int"), "f": ([0.5, i], "float")})
writer.close()
"""
    (tmp_path / "d").mkdir()
    peer_webdataset(script, tmp_path / "d/t.tfrecord")
    expected = {
        f"t-{i:08d}": {"x": bytes([i]) * i, "n": i, "f": np.array([0.5, i], "float32")} for i in range(5)
    }  # fmt: skip
    assert_same_numbers(read_dataset(tmp_path / "d"), expected)


def test_protobuf_written_in_other_ways_is_the_same(tmp_path):
    """Not packed, keys in any order, a field that comes twice: valid protobuf that other writers produce."""
    (tmp_path / "d").mkdir()
    entries = {"b": [1, 2, 300], "a": [b"x"], "c": [0.5, -1.0], "d": [-1]}
    (tmp_path / "d/t.tfrecord").write_bytes(record(example(entries, packed=False)) + record(example(entries)))
    found = list(read_dataset(tmp_path / "d").values())
    for sample in found:
        assert sample["b"].tolist() == [1, 2, 300] and sample["a"] == b"x"
        assert sample["c"].tolist() == [0.5, -1.0] and sample["d"] == -1


# --- Ours, read by them ------------------------------------------------------------------------------------

# TFRecordDataset verifies both checksums of every record.
READ = """
import json, sys
import tensorflow as tf
description = {
    "__key__": tf.io.FixedLenFeature([], tf.string),
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
    "json": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "txt": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "npy.npy": tf.io.FixedLenFeature([], tf.string, default_value=""),
}
found = []
for record in tf.data.TFRecordDataset(sys.argv[1:]):
    parsed = tf.io.parse_single_example(record, description)
    found.append({n: v.numpy().hex() if v.dtype == tf.string else int(v.numpy()) for n, v in parsed.items()})
print(json.dumps(found))
"""


def read_by_tensorflow(peer, paths) -> dict[str, dict]:
    found = {}
    for sample in json.loads(peer(READ, *map(str, paths))):
        fields = {name: bytes.fromhex(v) if isinstance(v, str) else v for name, v in sample.items()}
        key = fields.pop("__key__").decode()
        found[key] = {name: value for name, value in fields.items() if value != b""}
    return found


def test_what_we_write_is_read_by_tensorflow(peer_tensorflow, stoker_cli, tmp_path):
    files = multi_file_samples(tmp_path / "source", 20)
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--to", "tfrecord", "--shard-size", "10K")
    assert len(shards_of(tmp_path / "packed")) > 2
    theirs = read_by_tensorflow(peer_tensorflow, shards_of(tmp_path / "packed"))
    names = {"image": "jpg", "json": "json", "txt": "txt", "npy.npy": "npy"}
    expected = {}
    for key, fields in samples_of(files).items():
        expected[key] = {field: files[f"{key}.{end}"] for field, end in names.items() if f"{key}.{end}" in files}
        expected[key]["label"] = fields["label"]
    assert theirs == expected


def test_class_directories(peer_tensorflow, stoker_cli, tmp_path):
    files = image_folder(tmp_path / "source")
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--to", "tfrecord")
    theirs = read_by_tensorflow(peer_tensorflow, shards_of(tmp_path / "packed"))
    number = {"cat": 0, "dog": 1, "eel": 2}
    assert theirs == {
        name.removesuffix(".jpg"): {"image": data, "label": number[name.split("/")[0]]} for name, data in files.items()
    }


def test_what_tensorflow_wrote_comes_out_again(peer_tensorflow, stoker_cli, written, tmp_path):
    """Through tar and back: every value as it was; lists of numbers may be arrays by then, lists of bytes say so in their name."""
    stoker_cli("pack", written, tmp_path / "tar", "--to", "tar")
    stoker_cli("pack", tmp_path / "tar", tmp_path / "again", "--to", "tfrecord")
    stoker_cli("check", tmp_path / "again", "--compare", written)
    script = """
import json, sys
import tensorflow as tf
found = []
for path in sys.argv[1:]:
    for record in tf.data.TFRecordDataset(path):
        message = tf.train.Example.FromString(record.numpy())
        fields = {}
        for name, feature in message.features.feature.items():
            kind = feature.WhichOneof("kind")
            values = list(getattr(feature, kind).value) if kind else []
            fields[name] = [kind, [v.hex() if isinstance(v, bytes) else v for v in values]]
        found.append(fields)
print(json.dumps(found))
"""
    before = json.loads(peer_tensorflow(script, *map(str, shards_of(written))))
    after = json.loads(peer_tensorflow(script, *map(str, shards_of(tmp_path / "again"))))
    assert len(before) == len(after) == 30
    for one, other in zip(before, after, strict=True):
        plain = {name.removesuffix(".byteslist"): feature for name, feature in other.items()}
        assert {name.removesuffix(".npy") for name in plain} == one.keys() | {"__key__"}
        for name, (kind, values) in one.items():
            if name in plain:
                assert plain[name] == [kind, values]
            else:
                ((array,),) = (map(bytes.fromhex, other[f"{name}.npy"][1]),)
                assert np.atleast_1d(np.load(io.BytesIO(array))).tolist() == values


def test_what_we_write_is_read_by_the_tfrecord_package(peer_webdataset, stoker_cli, tmp_path):
    script = """
import json, sys, tfrecord
found = []
for path in sys.argv[1:]:
    for sample in tfrecord.tfrecord_loader(path, None, None):
        found.append([bytes(sample["__key__"]).decode(), bytes(sample["image"]).hex(), int(sample["label"][0])])
print(json.dumps(found))
"""
    files = image_folder(tmp_path / "source")
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--to", "tfrecord", "--shard-size", "20K")
    theirs = json.loads(peer_webdataset(script, *map(str, shards_of(tmp_path / "packed"))))
    number = {"cat": 0, "dog": 1, "eel": 2}
    assert theirs == [
        [name.removesuffix(".jpg"), files[name].hex(), number[name.split("/")[0]]] for name in sorted(files)
    ]


# --- Checksums --------------------------------------------------------------------------------------------


def test_our_own_crc32c_of_the_tests_is_right(peer_webdataset):
    """tfrecord_bytes.py decides what other tests take for right: compared with the crc32c package."""
    data = [noise(i, i * 13) for i in range(40)] + [b"", b"123456789"]
    script = "import crc32c, json, sys\nprint(json.dumps([crc32c.crc32c(bytes.fromhex(x)) for x in sys.argv[1:]]))"
    assert json.loads(peer_webdataset(script, *(each.hex() for each in data))) == [crc32c(each) for each in data]
    assert crc32c(b"123456789") == 0xE3069283


def test_the_examples_of_the_tests_are_right(peer_tensorflow, tmp_path):
    """So do the messages that it builds: as TensorFlow reads them, and as it writes them itself."""
    features = {"a": [b"x", b""], "b": [1, -1, 2**63 - 1], "c": [0.5, -2.0], "d": [b""]}
    (tmp_path / "x").write_bytes(record(example(features)) + record(example(features, packed=False)))
    script = """
import json, sys
import tensorflow as tf
first, second = [tf.train.Example.FromString(r.numpy()) for r in tf.data.TFRecordDataset(sys.argv[1])]
assert first == second
kinds = {"a": "bytes_list", "b": "int64_list", "c": "float_list", "d": "bytes_list"}
values = {n: list(getattr(f, kinds[n]).value) for n, f in first.features.feature.items()}
print(json.dumps({"values": repr(dict(sorted(values.items()))), "again": first.SerializeToString(deterministic=True).hex()}))
"""
    answer = json.loads(peer_tensorflow(script, tmp_path / "x"))
    assert answer["values"] == repr(features)
    assert bytes.fromhex(answer["again"]) == example(features)


def test_checksums_we_write_are_right(peer_webdataset, stoker_cli, tmp_path):
    """Every record of every length, against an independent CRC-32C."""
    script = """
import crc32c, json, struct, sys
def mask(data):
    crc = crc32c.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
count = 0
for path in sys.argv[1:]:
    contents, at = open(path, "rb").read(), 0
    while at < len(contents):
        length, first = struct.unpack_from("<QI", contents, at)
        assert first == mask(contents[at:at + 8]), (path, at)
        data = contents[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", contents, at + 12 + length)[0] == mask(data), (path, at)
        at += 16 + length
        count += 1
print(count)
"""
    (tmp_path / "d").mkdir()
    sizes = [*range(0, 70), *range(4080, 4110), 65_535, 65_536, 65_537, 1_000_003]
    for i, size in enumerate(sizes):
        (tmp_path / f"d/s{i:04d}.bin").write_bytes(noise(i, size))
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed", "--to", "tfrecord", "--shard-size", "300K")
    assert int(peer_webdataset(script, *map(str, shards_of(tmp_path / "packed")))) == len(sizes)
    for shard in shards_of(tmp_path / "packed"):
        if shard.stat().st_size < 400_000:
            records(shard.read_bytes())


def test_samples_read_back(stoker_cli, tmp_path):
    files = multi_file_samples(tmp_path / "source", 10)
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--to", "tfrecord")
    expected = samples_of({name: files[name] for name in sorted(files)})
    assert_same_samples(read_dataset(tmp_path / "packed"), expected)
