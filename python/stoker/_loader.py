# SPDX-License-Identifier: Apache-2.0
"""Batches for training."""

from __future__ import annotations

import json
import operator
import os
import signal
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np

from stoker import _core
from stoker import transforms as _transforms
from stoker._commands import Path, _of_split
from stoker._dataset import Dataset
from stoker._dataset import open as _open
from stoker._errors import CorruptError
from stoker._functions import Functions
from stoker._outputs import Batch, CudaOutput, Output
from stoker._preemption import Preempted, _Watch
from stoker._preemption import save as _save
from stoker._ranks import ranks
from stoker._stage import staged as _staged

Data = Union[Path, Dataset]

_PATIENCE = 0.05  # seconds between looks whether a signal came


class Loader:
    """Samples of a dataset as batches, read and decoded ahead by threads.

        loader = stoker.Loader("train", batch_size=256, transforms=[RandomResizedCrop(224), RandomHorizontalFlip()])
        for epoch in range(90):
            for batch in loader:
                batch["image"], batch["label"]

    A batch is a dict: one array for each field, and `sample`, the numbers of the samples. With `transforms`, `image` is
    decoded: (rows, height, width, 3) of uint8 unless they say otherwise. Numbers, and arrays of one shape, come as one
    array; what has a size of its own (bytes, text, other arrays) as a list. A batch stays valid as long as it is held.
    Encoded images and arrays of uint8, (height, width), (height, width, 3) or (3, height, width), can be transformed.

    Order and augmentation are decided by seed, epoch and sample alone: they are the same for any number of threads and
    ranks, and after state_dict() and load_state_dict() with another number of either.

    data: path of a dataset, a Dataset (or a slice of one), or a list of them, which are loaded as one.
    split: of each path in data, as for open(): "train".
    layout: of pictures: "NHWC", or "NCHW" as torch's convolutions take it.
    image: the field that `transforms` change, where it is not called "image".
    rename: {field: name}: other names for fields, in the batches and for all other options here.
    fields: which ones; None: `image` and `label` where there are transforms, else all.
    pad: {field: value}: arrays of differing shape become one array, filled up; FIELD_length has their true lengths.
    shuffle: in another order every epoch; False: as the samples lie; "blocks": for slow disks, blocks of neighbours in
        random order, each of `block_size`, and the samples of `window_size` shuffled among each other.
        stats()["mixing"] says how good that is.
    subset: numbers of the samples that take part.
    weights: one for each sample: how probable it is, drawn with replacement; "balanced": every label equally often.
    mix: one share for each dataset of a list, instead of their sizes.
    rank, world_size: this process among those that train together; every sample goes to one of them. None: as
        torch.distributed, torchrun, MPI or srun say.
    uneven: where the samples cannot be shared out evenly, "pad" repeats the first ones, "drop" leaves the last ones out.
    drop_last: leave out a last batch that is not full.
    on_error: a sample that cannot be read raises; "skip" makes its batch one row shorter, "replace" takes the next
        sample of the epoch. stats()["bad"] names them.
    on_corrupt: a damaged photo (libjpeg warns of corrupt data, a premature end or extraneous bytes) is one that cannot be
        read; "like_pillow" takes the pixels that Pillow makes of it, and stats()["damaged"] names it.
    cache: "ram", or a directory on a fast disk: keeps what was read once, up to `cache_limit` ("8G").
    stage: bring the data near first: True: to the place that stoker.stage() chooses, or the place. What has arrived is read
        there, the rest from the source meanwhile; small files are packed there before the first batch.
    output: arrays of "numpy", "torch" or "tensorflow". device: a GPU ("cuda"), to which batches are copied meanwhile.
    threads: that decode; None: as many of the cores that this process may use as are needed.
    ahead: batches that are made before they are asked for; None: as many as help.
    """

    __module__ = "stoker"

    def __init__(
        self,
        data: Data | Sequence[Data],
        batch_size: int = 256,
        transforms: Sequence[_transforms.Transform] = (),
        *,
        split: str | None = None,
        layout: Literal["NHWC", "NCHW"] = "NHWC",
        image: str = "image",
        rename: Mapping[str, str] | None = None,
        fields: Sequence[str] | None = None,
        pad: Mapping[str, float] | None = None,
        shuffle: bool | Literal["blocks"] = True,
        block_size: int | str = "4M",
        window_size: int | str = "1G",
        seed: int = 0,
        subset: Sequence[int] | None = None,
        weights: Sequence[float] | Literal["balanced"] | None = None,
        mix: Sequence[float] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        uneven: Literal["pad", "drop"] = "pad",
        drop_last: bool = False,
        on_error: Literal["raise", "skip", "replace"] = "raise",
        on_corrupt: Literal["raise", "like_pillow"] = "raise",
        cache: Literal["ram"] | Path | None = None,
        cache_limit: int | str | None = None,
        stage: bool | Path = False,
        output: Literal["numpy", "torch", "tensorflow"] | None = None,
        device: Any = None,
        threads: int | None = None,
        ahead: int | None = None,
    ) -> None:
        for name, value, least in [
            ("batch_size", batch_size, 1),
            ("threads", threads, 1),
            ("ahead", ahead, 1),
            ("seed", seed, 0),
        ]:
            if value is not None and value < least:
                raise ValueError(f"{name} {value}: should be {least} or more")
        if split is not None:
            data = _with_split(data, split)
        self._staging = [] if stage is False else _staged(data, None if stage is True else stage)
        self._datasets = _opened(data) if stage is False else [one.dataset for one in self._staging]
        if not sum(map(len, self._datasets)):
            raise ValueError(f"{self._datasets[0].path}: there is no sample in it")
        if shuffle not in (True, False, "blocks"):
            raise ValueError(f"shuffle {shuffle!r}: should be True, False or 'blocks'")
        if isinstance(fields, str):
            fields = [fields]
        if fields is not None and not fields:
            raise ValueError("fields: none of them? None means the usual ones")
        if cache is None and cache_limit is not None:
            raise ValueError("cache_limit: of which cache? cache='ram', or a directory")
        self._rank, self._world = ranks(rank, world_size)
        recipe = _transforms._recipe(transforms, layout, _classes(self._datasets))
        self._image = image
        self._functions = Functions(recipe.functions, image)
        if recipe.picture is not None and fields is not None and image not in fields:
            raise ValueError(f"fields {list(fields)}: transforms change {image!r}, which is not among them")
        if recipe.picture is None and image != "image":
            raise ValueError(f"image {image!r}: is for transforms, and there are none")
        self._output = _output(output, device, frozenset([image]) if recipe.bfloat16 else frozenset())
        self._padded = frozenset(pad or ())
        self._seed = seed
        groups = _groups(self._datasets, weights, mix, rename or {})
        self._core = _core.Loader(
            [dataset._core for dataset in self._datasets],
            {
                "batch_size": batch_size,
                "order": {
                    "kind": shuffle if isinstance(shuffle, str) else "shuffled" if shuffle else "sequential",
                    "seed": seed,
                    "subset": [] if groups and subset is None else _subset(self._datasets, subset),
                    "weights": [] if weights is None or isinstance(weights, str) else [float(w) for w in weights],
                    "groups": groups,
                },
                "block_size": str(block_size),
                "window_size": str(window_size),
                "rank": self._rank,
                "world": self._world,
                "uneven": uneven,
                "drop_last": drop_last,
                "on_error": on_error,
                "on_corrupt": on_corrupt,
                "image": image,
                "renamed": list((rename or {}).items()),
                "fields": list(fields or ()),
                "picture": recipe.picture,
                "padded": [(name, float(value)) for name, value in (pad or {}).items()],
                "cache": None if cache is None else _cache(cache, cache_limit),
                "threads": threads or 0,
                "ahead": ahead or 0,
                "pinned": self._output.ahead,
            },
        )
        self._epoch = 0
        self._position = 0
        self._resumed = False
        self._turn = 0
        self._watch: _Watch | None = None

    def __len__(self) -> int:
        """Batches of a whole epoch, also where load_state_dict() left less of the next one."""
        return self._core.batches(0)

    def __iter__(self) -> Iterator[Batch]:
        """An epoch; behind load_state_dict(), what is left of one. An epoch that was left midway is over."""
        if self._position and not self._resumed:
            self._epoch += 1
            self._position = 0
        self._resumed = False
        for staging in self._staging:
            staging.warn()
        self._turn += 1
        turn = self._turn
        self._functions.reset()
        self._core.start(self._epoch, self._position)
        waiting: deque[tuple[Batch, int] | Exception] = deque()
        while True:
            self._save_if_preempted()
            found = waiting.popleft() if waiting else self._take()
            if found is None:
                break
            if isinstance(found, Exception):
                raise found
            if self._output.ahead:
                self._take_ahead(waiting)
            batch = self._output.finish(found[0])
            self._position = found[1]
            del found
            yield batch
            del batch
            if turn != self._turn:
                raise RuntimeError("another iteration over this Loader has begun: make a Loader for each")
        self._epoch += 1
        self._position = 0

    def _peek(self) -> Batch:
        """A batch that has rows, to see what they are like; everything is as it was before."""
        place = self._epoch, self._position, self._resumed
        batch = next((batch for batch in self if len(batch.get("sample", [0]))), None)
        self._epoch, self._position, self._resumed = place
        if batch is None:
            raise ValueError("there is no batch in an epoch: too few samples for drop_last, or all of them skipped")
        return batch

    def _take(self, wait: bool = True) -> tuple[Batch, int] | None:
        """The next batch, on its way to where it is wanted; None at the end, or where it is not there yet."""
        while (found := self._next(_PATIENCE if wait else 0)) is False:
            if not wait:
                return None
            self._save_if_preempted()
        if found is None:
            return None
        batch, position = found
        return self._output.begin(self._functions.apply(batch, self._core.key)), position

    def _next(self, patience: float) -> Any:
        try:
            return self._core.next(patience)
        except CorruptError as error:
            if "damaged JPEG" not in str(error):
                raise
            # Of what ends too early Pillow makes no pixels either.
            accept = ", on_corrupt='like_pillow' takes the pixels that Pillow gives" if "Corrupt JPEG data" in str(error) else ""
            raise CorruptError(f"{error}; on_error='skip' leaves such photos out{accept}") from None

    def _take_ahead(self, waiting: deque[tuple[Batch, int] | Exception]) -> None:
        """Begins the next batch before this one is handed out; what goes wrong with it comes in its turn."""
        try:
            if (following := self._take(wait=False)) is not None:
                waiting.append(following)
        except Exception as error:
            waiting.append(error)

    def state_dict(self) -> dict[str, int]:
        """Where training stands: a few numbers. Take it between batches; the same on every rank."""
        return {
            "version": 1,
            "turns": self._core.turns(),
            "seed": self._seed,
            "order": self._core.fingerprint(),
            "data": self._core.data_fingerprint(),
            "epoch": self._epoch,
            "position": self._position,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another Loader of the same data, seed and order was; ranks and threads may be others."""
        for name, own in self.state_dict().items():
            if name not in ("epoch", "position") and state.get(name) != own:
                raise ValueError(f"{name} is {state.get(name)!r} in the state, but {own!r} here: it is of another loader")
        epoch, position = operator.index(state["epoch"]), operator.index(state["position"])
        if epoch < 0 or not 0 <= position <= self._core.turns():
            raise ValueError(f"epoch {epoch}, position {position} of {self._core.turns()}: there is no such place")
        # Behind the last batch of an epoch there is nothing left of it, and the next one begins.
        over = position > 0 and not self._core.batches(position)
        self._epoch = epoch + over
        self._position = 0 if over else position
        self._resumed = True
        self._turn += 1  # an iteration under way is over

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is, where a framework counts them; without it, each is the one behind the last.

        Where load_state_dict() led into the midst of this very epoch, it goes on there.
        """
        if operator.index(epoch) < 0:
            raise ValueError(f"epoch {epoch}: should be 0 or more")
        if not self._resumed or epoch != self._epoch:
            self._epoch, self._position, self._resumed = epoch, 0, False

    @property
    def sampler(self) -> Loader:
        """Itself: for frameworks and scripts that call `loader.sampler.set_epoch(epoch)`, as DistributedSampler needs."""
        return self

    def save_on_signal(self, path: Path | None = None, signals: Sequence[int] = (signal.SIGTERM, signal.SIGUSR1)) -> None:
        """When one of the signals comes (as Slurm sends before it takes a node away), write the state to `path`.

        Done between two batches, so that the one before has been trained with; then Preempted is raised there, which
        ends the process unless it is caught:

            loader.save_on_signal("loader.json")
            loader.resume("loader.json")
            try:
                for batch in loader: ...
            except stoker.Preempted:
                torch.save(model.state_dict(), "model.pt")
                raise

        Without a path it is only raised: for those who put state_dict() into the file of the model. A second signal does
        at once what it would have done without this.
        """
        self._watch = _Watch(path, signals)  # type: ignore[arg-type]

    def resume(self, path: Path) -> bool:
        """load_state_dict() of a file of save_on_signal(); False where there is none."""
        try:
            with open(path) as file:
                self.load_state_dict(json.load(file))
        except FileNotFoundError:
            return False
        return True

    def _save_if_preempted(self) -> None:
        if self._watch is not None and self._watch.received is not None:
            if self._watch.path is not None:
                _save(self._watch.path, self.state_dict())
            raise Preempted(self._watch.received, self._watch.path)

    def stats(self) -> dict[str, Any]:
        """Of the epoch under way: samples, bytes, seconds, time waited for batches, and what each stage did."""
        stats = self._core.stats()
        if self._functions:
            stats["stages"]["python"] = self._functions.stats()
            if self._functions.seconds > 0.5 * stats["seconds"]:
                stats["limit"] = "python"
        return stats

    def verdict(self) -> str:
        """What limits, in one sentence."""
        stats = self.stats()
        if stats["limit"] == "python":
            return self._functions.verdict(stats["seconds"])
        return self._core.verdict()


def _with_split(data: Data | Sequence[Data], split: str) -> list[Data]:
    given = [data] if isinstance(data, (str, bytes, os.PathLike, Dataset)) else list(data)
    if any(isinstance(one, Dataset) for one in given):
        raise ValueError(f"split {split!r}: is for paths, not for datasets that are open")
    return [_of_split(one, split) for one in given]  # type: ignore[arg-type]


def _opened(data: Data | Sequence[Data]) -> list[Dataset]:
    given = [data] if isinstance(data, (str, bytes, os.PathLike, Dataset)) else list(data)
    if not given:
        raise ValueError("data: no dataset given")
    return [one if isinstance(one, Dataset) else _open(one) for one in given]


def _classes(datasets: list[Dataset]) -> int:
    """How many there are; 0 where nobody knows. Label 3 must mean the same in all datasets."""
    known = [tuple(dataset.classes) for dataset in datasets if dataset.classes]
    if len(set(known)) > 1:
        raise ValueError(
            f"the datasets have different classes ({', '.join(known[0][:3])}, … and {', '.join(known[1][:3])}, …), so that a "
            "label would mean several things: pack them together, or map the labels in a PerBatch function of each"
        )
    return len(known[0]) if known else 0


def _members(datasets: list[Dataset]) -> list[np.ndarray[Any, Any]]:
    """The numbers of each dataset's samples, counted through; slices have only some."""
    members = []
    first = 0
    for dataset in datasets:
        members.append(np.asarray(dataset._samples, dtype=np.uint64) + np.uint64(first))
        first += len(dataset._core)
    return members


def _sliced(datasets: list[Dataset]) -> bool:
    return any(dataset._samples != range(len(dataset._core)) for dataset in datasets)


def _subset(datasets: list[Dataset], subset: Sequence[int] | None) -> Any:
    if subset is None and not _sliced(datasets):
        return []
    members = np.concatenate(_members(datasets))
    if subset is not None:
        chosen = np.asarray(subset)
        if chosen.ndim != 1 or not len(chosen) or chosen.dtype.kind not in "iu":
            raise ValueError("subset: should be numbers of samples, one or more")
        for extreme in (chosen.min(), chosen.max()):
            if not 0 <= extreme < len(members):
                raise ValueError(f"subset: there is no sample {extreme}, only 0 to {len(members) - 1}")
        members = members[chosen]
    return members.tolist()


def _groups(
    datasets: list[Dataset], weights: Any, mix: Sequence[float] | None, rename: Mapping[str, str]
) -> list[tuple[float, list[int]]]:
    if isinstance(weights, str) and weights != "balanced":
        raise ValueError(f"weights {weights!r}: should be 'balanced', or one number for each sample")
    if weights is not None and not isinstance(weights, str) and not len(weights):
        raise ValueError("weights: should be one number for each sample")
    if mix is not None and weights is not None:
        raise ValueError("mix, weights: only one of them at a time")
    if mix is not None:
        if len(mix) != len(datasets):
            raise ValueError(f"mix: {len(mix)} shares for {len(datasets)} datasets")
        return [(float(share), members.tolist()) for share, members in zip(mix, _members(datasets))]
    if not isinstance(weights, str):
        return []
    named = [next((old for old in dataset.fields if rename.get(old, old) == "label"), "label") for dataset in datasets]
    labels = np.concatenate([np.asarray(dataset.column(name)) for dataset, name in zip(datasets, named)])
    members = np.concatenate(_members(datasets))
    return [(1.0, members[labels == label].tolist()) for label in np.unique(labels)]


def _cache(where: Path, limit: int | str | None) -> tuple[object, str]:
    if limit is None:
        raise ValueError("cache_limit: how much may be kept? Give a size such as '8G'")
    return ("" if where == "ram" else os.fspath(where)), str(limit)


def _output(name: str | None, device: Any, bfloat16: frozenset[str]) -> Output:
    if device is None or str(device) == "cpu":
        return Output(name or "numpy", bfloat16)
    if name not in (None, "torch"):
        raise ValueError(f"device {device!r}: needs output='torch'")
    return CudaOutput(device, bfloat16)
