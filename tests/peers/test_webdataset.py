# SPDX-License-Identifier: Apache-2.0
"""webdataset writes, we read; we write, webdataset reads."""

import json

import pytest
from reading import assert_same_samples, read_dataset, samples_of, value_of
from samples import multi_file_samples, shards_of, write_files
from tar_bytes import all_members
from tfrecord_bytes import example, record

# ShardWriter encodes by extension; TarWriter with encoder=False takes bytes as they are.
WRITE = """
import sys
import numpy as np, webdataset
directory = sys.argv[1]
rng = np.random.default_rng(5)
with webdataset.ShardWriter(directory + "/w-%06d.tar", maxcount=7, verbose=0) as sink:
    for i in range(25):
        sample = {
            "__key__": f"some/dir/s{i:04d}",
            "jpg": rng.integers(0, 256, (8, 9, 3), dtype="uint8"),
            "cls": i % 4,
            "json": {"id": i, "text": "grüße"},
            "npy": rng.normal(size=(i % 3, 4)).astype("float32"),
            "txt": f"caption {i} 世界",
            "pyd": {"a": i},
            "seg.png": rng.integers(0, 256, (4, 4), dtype="uint8"),
            "depth.npy": np.arange(i, dtype="uint16"),
            "count.cls": -i,
            "html": "<b>x</b>",
        }
        if i % 5 == 0:
            del sample["txt"]
        sink.write(sample)
"""

# What webdataset itself makes of shards: the raw bytes of every field, and what it decodes them to.
READ = """
import json, sys
import numpy as np, webdataset
urls = sys.argv[1:]
raw = []
for sample in webdataset.WebDataset(urls, shardshuffle=False):
    raw.append({k: (v.hex() if isinstance(v, bytes) else v) for k, v in sample.items() if k not in ("__url__", "__local_path__")})
decoded = []
for sample in webdataset.WebDataset(urls, shardshuffle=False).decode("rgb8"):
    fields = {}
    for name, value in sample.items():
        if isinstance(value, np.ndarray):
            value = [str(value.dtype), list(value.shape), value.tobytes().hex()]
        elif isinstance(value, bytes):
            value = value.hex()
        fields[name] = value
    decoded.append({k: v for k, v in fields.items() if k not in ("__url__", "__local_path__")})
print(json.dumps({"raw": raw, "decoded": decoded}))
"""


def read_by_webdataset(peer, paths):
    return json.loads(peer(READ, *map(str, paths)))


@pytest.fixture
def written(peer_webdataset, tmp_path):
    directory = tmp_path / "written"
    directory.mkdir()
    peer_webdataset(WRITE, directory)
    assert len(shards_of(directory)) == 4
    return directory


def as_samples(raw: list[dict]) -> dict[str, dict]:
    """webdataset's raw samples as ours should be."""
    return {
        sample["__key__"]: dict(
            value_of(suffix, bytes.fromhex(data)) for suffix, data in sample.items() if suffix != "__key__"
        )
        for sample in raw
    }


def test_what_webdataset_writes_is_read(peer_webdataset, written):
    theirs = as_samples(read_by_webdataset(peer_webdataset, shards_of(written))["raw"])
    assert len(theirs) == 25
    ours = read_dataset(written)
    for key, fields in ours.items():
        # The sample that lacks a field has no entry for it, as webdataset's has none.
        assert fields.keys() == theirs[key].keys()
    assert_same_samples(ours, theirs)


def test_what_webdataset_writes_is_checked_and_indexed(stoker_cli, written):
    result = stoker_cli("check", written, "--json").json
    assert (result["samples"], result["shards"], result["faults"]) == (25, 4, [])
    result = stoker_cli("index", written, "--full", "--json").json
    assert (result["samples"], result["faults"]) == (25, [])


def test_splits_next_to_each_other(peer_webdataset, stoker_cli, tmp_path):
    """With the lists of shards that webdataset's own tools put there, which are no samples."""
    script = """
import sys
import webdataset
for split, count in (("train", 20), ("val", 6)):
    with webdataset.ShardWriter(sys.argv[1] + "/" + split + "-%06d.tar", maxcount=10, verbose=0) as sink:
        for i in range(count):
            sink.write({"__key__": f"{split}{i}", "cls": i})
"""
    peer_webdataset(script, tmp_path)
    (tmp_path / "index.json").write_text('{"wids_version": 1, "shardlist": [{"url": "train-000000.tar", "nsamples": 10}]}')
    document = stoker_cli("check", tmp_path, "--json", status=2).json
    assert [(split["name"], split["files"]) for split in document["splits"]] == [("train", 2), ("val", 1)]
    assert stoker_cli("check", f"{tmp_path}::train", "--json").json["samples"] == 20
    assert sorted(read_dataset(f"{tmp_path}::val")) == [f"val{i}" for i in range(6)]


