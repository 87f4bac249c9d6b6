# SPDX-License-Identifier: Apache-2.0
"""Random access to datasets that lie in a few big files, with every byte verified.

    ds = stoker.open("train")       # a folder, tar, tfrecord, HDF5, LMDB, Arrow, Parquet, NumPy dataset
    ds[0], ds["cats/7"], len(ds)    # a sample is a dict of its fields
    stoker.pack("photos", "train")  # the commands, with the same words as options
    stoker.check("train").good
"""

from stoker import transforms
from stoker._commands import check, index, pack
from stoker._core import version as __version__
from stoker._dataset import Dataset, Keys, Shards, open
from stoker._errors import (
    CorruptError,
    FaultWarning,
    IndexBuiltWarning,
    LeftOutError,
    UnsupportedError,
    UnusedDataWarning,
)
from stoker._image import decode, row_index
from stoker._job import JobFinding, JobResult, job
from stoker._loader import Loader
from stoker._measure_commands import probe, report, scale, time
from stoker._measure_results import (
    Finding,
    Gpu,
    Interval,
    Place,
    ProbeResult,
    Rank,
    ReportResult,
    RunComparison,
    ScaleFit,
    ScalePoint,
    ScalePrediction,
    ScaleResult,
    ScaleRun,
    SteadyState,
    StepTimes,
    TimeResult,
)
from stoker._meter import Meter, watch
from stoker._preemption import Preempted
from stoker._results import (
    CheckResult,
    Comparison,
    Fault,
    Field,
    FieldSizes,
    IndexResult,
    PackResult,
    RowIndexes,
    Shard,
)
from stoker._stage import StageResult, stage

__all__ = [
    "CheckResult",
    "Comparison",
    "CorruptError",
    "Dataset",
    "Fault",
    "FaultWarning",
    "Field",
    "FieldSizes",
    "Finding",
    "Gpu",
    "IndexBuiltWarning",
    "IndexResult",
    "Interval",
    "JobFinding",
    "JobResult",
    "Keys",
    "LeftOutError",
    "Loader",
    "Meter",
    "PackResult",
    "Place",
    "Preempted",
    "ProbeResult",
    "Rank",
    "ReportResult",
    "RowIndexes",
    "RunComparison",
    "ScaleFit",
    "ScalePoint",
    "ScalePrediction",
    "ScaleResult",
    "ScaleRun",
    "Shard",
    "Shards",
    "StageResult",
    "SteadyState",
    "StepTimes",
    "TimeResult",
    "UnsupportedError",
    "UnusedDataWarning",
    "__version__",
    "check",
    "decode",
    "index",
    "job",
    "open",
    "pack",
    "probe",
    "report",
    "row_index",
    "scale",
    "stage",
    "time",
    "transforms",
    "watch",
]
