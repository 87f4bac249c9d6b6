# SPDX-License-Identifier: Apache-2.0
"""The experiment everyone repeats: how should a dataset on shared storage be brought to the GPU?

    bench/experiment.py [--files 4000] [--size 100000] [--rounds 3] [--decode] [--json]
    bench/experiment.py --shared DIR --local DIR        on storage of your own

Files of about --size bytes lie on shared storage, as a folder and, made once before, as a tar and as shards. They are
read in place, copied and read (cp, rsync, a tar that is extracted), or staged by stoker; with each way stoker.Loader
delivers all samples in random order, which is checked. Prints how long it takes until the first epoch has ended, with
everything that belongs to it, how long each further one takes, and what was asked of the shared storage.

Without --shared the storage is a slow one of our own (bench/shared_storage, a FUSE file system that counts what it is
asked for); --metadata-ms, --request-ms and --rate say how slow. On storage of your own nothing is counted, and neither
root nor FUSE is needed. Nothing of it stays, also when it is stopped.

Every way begins cold: our own storage is mounted anew, files elsewhere are dropped from the page cache
(POSIX_FADV_DONTNEED); what servers and disks keep is out of reach. Before the second epoch the files are forgotten
again, as if they were more than memory holds. What is copied is synced. Rounds go through all ways, another one first
in each. --decode reads real photos (made with Pillow) and decodes, resizes and crops them. Needs the stoker package, cp
and tar; rsync where it is there.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import random
import shlex
import shutil
import signal
import statistics
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass, field

from experiment_storage import ROOT, Workspace, each_file, forget, run
from experiment_table import findings, print_table

READER = pathlib.Path(__file__).resolve().with_name("experiment_reader.py")
COUNTED = ("metadata", "reads", "read_bytes")


def stoker_program() -> str:
    """The one of the Python package that is measured, or a build's."""
    beside = pathlib.Path(sys.executable).with_name("stoker")
    given = os.environ.get("STOKER_PROGRAM")
    return given or (str(beside) if beside.exists() else shutil.which("stoker")) or str(ROOT / "build/release/stoker")


STOKER = stoker_program()


@dataclass
class Way:
    """From a dataset on shared storage to its samples. Words of commands may hold {source} and {local}."""

    name: str
    source: str
    bring: list[list[str]] = field(default_factory=list)
    read: str = "{source}"  # "" is what `stoker stage` says
    stage: bool = False  # the Loader stages
    rounds: list[dict] = field(default_factory=list)

    def median(self, what: str) -> float:
        return statistics.median(values[what] for values in self.rounds)


STAGE = [STOKER, "stage", "{source}", "{local}", "--json"]
WAYS = [
    Way("folder, read in place", "photos"),
    Way("folder, cp -r", "photos", [["cp", "-r", "{source}", "{local}/photos"]], "{local}/photos"),
    Way(
        "folder, rsync",
        "photos",
        [["rsync", "-r", "-W", "--inplace", "--no-compress", "{source}", "{local}"]],
        "{local}/photos",
    ),
    Way(
        "tar, copied and extracted",
        "photos.tar",
        [["cp", "{source}", "{local}"], ["tar", "xf", "{local}/photos.tar", "-C", "{local}"]],
        "{local}/photos",
    ),
    Way("tar shards, read in place", "tar"),
    Way("TFRecord shards, read in place", "tfrecord"),
    Way("folder, stoker stage", "photos", [STAGE], ""),
    Way("tar shards, stoker stage", "tar", [STAGE], ""),
    Way("tar shards, read while staged", "tar", stage=True),
]


def make_dataset(folder: pathlib.Path, options: argparse.Namespace) -> dict:
    """Ten classes; the same bytes every time. Returns what every way must deliver, as far as it can be known here."""
    if options.decode:
        from photos import photo  # needs Pillow

        distinct = [photo(seed) for seed in range(min(options.files, 100))]
    source = random.Random(1)
    expected = {"samples": options.files, "bytes": 0, "digest": 0}
    for label in range(10):
        (folder / f"class{label}").mkdir(parents=True)
    for number in range(options.files):
        if options.decode:
            data = distinct[number % len(distinct)]
        else:
            data = source.randbytes(max(1, round(options.size * source.uniform(0.5, 1.5))))
        (folder / f"class{number % 10}" / f"{number:06}.jpg").write_bytes(data)
        expected["bytes"] += len(data)
        expected["digest"] += zlib.crc32(data)
    return expected


