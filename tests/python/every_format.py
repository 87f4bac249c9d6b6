# SPDX-License-Identifier: Apache-2.0
"""One set of samples in every format."""

import warnings
from pathlib import Path

import numpy as np
import stoker
from samples import npy, write_files
from tar_bytes import simple_tar
from tfrecord_bytes import example, record

COUNT = 25
KEYS = [f"{'ab'[i % 2]}/{i:03d}" for i in sorted(range(COUNT), key=lambda i: (i % 2, i))]


def fields_of(key: str) -> dict:
    """What the sample with this key should be, whatever the format; every third has no text."""
    number = int(key[-3:])
    fields = {
        "image": f"image {key};".encode() * (number + 1),
        "label": number % 5,
        "extra": np.arange(number + 1, dtype="int64"),
    }
    if number % 3:
        fields["txt"] = f"number {number}: grüße"
    return fields


def files_of(key: str) -> dict[str, bytes]:
    fields = fields_of(key)
    files = {
        f"{key}.jpg": fields["image"],
        f"{key}.cls": str(fields["label"]).encode(),
        f"{key}.extra.npy": npy(fields["extra"]),
    }
    if "txt" in fields:
        files[f"{key}.txt"] = fields["txt"].encode()
    return files


def example_of(key: str) -> bytes:
    fields = fields_of(key)
    features = {"__key__": [key.encode()], "image": [fields["image"]], "label": [fields["label"]]}
    features["extra.npy"] = [npy(fields["extra"])]
    if "txt" in fields:
        features["txt"] = [fields["txt"].encode()]
    return example(features)


def write_dataset(root: Path, form: str) -> None:
    """Two shards, or loose files."""
    root.mkdir()
    if form == "folder":
        for key in KEYS:
            write_files(root, files_of(key))
        return
    for number, keys in enumerate((KEYS[:10], KEYS[10:])):
        if form == "tar":
            files = {name.encode(): data for key in keys for name, data in files_of(key).items()}
            (root / f"d-{number:06d}.tar").write_bytes(simple_tar(files))
        else:
            (root / f"d-{number:05d}-of-00002").write_bytes(b"".join(record(example_of(key)) for key in keys))


def open_quietly(path, **options) -> stoker.Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stoker.IndexBuiltWarning)
        return stoker.open(path, **options)


def same(found: dict, expected: dict) -> bool:
    """Text is bytes in a tfrecord: a tf.train.Example does not say which it is."""
    if found.keys() != expected.keys():
        return False
    for name, value in expected.items():
        other = found[name]
        if isinstance(value, np.ndarray):
            if other.dtype != value.dtype or not np.array_equal(other, value):
                return False
        elif other != value and other != (value.encode() if isinstance(value, str) else None):
            return False
    return True
