# SPDX-License-Identifier: Apache-2.0
"""A job of a known footprint: footprint.py MEGABYTES CORES SECONDS [TRUTH.json]

Holds so much memory, keeps so many cores busy, and writes down what the kernel says it used: expected values that
neither Slurm nor Stoker had a hand in.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

megabytes, cores, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
begin = time.monotonic()


def work() -> None:
    while time.monotonic() < begin + seconds:
        pass


def footprint() -> None:
    # Before the memory is there: Slurm counts what a child shares with its parent twice.
    children = []
    for _ in range(cores - 1):
        child = os.fork()
        if child == 0:
            work()
            os._exit(0)
        children.append(child)
    held = bytearray(megabytes * 1_000_000)
    held[:: resource.getpagesize()] = b"x" * len(range(0, len(held), resource.getpagesize()))
    work()
    for child in children:
        os.waitpid(child, 0)


# In a child, so that giving the memory back at its end is counted too.
worker = os.fork()
if worker == 0:
    footprint()
    os._exit(0)
os.waitpid(worker, 0)
own, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
if len(sys.argv) > 4:
    truth = {
        "cpu_s": own.ru_utime + own.ru_stime + theirs.ru_utime + theirs.ru_stime,
        "memory": theirs.ru_maxrss * 1024,
        "seconds": time.monotonic() - begin,
    }
    Path(sys.argv[4]).write_text(json.dumps(truth))
