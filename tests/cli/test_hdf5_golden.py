# SPDX-License-Identifier: Apache-2.0
"""The golden files: one that h5py wrote, and what `pack` makes of it, byte for byte."""

import json
import shutil
from pathlib import Path

DATA = Path(__file__).parents[1] / "data/hdf5"


def test_a_file_of_h5py(tmp_path, stoker_cli):
    shutil.copy(DATA / "golden.h5", tmp_path)
    found = json.loads(stoker_cli("check", tmp_path / "golden.h5", "--json").stdout)
    assert found["format"] == "hdf5" and found["samples"] == 4 and not found["faults"]
    fields = {field["name"]: field for field in found["fields"]}
    assert fields["boxes"]["dtype"] == "float32" and fields["boxes"]["shape"] == [2, 4]
    assert fields["mask"]["dtype"] == "bool"
    assert fields["image"]["type"] == "bytes" and fields["caption"]["type"] == "text"
    assert fields["label"]["type"] == "number"


def test_what_pack_writes_stays_the_same(tmp_path, stoker_cli):
    for jobs in ("1", "4"):
        out = tmp_path / jobs
        stoker_cli("pack", DATA / "golden.h5", out, "--to", "hdf5", "-j", jobs)
        (shard,) = out.glob("*.h5")
        assert shard.read_bytes() == (DATA / "written.h5").read_bytes()


def test_classes_survive(tmp_path, stoker_cli):
    stoker_cli("pack", DATA / "golden.h5", tmp_path / "tar")
    stoker_cli("pack", tmp_path / "tar", tmp_path / "again", "--to", "hdf5")
    for path in (tmp_path / "tar", tmp_path / "again"):
        assert "cat" in stoker_cli("check", path).stdout


def test_what_cannot_be_stored_is_said_first(tmp_path, stoker_cli):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.jpg").write_bytes(b"\xff\xd8\xff")
    (source / "a.txt").write_text("words")
    (source / "b.jpg").write_bytes(b"\xff\xd8\xff")
    refused = stoker_cli("pack", source, tmp_path / "out", "--to", "hdf5", status=1)
    assert 'lossy: field "txt"' in refused.stdout + refused.stderr
    stoker_cli("pack", source, tmp_path / "out", "--to", "hdf5", "--lossy")
