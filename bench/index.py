# SPDX-License-Identifier: Apache-2.0
"""Structure index of one tar with many members beside `tar tf`; then what opening it costs in Python.

    bench/index.py [--members 1280000] [--size 100] [--rounds 5] PLACE

Run with a Python that has the stoker package (build/venv/bin/python). Prints the ratio, the time and
memory of stoker.open, and the bytes of the index per sample beside the key.
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

OPEN = """
import os, sys, time
import stoker
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))
before = resident()
begin = time.perf_counter()
ds = stoker.open(sys.argv[1])
opened = time.perf_counter()
n = len(ds)
after = resident()
first = ds[n // 2]
read = time.perf_counter()
print(n, opened - begin, after - before, read - opened, resident() - before)
"""


def make_tar(path, members, size):
    """Plain ustar members, written as fast as Python can: only name and checksum differ."""
    if path.exists():
        return
    block = os.urandom(size) + bytes(-size % 512)
    with open(path, "wb", buffering=1 << 20) as out:
        for i in range(members):
            name = b"n%08d/img%08d.jpg" % (i // 1000, i)
            head = bytearray(512)
            head[0 : len(name)] = name
            head[100:108] = b"0000644\0"
            head[108:116] = head[116:124] = b"0000000\0"
            head[124:136] = b"%011o\0" % size
            head[136:148] = b"00000000000\0"
            head[148:156] = b"        "
            head[156:157] = b"0"
            head[257:265] = b"ustar\x0000"
            head[148:156] = b"%06o\0 " % sum(head)
            out.write(head)
            out.write(block)
        out.write(bytes(1024))


def timed(command):
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {command}")
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=1280000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("place", type=pathlib.Path)
    options = parser.parse_args()
    directory = options.place / "bench-index"
    directory.mkdir(parents=True, exist_ok=True)
    tar = directory / "many.tar"
    make_tar(tar, options.members, options.size)
    subprocess.run(["cat", str(tar)], stdout=subprocess.DEVNULL, check=True)  # warm
    ours, theirs, memory = [], [], 0
    for _ in range(options.rounds):
        theirs.append(timed(["tar", "tf", str(tar)])[0])
        shutil.rmtree(directory / ".stoker", ignore_errors=True)
        elapsed, peak = timed([STOKER, "index", str(tar)])
        ours.append(elapsed)
        memory = max(memory, peak)
    ratios = sorted(b / a for a, b in zip(ours, theirs))
    print(f"{options.members:,} members of {options.size} bytes in one tar, warm, {options.rounds} interleaved rounds")
    print(f"  stoker index {statistics.median(ours):.2f} s, tar tf {statistics.median(theirs):.2f} s: "
          f"{statistics.median(ratios):.2f}x as fast ({ratios[0]:.2f} to {ratios[-1]:.2f}); "
          f"peak memory {memory / 1e6:.0f} MB")
    size = sum(file.stat().st_size for file in (directory / ".stoker").rglob("*") if file.is_file())
    keys = options.members * len("n00000000/img00000000")
    print(f"  index {size / 1e6:.1f} MB: {(size - keys) / options.members:.1f} bytes per sample and field beside the key")
    opened = [subprocess.run([sys.executable, "-c", OPEN, str(tar)], capture_output=True, text=True, check=True)
              .stdout.split() for _ in range(options.rounds)]
    print(f"  stoker.open: {statistics.median(float(o[1]) for o in opened) * 1e3:.1f} ms, "
          f"{statistics.median(int(o[2]) for o in opened) / 1e6:.1f} MB more resident; first sample "
          f"{statistics.median(float(o[3]) for o in opened) * 1e3:.1f} ms, then {statistics.median(int(o[4]) for o in opened) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
