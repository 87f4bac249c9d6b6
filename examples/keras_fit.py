# SPDX-License-Identifier: Apache-2.0
"""Keras: model.fit over a tf.data.Dataset that Stoker feeds.

    python examples/keras_fit.py DATASET [--epochs N]

Every epoch comes in another order and with other crops; shuffle, batch and map of tf.data are not needed.
"""

import argparse

import keras
import stoker
import stoker.tensorflow
from stoker.transforms import RandomHorizontalFlip, RandomResizedCrop

parser = argparse.ArgumentParser()
parser.add_argument("dataset")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32)
options = parser.parse_args()

keras.utils.set_random_seed(0)
source = stoker.open(options.dataset)
loader = stoker.Loader(source, options.batch_size, [RandomResizedCrop(32), RandomHorizontalFlip()])
data = stoker.tensorflow.dataset(loader, as_supervised=True)  # of (image, label), as fit() wants it

model = keras.Sequential(
    [
        keras.layers.Rescaling(1 / 127.5, offset=-1),  # uint8 until here
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(source.classes)),
    ]
)
model.compile(
    optimizer=keras.optimizers.SGD(learning_rate=0.1, momentum=0.9),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(data, epochs=options.epochs, verbose=2)
print(loader.verdict())