class Experiment:
    def __init__(self, options: argparse.Namespace, space: Workspace):
        self.options = options
        self.space = space
        self.expected: dict = {}
        self.prepared: dict[str, float] = {"photos": 0.0}
        self.delivered: dict | None = None
        # That of the user may lie anywhere, and what it keeps of earlier rounds would hide work.
        self.cache = space.make(options.local)
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def begin_cold(self) -> None:
        """Nothing at the place, no index of an earlier way, nothing in the client's memory."""
        self.space.clear_local()
        for path in self.cache.iterdir():
            shutil.rmtree(path)
        run("sync", "-f", self.space.local)
        if self.space.slow:
            # Behind our own storage there is no disk: what it costs is what it is told to.
            each_file(self.space.below, lambda path: pathlib.Path(path).read_bytes())
            self.space.slow.mount()
        else:
            forget(self.space.shared)

    def prepare(self) -> None:
        self.say(f"making {self.options.files:,} files")
        self.expected = make_dataset(self.space.below / "photos", self.options)
        run("sync", "-f", self.space.below)  # what is still to be written cannot be forgotten
        shared = self.space.shared
        size = f"{self.options.shard_mb}M"
        for name, words in {
            "photos.tar": ["tar", "cf", shared / "photos.tar", "-C", shared, "photos"],
            "tar": [STOKER, "pack", shared / "photos", shared / "tar", "--shard-size", size],
            "tfrecord": [
                STOKER,
                "pack",
                shared / "photos",
                shared / "tfrecord",
                "--to",
                "tfrecord",
                "--shard-size",
                size,
            ],
        }.items():
            self.begin_cold()
            begin = time.perf_counter()
            run(*words, env=self.environment)
            run("sync", "-f", self.space.below)
            self.prepared[name] = time.perf_counter() - begin
            self.say(f"{name}: made in {self.prepared[name]:.1f} s")

    def measure(self, way: Way) -> None:
        self.begin_cold()
        local, source = self.space.local, self.space.shared / way.source
        begin = time.perf_counter()
        path = way.read.format(source=source, local=local)
        for words in way.bring:
            printed = run(*(word.format(source=source, local=local) for word in words), env=self.environment)
            path = path or json.loads(printed)["path"]
        if way.bring:
            run("sync", "-f", local)
        brought = time.perf_counter() - begin
        words = [sys.executable, READER, "--forget", source if way.read == "{source}" else local, path]
        words += ["--stage", local, "--forget", local] if way.stage else []
        words += ["--decode"] if self.options.decode else []
        words += ["--threads", self.options.threads] if self.options.threads else []
        words += ["--operations", self.space.shared / ".operations"] if self.space.slow else []
        document = json.loads(run(*words, env=self.environment))
        first, second = document["epochs"]
        for epoch in (first, second):
            self.check(way, epoch)
        values = {"bring_s": brought, "first_epoch_s": first["seconds"], "next_epoch_s": second["seconds"]}
        values["until_first_epoch_s"] = brought + first["seconds"]
        values["with_preparation_s"] = values["until_first_epoch_s"] + self.prepared[way.source]
        until_first, before_second, after_second = document["operations"]
        for what in COUNTED if until_first else ():
            values[what] = until_first[what]
            values[f"next_{what}"] = after_second[what] - before_second[what]
        way.rounds.append(values)
        self.say(f"{way.name}: {values['until_first_epoch_s']:.1f} s")

    def check(self, way: Way, epoch: dict) -> None:
        """All samples, each with all of its bytes; pixels are compared among the ways."""
        found = {what: epoch[what] for what in ("samples", "bytes", "digest")}
        self.delivered = self.delivered or found
        if not self.options.decode:
            self.delivered = self.expected
        if found != self.delivered or found["samples"] != self.expected["samples"]:
            sys.exit(f"{way.name}: delivered {found}, not {self.delivered}")


def machine() -> str:
    model = next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    cores = len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, {platform.system()} {platform.release()}, load {os.getloadavg()[0]:.1f}"


def document_of(experiment: Experiment, ways: list[Way], left_out: dict[str, str]) -> dict:
    options, medians = experiment.options, {}
    for way in ways:
        medians[way.name] = {what: way.median(what) for what in way.rounds[0]}
    slow = {"metadata_ms": options.metadata_ms, "request_ms": options.request_ms, "rate": options.rate}
    return {
        "command": shlex.join(sys.argv),
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "shared": slow if experiment.space.slow else {"path": str(options.shared)},
        "local": str(options.local),
        "samples": experiment.expected["samples"],
        "bytes": experiment.expected["bytes"],
        "decode": options.decode,
        "prepared_s": {name: seconds for name, seconds in experiment.prepared.items() if name != "photos"},
        "ways": [
            {"name": way.name, "prepared_s": experiment.prepared[way.source], **medians[way.name], "rounds": way.rounds}
            for way in ways
        ],
        "left_out": left_out,
        "findings": findings(medians),
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--size", type=int, default=100_000, help="bytes of a file, on average")
    parser.add_argument("--shard-mb", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of the Loader; default: its own choice")
    parser.add_argument("--decode", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--shared", type=pathlib.Path, help="directory on your shared storage")
    parser.add_argument(
        "--local", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()), help="directory on this node's disk"
    )
    parser.add_argument("--metadata-ms", type=float, default=1)
    parser.add_argument("--request-ms", type=float, default=0.5)
    parser.add_argument("--rate", default="300M", help="bytes a second of all requests together")
    options = parser.parse_args()
    for name in ("files", "size", "rounds", "shard_mb"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')}: should be 1 or more")
    for path in filter(None, (options.shared, options.local)):
        if not path.is_dir():
            parser.error(f"{path}: not a directory")
    return options


def measure_all(experiment: Experiment) -> dict:
    left_out = {
        way.name: f"{way.bring[0][0]} is not installed"
        for way in WAYS
        if way.bring and not shutil.which(way.bring[0][0])
    }
    ways = [way for way in WAYS if way.name not in left_out]
    experiment.prepare()
    for number in range(experiment.options.rounds):
        experiment.say(f"round {number + 1} of {experiment.options.rounds}")
        turn = number * 2 % len(ways)
        for way in ways[turn:] + ways[:turn]:
            experiment.measure(way)
    return document_of(experiment, ways, left_out)


def stop(number: int, _frame) -> None:
    sys.exit(128 + number)


def main() -> None:
    options = parse()
    if not shutil.which(STOKER):
        sys.exit(f"{STOKER} is not there: pip install . gives it, or cmake --build build/release --target stoker")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    settings = ["--metadata-ms", options.metadata_ms, "--request-ms", options.request_ms, "--rate", options.rate]
    space = Workspace()
    try:
        space.open(options.shared, options.local, [str(word) for word in settings])
        document = measure_all(Experiment(options, space))
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # what is begun now is finished
        space.remove()
    if options.json:
        print(json.dumps(document, indent=2))
    else:
        print_table(document)


if __name__ == "__main__":
    main()
