# SPDX-License-Identifier: Apache-2.0
"""stoker.Loader beside its peers: batches of 64, RandomResizedCrop(224) and flip, interleaved, in one run.

    bench/load.py [--rounds 5] [--epochs 4] [--threads N] $(bench/peers) [PHOTOS]

PHOTOS is a folder of JPEGs, which stays as it is; without one, --photos of them are made. stoker loads a pack of it
(original bytes, checksums compared): with the row index that pack makes, with one every 8 MCUs, with none, and with the
vectors of AVX2 alone; and a pack of what FFCV loads: photos encoded anew at quality 90 with sides of at most 512. tf.data a TFRecord file of the same bytes, FFCV its own file, in which every photo is
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


def call(python, program, *words, vectors=""):
    """What the contender printed."""
    environment = {**os.environ, "STOKER_VECTORS": vectors}
    command = [python, CONTENDERS / program, *map(str, words)]
    finished = subprocess.run(command, capture_output=True, text=True, env=environment)
    if finished.returncode != 0:
        sys.exit(f"{program} {' '.join(map(str, words))} failed:\n{finished.stdout}{finished.stderr}")
    return finished.stdout


def encode_anew(photos, folder):
    """The photos as FFCV's recipe for ImageNet stores them."""
    from PIL import Image

    folder.mkdir()
    for number, path in enumerate(sorted(path for path in photos.rglob("*") if path.is_file())):
        image = Image.open(path).convert("RGB")
        factor = min(1, 512 / max(image.size))
        size = tuple(round(side * factor) for side in image.size)
        image.resize(size, Image.Resampling.BOX).save(folder / f"{number:06}.jpg", quality=90)


def prepare(options, scratch):
    """Name -> words of each contender that takes part, whose files lie in `scratch` then; the names of the others."""
    import stoker

    photos, threads, epochs = options.folder, options.threads, options.epochs
    own = sys.executable
    encode_anew(photos, scratch / "anew")
    found = {}
    for name, source, row_index in (
        ("stoker", photos, "rows"),
        ("stoker, index every 8 MCUs", photos, "8"),
        ("stoker, no index", photos, "none"),
        ("stoker, photos like FFCV's", scratch / "anew", "rows"),
    ):
        packed = scratch / f"packed-{len(found)}"
        result = stoker.pack(source, packed, row_index=row_index)
        if result.row_index:
            print(f"{name}: row index {result.row_index.percent:.2f} % of the photos' bytes")
        found[name] = (own, "with_stoker.py", packed, threads, 4 * epochs)
    rows = scratch / "packed-0"
    found |= {
        "stoker, AVX2": found["stoker"],
        "stoker, 1 thread": (own, "with_stoker.py", rows, 1, 2 * epochs),
        "kernel, 1 thread": (own, "kernel.py", rows, 1, 2 * epochs),
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
                vectors = "AVX2" if name.endswith("AVX2") else ""
                rates[name].append(float(call(*contenders[name], vectors=vectors).split()[-1]))
    print(f"{options.threads} threads or workers, median of {options.rounds} interleaved rounds")
    for name, values in rates.items():
        print(f"  {name:28} {statistics.median(values):7.0f} images/s")
    ours = [name for name in rates if name.startswith("stoker") and not name.endswith("1 thread")]
    for peer in (name for name in rates if name not in ours):
        for name in ours:
            ratios = sorted(mine / theirs for mine, theirs in zip(rates[name], rates[peer]))
            print(f"  {name:28} {statistics.median(ratios):5.2f} x {peer} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    print(f"left out, for want of an interpreter: {', '.join(left_out) or 'none'}")


if __name__ == "__main__":
    main()
