# SPDX-License-Identifier: Apache-2.0
"""Faults that cost samples or change them: raised by default, or counted and named; never passed over."""

import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
import stoker
from hostile import example, record
from lossy_shards import EACH, FAILURES, GOOD, SHARDS, name_of, rows, shard_bytes
from samples import noise
from tar_bytes import simple_tar

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]


# --- Stale labels -----------------------------------------------------------------------------------


def folder_of_labels(root: Path, labels) -> None:
    root.mkdir(exist_ok=True)
    for i, label in enumerate(labels):
        (root / f"{i:03d}.bin").write_bytes(b"x")
        (root / f"{i:03d}.cls").write_text(str(label))


def tar_of_labels(root: Path, labels) -> None:
    root.mkdir(exist_ok=True)
    files = {f"{i:03d}.cls".encode(): str(label).encode() for i, label in enumerate(labels)}
    (root / "x-000000.tar").write_bytes(simple_tar(files))


def records_of_labels(root: Path, labels) -> None:
    root.mkdir(exist_ok=True)
    (root / "x.tfrecord").write_bytes(b"".join(record(example(label=label)) for label in labels))


def array_of_labels(root: Path, labels) -> None:
    root.mkdir(exist_ok=True)
    np.save(root / "label.npy", np.asarray(labels))
    np.save(root / "x.npy", np.zeros((len(labels), 2)))


LABELLED = [folder_of_labels, tar_of_labels, records_of_labels, array_of_labels]
READERS = {
    "one by one": lambda data: [data[i]["label"] for i in range(len(data))],
    "all": lambda data: [sample["label"] for sample in data],
    "read_many": lambda data: [sample["label"] for sample in data.read_many(list(range(len(data))))],
    "fields": lambda data: [sample["label"] for sample in data.read_many(list(range(len(data))), fields=["label"])],
    "column": lambda data: data.column("label").tolist(),
    "loader": lambda data: [n for batch in stoker.Loader(data, 4, shuffle=False) for n in batch["label"].tolist()],
    "only labels": lambda data: [
        n for batch in stoker.Loader(data, 4, shuffle=False, fields=["label"]) for n in batch["label"].tolist()
    ],
    "balanced": lambda data: [
        n for batch in stoker.Loader(data, 4, weights="balanced", fields=["label"]) for n in batch["label"].tolist()
    ],
}


@pytest.mark.parametrize("opened", ["before", "after"])
@pytest.mark.parametrize("reader", sorted(READERS))
@pytest.mark.parametrize("write", LABELLED, ids=lambda write: write.__name__)
def test_labels_edited_in_place_are_not_stale(write, reader, opened, tmp_path):
    """Same size, another time: the new labels, or an error; never those that the index remembers."""
    write(tmp_path / "data", [1] * 8)
    stoker.index(tmp_path / "data", full=True)
    data = stoker.open(tmp_path / "data") if opened == "before" else None
    write(tmp_path / "data", [2] * 8)
    for path in (tmp_path / "data").iterdir():
        if path.is_file():
            os.utime(path, ns=(10**18, 10**18))
    try:
        data = stoker.open(tmp_path / "data") if data is None else data
        labels = READERS[reader](data)
    except FAILURES:
        return
    assert 1 not in labels, f"stale labels: {labels}"


