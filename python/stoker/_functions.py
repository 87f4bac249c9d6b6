# SPDX-License-Identifier: Apache-2.0
"""Python functions behind the native transforms, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker.transforms import PerBatch


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


class Functions:
    """Applies them to a batch, in the thread that asks for it: Python computes in one thread at a time anyway."""

    def __init__(self, functions: list[Callable[..., Any]], image: str) -> None:
        self._functions = functions
        self._image = image
        self.reset()

    def __bool__(self) -> bool:
        return bool(self._functions)

    def reset(self) -> None:
        self.seconds = 0.0
        self._batches = 0

    def apply(self, batch: dict[str, Any], key: Callable[[int], str]) -> dict[str, Any]:
        if not self._functions:
            return batch
        begin = time.perf_counter()
        for function in self._functions:
            if isinstance(function, PerBatch):
                batch = _whole(function.function, batch)
            else:
                batch = {**batch, self._image: _rows(function, batch, self._image, key)}
        self.seconds += time.perf_counter() - begin
        self._batches += 1
        return batch

    def stats(self) -> dict[str, float]:
        return {"threads": 1, "busy": self.seconds, "batches": self._batches}

    def verdict(self, seconds: float) -> str:
        each = 1e3 * self.seconds / max(1, self._batches)
        names = ", ".join(_name(f.function if isinstance(f, PerBatch) else f) for f in self._functions)
        return (
            f"Python limits: {names} took {100 * self.seconds / seconds:.0f} % of the time, {each:.1f} ms a batch, on one "
            "core; what stoker.transforms has would be done by all of them"
        )


def _whole(function: Callable[..., Any], batch: dict[str, Any]) -> dict[str, Any]:
    changed = function(batch)
    if not isinstance(changed, dict):
        raise TypeError(f"PerBatch({_name(function)}) returned {type(changed).__name__}, should be the batch: a dict of arrays")
    return changed


def _rows(function: Callable[..., Any], batch: dict[str, Any], image: str, key: Callable[[int], str]) -> Any:
    rows: list[Any] = []
    for sample, picture in zip(batch["sample"], batch[image]):
        try:
            row = np.asarray(function(picture))
        except Exception as error:
            raise RuntimeError(f"{_name(function)} failed on sample {key(int(sample))!r}: {error}") from error
        if rows and (row.shape, row.dtype) != (rows[0].shape, rows[0].dtype):
            raise ValueError(
                f"{_name(function)} returned {row.dtype} of shape {row.shape} for sample {key(int(sample))!r}, but "
                f"{rows[0].dtype} of shape {rows[0].shape} for the first of its batch: they should be alike"
            )
        rows.append(row)
    return np.stack(rows) if rows else batch[image]
