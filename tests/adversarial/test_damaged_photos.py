# SPDX-License-Identifier: Apache-2.0
"""Photos whose bytes are damaged: named, or read as other decoders read them; never grey without a word."""

import io
import random
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import stoker
from lossy_shards import FAILURES
from PIL import Image
from samples import noise
from stoker.transforms import Resize

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("fresh_cache")]


def photo(seed: int, progressive: bool = False) -> bytes:
    """96 x 64 pixels with something in each block, so that damage in the middle meets coefficients."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (16, 24, 3), dtype="uint8")
    buffer = io.BytesIO()
    picture = Image.fromarray(coarse).resize((192, 128), Image.Resampling.BICUBIC)
    picture.save(buffer, "JPEG", quality=85, progressive=progressive)
    return buffer.getvalue()


def scan_of(data: bytes) -> int:
    """Where the entropy-coded bytes begin."""
    at = data.index(b"\xff\xda")
    return at + 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]


def zeroed(data: bytes) -> bytes:
    begin = scan_of(data)
    middle = begin + (len(data) - begin) // 3
    return data[:middle] + bytes((len(data) - begin) // 3) + data[middle + (len(data) - begin) // 3 :]


def stuffed(data: bytes) -> bytes:
    """Codes of ones only, which no Huffman table has."""
    begin = scan_of(data)
    middle = begin + (len(data) - begin) // 2
    return data[:middle] + b"\xff\x00" * 40 + data[middle + 80 :]


def cut(data: bytes) -> bytes:
    begin = scan_of(data)
    return data[: begin + (len(data) - begin) // 2]


def cut_with_end(data: bytes) -> bytes:
    return cut(data).rstrip(b"\xff") + b"\xff\xd9"


def garbage_after_scan(data: bytes) -> bytes:
    assert data.endswith(b"\xff\xd9")
    return data[:-2] + bytes(range(1, 200)) + data[-2:]


JPEG_DAMAGE = [zeroed, stuffed, cut, cut_with_end, garbage_after_scan]


def photos(root: Path, damage, progressive: bool) -> Path:
    """Damaged before they were packed: every checksum of the index matches."""
    source = root / "source"
    source.mkdir()
    for i in range(12):
        data = photo(i, progressive)
        (source / f"p{i:02d}.jpg").write_bytes(damage(data) if i in (4, 9) else data)
        (source / f"p{i:02d}.cls").write_text("1")
    return source


@pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "packed"])
@pytest.mark.parametrize("damage", JPEG_DAMAGE, ids=lambda each: each.__name__)
def test_a_damaged_photo_is_named(damage, packed, progressive, tmp_path):
    """What libjpeg only warns of is a damaged training photo."""
    data = photos(tmp_path, damage, progressive)
    if packed:
        stoker.pack(data, tmp_path / "packed")
        data = tmp_path / "packed"
    with pytest.raises(FAILURES, match="p04"):
        for _ in stoker.Loader(data, 4, [Resize((32, 48))], shuffle=False):
            pass
    loader = stoker.Loader(data, 4, [Resize((32, 48))], shuffle=False, on_error="skip")
    good = sum(len(batch["label"]) for batch in loader)
    bad = {str(each["sample"] if isinstance(each, dict) else each.sample) for each in loader.stats()["bad"]}
    assert bad == {"p04", "p09"} and good == 10


@pytest.mark.parametrize("damage", JPEG_DAMAGE, ids=lambda each: each.__name__)
def test_load_names_damaged_photos(damage, tmp_path, stoker_cli):
    data = photos(tmp_path, damage, False)
    # A random crop need not meet the damage: several epochs do.
    done = stoker_cli("load", data, "--epochs", "10", "--crop", "64", status=1)
    assert "p04" in done.text or "p09" in done.text


JUDGE = """
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <jpeglib.h>
static jmp_buf out;
static void fail(j_common_ptr c) { (void)c; longjmp(out, 1); }
static void quiet(j_common_ptr c) { (void)c; }
int main(int n, char** a) {
  for (int i = 1; i < n; i++) {
    FILE* f = fopen(a[i], "rb");
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr e;
    c.err = jpeg_std_error(&e);
    e.output_message = quiet;
    e.error_exit = fail;
    jpeg_create_decompress(&c);
    long bad = 1;
    if (!setjmp(out)) {
      jpeg_stdio_src(&c, f);
      jpeg_read_header(&c, 1);
      jpeg_start_decompress(&c);
      unsigned char* row = malloc(c.output_width * 4);
      while (c.output_scanline < c.output_height) jpeg_read_scanlines(&c, &row, 1);
      jpeg_finish_decompress(&c);
      bad = e.num_warnings;
    }
    if (bad) puts(a[i]);
    fclose(f);
  }
}
"""


@pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
@pytest.mark.parametrize("packed", [False, True], ids=["folder", "packed"])
def test_every_warning_of_libjpeg_names_its_photo(packed, progressive, tmp_path):
    """200 photos with random damage to their scans: those that libjpeg warns of are bad, and nothing that is intact."""
    damaged = set()
    source = tmp_path / "source/a"
    source.mkdir(parents=True)
    for i in range(200):
        damage = random.Random(i)
        data = bytearray(photo(i % 7, progressive))
        begin = scan_of(bytes(data))
        for _ in range(damage.choice([0, 1, 1, 5])):
            at = damage.randrange(begin, len(data) - 2)
            data[at] ^= 1 << damage.randrange(8)
        if i % 10 == 0:
            del data[damage.randrange(begin, len(data)) :]
        (source / f"p{i:03d}.jpg").write_bytes(data)
        if data != photo(i % 7, progressive):
            damaged.add(f"p{i:03d}")
    (tmp_path / "judge.c").write_text(JUDGE)
    subprocess.run(["cc", tmp_path / "judge.c", "-o", tmp_path / "judge", "-ljpeg"], check=True)
    names = sorted(source.iterdir())
    judged = subprocess.run([tmp_path / "judge", *names], check=True, capture_output=True, text=True).stdout
    expected = {Path(line).stem for line in judged.splitlines()}
    assert 20 < len(expected) < 180, "too few of either kind"
    data = tmp_path / "source"
    if packed:
        stoker.pack(data, tmp_path / "packed")
        data = tmp_path / "packed"
    loader = stoker.Loader(data, 8, [Resize((32, 48))], shuffle=False, on_error="skip", fields=["image"])
    good = sum(len(batch["image"]) for batch in loader)
    bad = {
        str(each["sample"] if isinstance(each, dict) else each.sample).split("/")[-1] for each in loader.stats()["bad"]
    }
    # Codes that no encoder writes, which libjpeg passes over, may be noticed too.
    assert expected <= bad <= damaged, (
        f"not noticed: {sorted(expected - bad)[:20]}; wrongly refused: {sorted(bad - damaged)[:20]}"
    )
    assert len(bad - expected) <= 10 and good == 200 - len(bad)


def test_intact_photos_of_all_kinds_stay_good(tmp_path):
    """The strict default must not refuse what is merely unusual: restart markers, thumbnails, bytes after the end."""
    source = tmp_path / "source"
    source.mkdir()
    picture = Image.open(io.BytesIO(photo(1)))
    for i, options in enumerate(
        [
            {"restart_marker_blocks": 4},
            {"restart_marker_rows": 1},
            {"optimize": True},
            {"progressive": True},
            {"subsampling": 0},
            {"comment": b"a comment", "exif": b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"},
        ]
    ):
        picture.save(source / f"p{i}.jpg", "JPEG", **options)
    picture.convert("L").save(source / "p6.jpg", "JPEG")
    picture.convert("CMYK").save(source / "p7.jpg", "JPEG")
    (source / "p8.jpg").write_bytes(photo(2) + b"\0" * 100)
    (source / "p9.jpg").write_bytes(photo(3) + photo(4))
    loader = stoker.Loader(source, 4, [Resize((32, 48))], fields=["image"])
    assert sum(len(batch["image"]) for batch in loader) == 10


# --- All bad ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_dataset_without_a_good_photo_is_an_error(on_error, tmp_path):
    """13 batches of no rows would train a model on nothing."""
    source = tmp_path / "source"
    source.mkdir()
    for i in range(50):
        (source / f"p{i:02d}.jpg").write_bytes(noise(i, 500))
    with pytest.raises(FAILURES):
        empty = [
            len(batch["image"])
            for batch in stoker.Loader(source, 4, [Resize((8, 8))], on_error=on_error, fields=["image"])
        ]
        assert not empty, f"batches of {empty} rows"
