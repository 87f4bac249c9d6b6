# SPDX-License-Identifier: Apache-2.0
"""Damage within photos: what libjpeg-turbo warns of is never taken for a good photo without a word."""

import io
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import stoker
from broken_photos import picture, saved
from PIL import Image
from samples import write_files
from stoker.transforms import Resize

# libjpeg's warnings that are no damage: they concern no pixel.
HARMLESS = ("unknown JFIF revision number", "Unknown Adobe color transform code")
FORMS = {
    "4:2:0": {"subsampling": 2, "quality": 85},
    "4:4:4": {"subsampling": 0, "quality": 92},
    "gray": {"quality": 85},
    "optimized": {"subsampling": 2, "quality": 75, "optimize": True},
    "restart": {"subsampling": 2, "quality": 85, "restart_marker_rows": 1},
    "progressive": {"subsampling": 2, "quality": 85, "progressive": True},
}


def photo(form: str, seed: int = 0) -> bytes:
    image = picture(320, 240, seed)
    return saved(image=image.convert("L") if form == "gray" else image, **FORMS[form])


def damaged(data: bytes, seed: int) -> bytes:
    """A bit flipped, a range zeroed, bytes lost or bytes put in, somewhere in the entropy-coded data."""
    rng = random.Random(seed)
    begin = data.index(b"\xff\xda") + 16
    changed = bytearray(data)
    at = rng.randrange(begin, len(data) - 300)
    kind = seed % 4
    if kind == 0:
        changed[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        length = rng.choice([1, 16, 256])
        changed[at : at + length] = bytes(length)
    elif kind == 2:
        del changed[at : at + rng.choice([1, 16, 256])]
    else:
        changed[at:at] = rng.randbytes(rng.choice([1, 16, 256]))
    return bytes(changed)


def six_hundred() -> list[tuple[str, bytes]]:
    return [(form, damaged(photo(form, seed % 5), seed)) for form in FORMS for seed in range(100)]


def libjpegs_warnings(data: bytes) -> list[str]:
    """Those of libjpeg-turbo's own program, which decodes all of the photo."""
    done = subprocess.run(["djpeg", "-outfile", "/dev/null"], input=data, capture_output=True)
    return [line for line in done.stderr.decode().splitlines() if not line.startswith(HARMLESS)]


def cause(data: bytes, **options) -> str:
    """What decode() has against it; empty: nothing."""
    try:
        stoker.decode(data, **options)
        return ""
    except stoker.CorruptError as error:
        return str(error)


def test_all_that_libjpeg_warns_of_is_an_error():
    assert shutil.which("djpeg"), "libjpeg-turbo-progs is needed"
    warned = noticed = silent = 0
    for number, (form, data) in enumerate(six_hundred()):
        warnings = libjpegs_warnings(data)
        found = cause(data)
        assert not warnings or found, f"{number} ({form}): {warnings}"
        assert cause(data, size=(64, 64)) == found
        warned += bool(warnings)
        noticed += bool(found)
        if not found:
            good = stoker.decode(photo(form, number % 100 % 5))
            silent += not np.array_equal(stoker.decode(data), good)
    print(f"libjpeg warns of {warned}, {noticed} are noticed; {silent} silently become other pixels")
    assert noticed >= warned > 200


def test_the_words_are_libjpegs():
    data = photo("4:2:0")
    at = len(data) - 2
    # libjpeg-turbo does not count seven that it has read ahead.
    assert "13 extraneous bytes before marker 0xd9" in cause(data[:at] + bytes(20) + data[at:])
    assert "1 extraneous bytes before marker 0xd9" in cause(data[:at] + b"\0" + data[at:])
    assert "premature end of data segment" in cause(data[: at - 400] + data[at:])
    head = data.index(b"\xff\xdb")
    assert "extraneous bytes before marker 0xdb" in cause(data[:head] + bytes(7) + data[head:])
    assert "premature end" in cause(data[:-400]).lower() or "ends too early" in cause(data[:-400])


@pytest.mark.parametrize("form", FORMS)
def test_what_is_only_odd_is_none(form):
    """Bytes after the end, fill bytes before a marker, a JFIF of the future."""
    data = photo(form)
    good = stoker.decode(data)
    head = data.index(b"\xff\xdb")
    jfif = data.index(b"JFIF\0") + 5
    for odd in (
        data + b"noise",
        data[:head] + b"\xff" * 9 + data[head:],
        data[:-2] + b"\xff" * 5 + data[-2:],
        data[:jfif] + b"\x07" + data[jfif + 1 :],
    ):
        assert np.array_equal(stoker.decode(odd), good)
        assert np.array_equal(stoker.decode(odd, size=(30, 40)), stoker.decode(data, size=(30, 40)))


def test_a_marker_in_the_midst_is_noticed_whatever_part_is_wanted():
    data = photo("4:2:0")
    at = len(data) * 3 // 4
    for marker in (b"\xff\xd3", b"\xff\xe5"):
        assert cause(data[:at] + marker + data[at + 2 :], crop=(0, 0, 16, 16))


def test_a_damaged_photo_gets_no_row_index():
    data = photo("4:2:0")
    assert stoker.row_index(data) is not None
    assert stoker.row_index(data[:-2] + bytes(20) + data[-2:]) is None


# --- In a Loader ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    """Twelve photos, of which three are damaged, in a folder: without checksums."""
    root = tmp_path_factory.mktemp("damage")
    data = photo("4:2:0")
    broken = {
        "03": data[:-2] + bytes(20) + data[-2:],
        "07": data[: len(data) // 2] + data[len(data) // 2 + 600 :],
        "08": data[: len(data) // 2] + bytes(300) + data[len(data) // 2 + 300 :],
    }
    assert all(libjpegs_warnings(each) for each in broken.values())
    write_files(root / "photos", {f"a/{i:02d}.jpg": broken.get(f"{i:02d}", photo("4:2:0", i)) for i in range(12)})
    return root / "photos"


def test_the_strict_default_raises(dataset):
    with pytest.raises(stoker.CorruptError, match=r"a/0[378].*Corrupt JPEG data.*on_corrupt='like_pillow'"):
        list(stoker.Loader(dataset, 4, [Resize((32, 32))], threads=1))


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_otherwise_it_is_counted(dataset, on_error):
    loader = stoker.Loader(dataset, 4, [Resize((32, 32))], on_error=on_error)
    rows = sum(len(batch["image"]) for batch in loader)
    assert rows == (9 if on_error == "skip" else 12)
    bad = loader.stats()["bad"]
    assert sorted(fault["sample"] for fault in bad) == ["a/03", "a/07", "a/08"]
    assert all("Corrupt JPEG data" in fault["cause"] for fault in bad) and loader.stats()["damaged"] == []


def test_pillows_pixels_can_be_had(dataset):
    loader = stoker.Loader(dataset, 12, [Resize((32, 32))], on_corrupt="like_pillow", shuffle=False)
    [batch] = loader
    for i, found in enumerate(batch["image"]):
        image = Image.open(io.BytesIO((dataset / f"a/{i:02d}.jpg").read_bytes())).convert("RGB")
        assert np.array_equal(found, np.asarray(image.resize((32, 32), Image.Resampling.BILINEAR))), i
    stats = loader.stats()
    assert stats["bad"] == [] and sorted(fault["sample"] for fault in stats["damaged"]) == ["a/03", "a/07", "a/08"]
    assert all("Corrupt JPEG data" in fault["cause"] for fault in stats["damaged"])


def test_wrong_use(dataset):
    with pytest.raises(ValueError, match="on_corrupt 'ignore': should be one of"):
        stoker.Loader(dataset, 4, [Resize((32, 32))], on_corrupt="ignore")