def test_compressed_by_webdataset(peer_webdataset, stoker_cli, tmp_path):
    script = """
import sys, webdataset
with webdataset.TarWriter(sys.argv[1], encoder=False) as sink:
    for i in range(10):
        sink.write({"__key__": f"k{i}", "bin": bytes([i]) * i})
"""
    (tmp_path / "d").mkdir()
    peer_webdataset(script, tmp_path / "d/x.tar.gz")
    assert (tmp_path / "d/x.tar.gz").read_bytes()[:2] == b"\x1f\x8b"
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed")
    assert all_members(shards_of(tmp_path / "packed")) == {f"k{i}.bin": bytes([i]) * i for i in range(10)}


def test_what_we_write_is_read_by_webdataset(peer_webdataset, stoker_cli, tmp_path):
    files = multi_file_samples(tmp_path / "source", 20)
    write_files(tmp_path / "source", {"deep/er/one.cls": b"3", "deep/er/one.weights.npy": files["left/sample0007.npy"]})
    files["deep/er/one.cls"], files["deep/er/one.weights.npy"] = b"3", files["left/sample0007.npy"]
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--shard-size", "20K")
    assert len(shards_of(tmp_path / "packed")) > 2
    theirs = read_by_webdataset(peer_webdataset, shards_of(tmp_path / "packed"))
    raw = {
        f"{s['__key__']}.{suffix}": bytes.fromhex(v)
        for s in theirs["raw"]
        for suffix, v in s.items()
        if suffix != "__key__"
    }
    assert raw == files
    decoded = {sample["__key__"]: sample for sample in theirs["decoded"]}
    for key, fields in samples_of(files).items():
        assert decoded[key].keys() - {"__key__"} == {
            name[len(key) + 1 :] for name in files if name.startswith(f"{key}.")
        }
        assert decoded[key]["cls"] == fields["label"]
        if "txt" in fields:
            assert decoded[key]["txt"] == fields["txt"]
        if "json" in fields:
            assert decoded[key]["json"] == json.loads(fields["json"])
        if "npy" in fields:
            array = fields["npy"]
            assert decoded[key]["npy"] == [str(array.dtype), list(array.shape), array.tobytes().hex()]
        if "image" in fields:
            assert decoded[key]["jpg"][:2] == ["uint8", [16, 24, 3]]


def test_class_directories_become_cls(peer_webdataset, stoker_cli, tmp_path):
    write_files(tmp_path / "source", {"b/x.jpg": b"1", "a/y.jpg": b"2", "b/z.png": b"3"})
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed")
    raw = read_by_webdataset_raw(peer_webdataset, shards_of(tmp_path / "packed"))
    assert raw == {
        "a/y": {"jpg": b"2", "cls": b"0"},
        "b/x": {"jpg": b"1", "cls": b"1"},
        "b/z": {"png": b"3", "cls": b"1"},
    }


def read_by_webdataset_raw(peer, paths) -> dict[str, dict[str, bytes]]:
    script = READ.split("decoded = []")[0] + "\nprint(json.dumps(raw))"
    samples = json.loads(peer(script, *map(str, paths)))
    return {s["__key__"]: {k: bytes.fromhex(v) for k, v in s.items() if k != "__key__"} for s in samples}


def test_from_tfrecord_to_webdataset(peer_webdataset, stoker_cli, tmp_path):
    """What came out of tf.train.Example must still be something webdataset can name and read."""
    (tmp_path / "d").mkdir()
    data = record(
        example({"image/encoded": [b"\xff\xd8 not a picture"], "label": [5], "list": [b"a", b"b"], "w": [0.5]})
    )
    (tmp_path / "d/x.tfrecord").write_bytes(data)
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed")
    raw = read_by_webdataset_raw(peer_webdataset, shards_of(tmp_path / "packed"))
    assert raw.keys() == {"x-00000000"}
    assert raw["x-00000000"]["cls"] == b"5"
    assert b"\xff\xd8 not a picture" in raw["x-00000000"].values()
    # And back to the same Example.
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "d")
