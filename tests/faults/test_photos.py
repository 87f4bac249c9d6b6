# SPDX-License-Identifier: Apache-2.0
"""Broken and hostile photos: an error that says why, or pixels; never a crash, a hang or memory without bound."""

import concurrent.futures
import io
import json
import pickle
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import stoker
from broken_photos import (
    DHT,
    DQT,
    SOS,
    bomb_of_scans,
    hostile,
    joined,
    odd_but_good,
    overwritten,
    picture,
    saved,
    segments,
    truncated,
    with_lying_sizes,
    with_wrong_tables,
)
from PIL import Image

DECODE = """
import pickle, json, resource, sys, time
import stoker
outcome = {}
for name, data in pickle.load(open(sys.argv[1], "rb")).items():
    print("trying", name, file=sys.stderr, flush=True)
    outcome[name] = []
    begin = time.process_time()
    for options in ({}, {"size": (8, 8)}, {"size": (8, 8), "on_corrupt": "like_pillow"}):
        try:
            found = stoker.decode(data, **options)
            outcome[name].append("pixels %d x %d" % found.shape[:2])
        except Exception as error:
            outcome[name].append(f"{type(error).__name__}: {error}")
    outcome[name].append(time.process_time() - begin)
outcome["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps(outcome))
"""

# Some bytes for each pixel that is said to be there: no more than 8,000 x 8,000 in these.
MOST_MEMORY = 1_000_000_000
# Far above what any needs on a slow machine, far below a hang.
MOST_SECONDS = 60


def outcomes(photos: dict[str, bytes], tmp_path: Path, environment) -> dict[str, list[str]]:
    """What decode() makes of each photo: whole, resized, and resized like Pillow."""
    (tmp_path / "photos").write_bytes(pickle.dumps(photos))

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (2 * MOST_MEMORY, 2 * MOST_MEMORY))

    done = subprocess.run(
        [sys.executable, "-c", DECODE, tmp_path / "photos"],
        capture_output=True, text=True, timeout=300, env=environment, preexec_fn=limit,
    )  # fmt: skip
    assert done.returncode == 0, f"status {done.returncode}, at the end of:\n{done.stderr[-1000:]}"
    found = json.loads(done.stdout)
    assert found.pop("peak") < MOST_MEMORY
    for name, results in found.items():
        assert results.pop() < MOST_SECONDS, name
        for result in results:
            kind, _, cause = result.partition(": ")
            assert kind.startswith("pixels") or (kind in ("CorruptError", "UnsupportedError") and cause), (
                f"{name}: {result}"
            )
    return found


def refused(results: list[str]) -> bool:
    return not any(result.startswith("pixels") for result in results)


def test_truncated(tmp_path, stoker_environment):
    found = outcomes(truncated(), tmp_path, stoker_environment)
    assert len(found) > 500
    assert [name for name, results in found.items() if not refused(results[:2])] == []


def test_wrong_tables(tmp_path, stoker_environment):
    found = outcomes(with_wrong_tables(), tmp_path, stoker_environment)
    missing = [name for name in found if "none of db" in name]
    assert len(missing) == 2 and all(refused(found[name]) for name in missing)


@pytest.mark.parametrize("missing", [DHT, DQT])
def test_tables_of_another_photo_are_not_used(missing):
    """What was decoded before on the same thread does not matter."""
    broken = joined([part for part in segments(saved(optimize=True, quality=60)) if part[0] != missing])

    def outcome():
        try:
            return stoker.decode(broken).tobytes()
        except stoker.CorruptError as error:
            return str(error)

    with concurrent.futures.ThreadPoolExecutor(1) as fresh:
        wanted = fresh.submit(outcome).result()
    for before in (saved(optimize=True, quality=60), saved(quality=20), saved(progressive=True)):
        stoker.decode(before)
        assert outcome() == wanted


def test_lying_sizes(tmp_path, stoker_environment):
    found = outcomes(with_lying_sizes(), tmp_path, stoker_environment)
    smaller = {name for name, results in found.items() if not refused(results[:2])}
    # Less than there is, or what needs the same blocks, cannot be seen to be wrong; a GIF's frame may be any part of it.
    unseen = (" 1 x 1", " says 121 x 91")
    assert all(name.endswith(unseen) or name.startswith("GIF says") for name in smaller), smaller
    for name, results in found.items():
        if " 0" in name:
            assert refused(results), name
    assert "65500 x 65500" in found["baseline says 65500 x 65500"][0]


def test_overwritten(tmp_path, stoker_environment):
    found = outcomes(overwritten(), tmp_path, stoker_environment)
    for name in ("no bytes", "one byte", "zeros", "only the first two bytes", "only markers", "begin and end"):
        assert refused(found[name]), name
    assert all("neither JPEG nor PNG" in result for result in found["a text"])
    assert all("is an HTML page, not an image" in result for result in found["a page instead of a photo"])
    assert all("damaged BMP" in result or "BMP of" in result for result in found["a text that begins as a BMP"])
    assert not refused(found["two photos"][:2])
    assert refused(found["zeros from the middle on"][:2])


def test_hostile(tmp_path, stoker_environment):
    found = outcomes(hostile(), tmp_path, stoker_environment)
    for name in ("PNG with many texts", "PNG with a profile that unfolds"):
        assert found[name][0] == "pixels 1 x 1"
    assert "million are the most" in found["PNG bomb"][0]
    assert "header" in found["PNG with its header in second place"][0]
    assert "more than 500 scans" in found["882 scans"][0]
    assert "scans" in found["200 scans of a large photo"][0] and refused(found["200 scans of a large photo"])
    assert refused(found["scans again and again"][:2])
    for name in ("12 bits", "lossless", "hierarchical"):
        assert all(result.startswith("UnsupportedError: JPEG of a kind that is not decoded") for result in found[name])


def test_large_photos_take_memory_in_proportion(tmp_path, stoker_environment):
    """Without the address space that it needs: an error, and not a word about damage."""
    (tmp_path / "photo").write_bytes(bomb_of_scans(13_000, 1))
    program = """
import sys, resource, stoker
data = open(sys.argv[1], "rb").read()
resource.setrlimit(resource.RLIMIT_AS, (300_000_000, 300_000_000))
try: stoker.decode(data, size=(8, 8))
except MemoryError: print("MemoryError")
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "photo"], capture_output=True, text=True, env=stoker_environment
    )
    assert done.stdout == "MemoryError\n", done.stderr


@pytest.mark.parametrize("name", odd_but_good())
def test_odd_but_good(name):
    data = odd_but_good()[name]
    assert np.array_equal(stoker.decode(data), np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))


def test_crops_of_a_photo_without_its_last_scans():
    """libjpeg smooths what the missing scans would have said, over the edges of a crop."""
    parts = segments(saved(image=picture(200, 150), progressive=True, subsampling=2))
    scans = [i for i, (marker, _) in enumerate(parts) if marker == SOS]
    for kept in range(1, len(scans)):
        data = joined(parts[: scans[kept]] + parts[-1:])
        whole = stoker.decode(data)
        for top, left, height, width in [
            (0, 0, 8, 8),
            (40, 60, 30, 50),
            (149, 199, 1, 1),
            (17, 0, 100, 200),
            (0, 33, 150, 1),
        ]:
            part = stoker.decode(data, crop=(top, left, height, width))
            assert np.array_equal(part, whole[top : top + height, left : left + width]), (kept, top, left)
