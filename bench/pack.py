# SPDX-License-Identifier: Apache-2.0
"""stoker pack beside GNU tar, cp -r and webdataset's ShardWriter: interleaved, in one run.

    bench/pack.py [--files 20000] [--size 100000] [--rounds 5] [--peer-python PYTHON] PLACE...

Each PLACE is a directory (one on a disk, one on a tmpfs); source and destinations lie there. Every
tool is followed by a sync of the file system it wrote to. Prints the ratio of the rates and the peak
memory of stoker. "bare copy" opens, reads and writes the same files with as many threads and does
nothing else: what no tool that reads the bytes can beat (cmake --build build/release --target copy_floor).
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STOKER = os.environ.get("STOKER_PROGRAM", str(ROOT / "build/release/stoker"))

WEBDATASET = """
import os, sys, webdataset
source, target = sys.argv[1:]
classes = sorted(os.listdir(source))
with webdataset.ShardWriter(target + "/wds-%06d.tar", maxsize=1e9, maxcount=10**9, verbose=0) as out:
    for label, name in enumerate(classes):
        for file in sorted(os.listdir(os.path.join(source, name))):
            with open(os.path.join(source, name, file), "rb") as stream:
                out.write({"__key__": name + "/" + file.split(".")[0], "jpg": stream.read(), "cls": label})
"""


def make_source(path, files, size):
    """Class directories of incompressible files; made once per place."""
    done = path.parent / (path.name + ".complete")
    if done.exists() and done.read_text() == f"{files} {size}":
        return
    shutil.rmtree(path, ignore_errors=True)
    block = os.urandom(size + 4096)
    per_class = max(1, files // 100)
    for i in range(files):
        directory = path / f"class{i // per_class:04}"
        if i % per_class == 0:
            directory.mkdir(parents=True)
        start = i % 4096
        (directory / f"img{i:07}.jpg").write_bytes(block[start : start + size])
    done.write_text(f"{files} {size}")
    os.sync()


def run(command, place):
    """Wall seconds of the command and a sync, and its peak memory in bytes."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    subprocess.run(["sync", "-f", place], check=True)
    elapsed = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"failed: {command}")
    return elapsed, usage.ru_maxrss * 1024


def measure(place, options):
    source = place / "bench-source"
    make_source(source, options.files, options.size)
    for directory in source.iterdir():  # warm the cache
        if directory.is_dir():
            for file in directory.iterdir():
                file.read_bytes()
    work = place / "bench-work"
    tools = {
        "stoker pack": [STOKER, "pack", str(source), str(work / "out")],
        "tar cf": ["tar", "cf", str(work / "out.tar"), "-C", str(source), "."],
        "cp -r": ["cp", "-r", str(source), str(work / "copy")],
    }
    floor = ROOT / "build/release/copy_floor"
    if floor.exists():
        tools["bare copy"] = [str(floor), str(source), str(work / "bare")]
    if options.peer_python:
        tools["webdataset"] = [options.peer_python, "-c", WEBDATASET, str(source), str(work)]
    times = {name: [] for name in tools}
    memory = 0
    for turn in range(options.rounds):
        order = list(tools)  # another one comes first each time: what was just removed leaves traces
        for name in order[turn % len(order):] + order[: turn % len(order)]:
            command = tools[name]
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            subprocess.run(["sync", "-f", str(place)], check=True)
            elapsed, peak = run(command, str(place))
            times[name].append(elapsed)
            if name == "stoker pack":
                memory = max(memory, peak)
    shutil.rmtree(work, ignore_errors=True)
    total = options.files * options.size
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(place)], capture_output=True, text=True, check=True)
    print(f"\n{options.files:,} files of {options.size:,} bytes at {place} ({kind.stdout.strip()}), "
          f"median of {options.rounds} interleaved rounds")
    for name, values in times.items():
        ratios = sorted(theirs / ours for theirs, ours in zip(values, times["stoker pack"]))
        print(f"  {name:12} {statistics.median(values):7.2f} s  {total / statistics.median(values) / 1e6:8.0f} MB/s"
              + (f"   stoker is {statistics.median(ratios):.2f}x as fast ({ratios[0]:.2f} to {ratios[-1]:.2f})"
                 if name != "stoker pack" else ""))
    print(f"  peak memory of stoker pack: {memory / 1e6:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--size", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-python", help="a Python with webdataset")
    parser.add_argument("place", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    for place in options.place:
        place.mkdir(parents=True, exist_ok=True)
        measure(place, options)


if __name__ == "__main__":
    main()
