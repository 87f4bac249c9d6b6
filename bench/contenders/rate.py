# SPDX-License-Identifier: Apache-2.0
"""What every contender does alike. Each is a program of its own: CONTENDER SOURCE THREADS EPOCHS, prints images/s."""

import pathlib
import time

BATCH = 64
SIZE = 224


def photos_of(folder: str) -> list[str]:
    return sorted(str(path) for path in pathlib.Path(folder).rglob("*") if path.is_file())


def print_rate(epoch, epochs: int) -> None:
    """epoch(): delivers every photo once and returns how many. The first one warms up and does not count."""
    epoch()
    begin = time.perf_counter()
    count = sum(epoch() for _ in range(epochs))
    print(count / (time.perf_counter() - begin))
