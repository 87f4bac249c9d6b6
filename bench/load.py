# SPDX-License-Identifier: Apache-2.0
"""stoker.Loader beside its peers: batches of 64, RandomResizedCrop(224) and flip, interleaved, in one run.

    bench/load.py [--rounds 5] [--epochs 4] [--threads N] $(bench/peers) [PHOTOS]

PHOTOS is a folder of JPEGs, which stays as it is; without one, --photos of them are made. stoker loads a pack of it
(original bytes, checksums compared), tf.data a TFRecord file of the same bytes, FFCV its own file, in which every photo is
encoded anew at quality 90 with sides of at most 512; all of these are written before the clock runs. The others load the
files. A peer takes part where its interpreter is given. Each contender is a process of its own (bench/contenders); its
first epoch warms up and does not count; another one comes first in each round. "kernel" is stoker.decode in a loop on one
thread, without a loader. Run with a Python that has the stoker package (and Pillow and NumPy, to make photos).
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

CONTENDERS = pathlib.Path(__file__).resolve().parent / "contenders"


def call(python, program, *words):
    """What the contender printed."""
    finished = subprocess.run([python, CONTENDERS / program, *map(str, words)], capture_output=True, text=True)
    if finished.returncode != 0:
        sys.exit(f"{program} {' '.join(map(str, words))} failed:\n{finished.stdout}{finished.stderr}")
    return finished.stdout


def prepare(options, scratch):
    """Name -> words of each contender that takes part, whose files lie in `scratch` then; the names of the others."""
    import stoker

    photos, threads, epochs = options.folder, options.threads, options.epochs
    stoker.pack(photos, scratch / "packed")
    own = sys.executable
    found = {
        f"stoker, {threads} threads": (own, "with_stoker.py", scratch / "packed", threads, epochs),
        "stoker, 1 thread": (own, "with_stoker.py", scratch / "packed", 1, epochs),
        "kernel, 1 thread": (own, "kernel.py", scratch / "packed", 1, epochs),
    }
    left_out = []
    if options.torch_python:
        for name, how in (("torchvision decode_image", "torchvision"), ("PyTorch + Pillow", "pillow")):
            found[name] = (options.torch_python, "with_torch.py", photos, threads, epochs, how)
    else:
        left_out += ["PyTorch"]
    if options.dali_python:
        found["DALI, on the CPU"] = (options.dali_python, "with_dali.py", photos, threads, epochs)
    else:
        left_out += ["DALI"]
    written = [
        ("FFCV", options.ffcv_python, "with_ffcv.py", scratch / "photos.beton"),
        ("tf.data", options.tensorflow_python, "with_tfdata.py", scratch / "photos.tfrecord"),
    ]
    for name, python, program, file in written:
        if python:
            call(python, program, "write", photos, file)
            found[name] = (python, program, file, threads, epochs)
        else:
            left_out += [name]
    return found, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--photos", type=int, default=500, help="how many to make where no folder is given (500)")
    for peer in ("torch", "ffcv", "dali", "tensorflow"):
        parser.add_argument(f"--{peer}-python", help=f"a Python with {peer}; see bench/peers")
    parser.add_argument("folder", type=pathlib.Path, nargs="?", metavar="PHOTOS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        if options.folder is None:
            from photos import make_photos

            options.folder = scratch / "photos"
            make_photos(options.folder, options.photos)
        contenders, left_out = prepare(options, scratch)
        rates = {name: [] for name in contenders}
        for turn in range(options.rounds):
            order = list(contenders)
            first = turn % len(order)
            for name in order[first:] + order[:first]:
                rates[name].append(float(call(*contenders[name]).split()[-1]))
    ours = rates[next(iter(rates))]
    print(f"{options.threads} threads or workers, median of {options.rounds} interleaved rounds")
    for name, values in rates.items():
        ratios = sorted(mine / theirs for mine, theirs in zip(ours, values))
        print(f"  {name:26} {statistics.median(values):7.0f} images/s   the first line is {statistics.median(ratios):.2f}x "
              f"({ratios[0]:.2f} to {ratios[-1]:.2f})")
    print(f"left out, for want of an interpreter: {', '.join(left_out) or 'none'}")


if __name__ == "__main__":
    main()
