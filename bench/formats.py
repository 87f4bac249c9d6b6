# SPDX-License-Identifier: Apache-2.0
"""Which format? Size, time to pack, and reads of the same samples in every format that stoker writes, and in Parquet.

    bench/formats.py [--rounds 7] [--arrow-python PYTHON] [--quick] PLACE

Two datasets: photos of about 100 kB, and arrays of 4 kB (12-bit readings as float32), both with a label. Both begin as a
folder with a file per sample. Everything is read by stoker through a full index (checksums are compared) with
`stoker load --raw --threads 2`, so that what differs is where the bytes lie. Cold: before every epoch the kernel is asked to
forget the files (posix_fadvise, POSIX_FADV_DONTNEED), as `stoker load --cold` does; what a disk or the host of a virtual
machine keeps is out of its reach, and so are the inodes. Rounds go through all formats, another one first in each; packs are
followed by a sync. Prints medians, as Markdown. Parquet is written by pyarrow, in --arrow-python (a Python that has it), with
the options that Hugging Face's `datasets` gives it, so that a page holds at most 1 MiB; its own would make it 1,024 rows.
Run with a Python that has NumPy and Pillow (build/venv/bin/python).
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from photos import make_photos

ROOT = pathlib.Path(__file__).resolve().parent.parent
STOKER = os.environ.get("STOKER_PROGRAM", str(ROOT / "build/release/stoker"))

# Prints how long reading and writing took, without the imports. Arrays are lists of one length, as the library knows them.
PARQUET = """
import sys, time, pathlib
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
begin = time.perf_counter()
files = sorted(source.glob("*/*"))
classes = sorted({file.parent.name for file in files})
labels = pa.array([classes.index(file.parent.name) for file in files], pa.int64())
if files[0].suffix == ".npy":
    rows = np.stack([np.load(file) for file in files])
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows[0].size)
else:
    column = pa.array([file.read_bytes() for file in files], pa.binary())
