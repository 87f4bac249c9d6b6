# SPDX-License-Identifier: Apache-2.0
"""Random reads of 100 kB samples from each format, beside the format's own library, interleaved, in one run.

    bench/read_formats.py [--rounds 9] [--samples 2000] [--reads 1000] [--threads 2] [--only hdf5,lmdb,...] [--directory /tmp]

One set of samples, in each format as its own library writes it, read from a warm cache. stoker has an index with
checksums, and compares them. Every contender is one process that stays; they take turns, another one first in each round.
"One by one" is `dataset[i]` in as many threads as the peer has; "batches" is read_many() of 64, which has as many threads of
its own. Both sides copy the bytes out. Run with a Python that has the stoker package; the peers' interpreters are those of
the tests (`./test` makes them), or STOKER_PEER_HDF5, _LMDB and _ARROW.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import stoker

READER = pathlib.Path(__file__).resolve().parent / "contenders" / "read_rows.py"
ELEMENTS = 100_000

# name: (what makes it: peer and Python text with `rows` and `out`, the peer's reader, the aim)
CASES = {
    "hdf5 contiguous": ("hdf5", "f = h5py.File(out, 'w'); f['x'] = rows", "h5py", 1.4),
    "hdf5 variable length": (
        "hdf5",
        "f = h5py.File(out, 'w'); d = f.create_dataset('x', len(rows), h5py.vlen_dtype('u1'))\n"
        "for i, row in enumerate(rows): d[i] = row",
        "h5py",
        4,
    ),
    "hdf5 gzip, a chunk each": (
        "hdf5",
        "h5py.File(out, 'w').create_dataset('x', data=rows, chunks=(1, rows.shape[1]), compression='gzip')",
        "h5py",
        4,
    ),
    "lmdb": (
        "lmdb",
        "e = lmdb.open(out, map_size=1 << 36)\n"
        "with e.begin(write=True) as t:\n"
        "    for i, row in enumerate(rows): t.put(b'%07d.x' % i, row.tobytes())",
        "lmdb",
        1,
    ),
    "arrow": (
        "arrow",
        "t = pa.table({'x': pa.array([row.tobytes() for row in rows], pa.binary())})\n"
        "with pa.ipc.new_file(out, t.schema) as f: f.write_table(t, max_chunksize=100)",
        "pyarrow",
        1,
    ),
    "save_to_disk": (
        "arrow",
        "f = datasets.Features({'x': datasets.Value('binary')})\n"
        "datasets.Dataset.from_dict({'x': [row.tobytes() for row in rows]}, f).save_to_disk(out)",
        "datasets",
        4,
    ),
    "parquet plain": (
        "arrow",
        "t = pa.table({'x': [row.tobytes() for row in rows]})\n"
        "pq.write_table(t, out, compression='none', use_dictionary=False, row_group_size=100)",
        "pyarrow_parquet",
        4,
    ),
    "parquet snappy": (
        "arrow",
        "t = pa.table({'x': [row.tobytes() for row in rows]})\npq.write_table(t, out, row_group_size=100)",
        "pyarrow_parquet",
        4,
    ),
}
# Uncompressed: through the same index they should be as quick as a tar of the same samples.
PLAIN = ("hdf5 contiguous", "hdf5 variable length", "lmdb", "arrow", "save_to_disk", "parquet plain", "npy")

MAKE = """
import sys
if sys.argv[1] == 'hdf5': import h5py
if sys.argv[1] == 'lmdb': import lmdb
if sys.argv[1] == 'arrow': import pyarrow as pa, pyarrow.parquet as pq, datasets
if sys.argv[1] == 'lmdb':
    elements = int(sys.argv[4])
    with open(sys.argv[2], 'rb') as file: rows = [memoryview(row) for row in iter(lambda: file.read(elements), b'')]
else:
    import numpy as np
    rows = np.load(sys.argv[2])
