# SPDX-License-Identifier: Apache-2.0
"""`stoker index` beside others that use the dataset, and run again: nothing is lost, nobody is disturbed."""

import os
import subprocess

import pytest
import stoker
from samples import image_folder, tree, write_files
from stoker_program import program
from tar_bytes import simple_tar


def test_many_processes_may_index_at_once(stoker_environment, tmp_path):
    write_files(tmp_path / "d", {f"{i}.tar": simple_tar({b"%d.txt" % i: b"x"}) for i in range(4)})
    for _ in range(5):
        processes = [
            subprocess.Popen([program(), "index", tmp_path / "d"], env=stoker_environment, stdout=subprocess.DEVNULL)
            for _ in range(12)
        ]
        assert [process.wait() for process in processes] == [0] * 12
        assert sorted(name for name in os.listdir(tmp_path / "d/.stoker") if not name.endswith(".seg")) == [
            "manifest.json"
        ]
        for path in (tmp_path / "d/.stoker").iterdir():
            path.unlink()


def test_checksums_of_a_folder_outlive_an_index_without_them(stoker_cli, tmp_path):
    image_folder(tmp_path / "d")
    stoker_cli("index", tmp_path / "d", "--full", "--where", "beside")
    before = tree(tmp_path / "d/.stoker")
    assert stoker_cli("index", tmp_path / "d", "--where", "beside", "--json").json["depth"] == "full"
    assert tree(tmp_path / "d/.stoker") == before
    write_files(tmp_path / "d", {"cat/new.jpg": b"new"})
    assert stoker_cli("index", tmp_path / "d", "--where", "beside", "--json").json["samples"] == 37


def test_one_name_that_is_too_long_costs_nothing_else(stoker_cli, tmp_path):
    write_files(tmp_path / "d", {f"z/{i:03d}.txt": b"x" for i in range(300)})
    deep = os.open(tmp_path / "d", os.O_RDONLY)
    for _ in range(20):
        os.mkdir("n" * 250, dir_fd=deep)
        below = os.open("n" * 250, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(os.open("far.txt", os.O_CREAT | os.O_WRONLY, dir_fd=deep))
    os.close(deep)
    result = stoker_cli("index", tmp_path / "d", "--json", status=None).json
    assert result["samples"] == 300
    assert result["faults"] and all("n" * 250 in fault["shard"] for fault in result["faults"])


def test_opening_with_a_list_disturbs_no_index(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_files(tmp_path / "d", {f"{i}.bin": b"%d" % i for i in range(4)})
    (tmp_path / "list.csv").write_text("path,weight\n1.bin,5\n3.bin,7\n")
    stoker.index(tmp_path / "d", full=True)
    before = tree(tmp_path / "d/.stoker")
    with pytest.warns(stoker.IndexBuiltWarning):
        assert len(stoker.open(tmp_path / "d", list=tmp_path / "list.csv")) == 2
    listed = stoker.open(tmp_path / "d", list=tmp_path / "list.csv")  # no warning: it is there
    assert [sample["weight"] for sample in listed] == [5, 7]
    assert len(stoker.open(tmp_path / "d")) == 4
    assert tree(tmp_path / "d/.stoker") == before
    (tmp_path / "list.csv").write_text("path,weight\n1.bin,5\n")
    with pytest.warns(stoker.IndexBuiltWarning):
        assert len(stoker.open(tmp_path / "d", list=tmp_path / "list.csv")) == 1


def test_open_dataset_survives_a_new_index(tmp_path):
    write_files(tmp_path / "d", {f"{i}.tar": simple_tar({b"%d.txt" % i: b"x"}) for i in range(4)})
    stoker.index(tmp_path / "d")
    dataset = stoker.open(tmp_path / "d")
    assert dataset[0] == {"txt": "x"}
    stoker.index(tmp_path / "d", full=True)
    assert dataset[-1] == {"txt": "x"}


def test_empty_file_that_changed_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_files(tmp_path / "d", {"x.bin": b"", "y.bin": b"1"})
    stoker.index(tmp_path / "d")
    dataset = stoker.open(tmp_path / "d")
    assert dataset["x"] == {"bin": b""}
    (tmp_path / "d/x.bin").write_bytes(b"now")
    with pytest.raises(stoker.CorruptError, match="x.bin"):
        stoker.open(tmp_path / "d")["x"]


def test_nothing_is_no_path():
    with pytest.raises(FileNotFoundError):
        stoker.open("")


def test_folder_that_may_not_be_listed_is_a_fault_beside_loose_files(as_other_user):
    write_files(as_other_user.directory / "d", {"f1.bin": b"1", "locked/f2.bin": b"2"})
    (as_other_user.directory / "d/locked").chmod(0o000)
    finished = as_other_user("index", "d", "--where", "cache", "--json", status=None)
    assert finished.json["samples"] == 1
    assert [fault["shard"] for fault in finished.json["faults"]] == ["locked"]
