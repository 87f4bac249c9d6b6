# SPDX-License-Identifier: Apache-2.0
"""Reads that fail for a moment, and staged copies that are damaged: nothing is lost, and nothing is called verified that was not read."""

import os
from pathlib import Path

import pytest
import stoker
from lossy_shards import GOOD, SHARDS, name_of, rows, shard_bytes
from samples import differences, image_folder, shards_of, tree

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]


# --- Faults that pass -------------------------------------------------------------------------------


def fault_environment(library: Path, flag: Path, name: str) -> dict[str, str]:
    return {"LD_PRELOAD": str(library), "FAULT_NAME": name, "FAULT_WHILE": str(flag)}


@pytest.mark.parametrize("form", ["tar", "arrow", "tfrecord"])
def test_pack_tries_again_what_could_not_be_read(form, tmp_path, stoker_cli, fault_library):
    source, packed, flag = tmp_path / "source", tmp_path / "packed", tmp_path / "flag"
    image_folder(source)
    flag.touch()
    env = fault_environment(fault_library, flag, "/dog/dog_00")
    first = stoker_cli("pack", source, packed, "--to", form, env=env, status=None)
    assert first.returncode == 1, f"the fault did not strike\n{first!r}"
    flag.unlink()
    again = stoker_cli("pack", source, packed, "--to", form, status=None)
    assert again.returncode == 0, repr(again)
    stoker_cli("check", packed, "--compare", source)


def test_pack_says_that_it_tries_again(tmp_path, stoker_cli, fault_library):
    source, packed, flag = tmp_path / "source", tmp_path / "packed", tmp_path / "flag"
    image_folder(source)
    flag.touch()
    env = fault_environment(fault_library, flag, "/dog/dog_00")
    stoker_cli("pack", source, packed, env=env, status=1)
    again = stoker_cli("pack", source, packed, env=env, status=1)
    assert "again" in again.text and ("I/O error" in again.text or "Input/output" in again.text), repr(again)


@pytest.mark.parametrize("kind", ["folder", "shards"])
def test_stage_tries_again_what_could_not_be_read(kind, tmp_path, stoker_cli, fault_library):
    source, place, flag = tmp_path / "source", tmp_path / "place", tmp_path / "flag"
    place.mkdir()
    image_folder(source)
    name = "/dog/dog_00"
    data = source
    if kind == "shards":
        data, name = tmp_path / "packed", "/packed/source-000001.tar"
        stoker_cli("pack", source, data, "--shard-size", "12K")
    flag.touch()
    first = stoker_cli("stage", data, place, env=fault_environment(fault_library, flag, name), status=None)
    assert first.returncode == 1, f"the fault did not strike\n{first!r}"
    flag.unlink()
    again = stoker_cli("stage", data, place, "--json", status=None)
    assert again.returncode == 0, repr(again)
    assert again.json["complete"]
    stoker_cli("check", again.json["path"], "--compare", data)


def test_the_loader_delivers_all_after_a_momentary_error(tmp_path, stoker_cli, fault_library, fresh_python):
    """The error was there while the index was made: it must not stay in the index."""
    data, flag = tmp_path / "data", tmp_path / "flag"
    data.mkdir()
    for shard in range(SHARDS):
        (data / name_of(shard, "tar")).write_bytes(shard_bytes(shard, "tar"))
    flag.touch()
    stoker_cli("index", data, env=fault_environment(fault_library, flag, "x-000001.tar"), status=None)
    flag.unlink()
    stoker_cli("index", data, status=0)
    assert set(rows(stoker.Loader(data, 8))) == GOOD["tar"]


# --- Staged copies ----------------------------------------------------------------------------------


@pytest.fixture
def staged(tmp_path, stoker_cli):
    source, place = tmp_path / "source", tmp_path / "place"
    place.mkdir()
    source.mkdir()
    for shard in range(SHARDS):
        (source / name_of(shard, "tar")).write_bytes(shard_bytes(shard, "tar"))
    stoker_cli("index", "--full", source, "--where", "beside")
    copy = Path(stoker_cli("stage", source, place, "--json").json["path"])
    return source, place, copy


def flip(path: Path, keep_time: bool) -> None:
    about = path.stat()
    data = bytearray(path.read_bytes())
    data[700] ^= 64
    path.chmod(0o600)
    path.write_bytes(data)
    if keep_time:
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


