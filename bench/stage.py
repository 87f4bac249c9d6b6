# SPDX-License-Identifier: Apache-2.0
"""stoker stage beside rsync, cp -r, tar | tar and fpsync: interleaved, each followed by a sync, every one of them verified by cmp.

    bench/stage.py [--shards 20] [--shard-size 100000000] [--files 20000] [--size 100000] [--rounds 5] [--cold] SOURCE PLACE

SOURCE and PLACE are directories, on two file systems where that is what is to be measured; about twice the data is written to
PLACE at a time, and all of it is removed at the end. --cold makes the kernel forget the source before each run. Prints the
seconds of each tool (the median of the rounds), their ratio to those of stoker, and how stoker's rate compares with the slower
of what fio reads at SOURCE and writes at PLACE in the same rounds with as many threads: requests of 4 MiB past the page cache, and for the small
files as many files of that size, read whole.
"""

import argparse
import filecmp
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STOKER = os.environ.get("STOKER_PROGRAM", str(ROOT / "build/release/stoker"))
THREADS = max(4, min(16, 2 * len(os.sched_getaffinity(0))))


def make_files(path, files, size):
    block = os.urandom(size + 4096)
    for i in range(files):
        directory = path / f"class{i // 1000:04}"
        directory.mkdir(parents=True, exist_ok=True)
        start = i % 4096
        (directory / f"img{i:07}.jpg").write_bytes(block[start : start + size])


def make_shards(path, shards, size, scratch):
    """Each of samples of 100 kB, with a full index."""
    scratch.mkdir(parents=True)
    make_files(scratch / "one", shards * (size // 101_000), 100_000)
    subprocess.run([STOKER, "pack", scratch / "one", path, "--shard-size", str(size)], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(scratch)


def each_file(path):
    return [file for file in path.rglob("*") if file.is_file()]


def forget(path):
    for file in each_file(path):
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def warm(path):
    for file in each_file(path):
        file.read_bytes()


def commands(source, target):
    quoted = f"tar cf - -C {source} . | tar xf - -C {target}"
    return {
        "stoker stage": [STOKER, "stage", source, target, "--json"],
        "rsync": ["rsync", "-a", "-W", "--inplace", "--no-compress", f"{source}/", target],
        "cp -r": ["cp", "-r", source, target],
        "tar | tar": ["sh", "-c", quoted],
        "fpsync": ["fpsync", "-n", str(THREADS), "-f", "1000", f"{source}/", f"{target}/"],
    }


def verify(tool, source, target, output):
    """By reading all of it: what lies there is what was to be copied."""
    if tool == "stoker stage":
        result = json.loads(output)
        assert result["complete"] and result["verified"], result
        if result["packed"]:
            compared = subprocess.run([STOKER, "check", result["path"], "--compare", source, "--json"], capture_output=True)
            assert json.loads(compared.stdout)["comparison"]["equal"]
            return
        target = pathlib.Path(result["path"])
    elif tool == "cp -r":
        target = target / source.name
    for file in each_file(source):
        if ".stoker" not in file.parts:
            assert filecmp.cmp(file, target / file.relative_to(source), shallow=False), file


def fio(kind, directory, size, files=None):
    """Bytes a second of sequential requests of 4 MiB by as many threads, past the page cache or synced; of `files`, of as many files."""
    words = ["fio", "--output-format=json", f"--name={kind}", f"--directory={directory}", f"--rw={kind}", "--ioengine=psync"]
    words += [f"--numjobs={THREADS}", "--group_reporting", "--thread"]
    if files:  # fio makes them, and has the kernel forget them
        words += [f"--nrfiles={files // THREADS}", f"--filesize={size // files}", f"--bs={size // files}"]
        words += ["--file_service_type=sequential", "--openfiles=64"]
    else:
        words += ["--bs=4M", f"--size={size // THREADS}", "--end_fsync=1"]
        words += ["--direct=1"] if kind == "read" else []
    done = subprocess.run(words, capture_output=True, check=True)
    for file in directory.glob(f"{kind}.*"):
        file.unlink()
    job = json.loads(done.stdout)["jobs"][0]
    return size / (job["job_runtime"] / THREADS / 1000) if kind == "write" else job[kind]["bw_bytes"]


def measure(name, source, place, options, files=None):
    bytes_of = sum(file.stat().st_size for file in each_file(source) if ".stoker" not in file.parts)
    seconds, rates = {}, []
    for number in range(options.rounds):
        rates.append(min(fio("read", source.parent, bytes_of, files), fio("write", place, bytes_of)))
        tools = list(commands(source, place / "target"))
        for tool in tools[number % len(tools) :] + tools[: number % len(tools)]:
            target = place / "target"
            target.mkdir()
            (forget if options.cold else warm)(source)
            os.sync()
            begin = time.perf_counter()
            done = subprocess.run(commands(source, target)[tool], stdout=subprocess.PIPE, check=True, stderr=subprocess.DEVNULL if tool == "fpsync" else None)
            subprocess.run(["sync", "-f", place], check=True)
            seconds.setdefault(tool, []).append(time.perf_counter() - begin)
            if number == 0:
                verify(tool, source, target, done.stdout)
            shutil.rmtree(target)
    own = statistics.median(seconds["stoker stage"])
    print(f"\n{name}: {bytes_of / 1e9:.2f} GB, {options.rounds} rounds, source {'cold' if options.cold else 'warm'}")
    for tool, times in seconds.items():
        median = statistics.median(times)
        rate = f"{bytes_of / median / 1e6:7.0f} MB/s"
        print(f"  {tool:14} {median:7.3f} s ({min(times):.3f} to {max(times):.3f})  {rate}  {median / own:5.2f} x stoker's time")
    slower = statistics.median(rates)
    spread = f"{min(rates) / 1e6:.0f} to {max(rates) / 1e6:.0f}"
    print(f"  fio: {slower / 1e6:.0f} MB/s ({spread}), the slower of reading and writing; stoker at {bytes_of / own / slower:.2f} of it")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=20)
    parser.add_argument("--shard-size", type=int, default=100_000_000)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("place", type=pathlib.Path)
    options = parser.parse_args()
    missing = [tool for tool in ("rsync", "tar", "fpsync", "fio") if not shutil.which(tool)]
    if missing:
        sys.exit(f"not here: {', '.join(missing)} (Debian: rsync, tar, fpart, fio)")
    work = options.source.resolve() / f"stage-bench-{os.getpid()}"
    place = options.place.resolve() / f"stage-bench-{os.getpid()}-place"
    place.mkdir()
    try:
        make_shards(work / "shards", options.shards, options.shard_size, work / "scratch")
        make_files(work / "files", options.files, options.size)
        measure("shards", work / "shards", place, options)
        measure("small files", work / "files", place, options, options.files)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)


main()
