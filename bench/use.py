# SPDX-License-Identifier: Apache-2.0
"""What `stoker time` says that a program used, beside what the program knows that it used.

    bench/use.py [--stoker build/release/stoker] [--megabytes 1500] [--threads 3] [--seconds 10] [--read 2000]
        [--children 200] DIRECTORY

The program is tests/cli/known_use.c: it fills memory, keeps threads busy by their own clocks, reads a file of --read megabytes
twice, and prints its CPU time by its own account. Then once more with many children that live 10 ms. Needs cc.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

MEGABYTE = 1 << 20


def measure(options, scratch: Path, *words) -> tuple[dict, float]:
    command = [options.stoker, "time", "--json", "--run", scratch / f"run{words[-1]}", "--", scratch / "known_use"]
    done = subprocess.run([str(word) for word in [*command, *words]], stdout=subprocess.PIPE, text=True, check=True)
    said, document = done.stdout.split("\n", 1)
    return json.loads(document), float(said.split()[1])


def show(what: str, measured: float, truth: float, unit: str) -> None:
    print(f"{what:24} {measured:12.3f} of {truth:12.3f} {unit}  ratio {measured / truth:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stoker", type=Path, default=Path("build/release/stoker"))
    parser.add_argument("--megabytes", type=int, default=1500)
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--read", type=int, default=2000, help="megabytes")
    parser.add_argument("--children", type=int, default=200)
    parser.add_argument("directory")
    options = parser.parse_args()
    source = Path(__file__).parent.parent / "tests/cli/known_use.c"
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        scratch = Path(name)
        subprocess.run(["cc", "-O1", "-pthread", source, "-o", scratch / "known_use"], check=True)
        with open(scratch / "data", "wb") as file:
            for _ in range(options.read):
                file.write(os.urandom(MEGABYTE))
        milliseconds = options.seconds * 1000
        document, cpu = measure(
            options, scratch, options.megabytes, options.threads, milliseconds, scratch / "data", 2, 0
        )
        show("memory", document["peak_memory_bytes"] / MEGABYTE, options.megabytes, "MiB")
        show("CPU time", document["cpu_seconds"], cpu, "s")
        show("bytes read", document["read_bytes"] / MEGABYTE, 2 * options.read, "MiB")
        document, cpu = measure(options, scratch, 1, 0, 10, "/dev/null", 1, options.children)
        show(f"CPU of {options.children} children", document["cpu_seconds"], cpu, "s")


if __name__ == "__main__":
    main()
