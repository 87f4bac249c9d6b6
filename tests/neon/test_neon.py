# SPDX-License-Identifier: Apache-2.0
"""Our JPEG decoder on ARM's vectors (NEON): the pixels of this machine, bit for bit. Compiled by a cross compiler as CMake compiles
it for this machine, and run by an emulator."""

import io
import json
import os
import random
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import stoker
from PIL import Image
from stoker_program import ROOT, program

COMPILER = "aarch64-linux-gnu-g++"
EMULATOR = "qemu-aarch64"
GOOGLETEST = Path("/usr/src/googletest/googletest")

DECODER = ["src/base/crc32c.cpp", "src/base/fmt.cpp"] + [
    f"src/image/{name}.cpp"
    for name in (
        "baseline_decoder",
        "entropy_decoder",
        "jpeg_entropy",
        "jpeg_header",
        "entropy_kernels",
        "jpeg_kernels",
        "jpeg_plain",
        "resample",
        "resample_kernels",
        "row_index_view",
    )
]
UNIT_TESTS = ["src/base/crc32c_test.cpp", "src/image/jpeg_kernels_test.cpp", "src/image/resample_test.cpp"]

# cjpeg's words.
SAMPLINGS = {
    "4:4:4": ["-sample", "1x1"],
    "4:2:0": ["-sample", "2x2"],
    "4:2:2": ["-sample", "2x1"],
    "4:4:0": ["-sample", "1x2"],
    "4:1:1": ["-sample", "4x1"],
    "4:1:0": ["-sample", "4x2"],
    "two kinds": ["-sample", "2x2,1x2,2x1"],
    "gray": ["-grayscale"],
    "rgb": ["-rgb"],
}
WAYS = {"plain": [], "optimized": ["-optimize"], "restart each row": ["-restart", "1"], "restart": ["-restart", "3B"]}
SIZES = [(1, 1), (7, 9), (16, 17), (47, 33), (131, 70), (257, 301), (500, 375)]
FILTERS = ["nearest", "box", "bilinear", "bicubic", "lanczos"]


def tool(name: str) -> str:
    return shutil.which(name) or pytest.fail(f"{name} is missing: ./test installs it (tools/prepare.sh)")


def run(command, **options) -> subprocess.CompletedProcess:
    done = subprocess.run([str(word) for word in command], capture_output=True, **options)
    if done.returncode != 0:
        said = (done.stdout[-3000:] + done.stderr[-3000:]).decode(errors="replace")
        pytest.fail(f"{shlex.join(map(str, command))}\nexit status {done.returncode}\n{said}")
    return done


def flags_of_this_machine() -> dict[str, list[str]]:
    """What CMake compiles each file with: options that keep floats exact must be there on every CPU."""
    database = program().with_name("compile_commands.json")
    flags = {}
    for entry in json.loads(database.read_text()):
        words = shlex.split(entry["command"])
        name = Path(entry["file"])
        first = next(at for at, word in enumerate(words) if word.startswith("-"))
        if name.is_relative_to(ROOT):
            flags[str(name.relative_to(ROOT))] = words[first : words.index("-o")]
    return flags