out = sys.argv[3]
"""


def file_name(name: str) -> str:
    return name.replace(" ", "-").replace(",", "")


def interpreter(peer: str) -> str:
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    made = sorted(cache.glob(f"stoker/venvs/{peer}-*/bin/python"), key=lambda path: path.lstat().st_mtime)
    chosen = os.environ.get(f"STOKER_PEER_{peer.upper()}") or (str(made[-1]) if made else None)
    return chosen or sys.exit(f"no Python with {peer}: ./test makes it, or set STOKER_PEER_{peer.upper()}")


def photo_like(count: int) -> np.ndarray:
    """Bytes that gzip makes a third smaller, as it does with the pixels of photos."""
    rng = np.random.default_rng(0)
    slow = np.cumsum(rng.integers(-1, 2, (count, ELEMENTS), dtype="int16"), axis=1, dtype="int16")
    return (128 + slow + rng.integers(-8, 9, slow.shape, dtype="int16")).astype("uint8")


class Contender:
    def __init__(self, name, python, reader, path, threads):
        self.name = name
        self.process = subprocess.Popen(
            [python, READER, reader, path, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.samples = self.line()
        self.seconds = []

    def line(self):
        return self.process.stdout.readline() or sys.exit(f"{self.name} died")

    def turn(self, seed, reads):
        self.process.stdin.write(f"{seed} {reads}\n")
        self.process.stdin.flush()
        self.seconds.append(float(self.line()))

    def rate(self, reads):
        return reads / statistics.median(self.seconds)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def ratio(peer, ours):
    ratios = sorted(theirs / mine for theirs, mine in zip(peer.seconds, ours.seconds))
    return f"{statistics.median(ratios):6.2f}x ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def compete(contenders, rounds, reads):
    for turn in range(-1, rounds):
        first = turn % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            contender.turn(turn + 1, reads)
    for contender in contenders:
        del contender.seconds[0]  # warms up
        contender.close()


def beside_peers(options, scratch, rows):
    for name, (peer, text, reader, aim) in CASES.items():
        if options.only and not any(name.startswith(word) for word in options.only.split(",")):
            continue
        path = scratch / file_name(name)
        raw = scratch / ("x.bin" if peer == "lmdb" else "x.npy")
        if not path.exists():
            subprocess.run([interpreter(peer), "-c", MAKE + text, peer, raw, path, str(ELEMENTS)], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stoker.index(path, full=True)
        contenders = [
            Contender(reader, interpreter(peer), reader, path, options.threads),
            Contender("one by one", sys.executable, "stoker", path, options.threads),
            Contender("batches", sys.executable, "stoker_batches", path, options.threads),
        ]
        if len({contender.samples for contender in contenders}) != 1:
            sys.exit(f"{name}: not all read the same: {[contender.samples for contender in contenders]}")
        compete(contenders, options.rounds, options.reads)
        theirs, single, batches = contenders
        print(f"{name:26} {reader:16} {theirs.rate(options.reads):8,.0f}/s   one by one {single.rate(options.reads):8,.0f}/s "
              f"{ratio(theirs, single)}   batches {batches.rate(options.reads):8,.0f}/s {ratio(theirs, batches)}   aim {aim}x",
              flush=True)


def beside_tar(options, scratch):
    """Each uncompressed format beside a tar of the same samples: arrays, or bytes, which are other objects in Python."""
    paths = {name: path for name in PLAIN if (path := scratch / file_name(name)).exists()}
    paths["npy"] = scratch / "x.npy"
    stoker.index(paths["npy"], full=True)
    for kind, source in (("arrays", "npy"), ("bytes", "lmdb")):
        names = [name for name in paths if (name in ("npy", "hdf5 contiguous")) == (kind == "arrays")]
        if source not in names:
            continue
        stoker.pack(paths[source], scratch / f"tar-{kind}")
        paths_of = {f"tar of {kind}": scratch / f"tar-{kind}", **{name: paths[name] for name in names}}
        contenders = [
            Contender(name, sys.executable, "stoker_batches", path, options.threads) for name, path in paths_of.items()
        ]
        compete(contenders, options.rounds, options.reads)
        for contender in contenders[1:]:
            print(f"{contender.name:26} beside a tar of {kind:6} {contender.rate(options.reads):8,.0f}/s "
                  f"{ratio(contenders[0], contender)}   aim 0.9x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--reads", type=int, default=1000, help="in each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="cases that begin with one of these words")
    parser.add_argument("--directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        scratch = pathlib.Path(name)
        rows = photo_like(options.samples)
        np.save(scratch / "x.npy", rows)
        rows.tofile(scratch / "x.bin")
        print(f"{options.samples} samples of {ELEMENTS} bytes, {options.reads} reads by chance a round, {options.threads} threads, "
              f"median of {options.rounds} interleaved rounds; stoker compares checksums")
        beside_peers(options, scratch, rows)
        beside_tar(options, scratch)


if __name__ == "__main__":
    main()
