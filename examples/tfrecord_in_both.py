# SPDX-License-Identifier: Apache-2.0
"""The same TFRecord files in PyTorch and in TensorFlow: the same samples, in the same order, with the same pixels.

    python examples/tfrecord_in_both.py torch DATASET [--epochs N]
    python examples/tfrecord_in_both.py tensorflow DATASET [--epochs N]

DATASET is a directory of TFRecord files whose examples have `image` (an encoded photo) and `label`. Both print the same.
"""

import argparse
import hashlib

import stoker
from stoker.transforms import RandomHorizontalFlip, RandomResizedCrop

parser = argparse.ArgumentParser()
parser.add_argument("framework", choices=["torch", "tensorflow"])
parser.add_argument("dataset")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32)
options = parser.parse_args()

transforms = [RandomResizedCrop(32), RandomHorizontalFlip()]
if options.framework == "torch":
    data = loader = stoker.Loader(options.dataset, options.batch_size, transforms, seed=1, output="torch")
else:
    import stoker.tensorflow

    loader = stoker.Loader(options.dataset, options.batch_size, transforms, seed=1)
    data = stoker.tensorflow.dataset(loader)

for epoch in range(options.epochs):
    labels, pixels = hashlib.sha256(), hashlib.sha256()
    for batch in data:  # a dict of the framework's tensors
        labels.update(batch["label"].numpy().tobytes())
        pixels.update(batch["image"].numpy().tobytes())
    print(f"epoch {epoch}: labels {labels.hexdigest()[:16]}, pixels {pixels.hexdigest()[:16]}", flush=True)
print(loader.verdict())
