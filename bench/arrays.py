# SPDX-License-Identifier: Apache-2.0
"""Arrays through the Loader beside bare pread + CRC of the same ranges, on one core: 150 kB and 4 kB, in order and not.

    bench/arrays.py [--bench build/release/array_bench] [--directory /tmp] [--rounds 7]

Makes tar shards of .npy members with Python's tarfile, indexes them with checksums, and calls array_bench on one core.
"""

import argparse
import io
import os
import pathlib
import subprocess
import tarfile
import tempfile

import numpy as np
import stoker


def write(directory: pathlib.Path, count: int, elements: int) -> None:
    directory.mkdir()
    rng = np.random.default_rng(0)
    with tarfile.open(directory / "arrays.tar", "w") as tar:
        for i in range(count):
            buffer = io.BytesIO()
            np.save(buffer, rng.integers(0, 256, elements, dtype="uint8"))
            member = tarfile.TarInfo(f"{i:07d}.x.npy")
            member.size = buffer.tell()
            tar.addfile(member, io.BytesIO(buffer.getvalue()))
    stoker.index(directory, full=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default="build/release/array_bench")
    parser.add_argument("--directory")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    core = max(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        for count, elements in [(4000, 150_000), (200_000, 4096)]:
            dataset = pathlib.Path(scratch) / str(elements)
            write(dataset, count, elements)
            for order in ["sequential", "shuffled"]:
                command = [options.bench, dataset, "x", order, str(options.rounds)]
                subprocess.run(command, check=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))


if __name__ == "__main__":
    main()
