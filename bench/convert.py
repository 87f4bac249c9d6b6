# SPDX-License-Identifier: Apache-2.0
"""`stoker pack` from each format to each other one, beside reading the source and writing the result alone.

    bench/convert.py [--samples 4000] [--size 100000] [--rounds 3] [--shards 1] [--from tar,hdf5] [--to arrow,npy] PLACE

Source and destination lie at PLACE, which is on a disk or a tmpfs. "Reading" is a plain loop of read() over the source's
files, "writing" a plain loop of write() of as many bytes as the result has; both on one thread with requests of 1 MiB, and
everything that writes is followed by a sync of the file system. The ratio is the time of the slower one over that of
pack: how much of what the machine can do is left. With several shards pack writes as many at once as the machine has
cores. The three take turns. Run with a Python that has the stoker package.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import time

import numpy as np
import stoker

FORMATS = ("tar", "tfrecord", "hdf5", "lmdb", "arrow", "npy")
REQUEST = 1 << 20


def files_of(path):
    return [file for file in path.rglob("*") if file.is_file() and ".stoker" not in file.parts]


def timed(work, place):
    begin = time.perf_counter()
    work()
    subprocess.run(["sync", "-f", place], check=True)
    return time.perf_counter() - begin


def read(path):
    buffer = bytearray(REQUEST)
    for file in files_of(path):
        with open(file, "rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass


def write(path, size):
    block = os.urandom(REQUEST)
    path.mkdir()
    with open(path / "plain", "wb", buffering=0) as out:
        for _ in range(size // REQUEST):
            out.write(block)


def convert(source, target, name, options):
    copy = options.place / "bench-convert-out"
    stoker.pack(source, copy, to=target, shard_size=options.shard_size)  # warms up, and says how much there is to write
    size = sum(file.stat().st_size for file in files_of(copy))
    tools = {
        "pack": lambda: stoker.pack(source, copy, to=target, shard_size=options.shard_size),
        "read": lambda: read(source),
        "write": lambda: write(copy, size),
    }
    times = {tool: [] for tool in tools}
    for turn in range(options.rounds):
        order = list(tools)
        for tool in order[turn % 3 :] + order[: turn % 3]:
            shutil.rmtree(copy, ignore_errors=True)
            subprocess.run(["sync", "-f", options.place], check=True)
            times[tool].append(timed(tools[tool], options.place))
    shutil.rmtree(copy, ignore_errors=True)
    pack, reading, writing = (statistics.median(times[tool]) for tool in tools)
    print(f"{name:9} -> {target:9} pack {size / pack / 1e6:7.0f} MB/s   reading alone {size / reading / 1e6:7.0f}   "
          f"writing alone {size / writing / 1e6:7.0f}   of the slower one {max(reading, writing) / pack:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--from", dest="sources", default=",".join(FORMATS))
    parser.add_argument("--to", dest="targets", default=",".join(FORMATS))
    parser.add_argument("place", type=pathlib.Path)
    options = parser.parse_args()
    # The tenth more is for what a format writes beside the bytes of the samples.
    options.shard_size = options.samples * options.size * 11 // 10 // options.shards
    scratch = options.place / "bench-convert"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    rows = np.random.default_rng(0).integers(0, 256, (options.samples, options.size), dtype="uint8")
    np.save(scratch / "rows.npy", rows)
    print(f"{options.samples} arrays of {options.size} bytes at {options.place} into {options.shards} shards, median of {options.rounds} interleaved rounds")
    for source in options.sources.split(","):
        stoker.pack(scratch / "rows.npy", scratch / source, to=source)
        for target in options.targets.split(","):
            convert(scratch / source, target, source, options)
        shutil.rmtree(scratch / source)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
