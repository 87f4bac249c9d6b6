# SPDX-License-Identifier: Apache-2.0
"""One core beside two: `stoker load` pinned to one core, to two, and as two processes with a core each.

    bench/cores.py [--stoker build/release/stoker] [--rounds 7] DATASET

Two processes that share nothing are what two cores of this machine can do; neighbours on a shared host take from it.
"""

import argparse
import json
import os
import statistics
import subprocess


def start(program: str, dataset: str, cores: list[int], epochs: int) -> subprocess.Popen:
    command = ["taskset", "-c", ",".join(map(str, cores)), program, "load", "--json"]
    command += ["--threads", str(len(cores)), "--epochs", str(epochs), dataset]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def rate(process: subprocess.Popen) -> float:
    """Samples a second, without the two epochs that fill caches and pools."""
    output = process.communicate()[0]
    if process.returncode != 0:
        raise SystemExit(f"stoker load failed with {process.returncode}")
    return statistics.median(epoch["samples_per_s"] for epoch in json.loads(output)["epochs"][2:])


def show(what: str, rates: list[float], ratios: list[float]) -> None:
    middle, least, most = statistics.median(ratios), min(ratios), max(ratios)
    print(f"{what:28} {statistics.median(rates):7.0f} samples/s   {middle:.2f}x one core ({least:.2f} to {most:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("dataset")
    options = parser.parse_args()
    first, second = sorted(os.sched_getaffinity(0))[:2]

    def run(*cores: int) -> subprocess.Popen:
        return start(options.stoker, options.dataset, list(cores), options.epochs * len(cores))

    one, two, apart = [], [], []
    for _ in range(options.rounds):
        one.append((rate(run(first)) + rate(run(second))) / 2)
        two.append(rate(run(first, second)))
        apart.append(sum(rate(each) for each in [run(first), run(second)]))
    show("one core", one, [1.0])
    show("two cores", two, [a / b for a, b in zip(two, one)])
    show("two processes, a core each", apart, [a / b for a, b in zip(apart, one)])


if __name__ == "__main__":
    main()
