# SPDX-License-Identifier: Apache-2.0
"""Storage that fails for a moment (EIO): what could not be read is left out, named, and tried again by the next run of the
same command. A file that is damaged is not."""

import shutil
import subprocess
from pathlib import Path

import pytest
from samples import noise, shards_of, write_files
from tar_bytes import all_members

FILES = {f"a/s{i:03d}.bin": noise(i, 3000) for i in range(30)}


@pytest.fixture(scope="session")
def failing_reads(tmp_path_factory) -> dict[str, str]:
    library = tmp_path_factory.mktemp("shim") / "fail_reads.so"
    source = Path(__file__).with_name("fail_reads.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


@pytest.fixture
def source(tmp_path) -> Path:
    write_files(tmp_path / "photos", FILES)
    return tmp_path / "photos"


def test_pack_tries_again(stoker_cli, source, tmp_path, failing_reads):
    pack = ["pack", source, tmp_path / "packed", "--shard-size", "30K"]
    failed = stoker_cli(*pack, status=1, env={**failing_reads, "FAIL_READS": "s01"})
    assert "left out: 10 because of faults" in failed.text and "Input/output error" in failed.text
    untouched = {path.name: path.stat().st_mtime_ns for path in shards_of(tmp_path / "packed")}
    # It fails still.
    finished = stoker_cli(*pack, "--json", status=1, env={**failing_reads, "FAIL_READS": "s015"})
    assert (finished.json["samples"], len(finished.json["left_out"])) == (29, 1)
    again = stoker_cli(*pack)
    assert "1 left out when packed before (I/O error): tried again, all could be read" in again.text
    assert "left out: nothing" in again.text
    found = all_members(shards_of(tmp_path / "packed"))
    assert {name: data for name, data in found.items() if name in FILES} == FILES
    assert stoker_cli("check", tmp_path / "packed", "--compare", source)
    # Shards without such a fault were not written again, and a third run has nothing to do.
    kept = [path.name for path in shards_of(tmp_path / "packed") if untouched.get(path.name) == path.stat().st_mtime_ns]
    assert kept and len(kept) < len(untouched)
    assert "already packed" in stoker_cli(*pack).text


def test_the_result_is_that_of_an_undisturbed_run(stoker_cli, source, tmp_path, failing_reads):
    for name in ("undisturbed", "disturbed"):
        pack = ["pack", source, tmp_path / name, "--shard-size", "30K"]
        if name == "disturbed":
            stoker_cli(*pack, status=1, env={**failing_reads, "FAIL_READS": "s020"})
        stoker_cli(*pack)
    first, second = (
        {path.relative_to(root): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
        for root in (tmp_path / "undisturbed", tmp_path / "disturbed")
    )
    assert first.keys() == second.keys()
    assert all(first[name] == second[name] for name in first if name.name != "manifest.json")


@pytest.mark.parametrize("form", ["tar", "tfrecord", "hdf5", "arrow", "lmdb"])
def test_an_error_while_the_format_is_detected_leaves_nothing(stoker_cli, source, tmp_path, failing_reads, form):
    stoker_cli("pack", source, tmp_path / "first", "--to", form)
    shutil.rmtree(tmp_path / "first/.stoker")
    pack = ["pack", tmp_path / "first", tmp_path / "second"]
    failed = stoker_cli(*pack, status=1, env={**failing_reads, "FAIL_READS": str(tmp_path / "first")})
    assert "Input/output error" in failed.text
    again = stoker_cli(*pack, "--json")
    assert (again.json["samples"], again.json["left_out"]) == (len(FILES), [])


def test_damage_is_not_tried_again(stoker_cli, tmp_path):
    write_files(tmp_path / "d", {"a.cls": b"1", "b.cls": b"no number"})
    pack = ["pack", tmp_path / "d", tmp_path / "packed"]
    assert "left out: 1" in stoker_cli(*pack, status=1).text
    finished = stoker_cli(*pack, status=1)
    assert "already packed" in finished.text and "tried again" not in finished.text


def test_an_index_is_made_again(stoker_cli, tmp_path, failing_reads):
    """A shard that could not be read when the dataset was opened first is there when it is opened again."""
    write_files(tmp_path / "photos", FILES)
    stoker_cli("pack", tmp_path / "photos", tmp_path / "d", "--shard-size", "30K")
    for path in (tmp_path / "d/.stoker").iterdir():
        path.unlink()
    (tmp_path / "d/.stoker").rmdir()
    failed = stoker_cli("index", tmp_path / "d", status=1, env={**failing_reads, "FAIL_READS": "000001.tar"})
    assert "Input/output error" in failed.text
    finished = stoker_cli("load", tmp_path / "d", "--raw", "--epochs", "1", "--json", status=1,
                          env={**failing_reads, "FAIL_READS": "000001.tar"})  # fmt: skip
    assert "000001.tar" in finished.text
    assert stoker_cli("load", tmp_path / "d", "--raw", "--epochs", "1", "--json").json["epochs"][0]["samples"] == 30
