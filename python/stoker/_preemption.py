# SPDX-License-Identifier: Apache-2.0
"""Saving where training stands when the cluster wants its node back."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any


class Preempted(SystemExit):
    """A signal said that this process will be ended: raised between two batches, once the state is saved to `path`.

    Catch it to save the model. Nobody who does not catch it sees more than the process end with the status that the
    signal would have given it.
    """

    __module__ = "stoker"

    def __init__(self, number: int, path: str | None) -> None:
        super().__init__(128 + number)
        self.signal = number
        self.path = path


class _Watch:
    """Notes the signals; a second one does what it did before."""

    def __init__(self, path: str | os.PathLike[str] | None, signals: Sequence[int]) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("save_on_signal: should be called in the main thread, which alone gets signals")
        self.path = None if path is None else os.path.abspath(path)
        self.received: int | None = None
        self._before = {number: signal.signal(number, self._note) for number in signals}

    def _note(self, number: int, frame: FrameType | None) -> None:
        before = self._before[number]
        if self.received is not None:
            signal.signal(number, before)
            os.kill(os.getpid(), number)
            return
        self.received = number
        if callable(before):
            before(number, frame)


def save(path: str, state: dict[str, Any]) -> None:
    """Written whole or not at all."""
    # Ranks on several nodes may write the same at the same time: each under a name of its own.
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}.")
    try:
        with open(descriptor, "w") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
