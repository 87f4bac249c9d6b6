# SPDX-License-Identifier: Apache-2.0
"""Directories as public datasets have them: each is opened as what it is, or there is a question that names the choices."""

import gzip
import io
import pickle
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import stoker
from every_format import open_quietly
from samples import npy, write_files
from stoker_program import program
from tar_bytes import simple_tar
from tfrecord_bytes import example, record

DATA = Path(__file__).parent.parent / "data"
PARQUET = (DATA / "parquet/pages1.parquet").read_bytes()  # 6 samples
LMDB = (DATA / "lmdb/golden.lmdb").read_bytes()  # 6 samples
ARROW = (DATA / "arrow/file.arrow").read_bytes()
TFRECORD = record(example({"label": [1]})) + record(example({"label": [2]}))
TAR = simple_tar({b"a.cls": b"1", b"b.cls": b"2", b"c.cls": b"3"})
JPEG = b"\xff\xd8\xff\xe0 not quite a photo"
PNG = b"\x89PNG\r\n\x1a\n not quite a picture"
PICKLE = pickle.dumps({"a": 1})
CARD = {"README.md": b"---\n", ".gitattributes": b""}
BANNER = {"assets/banner.png": PNG, "assets/logo.png": PNG}


def opens(format: str, samples: int, classes=None):
    return ("opens", format, samples, classes)


def asks(*splits: str):
    """Names the splits."""
    return ("asks", *splits)


def says(*texts: str):
    """An error that has all of these, where D stands for the directory."""
    return ("says", *texts)


def files(pattern: str, contents: bytes, count: int = 2) -> dict[str, bytes]:
    return {pattern.format(i): contents for i in range(count)}


def idx(*shape: int) -> bytes:
    return struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + bytes(int(np.prod(shape)))


def rows(count: int, *shape: int) -> bytes:
    return npy(np.zeros((count, *shape), "uint8"))


def npz(save=np.savez, **arrays: int) -> bytes:
    """Arrays of so many rows."""
    buffer = io.BytesIO()
    save(buffer, **{name: np.zeros((count, 2), "uint8") for name, count in arrays.items()})
    return buffer.getvalue()


KERAS = {"mnist.npz": npz(x_train=6, y_train=6, x_test=3, y_test=3)}
COMPRESSED = {"mnist.npz": npz(np.savez_compressed, x_train=6, y_train=6, x_test=3, y_test=3)}
EQUAL = {"mnist.npz": npz(x_train=6, y_train=6, x_test=6, y_test=6)}
HUB = {**files("data/train-{:05d}-of-00002.parquet", PARQUET), "data/test-00000-of-00001.parquet": PARQUET}
LIBRI = "{}/19/198/19-198-000{{}}.flac"

