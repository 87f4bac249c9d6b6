# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
# (tensorflow need not be there where stoker's types are checked)
"""For TensorFlow and Keras. Needs tensorflow, which the rest of stoker does not.

    data = stoker.tensorflow.dataset("train", 256, [RandomResizedCrop(224)], as_supervised=True)
    model.fit(data, epochs=90)

tf.data asks for batches before they are trained with, so that a Loader's state_dict() is ahead of the model. Go on at
the begin of an epoch instead: loader.set_epoch(n) and fit(initial_epoch=n).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from stoker._loader import Data, Loader
from stoker.transforms import Transform


def dataset(
    data: Data | Sequence[Data] | Loader,
    batch_size: int = 256,
    transforms: Sequence[Transform] = (),
    *,
    as_supervised: bool = False,
    **loader_options: Any,
) -> tf.data.Dataset:
    """The batches of a Loader as a tf.data.Dataset of dicts of tensors, or with `as_supervised` of (image, label).

    Every iteration over it is the next epoch. Bytes and text become tf.string; arrays of differing length, and lists of
    byte strings, tf.RaggedTensor.

    data, batch_size, transforms, loader_options: those of stoker.Loader; or data alone, a Loader made before.
    """
    if not isinstance(data, Loader):
        loader = Loader(data, batch_size, transforms, **loader_options)
    elif loader_options or len(transforms) or batch_size != 256:
        raise ValueError("data is a Loader: give it what else was given here")
    else:
        loader = data
    names = (loader._image, "label") if as_supervised else None
    first = loader._peek()
    for name in names or ():
        if name not in first:
            raise ValueError(f"as_supervised: the batches have no field {name!r}, but {', '.join(first)}")
    specs = {name: _spec(name, first[name], name in loader._padded) for name in names or first}
    # A pipeline that was dropped may still be asking for a batch while the next one begins.
    lock = threading.Lock()

    def epoch() -> Iterator[Any]:
        batches = iter(loader)
        while True:
            with lock:
                batch = next(batches, None)
            if batch is None:
                return
            values = {name: _value(name, batch[name], spec) for name, spec in specs.items()}
            yield tuple(values.values()) if names else values

    made = tf.data.Dataset.from_generator(epoch, output_signature=tuple(specs.values()) if names else specs)
    # What is left of an epoch that a state led into has fewer batches than those behind it.
    return made if loader._position and loader._resumed else made.apply(tf.data.experimental.assert_cardinality(len(loader)))


def _spec(name: str, column: Any, padded: bool) -> Any:
    """What every batch of this column is like; only the number of rows, and what is padded or ragged, differs."""
    if isinstance(column, np.ndarray):
        rows = [None] * column.ndim if padded else [None, *column.shape[1:]]
        return tf.TensorSpec(rows, column.dtype)
    if not isinstance(column, list):
        raise ValueError(f"{name!r} comes as {type(column).__name__}: give the Loader output='numpy'")
    value = _present(name, column)[0]
    if isinstance(value, (bytes, str)):
        return tf.TensorSpec([None], tf.string)
    if isinstance(value, list):
        return tf.RaggedTensorSpec([None, None], tf.string, ragged_rank=1)
    return tf.RaggedTensorSpec([None, None, *_inner(name, column)], column[0].dtype, ragged_rank=1)


def _value(name: str, column: Any, spec: Any) -> Any:
    if isinstance(column, np.ndarray):
        return column
    _present(name, column)
    if isinstance(spec, tf.TensorSpec):
        # Bytes that are no UTF-8 are lone surrogates in a str.
        return np.array([v.encode("utf-8", "surrogateescape") if isinstance(v, str) else v for v in column], object)
    lengths = [len(value) for value in column]
    if spec.dtype == tf.string:
        values = tf.constant([each for value in column for each in value], tf.string)
    else:
        shape = (0, *_inner(name, column)) if column else (0, *spec.shape[2:])
        values = tf.constant(np.concatenate([np.empty(shape, spec.dtype.as_numpy_dtype), *column]))
    return tf.RaggedTensor.from_row_lengths(values, lengths)


def _present(name: str, column: list[Any]) -> list[Any]:
    if any(value is None for value in column):
        raise ValueError(f"{name!r}: a sample has none, which no tensor can say: leave it out with fields=")
    return column


def _inner(name: str, column: list[Any]) -> tuple[int, ...]:
    """The shape of arrays behind their first dimension, in which alone they may differ."""
    kinds = {(array.dtype, array.ndim, array.shape[1:]) for array in column}
    if len(kinds) > 1 or not column[0].ndim:
        shapes = ", ".join(sorted({str(array.shape) for array in column})[:3])
        raise ValueError(
            f"{name!r}: arrays of shapes {shapes} fit into no tensor, not even a ragged one: give the Loader "
            f"pad={{{name!r}: 0}}, leave it out with fields=, or let transforms end with one size"
        )
    return column[0].shape[1:]
