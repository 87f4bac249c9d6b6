# SPDX-License-Identifier: Apache-2.0
"""What the commands return. The members have the names that --json prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stoker import _core


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Field:
    """One field of a dataset's samples."""

    __module__ = "stoker"

    name: str
    #: "bytes", "text", "number", "array" or "list"
    type: str
    #: NumPy's name of what numbers and arrays are made of; None where the index has not looked.
    dtype: str | None
    #: Of arrays, where known; -1 for a dimension that varies.
    shape: tuple[int, ...] | None
    #: Endings of the files it came from, such as "jpg".
    suffixes: tuple[str, ...]
    #: In how many samples it is present.
    present: int
    #: Of the label: the names of the classes it counts, where they are known.
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Shard:
    """One file of a dataset."""

    __module__ = "stoker"

    #: Relative to the directory of the dataset.
    path: str
    size: int


@dataclass(frozen=True)
class Fault:
    """Something in a dataset that is not as it should be. str() says it in words."""

    __module__ = "stoker"

    shard: str
    offset: int
    #: The key of the sample, or "".
    sample: str
    field: str
    cause: str
    message: str
    #: How many samples are missing because of it; None where that cannot be known.
    samples: int | None = None

    def __str__(self) -> str:
        return self.message


def _faults(faults: list[dict[str, Any]]) -> tuple[Fault, ...]:
    return tuple(Fault(**fault) for fault in faults)


def _fields(fields: dict[str, dict[str, Any]]) -> dict[str, Field]:
    return {name: Field(**field) for name, field in fields.items()}


@dataclass(frozen=True)
class RowIndexes:
    """How many photos have a row index, with which crops of them are decoded faster."""

    __module__ = "stoker"

    photos: int
    indexed: int
    #: Of the row indexes.
    bytes: int
    #: That is, of the bytes of the photos.
    percent: float
    #: Photos that can have none, by the decoder that they are left to, and why.
    left: dict[str, int]


@dataclass(frozen=True, repr=False)
class PackResult:
    """What pack() wrote."""

    __module__ = "stoker"

    source_format: str
    format: str
    samples: int
    shards: int
    #: Of all shards.
    bytes: int
    #: Of the fields in them.
    payload_bytes: int
    #: The directories written: one, or one per split.
    datasets: tuple[str, ...]
    #: Shards that an earlier, interrupted run had finished.
    shards_reused: int
    already_complete: bool
    #: Samples that include, exclude and limit kept out.
    filtered: int
    #: Files whose name begins with a dot: never samples.
    hidden: int
    #: Files that the list does not name.
    unlisted: int
    #: Datasets of an HDF5 file that are not read, because they are of another length or in another group: "mean (3)".
    unused: tuple[str, ...]
    #: What could not be read.
    left_out: tuple[Fault, ...]
    #: Fields that the format cannot store, and why.
    lossy: tuple[str, ...]
    row_index: RowIndexes
    seconds: float

    @classmethod
    def _of(cls, result: dict[str, Any]) -> PackResult:
        tuples = {name: tuple(result[name]) for name in ("datasets", "lossy", "unused")}
        rows = RowIndexes(**result["row_index"])
        return cls(**{**result, **tuples, "left_out": _faults(result["left_out"]), "row_index": rows})

    def __repr__(self) -> str:
        return (
            f"<PackResult: {_counted(self.samples, 'sample')} in {_counted(self.shards, self.format + ' shard')}, "
            f"{_core.format_bytes(self.bytes)}, {len(self.left_out):,} left out, in {', '.join(self.datasets)}>"
        )


@dataclass(frozen=True, repr=False)
class IndexResult:
    """What index() found, and where the index is."""

    __module__ = "stoker"

    format: str
    #: "structure", or "full": every sample has a checksum.
    depth: str
    directory: str
    #: In the user's cache instead of beside the data.
    in_cache: bool
    samples: int
    shards: int
    bytes: int
    #: Parts of an earlier index that had not changed.
    segments_reused: int
    #: Files whose name begins with a dot: never samples.
    hidden: int
    #: Files that the list does not name.
    unlisted: int
    #: Datasets of an HDF5 file that are not read, because they are of another length or in another group: "mean (3)".
    unused: tuple[str, ...]
    #: What these concern is not in the index.
    faults: tuple[Fault, ...]
    row_index: RowIndexes

    @classmethod
    def _of(cls, result: dict[str, Any]) -> IndexResult:
        rows = RowIndexes(**result["row_index"])
        converted = {"faults": _faults(result["faults"]), "unused": tuple(result["unused"]), "row_index": rows}
        return cls(**{**result, **converted})

    def __repr__(self) -> str:
        return (
            f"<IndexResult: {self.depth} index of {_counted(self.samples, 'sample')} in "
            f"{_counted(self.shards, self.format + ' shard')}, {_counted(len(self.faults), 'fault')}, "
            f"in {self.directory}>"
        )


@dataclass(frozen=True)
class FieldSizes:
    """Bytes that a field takes as it is stored."""

    __module__ = "stoker"

    total: int
    smallest: int
    median: int
    largest: int


@dataclass(frozen=True)
class Comparison:
    """How two datasets differ."""

    __module__ = "stoker"

    equal: bool
    compared: int
    only_here: int
    only_there: int
    different: int
    #: The first few differences, in words.
    examples: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class CheckResult:
    """What check() found."""

    __module__ = "stoker"

    #: No faults, and equal to what it was compared with.
    good: bool
    path: str
    format: str
    samples: int
    shards: int
    bytes: int
    #: Of the index that was there: "structure" or "full"; None without one.
    index_depth: str | None
    index_directory: str | None
    fields: dict[str, Field]
    #: By name of the field.
    sizes: dict[str, FieldSizes]
    #: Samples by class, in the order of the labels.
    classes: dict[str, int]
    hidden: int
    #: Files left alone: the list does not name them, or they are next to the shards.
    unlisted: int
    #: Datasets of an HDF5 file that are not read, because they are of another length or in another group: "mean (3)".
    unused: tuple[str, ...]
    #: By pack(), when it wrote the dataset.
    left_out: int
    row_index: RowIndexes
    #: Read and found right.
    verified_bytes: int
    #: Whether the index has checksums, and they were compared.
    checksums_compared: bool
    #: Faults beyond the first thousand are only counted.
    fault_count: int
    faults: tuple[Fault, ...]
    comparison: Comparison | None
    seconds: float

    @classmethod
    def _of(cls, result: dict[str, Any]) -> CheckResult:
        comparison = result["comparison"]
        converted = {
            "fields": _fields(result["fields"]),
            "unused": tuple(result["unused"]),
            "sizes": {name: FieldSizes(**sizes) for name, sizes in result["sizes"].items()},
            "faults": _faults(result["faults"]),
            "row_index": RowIndexes(**result["row_index"]),
            "comparison": comparison and Comparison(**{**comparison, "examples": tuple(comparison["examples"])}),
        }
        return cls(**{**result, **converted})

    def __repr__(self) -> str:
        differs = ", differs from the other" if self.comparison and not self.comparison.equal else ""
        return (
            f"<CheckResult: {'good' if self.good else 'BAD'}: {_counted(self.samples, 'sample')} in "
            f"{_counted(self.shards, self.format + ' shard')}, {_core.format_bytes(self.bytes)}, "
            f"{_core.format_bytes(self.verified_bytes)} verified, {_counted(self.fault_count, 'fault')}{differs}>"
        )
