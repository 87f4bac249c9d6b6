# SPDX-License-Identifier: Apache-2.0
"""`stoker probe` beside fio, and beside a plain loop over small files, on the same file system, turn by turn.

    bench/probe.py [--stoker build/release/stoker] [--rounds 25] [--seconds 6] [--threads 1,4,16]
        [--parts files,reads] DIRECTORY

Both read the same file, which fio has written: stoker measures what is there in a place that it cannot write (a mount
of its own for root, permissions for others). Blocks of 1 MiB in order and of 4 KiB at random, with O_DIRECT and plain
pread(). Each round runs both; a ratio is of one round, what is shown the median of rounds.
The plain loop is bench/plain_files.c, compiled here. Needs fio and cc. Leaves nothing in DIRECTORY.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

FILES = ("create", "stat", "open", "small_read")


def output_of(command: list, status=0) -> str:
    environment = {**os.environ, "XDG_CACHE_HOME": tempfile.gettempdir() + "/stoker-bench-cache"}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    if done.returncode != status:
        raise SystemExit(f"{command[0]} failed with {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


def probe(options, part: str, threads: int, place: Path, read_only=False) -> dict:
    command = [options.stoker, "probe", place, "--only", part, "--threads", threads, "--json"]
    command += ["--seconds", options.seconds]
    if read_only and os.geteuid() == 0:
        script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, place, *command]
    # A place that cannot be written is a problem, and so the exit status 1.
    [measured] = json.loads(output_of(command, 1 if read_only else 0))["places"]
    return measured


def rate_of(place: dict, what: str, threads: int, cold: bool) -> float:
    """Reads at random are of 4 KiB."""
    for rate in place["rates"]:
        if rate["what"] == what and rate["threads"] == threads and rate["cold"] == cold:
            return rate["per_s"]
    raise SystemExit(f"stoker probe gave no {what} with {threads} threads: {place['problem']}")


class Fio:
    size = 352 * 2**20

    def __init__(self, options, file: Path):
        self.options, self.file = options, file
        self.run("write", "1M", 1, ["--end_fsync=1"], timed=False)

    def run(self, what: str, block: str, threads: int, more: list[str], timed=True) -> dict:
        """Of all threads together."""
        command = ["fio", "--name=x", f"--filename={self.file}", f"--size={self.size}", f"--rw={what}"]
        command += [f"--bs={block}", "--direct=1", "--ioengine=psync", "--thread", f"--numjobs={threads}"]
        command += ["--group_reporting", "--output-format=json", "--randrepeat=0", *more]
        if timed:
            command += ["--time_based", f"--runtime={round(1000 * self.options.trial)}ms"]
        return json.loads(output_of(command))["jobs"][0]["read"]

    def read(self, threads: int) -> float:
        more = [f"--offset_increment={self.size // threads // 2**20 * 2**20}", f"--size={self.size // threads}"]
        return self.run("read", "1M", threads, more)["bw_bytes"]

    def random_read(self, threads: int) -> float:
        return self.run("randread", "4k", threads, [])["iops"]


def show(what: str, threads: int, ours: list[float], theirs: list[float], unit: float, name: str) -> None:
    ratios = [a / b for a, b in zip(ours, theirs)]
    print(
        f"{what:12} {threads:2} threads  stoker {statistics.median(ours) / unit:10.1f}"
        f"  peer {statistics.median(theirs) / unit:10.1f} {name}"
        f"  ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
        flush=True,
    )


def compare_reads(options, scratch: Path) -> None:
    place = scratch / "data"
    place.mkdir()
    fio = Fio(options, place / "file")
    place.chmod(0o555)
    for threads in options.threads:
        ours, theirs = {"read": [], "random_read": []}, {"read": [], "random_read": []}
        for number in range(options.rounds):
            for turn in (0, 1):
                if (number + turn) % 2 == 0:
                    measured = probe(options, "storage", threads, place, read_only=True)
                    for what, rates in ours.items():
                        rates.append(rate_of(measured, what, threads, cold=True))
                else:
                    theirs["read"].append(fio.read(threads))
                    theirs["random_read"].append(fio.random_read(threads))
        show("read", threads, ours["read"], theirs["read"], 1e6, "MB/s")
        show("random_read", threads, ours["random_read"], theirs["random_read"], 1, "/s")
    place.chmod(0o755)


def compare_files(options, scratch: Path) -> None:
    program = scratch / "plain_files"
    source = Path(__file__).with_name("plain_files.c")
    output_of(["cc", "-O2", "-Wall", "-Wextra", "-o", program, source])
    ours, theirs = {what: [] for what in FILES}, {what: [] for what in FILES}
    for _ in range(options.rounds):
        measured = probe(options, "files", 1, scratch)
        for what in FILES:
            ours[what].append(rate_of(measured, what, 1, cold=False))
        # As many files as stoker made this time: more of them do not fit into the caches as well.
        made = next(rate["amount"] for rate in measured["rates"] if rate["what"] == "create")
        directory = scratch / "files/0"  # as deep as stoker's
        directory.mkdir(parents=True)
        for line in output_of([program, directory, made, options.trial]).splitlines():
            what, rate = line.split()
            theirs[what].append(float(rate))
        directory.rmdir()
        directory.parent.rmdir()
    for what in FILES:
        show(what, 1, ours[what], theirs[what], 1, "/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seconds", type=int, default=6, help="of a probe; a figure in it takes a 26th")
    parser.add_argument("--threads", default="1,4,16", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--parts", default="files,reads", type=lambda text: text.split(","))
    parser.add_argument("directory")
    options = parser.parse_args()
    options.trial = options.seconds / 26
    print(output_of(["fio", "--version"]).strip(), os.uname().release)
    options.stoker = Path(options.stoker).resolve()
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        if "files" in options.parts:
            compare_files(options, Path(scratch).resolve())
        if "reads" in options.parts:
            compare_reads(options, Path(scratch).resolve())


if __name__ == "__main__":
    main()
