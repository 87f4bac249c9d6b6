# SPDX-License-Identifier: Apache-2.0
"""The commands as functions, with the same words as options. Ctrl-C stops them; run again, they go on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal, Union

from stoker import _core
from stoker._errors import LeftOutError
from stoker._results import CheckResult, IndexResult, PackResult

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def _jobs(jobs: int | None) -> int:
    """What the library takes: 0 for one per usable core."""
    if jobs is None:
        return 0
    if not 1 <= jobs <= 4096:
        raise ValueError(f"jobs {jobs}: should be a whole number from 1 to 4096")
    return jobs


def _of_split(path: Path, split: str | None) -> Path:
    """The path of one of the datasets in a directory: "data::train"."""
    if split is None:
        return path
    if not split:
        raise ValueError("split: should be a name, such as 'train'")
    given = os.fspath(path)
    return given + b"::" + os.fsencode(split) if isinstance(given, bytes) else f"{given}::{split}"


def _least(name: str, number: int | None, least: int) -> int | None:
    if number is not None and not least <= number < 2**64:
        raise ValueError(f"{name} {number}: should be a whole number, {least} or more")
    return number


def _globs(globs: str | bytes | Iterable[str | bytes]) -> list[str | bytes]:
    return [globs] if isinstance(globs, (str, bytes)) else [*globs]


def pack(
    source: Path,
    destination: Path,
    *,
    to: str = "tar",
    shard_size: int | str = "1G",
    jobs: int | None = None,
    shuffle: int | None = None,
    split: str | Mapping[str, float] | None = None,
    include: str | bytes | Iterable[str | bytes] = (),
    exclude: str | bytes | Iterable[str | bytes] = (),
    limit: int | None = None,
    list: Path | None = None,
    lossy: bool = False,
    compress: str = "",
    row_index: Literal["rows", "none"] | int = "rows",
    overwrite: bool = False,
    skip_bad: bool = False,
) -> PackResult:
    """Turn a folder, or any dataset, into shards in the directory `destination`, with a full index.

    Stopped at any moment and run again, it goes on, and the result is that of an undisturbed run, byte for byte.

    to: format to write: "tar", "tfrecord", "hdf5", "lmdb", "arrow", "feather" or "npy".
    shard_size: begin a new shard at this size: bytes, or text such as "512M".
    jobs: threads to use; one per usable core where not given.
    shuffle: put the samples in a random order, the same for the same seed.
    split: {"train": 0.9, "val": 0.1} or "train=0.9,val=0.1": one dataset per name, chosen by a hash of the key.
    include, exclude: globs over keys and file names.
    limit: at most so many samples, counted after the filters.
    list: for a folder, a CSV or JSON-lines file that names the files and gives further columns.
    lossy: leave out fields that the format cannot store, instead of raising an error.
    compress: compress what is stored, where the format can.
    row_index: where the rows of JPEG photos begin, so that crops are decoded faster: "rows", a number N for an
        entry every N blocks of a row as well, or "none".
    overwrite: replace a dataset of other contents.
    skip_bad: what cannot be read is left out without LeftOutError.

    Raises LeftOutError, once everything else is written, where something could not be read.
    """
    if isinstance(split, Mapping):
        split = ",".join(f"{name}={share}" for name, share in split.items())
    result = PackResult._of(
        _core.pack(
            source=source,
            destination=destination,
            to=to,
            shard_size=str(shard_size),
            jobs=_jobs(jobs),
            shuffle=_least("shuffle", shuffle, 0),
            split=split,
            include=_globs(include),
            exclude=_globs(exclude),
            limit=_least("limit", limit, 1),
            list=list,
            lossy=lossy,
            compress=compress,
            row_index=str(row_index),
            overwrite=overwrite,
            skip_bad=skip_bad,
        )
    )
    if result.left_out and not skip_bad:
        raise LeftOutError(result)
    return result


def index(
    path: Path,
    *,
    full: bool = False,
    row_index: Literal["rows", "none"] | int = "rows",
    where: Literal["beside", "cache"] | None = None,
    jobs: int | None = None,
    list: Path | None = None,
) -> IndexResult:
    """Give an existing dataset random access without rewriting it. Looks only at what is new or has changed.

    full: read every byte and record checksums.
    row_index: with full, as for pack().
    where: "beside" the data, or in the user's "cache"; beside where that can be written, if not given.
    jobs, list: as for pack().
    """
    return IndexResult._of(
        _core.index(
            path=path, full=full, row_index=str(row_index), where=where or "", jobs=_jobs(jobs), list=list
        )
    )


def check(
    path: Path,
    *,
    quick: bool = False,
    compare: Path | None = None,
    ignore_keys: bool = False,
    jobs: int | None = None,
    list: Path | None = None,
) -> CheckResult:
    """Say what a dataset is and verify every byte of it. Bad data is a result, not an exception. Changes nothing.

    quick: look at headers, sizes and names only.
    compare: also prove that this dataset, of any format, holds the same samples: matched by key, in any order.
    ignore_keys: with compare, match samples by their contents.
    jobs, list: as for pack().
    """
    if ignore_keys and compare is None:
        raise ValueError("ignore_keys needs compare")
    return CheckResult._of(
        _core.check(path=path, quick=quick, compare=compare, ignore_keys=ignore_keys, jobs=_jobs(jobs), list=list)
    )
