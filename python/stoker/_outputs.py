# SPDX-License-Identifier: Apache-2.0
"""Batches in the arrays of a framework, without a copy where they stay in memory."""

from __future__ import annotations

import collections
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Batch = dict[str, Any]


def _numpy(array: Any, element: str) -> Any:
    if element != "bfloat16":
        return array
    try:
        ml_dtypes: Any = importlib.import_module("ml_dtypes")
    except ImportError:
        raise ValueError("NumPy has no bfloat16: use output='torch', or install ml_dtypes") from None
    return array.view(ml_dtypes.bfloat16)


def _torch(array: Any, element: str) -> Any:
    torch: Any = importlib.import_module("torch")
    if element == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    try:
        return torch.from_numpy(array)
    except TypeError:  # before torch 2.3 had unsigned ones
        return torch.from_numpy(array.astype("int64"))


def _tensorflow(array: Any, element: str) -> Any:
    tf: Any = importlib.import_module("tensorflow")
    # Behind this no memory is shared: TensorFlow may keep a tensor for as long as it likes.
    tensor = tf.convert_to_tensor(array)
    return tf.bitcast(tensor, tf.bfloat16) if element == "bfloat16" else tensor


_CONVERTERS: dict[str, Callable[[Any, str], Any]] = {"numpy": _numpy, "torch": _torch, "tensorflow": _tensorflow}


class Output:
    """Turns arrays into what was asked for; `bfloat16` are the columns whose uint16 are that."""

    ahead = False  # whether the next batch should be begun before this one is handed out

    def __init__(self, name: str, bfloat16: frozenset[str]) -> None:
        if name not in _CONVERTERS:
            raise ValueError(f"output {name!r}: should be 'numpy', 'torch' or 'tensorflow'")
        self._convert = _CONVERTERS[name]
        self._bfloat16 = bfloat16

    def begin(self, batch: Batch) -> Batch:
        return {
            name: self._convert(column, "bfloat16" if name in self._bfloat16 else "")
            if isinstance(column, np.ndarray)
            else column
            for name, column in batch.items()
        }

    def finish(self, batch: Batch) -> Batch:
        return batch


class CudaOutput(Output):
    """Copies to a GPU on a stream of its own, while the step before computes."""

    ahead = True

    def __init__(self, device: Any, bfloat16: frozenset[str]) -> None:
        self._copying: collections.deque[tuple[Any, Batch]] = collections.deque()
        super().__init__("torch", bfloat16)
        torch: Any = importlib.import_module("torch")
        if not torch.cuda.is_available():
            raise ValueError(f"device {device!r}: torch finds no GPU here")
        self._torch = torch
        self._device = torch.device(device)
        self._stream = torch.cuda.Stream(self._device)

    def begin(self, batch: Batch) -> Batch:
        torch = self._torch
        there: Batch = {}
        with torch.cuda.stream(self._stream):
            for name, column in super().begin(batch).items():
                if isinstance(column, torch.Tensor):
                    column = column.to(self._device, non_blocking=True)
                there[name] = column
            event = torch.cuda.Event()
            event.record(self._stream)
        # The copy reads the memory of the batch, which must not become another's before it is done.
        self._copying.append((event, batch))
        while self._copying[0][0].query() and len(self._copying) > 1:
            self._copying.popleft()
        return {"batch": there, "event": event}

    def finish(self, batch: Batch) -> Batch:
        torch = self._torch
        current = torch.cuda.current_stream(self._device)
        current.wait_event(batch["event"])
        for column in batch["batch"].values():
            if isinstance(column, torch.Tensor):
                column.record_stream(current)
        there: Batch = batch["batch"]
        return there

    def __del__(self) -> None:
        if self._copying:
            self._copying[-1][0].synchronize()
