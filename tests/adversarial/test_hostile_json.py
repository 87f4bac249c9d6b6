# SPDX-License-Identifier: Apache-2.0
"""JSON of 400,000 levels, wherever JSON is read: an error or an answer, never death by a signal, never a long wait."""

import json
import struct
import zlib
from pathlib import Path

import pytest
from hostile import forge_body, nested, nested_objects, sealed
from samples import image_folder, jpeg
from tar_bytes import simple_tar

TRY = """
import sys, warnings, stoker
warnings.simplefilter("ignore")
try:
    dataset = stoker.open(sys.argv[1])
    print(len(dataset), [sorted(dataset[i]) for i in range(min(3, len(dataset)))])
    for batch in stoker.Loader(dataset, 4):
        pass
except (ValueError, OSError, RuntimeError) as error:
    print("refused:", type(error).__name__, str(error)[:300])
"""

DEEP = {"lists": nested(), "objects": nested_objects(), "open": "[" * 400_000}


@pytest.fixture
def shards(tmp_path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    files = {b"%03d.%s" % (i, kind): jpeg(i) if kind == b"jpg" else b"3" for i in range(8) for kind in (b"jpg", b"cls")}
    (path / "x-000000.tar").write_bytes(simple_tar(files))
    return path


def survive(path, tmp_path, stoker_cli, fresh_python):
    """All commands that take a dataset, and the package."""
    place = tmp_path / "place"
    place.mkdir()
    outcomes = [
        stoker_cli("check", path, status=None, timeout=60),
        stoker_cli("load", path, "--raw", "--epochs", "1", status=None, timeout=60),
        stoker_cli("stage", path, place, status=None, timeout=60),
        stoker_cli("pack", path, tmp_path / "packed", status=None, timeout=60),
    ]
    fresh_python(TRY, path, timeout=60)
    return outcomes


@pytest.mark.parametrize("kind", sorted(DEEP))
def test_a_deep_manifest(kind, shards, tmp_path, stoker_cli, fresh_python):
    stoker_cli("index", "--full", shards, "--where", "beside")
    forge_body(shards / ".stoker", "later", DEEP[kind])
    survive(shards, tmp_path, stoker_cli, fresh_python)


@pytest.mark.parametrize("member", ["origin", "fields", "segments", "classes"])
def test_a_deep_member_of_a_manifest(member, shards, tmp_path, stoker_cli, fresh_python):
    stoker_cli("index", "--full", shards, "--where", "beside")
    text = f'"version": 0, "format": "tar", "depth": "full", "{member}": {nested()}}}\n'
    (shards / ".stoker/manifest.json").write_text(sealed(text))
    survive(shards, tmp_path, stoker_cli, fresh_python)


@pytest.mark.parametrize("kind", sorted(DEEP))
def test_a_deep_json_field(kind, shards, tmp_path, stoker_cli, fresh_python):
    (shards / "x-000000.tar").write_bytes(simple_tar({b"1.json": DEEP[kind].encode(), b"1.cls": b"3"}))
    outcomes = survive(shards, tmp_path, stoker_cli, fresh_python)
    assert [each.returncode for each in outcomes] == [0, 0, 0, 0], "text is not parsed, so it is no fault"


@pytest.mark.parametrize("name", ["dataset_info.json", "state.json"])
@pytest.mark.parametrize("kind", sorted(DEEP))
def test_a_deep_file_of_an_arrow_folder(name, kind, tmp_path, stoker_cli, fresh_python):
    source, data = tmp_path / "photos", tmp_path / "data"
    image_folder(source, per_class=2)
    stoker_cli("pack", source, data, "--to", "arrow")
    import shutil

    shutil.rmtree(data / ".stoker")
    assert (data / name).exists()
    (data / name).write_text(DEEP[kind])
    survive(data, tmp_path, stoker_cli, fresh_python)


@pytest.mark.parametrize("command", [["--overwrite"], ["--part", "1/1"], []])
def test_a_deep_plan_of_pack(command, shards, tmp_path, stoker_cli):
    packed = tmp_path / "packed"
    stoker_cli("pack", shards, packed, "--plan")
    next(packed.rglob("plan.json")).write_text(nested())
    stoker_cli("pack", shards, packed, *command, status=None, timeout=60)


def test_a_deep_plan_of_scale(tmp_path, stoker_cli):
    sweep = tmp_path / "sweep"
    line = ["scale", "--threads", "1", "--repeat", "1", "--no-hook", "--output", sweep, "--", "true"]
    stoker_cli(*line)
    (sweep / "plan.json").write_text(nested())
    stoker_cli(*line, status=None, timeout=60)


@pytest.mark.parametrize("text", sorted(DEEP))
def test_a_deep_run(text, tmp_path, stoker_cli, fresh_python):
    run = tmp_path / "run"
    stoker_cli("time", "--plain", "--no-hook", "--run", run, "--", "true")
    members = json.loads((run / "run.json").read_text())
    in_member = json.dumps({**members, "command": "@"}).replace('"@"', DEEP[text])
    added = json.dumps({**members, "hostile": "@"}).replace('"@"', DEEP[text])
    for contents in (DEEP[text], in_member, added):
        (run / "run.json").write_text(contents)
        stoker_cli("report", run, "--output", tmp_path / "page.html", status=None, timeout=60)
        stoker_cli("time", "--compare", run, run, status=None, timeout=60)
    stoker_cli("time", "--follow", run, status=None, timeout=60)
    stoker_cli("scale", "--cpu-run", run, "--gpu-run", run, status=None, timeout=60)


@pytest.mark.parametrize("name", ["steps-host-1.columns", "resources.columns", "values.columns"])
def test_a_deep_description_of_columns(name, tmp_path, stoker_cli):
    """The description of a block is JSON as well; its CRC matches."""
    run = tmp_path / "run"
    stoker_cli("time", "--plain", "--no-hook", "--run", run, "--", "true")
    for text in (nested(), '{"rows": 0, "columns": [], "about": ' + nested_objects() + "}"):
        head = b"SBLK" + struct.pack("<IQ", len(text), 0) + text.encode()
        (run / name).write_bytes(b"stoker-columns 1\n" + head + struct.pack("<I", zlib.crc32(head)))
        stoker_cli("report", run, "--output", tmp_path / "page.html", status=None, timeout=60)
        stoker_cli("time", "--compare", run, run, status=None, timeout=60)


def test_a_deep_line_of_a_list(tmp_path, stoker_cli):
    photos = tmp_path / "photos"
    image_folder(photos, per_class=2)
    line = json.dumps({"path": "cat/cat_000.jpg"})
    (tmp_path / "list.jsonl").write_text(f'{line[:-1]}, "x": {nested()}}}\n')
    for command in ("check", "index"):
        stoker_cli(command, photos, "--list", tmp_path / "list.jsonl", status=None, timeout=60)


@pytest.mark.parametrize(
    "name", [".zgroup", "zarr.json", "index.json", "features.json", "dataset_info.json", "dataset_dict.json"]
)
def test_a_deep_mark_of_a_foreign_format(name, tmp_path, stoker_cli, fresh_python):
    """Whatever is looked at to say what a directory is."""
    data = tmp_path / "data"
    data.mkdir()
    (data / name).write_text(nested())
    (data / "shard.00000.mds").write_bytes(bytes(100))
    survive(data, tmp_path, stoker_cli, fresh_python)


ARROW = """
import sys, pyarrow as pa
schema = pa.schema([("a", pa.int64())], metadata={"huggingface": sys.argv[2], "pandas": sys.argv[2]})
with pa.OSFile(sys.argv[1], "wb") as file, pa.ipc.new_stream(file, schema) as stream:
    stream.write_table(pa.table({"a": [1, 2, 3]}, schema=schema))
import pyarrow.parquet
pyarrow.parquet.write_table(pa.table({"a": [1, 2, 3]}, schema=schema), sys.argv[1] + ".parquet")
"""


def test_deep_metadata_of_a_schema(tmp_path, stoker_cli, fresh_python, peer_arrow):
    peer_arrow(ARROW, tmp_path / "x.arrow", nested())
    for name in ("x.arrow", "x.arrow.parquet"):
        path = tmp_path / name
        stoker_cli("check", path, status=None, timeout=60)
        fresh_python(TRY, path)


def test_a_deep_state_of_a_loader(shards, tmp_path, fresh_python):
    (tmp_path / "loader.json").write_text(nested())
    script = """
import sys, stoker
loader = stoker.Loader(sys.argv[1], 4)
try:
    loader.resume(sys.argv[2])
except (ValueError, RuntimeError, RecursionError, OSError) as error:
    print("refused:", type(error).__name__)
"""
    assert "refused" in fresh_python(script, shards, tmp_path / "loader.json").stdout


def test_moderate_nesting_is_still_read(shards, tmp_path, stoker_cli, fresh_python):
    """A limit that real files meet is no limit: 60 levels in somebody's dataset_info.json or in a column of a run."""
    stoker_cli("index", "--full", shards, "--where", "beside")
    forge_body(shards / ".stoker", "later", nested(40))
    checked = stoker_cli("check", shards, "--json")
    assert checked.json["index"] is not None
