# SPDX-License-Identifier: Apache-2.0
"""A dataset as a Python sequence."""

from __future__ import annotations

import builtins
import errno
import os
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from stoker import _core
from stoker._commands import Path, _jobs, _of_split
from stoker._errors import FaultWarning, IndexBuiltWarning, UnusedDataWarning
from stoker._results import Fault, Field, IndexResult, Shard, _counted, _faults, _fields

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_KEYS_AT_ONCE = 4096


def open(
    path: Path, *, split: str | None = None, list: Path | None = None, jobs: int | None = None, verify: bool = True
) -> Dataset:
    """Open a dataset of any format that is read (folder, tar, tfrecord, hdf5, lmdb, arrow, feather, parquet, npy): a directory, or a
    single shard. "data.h5::train" is the group, or the database of an lmdb, with that name.

    split: which one of a directory that holds several datasets, as train-*.tar next to test-*.tar, or train/ and test/; the same as
        "path::train". "all": all of them as one dataset. Where it is needed and not given, ValueError names those that there are.

    Without an index, one of structure depth is built first, with an IndexBuiltWarning.

    list, jobs: for building it, as for index().
    verify: compare what is read with its checksum, where the index has them.
    """
    if not os.fspath(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    absolute = os.path.abspath(os.fspath(_of_split(path, split)))  # stays right when the process changes its directory
    return _open(absolute, list, jobs, verify, None)


def _open(path: str | bytes, list: Path | None, jobs: int | None, verify: bool, staged: tuple[str, str] | None) -> Dataset:
    core, built = _core.open(path=path, list=list, jobs=_jobs(jobs), verify=verify, staged=staged)
    dataset = Dataset(core, range(len(core)), verify, staged)
    if built is not None:
        result = IndexResult._of(built)
        warnings.warn(
            f"{dataset.path}: built an index of {_counted(result.samples, 'sample')} in {result.directory} "
            "(structure only; stoker.index(path, full=True) adds checksums)",
            IndexBuiltWarning,
            stacklevel=3,
        )
    if unused := core.unused():
        more = f" and {len(unused) - 6:,} more" if len(unused) > 6 else ""
        warnings.warn(
            f"{dataset.path}: {_counted(len(dataset), 'sample')}; not read: {', '.join(unused[:6])}{more}",
            UnusedDataWarning,
            stacklevel=3,
        )
    if faults := dataset.faults:
        more = f" (and {len(faults) - 1:,} more: Dataset.faults lists them)" if len(faults) > 1 else ""
        warnings.warn(f"{dataset.path}: {faults[0]}{more}", FaultWarning, stacklevel=3)
    return dataset


class Dataset:
    """Samples in a fixed order, each a dict of its fields; made by open(), and by slicing another.

    Encoded images and bytes are `bytes`, text is `str`, numbers are `int` or `float`, arrays are NumPy's, lists are
    lists of `bytes`. A field that a sample does not have is not in its dict. Text and keys that are not UTF-8 have
    lone surrogates in place of the other bytes ("surrogateescape").

    Usable from many threads, and after a fork. Pickled, it is the path and where the index is: opened again wherever
    it is unpickled.
    """

    __module__ = "stoker"

    def __init__(
        self, core: _core.Dataset, samples: range, verify: bool, staged: tuple[str, str] | None = None
    ) -> None:
        self._core = core
        self._samples = samples
        self._verify = verify
        self._staged = staged

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.index_directory, self._samples, self._verify, self._staged)

    def __repr__(self) -> str:
        view = "" if len(self) == len(self._core) else f" of {len(self._core):,}"
        return (
            f"<stoker.Dataset {self.path!r}: {self.format}, {len(self):,}{view} samples of "
            f"{', '.join(self._core.fields())}; {self.depth} index>"
        )

    def __len__(self) -> int:
        return len(self._samples)

    @overload
    def __getitem__(self, which: SupportsIndex | str | bytes) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, which: slice) -> Dataset: ...
    def __getitem__(self, which: SupportsIndex | str | bytes | slice) -> dict[str, Any] | Dataset:
        """A sample by its number or its key. A slice is a dataset again, and reads nothing."""
        if isinstance(which, slice):
            return Dataset(self._core, self._samples[which], self._verify, self._staged)
        if isinstance(which, (str, bytes)):
            which = self.index_of(which)
        return self._core.read(self._sample(which))

    def _sample(self, number: SupportsIndex) -> int:
        """The number in the whole dataset; negative ones count from the end."""
        try:
            return self._samples[number]
        except IndexError:
            raise IndexError(f"no sample {number}: there are {len(self):,}") from None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All samples in order, read ahead in batches. One that cannot be read raises when its turn comes."""
        samples = self._samples
        return self._core.iterate(samples.start, samples.step, len(samples))

    def __contains__(self, key: object) -> bool:
        """Whether a sample has this key."""
        return self._find(key) is not None

    def _find(self, key: object) -> int | None:
        if not isinstance(key, (str, bytes)):
            raise TypeError(f"a key is str or bytes, not {type(key).__name__}")
        try:
            sample = self._core.find(key)
        except UnicodeEncodeError:  # no bytes look like that
            return None
        if sample is None or sample not in self._samples:
            return None
        return self._samples.index(sample)

    def index_of(self, key: str | bytes) -> int:
        """The number of the sample with this key. Raises KeyError where there is none."""
        number = self._find(key)
        if number is None:
            raise KeyError(key)
        return number

    def key(self, number: SupportsIndex) -> str:
        """The key of a sample."""
        return self._core.keys([self._sample(number)])[0]

    def keys(self) -> Keys:
        """The keys of all samples, in order."""
        return Keys(self)

    def read_many(self, numbers: Iterable[SupportsIndex], fields: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Samples by their numbers, in the order asked for: fetched together, by several threads.

        fields: only these.
        """
        samples = [self._sample(number) for number in numbers]
        if fields is None:
            return self._core.read_many(samples, None)
        if isinstance(fields, str):
            raise TypeError("fields should be a list of names, not a str")
        names = builtins.list(fields)
        return self._core.read_many(samples, names) if names else [{} for _ in samples]

    def __getitems__(self, numbers: Iterable[SupportsIndex]) -> list[dict[str, Any]]:
        """What PyTorch's DataLoader asks for a batch with."""
        return self.read_many(numbers)

    def column(self, field: str, missing: float | None = None) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
        """One number field of all samples, such as "label". Reads no data where the index holds the numbers: always
        for the classes of a folder, and in a full index.

        missing: stands for samples without this field; ValueError where there are any and it is not given.
        """
        samples = self._samples
        numbers, absent = self._core.column(field, samples.start, samples.step, len(samples))
        if len(absent):
            if missing is None:
                raise ValueError(
                    f"{self.path}: {_counted(len(absent), 'sample')} without {field!r}, the first is "
                    f"{self.key(absent[0])!r}: say what should be in their place (missing=-1)"
                )
            if isinstance(missing, float):
                numbers = numbers.astype("float64")
            numbers[absent] = missing
        return numbers

    @property
    def path(self) -> str:
        return self._core.path

    @property
    def format(self) -> str:
        """ "folder", "tar", "tfrecord", "hdf5", "lmdb", "arrow", "feather", "parquet" or "npy"."""
        return self._core.format

    @property
    def depth(self) -> str:
        """How deep the index is: "structure", or "full", with a checksum for every sample."""
        return self._core.depth

    @property
    def index_directory(self) -> str:
        return self._core.index_directory

    @property
    def fields(self) -> dict[str, Field]:
        """The fields by name, as they are in the whole dataset."""
        return _fields(self._core.fields())

    @property
    def classes(self) -> list[str]:
        """Names of the classes that `label` counts; empty where they are not known."""
        return self._core.classes()

    @property
    def unused(self) -> list[str]:
        """Datasets of an HDF5 file that are not read, because they are of another length or in another group: "mean (3)"."""
        return self._core.unused()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What was wrong with the dataset when its index was made: shards that are not there or are cut off, samples and
        fields that could not be read. stoker.check() looks at the dataset as it is now."""
        return _faults(self._core.faults())

    @property
    def shards(self) -> Shards:
        """The files of the whole dataset. Looked up when asked for: there may be millions."""
        return Shards(self._core)


def _reopen(
    path: str, index_directory: str, samples: range, verify: bool, staged: tuple[str, str] | None = None
) -> Dataset:
    return Dataset(_core.Dataset(path, index_directory, verify, staged), samples, verify, staged)


class Keys(Sequence[str]):
    """The keys of a dataset."""

    __module__ = "stoker"

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        return f"<stoker.Keys: {len(self):,}>"

    def __len__(self) -> int:
        return len(self._dataset)

    @overload
    def __getitem__(self, which: int) -> str: ...
    @overload
    def __getitem__(self, which: slice) -> Keys: ...
    def __getitem__(self, which: int | slice) -> str | Keys:
        if isinstance(which, slice):
            return Keys(self._dataset[which])
        return self._dataset.key(which)

    def __iter__(self) -> Iterator[str]:
        core, samples = self._dataset._core, self._dataset._samples
        for begin in range(0, len(samples), _KEYS_AT_ONCE):
            yield from core.keys(samples[begin : begin + _KEYS_AT_ONCE])

    def __contains__(self, key: object) -> bool:
        return key in self._dataset


class Shards(Sequence[Shard]):
    """The files of a dataset, in its order."""

    __module__ = "stoker"

    def __init__(self, core: _core.Dataset) -> None:
        self._core = core
        self._first = [0, *accumulate(core.shard_counts())]
        self._known: tuple[int, list[Shard]] = (-1, [])  # the segment looked at last

    def __repr__(self) -> str:
        return f"<stoker.Shards: {len(self):,}>"

    def __len__(self) -> int:
        return self._first[-1]

    @overload
    def __getitem__(self, which: int) -> Shard: ...
    @overload
    def __getitem__(self, which: slice) -> list[Shard]: ...
    def __getitem__(self, which: int | slice) -> Shard | list[Shard]:
        if isinstance(which, slice):
            return [self[number] for number in range(len(self))[which]]
        number = range(len(self))[which]
        segment = bisect_right(self._first, number) - 1
        return self._of_segment(segment)[number - self._first[segment]]

    def _of_segment(self, segment: int) -> list[Shard]:
        known, shards = self._known
        if known != segment:
            shards = [Shard(path, size) for path, size in self._core.shards(segment)]
            self._known = segment, shards
        return shards