LAYOUTS = {
    # The hub of Hugging Face
    "hub data": ({**HUB, **CARD}, "", asks("train", "test")),
    "hub data, a split": ({**HUB, **CARD, **BANNER}, "::train", opens("parquet", 12)),
    "hub data, assets": ({**HUB, **CARD, **BANNER}, "", asks("train", "test")),
    "hub data, banner at the top": ({**HUB, **CARD, "banner.png": PNG}, "", asks("train", "test")),
    "hub data, scripts and docs": ({**HUB, **CARD, "scripts/make.py": b"", "docs/a.md": b"", "load.py": b""}, "", asks("train", "test")),
    "hub data, one split": ({**files("data/train-{:05d}-of-00002.parquet", PARQUET), **CARD, **BANNER}, "", opens("parquet", 12)),
    "hub data, photos": ({**HUB, **CARD, **files("photos/{}.jpg", JPEG, 9)}, "", says("D/data", "name")),
    "hub data, a directory of figures": ({**HUB, **CARD, "images/figure1.png": PNG}, "", says("D/data", "name")),
    "classes below data, with a list": ({**files("data/a/{}.jpg", JPEG), **files("data/b/{}.jpg", JPEG), "data/labels.csv": b"x"}, "", opens("folder", 5, ["a", "b"])),
    "shards next to logs": ({**files("{:02d}.tar", TAR), "logs/a.txt": b"x", "wandb/run/b.txt": b"x"}, "", opens("tar", 6)),
    "an array and its mask": ({"a.npz": npz(depth=4, depth_valid=4, rgb=4)}, "/a.npz", opens("npy", 4)),
    "hub configurations": (
        {**files("en/train-0000{}-of-00002.parquet", PARQUET), **files("fr/train-0000{}-of-00002.parquet", PARQUET), **CARD, **BANNER},
        "", says("2 datasets", "D/en", "D/fr"),
    ),
    "hub configuration": (
        {**files("en/train-0000{}-of-00002.parquet", PARQUET), "en/test.parquet": PARQUET, "fr/test.parquet": PARQUET, **CARD, **BANNER},
        "::en", asks("train", "test"),
    ),
    "hub configuration, a split": ({"en/train.parquet": PARQUET, "en/test.parquet": PARQUET, "fr/test.parquet": PARQUET}, "::en::train", opens("parquet", 6)),
    "hub data, configurations": (
        {"data/en/train-0.parquet": PARQUET, "data/en/test-0.parquet": PARQUET, "data/fr/train-0.parquet": PARQUET, **CARD, **BANNER},
        "", says("2 datasets", "D/data/en", "D/data/fr"),
    ),
    "hub converted": ({"default/train/0000.parquet": PARQUET, "default/test/0000.parquet": PARQUET}, "", asks("train", "test")),
    "hub converted, a split": ({"default/train/0000.parquet": PARQUET, "default/test/0000.parquet": PARQUET}, "::test", opens("parquet", 6)),
    "hub converted, one split": ({"default/train/0000.parquet": PARQUET}, "", opens("parquet", 6)),
    "hub plain files": ({"train.parquet": PARQUET, "test.parquet": PARQUET, **CARD, **BANNER}, "", asks("train", "test")),
    "hub plain files, a split": ({"train.parquet": PARQUET, "test.parquet": PARQUET, **CARD, **BANNER}, "::test", opens("parquet", 6)),
    "hub plain file": ({"train.parquet": PARQUET, **CARD, **BANNER}, "", opens("parquet", 6)),
    "hub plain file next to photos": ({"train.parquet": PARQUET, **files("pictures/{}.jpg", JPEG, 9)}, "", says("D/train.parquet", "D::all")),
    "hub plain file next to photos, all": ({"train.parquet": PARQUET, **files("pictures/{}.jpg", JPEG, 9)}, "::all", opens("folder", 10)),
    "hub data as tars": ({**files("data/train-{:05d}.tar", TAR), **CARD, **BANNER}, "", opens("tar", 6)),
    "saved to disk": ({"dataset_dict.json": b'{"splits": ["train"]}', "train/data-00000-of-00001.arrow": ARROW}, "", opens("arrow", 6)),
    # Photos
    "ImageNet": (
        {**files("train/n01440764/{}.JPEG", JPEG), **files("train/n01443537/{}.JPEG", JPEG), **files("val/ILSVRC2012_val_{:08d}.JPEG", JPEG)},
        "", asks("train", "val"),
    ),
    "ImageNet, a flat split": ({**files("train/n01440764/{}.JPEG", JPEG), **files("val/ILSVRC2012_val_{:08d}.JPEG", JPEG)}, "::val", opens("folder", 2, [])),
    "ILSVRC": (
        {**files("Data/CLS-LOC/train/n01440764/{}.JPEG", JPEG), **files("Annotations/CLS-LOC/val/{}.xml", b"<a/>"), "ImageSets/CLS-LOC/val.txt": b"1"},
        "", says("D/Data", "D::all"),
    ),
    "COCO": ({**files("train2017/{}.jpg", JPEG), **files("val2017/{}.jpg", JPEG), "annotations/instances_val2017.json": b"{}"}, "", asks("train2017", "val2017")),
    "COCO, a split": ({**files("train2017/{}.jpg", JPEG), **files("val2017/{}.jpg", JPEG), "annotations/i.json": b"{}"}, "::train", opens("folder", 2, [])),
    "COCO, one split": ({**files("train2017/{}.jpg", JPEG), "annotations/instances_train2017.json": b"{}"}, "", says("D/train2017", "D::all")),
    "YOLO": ({**files("images/train/{}.jpg", JPEG), **files("labels/train/{}.txt", b"0 1 1 1 1")}, "", says("D/images", "D/labels", "D::all")),
    "Tiny ImageNet": (
        {**files("train/n01443537/images/{}.JPEG", JPEG), **files("val/images/{}.JPEG", JPEG), **files("test/images/{}.JPEG", JPEG), "wnids.txt": b"n", "words.txt": b"n"},
        "", asks("test", "train", "val"),
    ),
    "Food-101": ({**files("images/apple_pie/{}.jpg", JPEG), **files("images/waffles/{}.jpg", JPEG), "meta/train.json": b"{}", "meta/classes.txt": b"a"}, "", says("D/images", "D::all")),
    "Food-101, its images": ({**files("images/apple_pie/{}.jpg", JPEG), **files("images/waffles/{}.jpg", JPEG), "meta/train.json": b"{}"}, "::images", opens("folder", 4, ["apple_pie", "waffles"])),
    "PASCAL VOC": (
        {**files("JPEGImages/{}.jpg", JPEG), **files("Annotations/{}.xml", b"<a/>"), "ImageSets/Main/train.txt": b"1", **files("SegmentationClass/{}.png", PNG)},
        "", says("D/JPEGImages", "D::all"),
    ),
    "val is empty": ({**files("train/cat/{}.jpg", JPEG), **files("train/dog/{}.jpg", JPEG), "val/.keep": b""}, "", opens("folder", 4, ["cat", "dog"])),
    "train alone, flat": ({**files("train/{}.jpg", JPEG, 3), "README.md": b""}, "", opens("folder", 3, [])),
    "train alone, by name": (files("train/cat/{}.jpg", JPEG, 3), "::train", opens("folder", 3, ["cat"])),
    "train alone, another": (files("train/cat/{}.jpg", JPEG, 3), "::test", says("no such split", "D::train")),
    "train alone, all": (files("train/cat/{}.jpg", JPEG, 3), "::all", opens("folder", 3, ["train"])),
    "train alone, table": ({**files("train/{}.jpg", JPEG, 3), "train.csv": b"id,label\n"}, "", opens("folder", 3, [])),
    "train alone, photos at the top": ({**files("train/{}.jpg", JPEG, 3), "a.jpg": JPEG}, "", opens("folder", 4, ["train"])),
    "train of shards alone": (files("train/{:05d}.tar", TAR), "", opens("tar", 6)),
    "splits of photos in data": ({**files("data/train/cat/{}.jpg", JPEG), **files("data/val/cat/{}.jpg", JPEG), "README.md": b""}, "", asks("train", "val")),
    "splits of photos in data, one": ({**files("data/train/cat/{}.jpg", JPEG), **files("data/val/cat/{}.jpg", JPEG), "README.md": b""}, "::val", opens("folder", 2, ["cat"])),
    "classes in data": ({**files("data/cat/{}.jpg", JPEG), **files("data/dog/{}.jpg", JPEG), "README.md": b""}, "", opens("folder", 4, ["cat", "dog"])),
    "MVTec": (
        {f"{kind}/{split}/good/{i}.png": PNG for kind in ("bottle", "cable") for split in ("train", "test") for i in range(2)},
        "", says("splits of their own", "D/bottle, D/cable", "D::all"),
    ),
    "MVTec, one": (
        {f"{kind}/{split}/good/{i}.png": PNG for kind in ("bottle", "cable") for split in ("train", "test") for i in range(2)},
        "::cable::test", opens("folder", 2, ["good"]),
    ),
    "splits of shards, all": ({"train/a.parquet": PARQUET, "val/a.parquet": PARQUET}, "::all", says("2 datasets", "D/train", "D/val")),
    "Hive": ({"year=2020/a.parquet": PARQUET, "year=2021/a.parquet": PARQUET}, "", says("2 datasets", "D/year=2020")),
    "cache of the hub": ({"snapshots/0a1b/data/train-00000-of-00001.parquet": PARQUET, "refs/main": b"0a1b", "blobs/9f": PARQUET}, "", says("D/snapshots")),
    # Classes
    "a class called train": ({**files("train/{}.jpg", JPEG), **files("bus/{}.jpg", JPEG), **files("car/{}.jpg", JPEG)}, "", opens("folder", 6, ["bus", "car", "train"])),
    "classes called train and test": (
        {**files("train/{}.jpg", JPEG), **files("test/{}.jpg", JPEG), **files("bus/{}.jpg", JPEG), **files("car/{}.jpg", JPEG)},
        "", says("D::train", "D::test", "bus, car", "D::all"),
    ),
    "classes called train and test, all": (
        {**files("train/{}.jpg", JPEG), **files("test/{}.jpg", JPEG), **files("bus/{}.jpg", JPEG)}, "::all", opens("folder", 6, ["bus", "test", "train"]),
    ),
    "a class called train, split": (files("train/{}.jpg", JPEG) | files("bus/{}.jpg", JPEG), "::train", opens("folder", 2, [])),
    # Speech
    "LibriSpeech": (
        files(LIBRI.format("train-clean-100"), b"fLaC") | files(LIBRI.format("test-clean"), b"fLaC") | files(LIBRI.format("test-other"), b"fLaC"),
        "", asks("train-clean-100", "test-clean", "test-other"),
    ),
    "LibriSpeech, two sets": (
        {**files(LIBRI.format("train-clean-100"), b"fLaC"), **files(LIBRI.format("test-other"), b"fLaC"), "BOOKS.TXT": b"", "README.TXT": b""},
        "", asks("train-clean-100", "test-other"),
    ),
    # Pickles
    "CIFAR-10 of torchvision": (files("data_batch_{}", PICKLE, 6) | {"test_batch": PICKLE, "batches.meta": PICKLE}, "", says("CIFAR-10 as Python pickles")),
    "CIFAR-10 in its directory": (
        {f"cifar-10-batches-py/{name}": PICKLE for name in ("data_batch_1", "test_batch", "batches.meta")}, "", says("D/cifar-10-batches-py", "CIFAR-10 as Python pickles"),
    ),
    "pickles of splits": ({"train.pkl": PICKLE, "test.pkl": PICKLE}, "", says("is a Python pickle")),
    "pickles in batches": (files("train_batch_{}.pkl", PICKLE, 5) | {"test_batch.pkl": PICKLE}, "", says("is a Python pickle", "D::all")),
    "pickles, one per sample": (files("train_{}.pkl", PICKLE, 20), "", opens("folder", 20)),
    "pickles, one per sample of two splits": (files("train_{}.pkl", PICKLE, 20) | files("test_{}.pkl", PICKLE, 5), "", opens("folder", 25)),
    "few pickles, all": (files("train_{}.pkl", PICKLE, 3), "::all", opens("folder", 3)),
    "tensors, one per sample": (files("train_{}.pt", PICKLE, 20), "", opens("folder", 20)),
    "tables in many files": (files("train-{:05d}-of-00020.jsonl", b"{}\n", 20), "", says("is a table of text")),
    # Arrays
    "MNIST": (
        {"train-images-idx3-ubyte": idx(6, 2, 2), "train-labels-idx1-ubyte": idx(6), "t10k-images-idx3-ubyte": idx(3, 2, 2), "t10k-labels-idx1-ubyte": idx(3)},
        "", asks("train", "test"),
    ),
    "MNIST in raw": ({"raw/train-images-idx3-ubyte": idx(6, 2, 2), "raw/train-labels-idx1-ubyte": idx(6), "raw/t10k-images-idx3-ubyte": idx(3, 2, 2)}, "", asks("train", "test")),
    "x_train.npy": ({f"{x}_{split}.npy": rows(5, *[2] * (x == "x")) for x in "xy" for split in ("train", "test")}, "", asks("train", "test")),
    "x_train.npy, a split": ({f"{x}_{split}.npy": rows(5 if split == "train" else 3) for x in "Xy" for split in ("train", "test")}, "::train", opens("npy", 5)),
    "Xtrain.npy": ({f"{x}{split}.npy": rows(5) for x in "Xy" for split in ("train", "test")}, "", asks("train", "test")),
    "XTrain.npy": ({f"{x}{split}.npy": rows(5) for x in "XY" for split in ("Train", "Test")}, "::test", opens("npy", 5)),
    "val_images.npy": ({"images.npy": rows(5, 2), "labels.npy": rows(5), "val_images.npy": rows(5, 2), "val_labels.npy": rows(5)}, "", asks("train", "val")),
    "val_images.npy, the rest": ({"images.npy": rows(5, 2), "labels.npy": rows(5), "val_images.npy": rows(4, 2), "val_labels.npy": rows(4)}, "::train", opens("npy", 5)),
    "val_images.npy, val": ({"images.npy": rows(5, 2), "labels.npy": rows(5), "val_images.npy": rows(4, 2), "val_labels.npy": rows(4)}, "::val", opens("npy", 4)),
    "many fields with val": (
        {f"{val}{field}.npy": rows(5) for field in ("a", "b", "c", "d", "e") for val in ("", "val_")}, "", asks("train", "val"),
    ),
    "drawings": ({f"{name}.npy": rows(5, 4) for name in ("bus", "car", "cat", "dog", "train")}, "", opens("folder", 5)),
    "Keras": (KERAS, "/mnist.npz", says("several splits", "x_train,y_train (6); x_test,y_test (3)", "D/mnist.npz::x_train,y_train")),
    "Keras, its directory": (KERAS, "", says("several splits", "D/mnist.npz::x_train,y_train")),
    "Keras, a split": (KERAS, "/mnist.npz::train", opens("npy", 6)),
    "Keras, a split of its directory": (KERAS, "::test", opens("npy", 3)),
    "Keras, another split": (KERAS, "::val", says("no array 'val'", "no splits")),
    "Keras, arrays": (KERAS, "/mnist.npz::x_test,y_test", opens("npy", 3)),
    "Keras, equal lengths": (EQUAL, "/mnist.npz", says("several splits", "D/mnist.npz::x_train,y_train")),
    "Keras, equal lengths, directory": (EQUAL, "", says("several splits", "D/mnist.npz::x_train,y_train")),
    "Keras, compressed": (COMPRESSED, "", says("D/mnist.npz", "is compressed", "numpy.savez")),
    "Keras, compressed, a split": (COMPRESSED, "::train", says("D/mnist.npz", "is compressed", "numpy.savez")),
    "archive with val_images": ({"a.npz": npz(images=6, labels=6, val_images=6, val_labels=6)}, "/a.npz", says("several splits", "val_images,val_labels (6); images,labels (6)")),
    "archives, one per sample": ({f"train_{i}.npz": npz(x=i + 1) for i in range(5)}, "", opens("npy", 15)),
    "MNIST of torchvision": (
        {f"MNIST/raw/{name}{gz}": gzip.compress(data) if gz else data for gz in ("", ".gz")
         for name, data in {"train-images-idx3-ubyte": idx(6, 2, 2), "train-labels-idx1-ubyte": idx(6), "t10k-images-idx3-ubyte": idx(3, 2, 2), "t10k-labels-idx1-ubyte": idx(3)}.items()},
        "::train", opens("npy", 6),
    ),
    # Records, archives and databases
    "TFDS": (
        {**files("mnist/3.0.1/mnist-train.tfrecord-{:05d}-of-00002", TFRECORD), "mnist/3.0.1/mnist-test.tfrecord-00000-of-00001": TFRECORD,
         "mnist/3.0.1/dataset_info.json": b"{}", "mnist/3.0.1/features.json": b"{}"},
        "", asks("train", "test"),
    ),
    "TFDS, a split": (
        {**files("mnist/config/3.0.1/mnist-train.tfrecord-{:05d}-of-00002", TFRECORD), "mnist/config/3.0.1/mnist-test.tfrecord-00000-of-00001": TFRECORD,
         "mnist/config/3.0.1/dataset_info.json": b"{}", "mnist/config/3.0.1/features.json": b"{}"},
        "::test", opens("tfrecord", 2),
    ),
    "TFDS, versions": (
        {"3.0.0/mnist-train.tfrecord-00000-of-00001": TFRECORD, "3.0.1/mnist-train.tfrecord-00000-of-00001": TFRECORD, "3.0.1/features.json": b"{}"},
        "", says("2 datasets", "D/3.0.0", "D/3.0.1"),
    ),
    "WebDataset": (files("imagenet1k-train-{:04d}.tar", TAR, 3) | files("imagenet1k-validation-{:02d}.tar", TAR), "", asks("train", "validation")),
    "WebDataset, a split": (files("imagenet1k-train-{:04d}.tar", TAR, 3) | files("imagenet1k-validation-{:02d}.tar", TAR), "::validation", opens("tar", 6)),
    "WebDataset, none": (files("shard-{:04d}.tar", TAR, 3), "::test", says("no splits", "split=")),
    "WebDataset, one": (files("train-{:04d}.tar", TAR, 3), "::test", says("no such split", "D::train")),
    "WebDataset, one by name": (files("train-{:04d}.tar", TAR, 3), "::train", opens("tar", 9)),
    "photos, none": (files("cat/{}.jpg", JPEG) | files("dog/{}.jpg", JPEG), "::test", says("no splits", "split=")),
    "arrays, none": ({"x.npy": rows(5, 2), "y.npy": rows(5)}, "::test", says("no splits", "split=")),
    "LMDB files": ({"train.lmdb": LMDB, "val.lmdb": LMDB}, "", asks("train", "val")),
    "LMDB directories": ({"train.lmdb/data.mdb": LMDB, "train.lmdb/lock.mdb": b"", "val.lmdb/data.mdb": LMDB}, "", asks("train.lmdb", "val.lmdb")),
    "LMDB, one": ({"data.mdb": LMDB}, "::test", says("test", "no splits")),
    "LSUN": ({"bedroom_train_lmdb/data.mdb": LMDB, "bedroom_val_lmdb/data.mdb": LMDB}, "::val", opens("lmdb", 6)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(tmp_path, name):
    contents, part, (outcome, *expected) = LAYOUTS[name]
    root = tmp_path / "D"
    write_files(root, contents)
    if outcome == "opens":
        dataset = open_quietly(f"{root}{part}")
        format, samples, classes = expected
        assert (dataset.format, len(dataset)) == (format, samples)
        if classes is not None:
            assert list(dataset.classes or []) == classes
        if part.startswith("::"):
            assert len(open_quietly(root, split=part[2:])) == samples
        return
    file, _, split = part.partition("::")
    for attempt in (lambda: stoker.open(f"{root}{part}"), lambda: stoker.open(f"{root}{file}", split=split or None)):
        with pytest.raises((stoker.UnsupportedError, ValueError, OSError)) as raised:
            attempt()
        message = str(raised.value).replace(str(tmp_path) + "/", "")
        if outcome == "asks":
            assert "one per split" in message
            for each in expected:
                assert re.search(rf"::{re.escape(each)}\b", message), message
        else:
            for text in expected:
                assert text in message, message


@pytest.mark.parametrize("link", [".", "..", "../D"])
def test_a_link_to_itself_ends(tmp_path, link):
    (tmp_path / "D").mkdir()
    (tmp_path / "D/train").symlink_to(link)
    words = [program(), "check", tmp_path / "D"]
    assert subprocess.run(words, capture_output=True, timeout=60).returncode in (1, 2)
