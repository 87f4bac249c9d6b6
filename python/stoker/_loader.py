# SPDX-License-Identifier: Apache-2.0
"""Batches of pixels for training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from stoker import _core
from stoker import transforms as _transforms
from stoker._commands import Path
from stoker._dataset import open as _open


class Loader:
    """Photos of a dataset as batches of pixels, read and decoded ahead by threads.

        loader = stoker.Loader("train", batch_size=256, transforms=[RandomResizedCrop(224), RandomHorizontalFlip()])
        for epoch in range(90):
            for batch in loader:
                batch["image"], batch["label"]

    A batch is a dict of NumPy arrays: `image` (rows, height, width, 3) of uint8, `label` (rows,) of int64 where the
    dataset has labels, `sample` (rows,): the numbers of the samples. It stays valid as long as it is held.

    Order and crops are decided by seed, epoch and sample alone: they are the same for any number of threads and ranks,
    and after state_dict() and load_state_dict() with another number of either.

    shuffle: in another order every epoch; False: as the samples lie.
    rank, world_size: this process among those that train together; every sample goes to one of them.
    uneven: where the samples cannot be shared out evenly, "pad" repeats the first ones, "drop" leaves the last ones out.
    drop_last: leave out a last batch that is not full.
    on_error: a sample that cannot be read raises; "skip" makes its batch one row shorter, "replace" takes the next
        sample of the epoch. stats()["bad"] names them.
    threads: that decode; None: one for each core that this process may use.
    """

    __module__ = "stoker"

    def __init__(
        self,
        path: Path,
        batch_size: int = 256,
        transforms: Sequence[_transforms.Transform] = (),
        *,
        shuffle: bool = True,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        uneven: Literal["pad", "drop"] = "pad",
        drop_last: bool = False,
        on_error: Literal["raise", "skip", "replace"] = "raise",
        threads: int | None = None,
    ) -> None:
        if uneven not in ("pad", "drop"):
            raise ValueError(f"uneven {uneven!r}: should be 'pad' or 'drop'")
        for name, value, least in [("batch_size", batch_size, 1), ("threads", threads or 1, 1), ("seed", seed, 0)]:
            if value < least:
                raise ValueError(f"{name} {value}: should be {least} or more")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank}: should be 0 to {world_size - 1}")
        self._dataset = _open(path)
        if not len(self._dataset):
            raise ValueError(f"{self._dataset.path}: there is no sample in it")
        self._seed = seed
        self._core = _core.Loader(
            self._dataset._core,
            batch_size=batch_size,
            shuffle=seed if shuffle else None,
            seed=seed,
            rank=rank,
            world=world_size,
            pad=uneven == "pad",
            drop_last=drop_last,
            on_error=on_error,
            recipe=_transforms._recipe(list(transforms)),
            threads=threads or 0,
            ahead=3,
        )
        self._shuffle = shuffle
        self._epoch = 0
        self._position = 0
        self._resumed = False
        self._turn = 0

    def __len__(self) -> int:
        """Batches of an epoch; behind load_state_dict(), those that are left of it."""
        return self._core.batches(self._position if self._resumed else 0)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """An epoch; behind load_state_dict(), what is left of one. An epoch that was left midway is over."""
        if self._position and not self._resumed:
            self._epoch += 1
            self._position = 0
        self._resumed = False
        self._turn += 1
        turn = self._turn
        self._core.start(self._epoch, self._position)
        while (found := self._core.next()) is not None:
            batch, self._position = found
            yield batch
            if turn != self._turn:
                raise RuntimeError("another iteration over this Loader has begun: make a Loader for each")
        self._epoch += 1
        self._position = 0

    def state_dict(self) -> dict[str, int | bool]:
        """Where training stands: a few numbers. Take it between batches; the same on every rank."""
        return {
            "version": 1,
            "samples": len(self._dataset),
            "seed": self._seed,
            "shuffle": self._shuffle,
            "epoch": self._epoch,
            "position": self._position,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another Loader of the same dataset and seed was; ranks and threads may be others."""
        for name, own in [("version", 1), ("samples", len(self._dataset)), ("seed", self._seed), ("shuffle", self._shuffle)]:
            if state.get(name) != own:
                raise ValueError(f"{name} is {state.get(name)!r} in the state, but {own!r} here: it is of another loader")
        self._epoch = int(state["epoch"])
        self._position = int(state["position"])
        self._resumed = True

    def stats(self) -> dict[str, Any]:
        """Of the epoch under way: samples, bytes, seconds, time waited for batches, and what each stage did."""
        return self._core.stats()