# --- Structural faults ------------------------------------------------------------------------------
FAULTS = {
    # Not where a record ends, which nothing but an index could notice.
    "cut in a sample": lambda path: os.truncate(path, path.stat().st_size * 6 // 10 - 7),
    "cut to nothing": lambda path: os.truncate(path, 0),
    "missing": lambda path: path.unlink(),
    "zeros at the end": lambda path: path.write_bytes(path.read_bytes()[:15000].ljust(path.stat().st_size, b"\0")),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
    "a dangling link": lambda path: (path.unlink(), path.symlink_to("nowhere")),
    "a header overwritten": lambda path: path.write_bytes(
        path.read_bytes()[:4096] + noise("damage", 2048) + path.read_bytes()[6144:]
    ),
}


@pytest.fixture(params=["no index", "structure", "full"])
def depth(request) -> str:
    return request.param


def cannot_be_known(form: str, fault: str, depth: str) -> bool:
    """Legal, shorter files: zeros end an archive, and a file without records is one."""
    return depth == "no index" and (form, fault) in [("tar", "zeros at the end"), ("tfrecord", "cut to nothing")]


def damaged(tmp_path: Path, form: str, fault: str, depth: str) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    for shard in range(SHARDS):
        (data / name_of(shard, form)).write_bytes(shard_bytes(shard, form))
    if depth != "no index":
        stoker.index(data, full=depth == "full")
    FAULTS[fault](data / name_of(1, form))
    return data


@pytest.mark.parametrize("fault", sorted(FAULTS))
@pytest.mark.parametrize("form", ["tar", "tfrecord"])
def test_a_structural_fault_raises_by_default(form, fault, depth, tmp_path):
    """on_error="raise": all samples, bit for bit, or an exception that names the shard."""
    if cannot_be_known(form, fault, depth):
        return
    data = damaged(tmp_path, form, fault, depth)
    try:
        found = rows(stoker.Loader(data, 8))
    except FAILURES as error:
        assert name_of(1, form).split("-of-")[0] in str(error), f"does not name the shard: {error}"
        return
    assert set(found) == GOOD[form] and len(found) == SHARDS * EACH, f"{len(found)} of {SHARDS * EACH} without a word"


@pytest.mark.parametrize("fault", sorted(FAULTS))
@pytest.mark.parametrize("form", ["tar", "tfrecord"])
@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_structural_loss_is_counted_and_named(on_error, form, fault, depth, tmp_path):
    """Whatever is missing is in stats()["bad"], with its shard and, where an index knows, how many samples."""
    if cannot_be_known(form, fault, depth):
        return
    data = damaged(tmp_path, form, fault, depth)
    try:
        loader = stoker.Loader(data, 8, on_error=on_error)
        found = rows(loader)
    except FAILURES as error:
        assert name_of(1, form).split("-of-")[0] in str(error)
        return
    assert set(found) <= GOOD[form], "wrong bytes"
    lost = SHARDS * EACH - len(set(found))
    if not lost:
        return
    bad = loader.stats()["bad"]
    text = json.dumps(bad, default=str)
    assert bad, f"{lost} samples are gone and nothing is counted"
    assert name_of(1, form).split("-of-")[0] in text, text
    if depth != "no index":
        assert len(bad) >= lost or str(lost) in text, f"{lost} are lost: {text[:500]}"


def test_a_dataset_opened_with_faults_raises_in_the_loader_too(tmp_path):
    """The fault was met when the dataset was opened; the Loader gets the dataset, not its path."""
    data = damaged(tmp_path, "tar", "cut in a sample", "no index")
    try:
        opened = stoker.open(data)
    except FAILURES:
        return
    with pytest.raises(FAILURES, match="x-000001"):
        rows(stoker.Loader(opened, 8))


def test_an_index_made_of_a_damaged_shard_does_not_silence_it(tmp_path, stoker_cli):
    """The faults are in the index; a second process that finds it must hear of them as the first did."""
    data = damaged(tmp_path, "tar", "cut in a sample", "no index")
    stoker_cli("index", "--full", data, status=1)
    with pytest.raises(FAILURES, match="x-000001"):
        rows(stoker.Loader(data, 8))
    skipping = stoker.Loader(data, 8, on_error="skip")
    rows(skipping)
    assert "x-000001" in json.dumps(skipping.stats()["bad"], default=str)


def test_a_slice_of_the_good_part_is_readable(tmp_path):
    """Somebody who asks for samples of the first shard alone gets them, whatever happened to the second."""
    data = damaged(tmp_path, "tar", "cut in a sample", "full")
    assert bytes(stoker.open(data)[0]["bin"]) == noise(0, 1500)


# --- TFRecord checksums without an index ------------------------------------------------------------


@pytest.mark.parametrize("how", ["one by one", "all", "read_many", "loader"])
def test_a_flipped_payload_of_a_record_is_noticed(how, tmp_path):
    """The checksum of the data is in the file; tf.data compares it, so do we, also without a full index."""
    payloads = [noise(i, 400 + i) for i in range(30)]
    records = [record(example(x=payload)) for payload in payloads]
    damage = random.Random(1)
    for number in (3, 17, 29):
        changed = bytearray(records[number])
        at = damage.randrange(12 + 30, len(changed) - 4)  # within the payload, not the framing
        changed[at] ^= 1 << damage.randrange(8)
        records[number] = bytes(changed)
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"".join(records))
    data = stoker.open(path)
    raised, found = 0, []
    if how == "one by one":
        for i in range(len(data)):
            try:
                found.append(bytes(data[i]["x"]))
            except stoker.CorruptError:
                raised += 1
        assert raised == 3
    elif how == "all":
        samples = iter(data)
        while True:
            try:
                found.append(bytes(next(samples)["x"]))
            except StopIteration:
                break
            except stoker.CorruptError:
                raised += 1
        assert raised == 3
    elif how == "read_many":
        with pytest.raises(stoker.CorruptError):
            data.read_many(list(range(len(data))))
        found = [bytes(sample["x"]) for sample in data.read_many([0, 1, 2])]
    else:
        with pytest.raises(stoker.CorruptError):
            rows_of = [bytes(x) for batch in stoker.Loader(path, 4) for x in batch["x"]]
            found += rows_of
        loader = stoker.Loader(path, 4, on_error="skip")
        found = [bytes(x) for batch in loader for x in batch["x"]]
        assert len(loader.stats()["bad"]) == 3 and len(found) == 27
    assert set(found) <= set(payloads), "changed bytes were delivered"


