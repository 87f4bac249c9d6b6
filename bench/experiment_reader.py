# SPDX-License-Identifier: Apache-2.0
"""Two epochs of a dataset, in a process of their own, for bench/experiment.py. Prints one JSON document.

    bench/experiment_reader.py [--stage PLACE] [--decode] [--threads N] [--operations FILE]
                               [--forget DIRECTORY]... DATASET

Seconds of the first epoch count from before the dataset is opened, so building an index is part of it. Before the
second one the kernel is asked to forget what lies in each DIRECTORY: it stands for all later epochs of a dataset that
is larger than memory. FILE is what the slow storage counts in.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
import warnings
import zlib

import stoker
from experiment_storage import forget
from stoker.transforms import CenterCrop, Resize


def read_epoch(loader: stoker.Loader, decode: bool) -> dict:
    """What was delivered, whatever the order: samples, and a sum over all that is in them."""
    samples = size = digest = 0
    for batch in loader:
        images = batch["image"]
        samples += len(images)
        if decode:
            size += images.nbytes
            digest += int(images.sum(dtype="uint64"))
        else:
            size += sum(map(len, images))
            digest += sum(map(zlib.crc32, images))
    return {"samples": samples, "bytes": size, "digest": digest}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage")
    parser.add_argument("--decode", action="store_true")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--operations", type=pathlib.Path)
    parser.add_argument("--forget", type=pathlib.Path, action="append", default=[])
    parser.add_argument("dataset")
    options = parser.parse_args()
    warnings.simplefilter("ignore", stoker.IndexBuiltWarning)

    def operations() -> dict | None:
        return json.loads(options.operations.read_text()) if options.operations else None

    transforms = [Resize(256), CenterCrop(224)] if options.decode else []
    begin = time.perf_counter()
    staged = {"stage": options.stage} if options.stage else {}
    loader = stoker.Loader(options.dataset, 64, transforms, fields=["image"], threads=options.threads, **staged)
    epochs = [read_epoch(loader, options.decode)]
    epochs[0]["seconds"] = time.perf_counter() - begin
    until_first = operations()
    if options.stage:
        stoker.stage(options.dataset, options.stage)  # joins the copying that goes on, and waits for its end
    for directory in options.forget:
        forget(directory)
    if options.operations or options.stage:
        time.sleep(1.1)  # for so long the slow storage's client believes names, and a Loader that nothing more has come
    before_second = operations()
    begin = time.perf_counter()
    epochs.append(read_epoch(loader, options.decode))
    epochs[1]["seconds"] = time.perf_counter() - begin
    print(json.dumps({"epochs": epochs, "operations": [until_first, before_second, operations()]}))


main()
