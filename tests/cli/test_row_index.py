# SPDX-License-Identifier: Apache-2.0
"""Row indexes of JPEG photos: made by `pack` and `index --full`, kept beside the index, and gone with it."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from packed import flip
from samples import differences, jpeg, noise, tree, write_files
from stoker_program import program
from tar_bytes import simple_tar

PHOTOS = 40


@pytest.fixture
def photos(tmp_path):
    """Photos of two classes, and a file that is none."""
    directory = tmp_path / "photos"
    files = {f"{'cat' if i % 2 else 'eel'}/{i:03d}.jpg": jpeg(i, 40 + i, 30) for i in range(PHOTOS)}
    write_files(directory, files | {"cat/none.png": noise(1, 500)})
    return directory


def rows_in(directory) -> dict[str, bytes]:
    """Files with row indexes, by name."""
    return {path.name: path.read_bytes() for path in sorted(Path(directory).glob("*.rows"))}


def segments_in(directory) -> list[str]:
    return sorted(path.stem for path in Path(directory).glob("*.seg"))


def stems(rows) -> list[str]:
    return sorted(Path(name).stem for name in rows)


@pytest.fixture
def packed(stoker_cli, photos, tmp_path):
    stoker_cli("pack", photos, tmp_path / "packed", "--shard-size", "16K")
    return tmp_path / "packed"


def test_pack_makes_them(stoker_cli, photos, tmp_path):
    found = stoker_cli("pack", photos, tmp_path / "p", "--shard-size", "16K", "--json").json
    index = tmp_path / "p/.stoker"
    assert len(segments_in(index)) > 2 and stems(rows_in(index)) == segments_in(index)
    row_index = found["row_index"]
    assert (row_index["photos"], row_index["indexed"]) == (PHOTOS + 1, PHOTOS)
    assert row_index["bytes"] > 0 and row_index["percent"] > 0
    assert row_index["left"] == [{"to": "other library: not a JPEG", "photos": 1}]
    assert stoker_cli("check", tmp_path / "p", "--json").json["row_index"] == row_index
    assert f"row index: {PHOTOS} of {PHOTOS + 1} photos" in stoker_cli("check", tmp_path / "p").stdout


@pytest.mark.parametrize("to", ["tar", "tfrecord", "hdf5", "lmdb", "arrow"])
def test_whatever_the_format(stoker_cli, photos, tmp_path, to):
    found = stoker_cli("pack", photos, tmp_path / "p", "--to", to, "--json").json["row_index"]
    assert (found["photos"], found["indexed"]) == (PHOTOS + 1, PHOTOS)
    shutil.rmtree(tmp_path / "p/.stoker")
    assert stoker_cli("index", tmp_path / "p", "--full", "--json").json["row_index"] == found


def test_index_makes_them_at_full_depth(stoker_cli, photos):
    index = photos / ".stoker"
    assert stoker_cli("index", photos, "--where", "beside", "--json").json["row_index"]["photos"] == 0
    assert not rows_in(index)
    text = stoker_cli("index", photos, "--where", "beside", "--full").stdout
    assert f"row index: {PHOTOS} of {PHOTOS + 1} photos" in text
    assert stems(rows_in(index)) == segments_in(index)


def test_nothing_is_said_without_photos(stoker_cli, tmp_path):
    write_files(tmp_path / "d", {f"{i}.txt": b"text" for i in range(3)})
    assert "row index" not in stoker_cli("index", tmp_path / "d", "--full", "--where", "beside").stdout
    assert not rows_in(tmp_path / "d/.stoker")


def test_none_makes_none(stoker_cli, photos, tmp_path):
    found = stoker_cli("pack", photos, tmp_path / "p", "--row-index", "none", "--json").json
    assert found["row_index"]["photos"] == 0 and not rows_in(tmp_path / "p/.stoker")
    stoker_cli("index", photos, "--full", "--where", "beside", "--row-index=none")
    assert not rows_in(photos / ".stoker")


@pytest.mark.parametrize("word", ["", "x", "0", "-1", "1e3", "100000"])
def test_what_cannot_be(stoker_cli, photos, word):
    assert "row" in stoker_cli("index", photos, "--full", f"--row-index={word}", status=2).stderr


@pytest.mark.parametrize("kind", ["folder", "tar"])
def test_index_adds_what_is_missing(stoker_cli, photos, packed, kind):
    dataset = photos if kind == "folder" else packed
    words = ["index", dataset, "--full", "--where", "beside", "--json"]
    first = stoker_cli(*words).json
    before = rows_in(dataset / ".stoker")
    segments = segments_in(dataset / ".stoker")
    (dataset / ".stoker" / min(before)).unlink()
    again = stoker_cli(*words).json
    assert again["segments_reused"] == len(segments) and segments_in(dataset / ".stoker") == segments
    assert again["row_index"] == first["row_index"] and rows_in(dataset / ".stoker") == before


def test_another_granularity_replaces_them(stoker_cli, packed):
    index = packed / ".stoker"
    before, segments = rows_in(index), segments_in(index)
    stoker_cli("index", packed, "--full", "--row-index", "4")
    finer = rows_in(index)
    assert segments_in(index) == segments and finer.keys() == before.keys()
    assert all(finer[name] != before[name] for name in before)
    times = {name: (index / name).stat().st_mtime_ns for name in finer}
    stoker_cli("index", packed, "--full", "--row-index", "4")
    assert {name: (index / name).stat().st_mtime_ns for name in finer} == times
    stoker_cli("index", packed, "--full", "--row-index", "none")
    stoker_cli("index", packed, "--full")
    assert rows_in(index) == finer, "those that are there stay"


def test_a_complete_pack_gets_what_it_lacks(stoker_cli, photos, packed):
    before = rows_in(packed / ".stoker")
    (packed / ".stoker" / max(before)).unlink()
    found = stoker_cli("pack", photos, packed, "--shard-size", "16K", "--json").json
    assert found["already_complete"] and found["row_index"]["indexed"] == PHOTOS
    assert rows_in(packed / ".stoker") == before


def test_jobs_do_not_change_a_byte(stoker_cli, photos, packed, tmp_path):
    for jobs in ("1", "2", "7"):
        stoker_cli("pack", photos, tmp_path / jobs, "--shard-size", "16K", "--jobs", jobs)
        assert differences(tree(packed), tree(tmp_path / jobs)) == []
        stoker_cli("index", photos, "--full", "--where", "beside", "--jobs", jobs)
        os.rename(photos / ".stoker", tmp_path / f"index-{jobs}")
    assert differences(tree(tmp_path / "index-1"), tree(tmp_path / "index-7")) == []
    assert rows_in(tmp_path / "index-1")


def test_parts_make_their_own(stoker_cli, photos, packed, tmp_path):
    words = ["pack", photos, tmp_path / "p", "--shard-size", "16K"]
    stoker_cli(*words, "--plan")
    made = []
    for part in ("1/2", "2/2"):
        found = stoker_cli(*words, "--part", part, "--json").json
        made.append(found["row_index"]["photos"])
        assert len(rows_in(tmp_path / "p/.stoker")) == len(segments_in(tmp_path / "p/.stoker"))
    assert sum(made) == PHOTOS + 1 and all(made)
    stoker_cli(*words)
    assert differences(tree(packed), tree(tmp_path / "p")) == []


def test_resumed_after_a_kill(stoker_cli, stoker_environment, photos, packed, tmp_path):
    """Whenever it is killed, the second run gives what an undisturbed one gives."""
    for delay in (0.0, 0.01, 0.02, 0.03, 0.05):
        out = tmp_path / f"killed-{delay}"
        words = [program(), "pack", photos, out, "--shard-size", "16K", "--jobs", "1"]
        process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=stoker_environment
        )
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        stoker_cli("pack", photos, out, "--shard-size", "16K")
        assert differences(tree(packed), tree(out)) == []


def test_killed_between_segment_and_row_indexes(stoker_cli, photos, packed, tmp_path):
    """The segment is the journal entry: what comes behind it is made by the next run."""
    words = ["pack", photos, tmp_path / "p", "--shard-size", "16K"]
    stoker_cli(*words, "--plan")
    stoker_cli(*words, "--part", "1/2")
    rows = rows_in(tmp_path / "p/.stoker")
    (tmp_path / "p/.stoker" / min(rows)).unlink()
    stoker_cli(*words)
    assert differences(tree(packed), tree(tmp_path / "p")) == []


def test_gone_with_their_segments(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    shard = tmp_path / "d/a.tar"
    shard.write_bytes(simple_tar({b"a.jpg": jpeg(1), b"b.jpg": jpeg(2)}))
    stoker_cli("index", tmp_path / "d", "--full")
    before = rows_in(tmp_path / "d/.stoker")
    shard.write_bytes(simple_tar({b"a.jpg": jpeg(3), b"b.jpg": jpeg(4), b"c.jpg": jpeg(5)}))
    stoker_cli("index", tmp_path / "d")
    assert len(before) == 1 and not rows_in(tmp_path / "d/.stoker")
    stoker_cli("index", tmp_path / "d", "--full")
    after = rows_in(tmp_path / "d/.stoker")
    assert stems(after) == segments_in(tmp_path / "d/.stoker") and not after.keys() & before.keys()


def test_overwrite_removes_them(stoker_cli, photos, packed):
    before = rows_in(packed / ".stoker")
    stoker_cli("pack", photos, packed, "--shard-size", "1G", "--row-index", "none", "--overwrite")
    assert before and not rows_in(packed / ".stoker")


@pytest.mark.parametrize("offset", [0, 13, 30, 100, 175, 180, -1])
def test_damage_is_named_and_repaired(stoker_cli, packed, offset):
    before = rows_in(packed / ".stoker")
    damaged = packed / ".stoker" / min(before)
    flip(damaged, offset)
    found = stoker_cli("check", packed, "--json", status=1).json
    (fault,) = found["faults"]
    assert fault["shard"] == f".stoker/{damaged.name}" and "stoker index --full" in fault["cause"]
    loaded = stoker_cli("load", packed, "--epochs", "1", "--skip-bad", "--json").json
    assert sum(decoder["photos"] for decoder in loaded["decoders"]) == PHOTOS, "nobody needs them"
    stoker_cli("index", packed, "--full")
    assert rows_in(packed / ".stoker") == before
    stoker_cli("check", packed)


def test_a_photo_that_changed_gets_none(stoker_cli, packed):
    """Its checksum says so: `pack` records no times, so that the segment is used again."""
    before = stoker_cli("check", packed, "--json").json["row_index"]
    shard = min(packed.glob("*.tar"))
    flip(shard, 512 + 300)
    for name in rows_in(packed / ".stoker"):
        (packed / ".stoker" / name).unlink()
    found = stoker_cli("index", packed, "--full", "--json").json["row_index"]
    assert found["indexed"] == before["indexed"] - 1 and found["photos"] == before["photos"]
    assert {"to": "libjpeg-turbo: damaged or odd", "photos": 1} in found["left"]


def test_staged_with_the_index(stoker_cli, packed, tmp_path):
    (tmp_path / "place").mkdir()
    copy = Path(stoker_cli("stage", packed, tmp_path / "place", "--json").json["path"])
    assert rows_in(copy / ".stoker") == rows_in(packed / ".stoker") != {}


def test_load_says_who_decodes(stoker_cli, packed):
    words = ["load", packed, "--epochs", "1", "--batch", "8", "--skip-bad"]
    decoders = stoker_cli(*words, "--json").json["decoders"]
    assert sum(decoder["photos"] for decoder in decoders) == PHOTOS
    line = next(line for line in stoker_cli(*words).stdout.splitlines() if line.startswith("decoded by: "))
    assert all(decoder["name"] in line for decoder in decoders) and " %" in line
    assert stoker_cli("load", packed, "--raw", "--epochs", "1", "--json").json["decoders"] == []