class Cross:
    """Compiles for ARM; each file once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.flags = flags_of_this_machine()
        cache = shutil.which("ccache")
        self.compiler = [*([cache] if cache else []), tool(COMPILER)]

    def object_of(self, source: str) -> Path:
        made = self.folder / f"{Path(source).stem}.o"
        if not made.exists():
            flags = self.flags.get(source, self.flags["src/image/resample.cpp"])
            if source.startswith(str(GOOGLETEST)):
                flags = ["-std=c++20", "-O1", f"-I{GOOGLETEST}"]
            run([*self.compiler, *flags, "-c", ROOT / source, "-o", made])
        return made

    def program(self, name: str, sources: list[str]) -> Path:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(self.object_of, sources))
        made = self.folder / name
        run([tool(COMPILER), "-static", *objects, "-o", made])
        return made


@pytest.fixture(scope="module")
def cross(tmp_path_factory) -> Cross:
    return Cross(tmp_path_factory.mktemp("neon"))


def test_kernels_give_the_bits_of_plain_code(cross):
    googletest = [str(GOOGLETEST / "src" / name) for name in ("gtest-all.cc", "gtest_main.cc")]
    if not Path(googletest[0]).exists():
        pytest.fail(f"{googletest[0]} is missing: ./test installs it (tools/prepare.sh)")
    tests = cross.program("unit_tests", [*DECODER, *UNIT_TESTS, *googletest])
    said = run([tool(EMULATOR), tests]).stdout.decode()
    for name in ("JpegKernels.EveryInverseDctGivesTheBitsOfPlainCode", "Resample.EveryKernelGivesTheBitsOfPlainCode"):
        assert f"[       OK ] {name}" in said


def photo(width: int, height: int, options: list[str], seed: int) -> bytes:
    """Slopes, edges and noise."""
    y, x = np.mgrid[0:height, 0:width]
    channels = [x * 255 // max(1, width - 1), y * 255 // max(1, height - 1), (x // 7 + y // 5) % 2 * 255]
    pixels = np.stack(channels, axis=2) + np.random.default_rng(seed).integers(-40, 40, (height, width, 3))
    ppm = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype("uint8")).save(ppm, "PPM")
    return subprocess.run(["cjpeg", *options], input=ppm.getvalue(), capture_output=True, check=True).stdout


def photos():
    """(name, width, height, bytes): every sampling in every size, with qualities and ways to write that change from one to the next."""
    number = 0
    for sampling, words in SAMPLINGS.items():
        for width, height in SIZES:
            number += 1
            way = list(WAYS)[number % len(WAYS)]
            quality = 1 + number * 37 % 100
            name = f"{sampling}, {way}, quality {quality}, {width} x {height}"
            options = [*words, *WAYS[way], "-quality", str(quality)]
            yield name, width, height, photo(width, height, options, number)


def crops(rng: random.Random, width: int, height: int):
    """(crop, size, filter, flip) of a photo: the whole, and parts as they are, as training takes them, and otherwise resized."""

    def part():
        top, left = rng.randrange(height), rng.randrange(width)
        return top, left, rng.randint(1, height - top), rng.randint(1, width - left)

    yield (0, 0, height, width), None, "bilinear", False
    yield part(), None, "bilinear", True
    yield (0, 0, height, width), (224, 224), "bilinear", True
    yield part(), (224, 224), "bilinear", False
    for name in FILTERS:
        yield part(), (rng.randint(1, 150), rng.randint(1, 150)), name, rng.random() < 0.5


def test_pixels_are_those_of_this_machine(cross, tmp_path):
    decode_pixels = cross.program("decode_pixels", [*DECODER, "tests/neon/decode_pixels.cpp"])
    jobs, expected = [], []
    for number, (name, width, height, data) in enumerate(photos()):
        rng = random.Random(name)
        every = rng.randint(1, 5)
        files = {f"{number}.jpg": data, f"{number}.rows": stoker.row_index(data), f"{number}.fine": stoker.row_index(data, every)}
        for file, contents in files.items():
            (tmp_path / file).write_bytes(contents)
        for crop, size, resample, flip in crops(rng, width, height):
            pixels = stoker.decode(data, crop, size, resample, flip=flip)
            for index in ("-", f"{number}.rows", f"{number}.fine"):
                words = (f"{number}.jpg", index, *crop, *pixels.shape[:2], resample, int(flip))
                jobs.append(" ".join(map(str, words)))
                expected.append((f"{name}: {jobs[-1]}", pixels))

    done = run([tool(EMULATOR), decode_pixels], cwd=tmp_path, input="\n".join(jobs).encode())
    assert done.stderr.decode() == "NEON\n"
    assert len(done.stdout) == sum(pixels.nbytes for _, pixels in expected)
    at, different = 0, []
    for name, pixels in expected:
        found = np.frombuffer(done.stdout, "uint8", pixels.size, at).reshape(pixels.shape)
        at += pixels.size
        if not np.array_equal(found, pixels):
            most = np.abs(found.astype(int) - pixels.astype(int)).max()
            different.append(f"{name}: {np.any(found != pixels, axis=2).sum()} pixels differ, by up to {most}")
    assert not different, f"{len(different)} of {len(expected)}\n" + "\n".join(different[:20])
    assert len(expected) > 1500