def test_a_flipped_label_of_a_record_is_noticed(tmp_path):
    records = [bytearray(record(example(label=5, x=b"abc"))) for _ in range(10)]
    at = bytes(records[4]).index(b"\x1a\x03\x0a\x01\x05") + 4
    records[4][at] = 6
    (tmp_path / "x.tfrecord").write_bytes(b"".join(records))
    with pytest.raises(FAILURES):
        data = stoker.open(tmp_path / "x.tfrecord")
        assert all(sample["label"] == 5 for sample in data)
    with pytest.raises(FAILURES):
        data = stoker.open(tmp_path / "x.tfrecord")
        assert all(data.column("label") == 5)


# --- Parquet ----------------------------------------------------------------------------------------

UNFLAGGED = """
import sys, pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"x": list(range(1000, 3000)), "t": ["word %d" % (i % 9) for i in range(2000)]}), sys.argv[1],
               compression="snappy", data_page_version="2.0", use_dictionary=False, write_statistics=False)
"""


def test_a_compressed_page_flagged_as_plain_gives_no_wrong_values(tmp_path, peer_arrow):
    """PyArrow 2 wrote pages of version 2 that are compressed and say that they are not (ARROW-17100).

    In Thrift's compact form the flag is the type nibble of a boolean field: 1 is true, 2 is false. The header of a data
    page of version 2 ends with field 7, is_compressed, which pyarrow leaves out or writes as 0x11.
    """
    path = tmp_path / "x.parquet"
    peer_arrow(UNFLAGGED, path)
    data = path.read_bytes()
    # num_values 2000 and num_nulls 0 and num_rows 2000 and PLAIN or DELTA, levels 0 or few, then the flag.
    at, changed = 0, bytearray(data)
    flags = 0
    while (at := data.find(b"\x15\xa0\x1f\x15\x00\x15\xa0\x1f", at)) >= 0:
        for flag in range(at + 8, at + 24):
            if changed[flag] == 0x11:
                changed[flag] = 0x12
                flags += 1
                break
        at += 8
    if not flags:
        pytest.fail("no flag found in the page headers: this test has to be adapted to what pyarrow writes")
    path.write_bytes(changed)
    right = {"x": list(range(1000, 3000)), "t": [f"word {i % 9}" for i in range(2000)]}
    try:
        samples = list(stoker.open(path))
    except FAILURES:
        return
    for field in {name for sample in samples for name in sample}:
        wrong = [i for i, sample in enumerate(samples) if field in sample and sample[field] != right[field][i]]
        assert not wrong, f"{len(wrong)} wrong values of {field}"
