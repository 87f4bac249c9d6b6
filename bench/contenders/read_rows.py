# SPDX-License-Identifier: Apache-2.0
"""Reads samples by chance through one library: READER PATH THREADS, then one pass for each line `SEED PASSES` on stdin.

Prints how many samples there are and what they sum up to, then the seconds of each pass. Every sample is copied out.
"""

import random
import sys
import threading
import time
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

BATCH = 64


def with_h5py(path):
    import h5py

    rows = h5py.File(path)["x"]
    return len(rows), rows.__getitem__


def with_lmdb(path):
    import lmdb

    environment = lmdb.open(path, readonly=True, lock=False)
    keys = [key for key, _ in environment.begin().cursor()]
    local = threading.local()

    def read(number):
        if not hasattr(local, "reading"):
            local.reading = environment.begin()
        return local.reading.get(keys[number])

    return len(keys), read


def with_pyarrow(path):
    import pyarrow as pa

    file = pa.ipc.open_file(pa.memory_map(path))
    batches = [file.get_batch(i).column("x") for i in range(file.num_record_batches)]
    at = [(batch, row) for batch in batches for row in range(len(batch))]
    return len(at), lambda number: at[number][0][at[number][1]].as_py()


def with_pyarrow_parquet(path):
    import pyarrow.parquet as pq

    def opened():
        return pq.ParquetFile(path, memory_map=True, pre_buffer=False)

    file = opened()
    groups = [(g, row) for g in range(file.num_row_groups) for row in range(file.metadata.row_group(g).num_rows)]
    local = threading.local()

    def read(number):
        if not hasattr(local, "file"):
            local.file = opened()  # one cannot be shared
        group, row = groups[number]
        return local.file.read_row_group(group, columns=["x"], use_threads=False).column(0)[row].as_py()

    return len(groups), read


def with_datasets(path):
    import datasets

    rows = datasets.load_from_disk(path)
    return len(rows), lambda number: rows[number]["x"]


def with_stoker(path):
    """`dataset[number]`."""
    import stoker

    dataset = stoker.open(path)
    return len(dataset), lambda number: dataset[number]["x"]


def with_stoker_batches(path):
    """Batches of 64 by read_many()."""
    import stoker

    dataset = stoker.open(path)

    def read_all(numbers):
        for begin in range(0, len(numbers), BATCH):
            for sample in dataset.read_many(numbers[begin : begin + BATCH]):
                yield sample["x"]

    return len(dataset), read_all


def one_by_one(read):
    return lambda numbers: map(read, numbers)


def consume(read_all, numbers):
    for _ in read_all(numbers):
        pass


def main() -> None:
    reader, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    warnings.simplefilter("ignore")
    count, read = globals()["with_" + reader](path)
    # Where a library reads a batch with threads of its own, one asks.
    read_all, askers = (read, 1) if reader == "stoker_batches" else (one_by_one(read), threads)
    sums = sorted(zlib.crc32(bytes(value)) for value in read_all(range(0, count, max(1, count // 50))))
    print(count, zlib.crc32(repr(sums).encode()), flush=True)
    pool = ThreadPoolExecutor(threads)
    for line in sys.stdin:
        seed, reads = map(int, line.split())
        chance = random.Random(seed)
        numbers = [chance.randrange(count) for _ in range(reads)]
        parts = [numbers[i::askers] for i in range(askers)]
        begin = time.perf_counter()
        others = [pool.submit(consume, read_all, part) for part in parts[1:]]
        consume(read_all, parts[0])
        for other in others:
            other.result()
        print(time.perf_counter() - begin, flush=True)


main()