target.mkdir()
pages = {"min_chunk_size": 262144, "max_chunk_size": 1048576, "norm_level": 0}
pq.write_table(pa.table({"image": column, "label": labels}), target / "all.parquet", use_content_defined_chunking=pages)
print(time.perf_counter() - begin)
"""

READS = {
    "random, warm": ("shuffled", False),
    "in order, warm": ("sequential", False),
    "random, cold": ("shuffled", True),
    "in order, cold": ("sequential", True),
}


def make_arrays(folder: pathlib.Path, count: int) -> None:
    """Slow waves and some noise, rounded to 4,096 steps as sensors do; the same every time, in ten classes."""
    rng = np.random.default_rng(1)
    when = np.arange(32 * 32, dtype="float32")
    for label in range(10):
        (folder / f"class{label}").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        waves = np.sin(when / rng.uniform(5, 50)) + 0.02 * rng.standard_normal(when.size)
        readings = np.round((waves / 2.4 + 0.5) * 4095).astype("float32").reshape(32, 32)
        np.save(folder / f"class{number % 10}" / f"{number:06}.npy", readings)


def run(*words) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def megabytes(path: pathlib.Path) -> float:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6


class Contender:
    """A dataset in one format: how it is written, where it lies, what was measured."""

    def __init__(self, name: str, source: pathlib.Path, scratch: pathlib.Path, *options: str, arrow_python: str = ""):
        self.name = name
        self.source = source
        self.folder = name == "folder"
        self.path = source if self.folder else scratch / f"{source.name}-{name.replace(' ', '-')}"
        # That of a folder of files lies in the cache, which is `scratch` here.
        self.index_path = scratch / "stoker" if self.folder else self.path / ".stoker"
        self.options = options
        self.arrow_python = arrow_python
        self.seconds: list[float] = []
        self.rates: dict[str, list[float]] = {read: [] for read in READS}
        self.samples: set[int] = set()
        self.kept = 0.0

    def pack(self) -> None:
        if self.folder:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        run("sync", "-f", self.path.parent)
        begin = time.perf_counter()
        if self.arrow_python:
            elapsed = float(run(self.arrow_python, "-c", PARQUET, self.source, self.path))
        else:
            run(STOKER, "pack", self.source, self.path, *self.options)
            elapsed = time.perf_counter() - begin
        begin = time.perf_counter()
        run("sync", "-f", self.path.parent)
        self.seconds.append(elapsed + time.perf_counter() - begin)

    def index(self) -> None:
        if self.folder or self.arrow_python:  # pack has made the others'
            run(STOKER, "index", "--full", self.path)

    def read(self, epochs: int) -> None:
        for name, (order, cold) in READS.items():
            words = [STOKER, "load", self.path, "--raw", "--threads", "2", "--order", order, "--json"]
            words += ["--epochs", "2", "--cold"] if cold else ["--epochs", str(epochs + 1)]
            document = json.loads(run(*words))
            counted = document["epochs"] if cold else document["epochs"][1:]
            self.rates[name].append(statistics.median(epoch["samples_per_s"] for epoch in counted))
            self.samples |= {epoch["samples"] for epoch in document["epochs"]}
            self.kept = max(self.kept, document.get("kept_in_memory") or 0)

    def row(self) -> str:
        pack = f"{statistics.median(self.seconds):.2f} s" if self.seconds else "–"
        rates = [f"{statistics.median(values):,.0f}" for values in self.rates.values()]
        index = megabytes(self.index_path)
        size = megabytes(self.path) - (0 if self.folder else index)
        return "| " + " | ".join([self.name, f"{size:.1f} MB", f"{index:.1f} MB", pack, *rates]) + " |"


def contenders_of(source: pathlib.Path, scratch: pathlib.Path, arrow_python: str, arrays: bool) -> list[Contender]:
    found = [Contender("folder", source, scratch)]
    for name in ("tar", "tfrecord", "hdf5", "lmdb", "arrow", "feather", *(["npy"] if arrays else [])):
        found.append(Contender(name, source, scratch, "--to", name))
    if arrays:
        found.append(Contender("hdf5, gzip", source, scratch, "--to", "hdf5", "--compress", "gzip"))
    if arrow_python:
        found.append(Contender("parquet", source, scratch, arrow_python=arrow_python))
    return found


def measure(what: str, contenders: list[Contender], rounds: int, epochs: int) -> None:
    for turn in range(rounds):
        first = turn % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            contender.pack()
            contender.index()
        for contender in contenders[first:] + contenders[:first]:
            contender.read(epochs)
    counts = set().union(*(contender.samples for contender in contenders))
    if len(counts) != 1:
        sys.exit(f"{what}: not as many samples in all formats: {[(one.name, one.samples) for one in contenders]}")
    size = megabytes(contenders[0].path) / counts.pop()
    print(f"\n{what}, {size * 1e3:.1f} kB each; samples/s, median of {rounds} rounds\n")
    print("| " + " | ".join(["format", "size", "index", "pack", *READS]) + " |")
    print("|---" * (4 + len(READS)) + "|")
    for contender in contenders:
        print(contender.row())
    warm = [f"{one.name} {one.kept:.0%}" for one in contenders if one.kept > 0.01]
    if warm:
        print(f"\nnot wholly cold, stayed in memory: {', '.join(warm)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=4, help="of a warm read, behind one that does not count (4)")
    parser.add_argument("--photos", type=int, default=500)
    parser.add_argument("--arrays", type=int, default=20000)
    parser.add_argument("--arrow-python", default="", help="a Python with pyarrow")
    parser.add_argument("--quick", action="store_true", help="few samples, one round: does it run?")
    parser.add_argument("place", type=pathlib.Path, help="directory on the file system in question")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.epochs, options.photos, options.arrays = 1, 1, 20, 200
    options.place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.place) as name:
        for what, count, make in (("photos", options.photos, make_photos), ("arrays", options.arrays, make_arrays)):
            scratch = pathlib.Path(name) / what
            os.environ["XDG_CACHE_HOME"] = str(scratch)
            source = scratch / what
            make(source, count)
            contenders = contenders_of(source, scratch, options.arrow_python, what == "arrays")
            measure(f"{count:,} {what}", contenders, options.rounds, options.epochs)
    if not options.arrow_python:
        print("\nleft out, for want of an interpreter: parquet")


if __name__ == "__main__":
    main()
