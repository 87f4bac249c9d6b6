# SPDX-License-Identifier: Apache-2.0
"""What is not read is called by its name, instead of being opened as a folder of files."""

import bz2
import json
import lzma
import pickle
import sqlite3
import struct
import zipfile

import pytest
from samples import image_folder, write_files
from tar_bytes import simple_tar


def zarr_2(root):
    write_files(root, {".zgroup": b'{\n    "zarr_format": 2\n}', "train/.zarray": b'{"zarr_format": 2}', "train/0.0": b"x"})
    write_files(root, {"test/.zarray": b'{"zarr_format": 2}', "test/0.0": b"x"})


def zarr_3(root):
    write_files(root, {"zarr.json": b'{"zarr_format": 3, "node_type": "array"}', "c/0/0": b"x"})


def mds(root):
    shard = {"column_names": ["label"], "format": "mds", "raw_data": {"basename": "shard.00000.mds", "bytes": 3}, "version": 2}
    write_files(root, {"index.json": json.dumps({"version": 2, "shards": [shard]}).encode(), "shard.00000.mds": b"abc"})


def lit_data(root):
    index = {"chunks": [{"chunk_bytes": 3, "filename": "chunk-0-0.bin"}], "config": {"data_format": ["int"]}}
    write_files(root, {"index.json": json.dumps(index).encode(), "chunk-0-0.bin": b"abc"})


def record_io(root):
    record = struct.pack("<II", 0xCED7230A, 4) + b"abcd"
    write_files(root, {"train.rec": record, "train.idx": b"0\t0\n", "train.lst": b"0\t1\ta.jpg\n"})


def cifar(root):
    batch = pickle.dumps({"data": b"x", "labels": [1]}, protocol=2)
    write_files(root, {name: batch for name in ("data_batch_1", "data_batch_2", "test_batch", "batches.meta")})
    write_files(root, {"readme.html": b"<html>"})


def ffcv(root):
    write_files(root, {"train.beton": struct.pack("<HHIQQ", 2, 2, 1 << 23, 10, 0), "README.md": b""})


def level_db(root):
    write_files(root, {"CURRENT": b"MANIFEST-000002\n", "MANIFEST-000002": b"x", "000005.ldb": b"x", "LOCK": b"", "LOG": b""})


def lance(root):
    write_files(root, {"_versions/1.manifest": b"x", "data/a.lance": b"xLANC", "_transactions/0.txn": b"x"})


DIRECTORIES = {
    zarr_2: "is a Zarr store (.zgroup), which is not read yet",
    zarr_3: "is a Zarr store (zarr.json), which is not read yet",
    mds: "(MDS), which is not read yet",
    lit_data: "(LitData), which is not read yet",
    record_io: "is a RecordIO file of MXNet, which is not read",
    cifar: "the binary version (cifar-10-binary.tar.gz), which is read",
    ffcv: "is an FFCV file, which is not read",
    level_db: "is a LevelDB database",
    lance: "is a Lance dataset",
}


@pytest.mark.parametrize("make", DIRECTORIES, ids=lambda make: make.__name__)
def test_directories(make, stoker_cli, tmp_path):
    data = tmp_path / "data"
    make(data)
    for command in (["check", data], ["index", data], ["pack", data, tmp_path / "out"]):
        assert DIRECTORIES[make] in stoker_cli(*command, status=1).stderr
    assert not (data / ".stoker").exists() and not (tmp_path / "out").exists()


def test_a_folder_with_such_names_stays_a_folder(stoker_cli, tmp_path):
    image_folder(tmp_path / "photos", per_class=3)
    for name in ("index.json", "zarr.json", "CURRENT", "dataset.csv", "meta"):
        (tmp_path / "photos" / name).write_text("{}")
    assert stoker_cli("check", tmp_path / "photos", "--json", status=None).json["format"] == "folder"
    write_files(tmp_path / "arrays", {f"{i}.pt": b"PK\x03\x04" for i in range(3)})
    assert stoker_cli("check", tmp_path / "arrays", "--json").json["samples"] == 3


def test_archives_by_name(stoker_cli, tmp_path):
    tar = simple_tar({b"a.cls": b"1"})
    (tmp_path / "x.tar.xz").write_bytes(lzma.compress(tar))
    (tmp_path / "x.tar.bz2").write_bytes(bz2.compress(tar))
    (tmp_path / "x.tar.lz4").write_bytes(b"\x04\x22\x4d\x18" + bytes(20))
    (tmp_path / "x.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(20))
    (tmp_path / "x.rar").write_bytes(b"Rar!\x1a\x07\x01\x00")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.jpg", b"x")
    sqlite3.connect(tmp_path / "x.db").execute("create table t (a)").connection.close()
    (tmp_path / "x.mat").write_bytes(b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(128))
    (tmp_path / "x.avro").write_bytes(b"Obj\x01" + bytes(20))
    (tmp_path / "x.orc").write_bytes(b"ORC" + bytes(20))
    (tmp_path / "x.pkl").write_bytes(pickle.dumps([1, 2]))
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n')
    for ending, said in {
        "tar.xz": "is an xz file, which is not read: decompress it first: xz -dk x.tar.xz, then x.tar is read",
        "tar.bz2": "is a bzip2 file, which is not read: decompress it first: bzip2 -dk x.tar.bz2",
        "tar.lz4": "is an LZ4 file, which is not read: decompress it first: lz4 -d x.tar.lz4 x.tar",
        "7z": "is a 7z archive, which is not read: unpack it",
        "rar": "is a rar archive, which is not read: unpack it",
        "zip": "is a zip archive, which is not read: unpack it (unzip x.zip -d DIRECTORY) and name the directory",
        "db": "is an SQLite database, which is not read",
        "mat": "is a MATLAB file of version 5, which is not read: save it with -v7.3",
        "avro": "is an Avro file, which is not read",
        "orc": "is an ORC file, which is not read",
        "pkl": "is a Python pickle, which is not read",
        "csv": "is a table of text, which is not read: `--list` takes such a table",
        "jsonl": "is a table of text",
    }.items():
        for command in (["check", tmp_path / f"x.{ending}"], ["pack", tmp_path / f"x.{ending}", tmp_path / "out"]):
            assert said in stoker_cli(*command, status=1).stderr, ending


def test_directories_of_archives(stoker_cli, tmp_path):
    for number in range(2):
        (tmp_path / f"shard-{number}.tar.xz").write_bytes(lzma.compress(simple_tar({b"a.cls": b"1"})))
    said = stoker_cli("check", tmp_path, status=1).stderr
    assert "holds 2 files such as shard-0.tar.xz, which is an xz file" in said


@pytest.mark.parametrize("ending", ["csv", "jsonl", "pkl"])
def test_tables_of_splits(stoker_cli, tmp_path, ending):
    contents = pickle.dumps({"a": 1}) if ending == "pkl" else b"a,b\n"
    write_files(tmp_path / "tables", {f"train.{ending}": contents, f"test.{ending}": contents, "README.md": b""})
    assert "which is not read" in stoker_cli("check", tmp_path / "tables", status=1).stderr
    # One file of each sample.
    write_files(tmp_path / "samples", {f"walk{i}.{ending}": contents for i in range(3)})
    assert stoker_cli("check", tmp_path / "samples", "--json").json["samples"] == 3