@pytest.mark.parametrize("keep_time", [False, True])
def test_verify_reads_a_copy_that_is_there(keep_time, staged, stoker_cli):
    """--verify: a damaged copy is brought again, or the command fails and names it."""
    source, place, copy = staged
    flip(copy / name_of(1, "tar"), keep_time)
    again = stoker_cli("stage", source, place, "--verify", status=None)
    assert again.returncode != 2, "there is no --verify"
    if again.returncode == 0:
        assert [path.read_bytes() for path in shards_of(copy)] == [path.read_bytes() for path in shards_of(source)]
    else:
        assert name_of(1, "tar") in again.text


def test_a_copy_that_was_not_read_again_is_not_called_verified(staged, stoker_cli):
    source, place, copy = staged
    flip(copy / name_of(1, "tar"), True)
    again = stoker_cli("stage", source, place, status=None)
    right = (copy / name_of(1, "tar")).read_bytes() == (source / name_of(1, "tar")).read_bytes()
    line = next((line for line in again.stdout.splitlines() if line.startswith("verified")), "")
    assert right or again.returncode != 0 or not line.startswith("verified: every sample, by the checksums"), line


def test_a_shard_of_a_copy_that_changed_its_size_is_brought_again(staged, stoker_cli):
    source, place, copy = staged
    (copy / name_of(1, "tar")).chmod(0o600)
    os.truncate(copy / name_of(1, "tar"), 5000)
    stoker_cli("stage", source, place)
    assert [path.read_bytes() for path in shards_of(copy)] == [path.read_bytes() for path in shards_of(source)]


def test_a_command_keeps_other_copies(staged, tmp_path, stoker_cli):
    """stage A -- CMD removes A at its end; what the user staged before at that place stays."""
    source, place, copy = staged
    other = tmp_path / "other"
    other.mkdir()
    (other / "y-000000.tar").write_bytes(shard_bytes(7, "tar"))
    before = tree(copy)
    stoker_cli("stage", other, place, "--", "true")
    assert not differences(before, tree(copy))
    stoker_cli("stage", source, place, "--", "true", status=None)


ARROW_FOLDER = """
import sys, datasets
rows = {"text": [f"row {i}" for i in range(50)], "label": [i % 3 for i in range(50)]}
features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["a", "b", "c"])})
datasets.Dataset.from_dict(rows, features=features).save_to_disk(sys.argv[1], num_shards=2)
"""
LOAD_FROM_DISK = """
import sys, datasets
data = datasets.load_from_disk(sys.argv[1])
print(len(data), data.features["label"].names, data[49])
"""


def test_a_staged_arrow_folder_is_still_one(tmp_path, stoker_cli, peer_arrow):
    """dataset_info.json and state.json belong to the dataset."""
    peer_arrow(ARROW_FOLDER, tmp_path / "data")
    place = tmp_path / "place"
    place.mkdir()
    expected = peer_arrow(LOAD_FROM_DISK, tmp_path / "data")
    copy = stoker_cli("stage", tmp_path / "data", place, "--json").json["path"]
    assert peer_arrow(LOAD_FROM_DISK, copy) == expected


def test_a_staged_pack_of_arrow_is_still_one(tmp_path, stoker_cli, peer_arrow):
    image_folder(tmp_path / "photos", per_class=3)
    stoker_cli("pack", tmp_path / "photos", tmp_path / "data", "--to", "arrow")
    place = tmp_path / "place"
    place.mkdir()
    copy = stoker_cli("stage", tmp_path / "data", place, "--json").json["path"]
    count = "import sys, datasets\nprint(len(datasets.load_from_disk(sys.argv[1])))"
    assert peer_arrow(count, copy) == peer_arrow(count, tmp_path / "data") == "9\n"


def test_remove_nothing_that_is_not_ours(staged, tmp_path, stoker_cli):
    """Other files at the place, also below directories with similar names, survive a clean."""
    _, place, _ = staged
    for name in ("stoker", "stoker-0x", "train-0123456789abcdef"):
        (place / name).mkdir()
        (place / name / "thesis.tex").write_text("work")
    before = {name: data for name, data in tree(place).items() if b"thesis" in name}
    stoker_cli("stage", "--clean", "--all", place)
    assert before == {name: data for name, data in tree(place).items() if b"thesis" in name}
