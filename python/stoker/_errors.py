# SPDX-License-Identifier: Apache-2.0
"""The exceptions and warnings that Python does not have itself. The others are FileNotFoundError, PermissionError,
OSError with its errno, ValueError for what makes no sense, KeyError and IndexError."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stoker._results import PackResult


class CorruptError(ValueError):
    """Bytes are not what they should be: says which, where, and what to do."""

    __module__ = "stoker"


class UnsupportedError(ValueError):
    """Valid, but not something stoker does."""

    __module__ = "stoker"


class LeftOutError(RuntimeError):
    """pack() had to leave samples out. What it could read is written; `result` names the rest."""

    __module__ = "stoker"

    def __init__(self, result: PackResult) -> None:
        named = "".join(f"\n  {fault}" for fault in result.left_out[:10])
        more = f"\n  and {len(result.left_out) - 10:,} more" if len(result.left_out) > 10 else ""
        super().__init__(
            f"{len(result.left_out):,} left out of {', '.join(result.datasets)} because of faults "
            f"(skip_bad=True accepts that):{named}{more}"
        )
        self.result = result

    def __reduce__(self) -> tuple[type[LeftOutError], tuple[PackResult]]:
        return LeftOutError, (self.result,)


class IndexBuiltWarning(UserWarning):
    """A dataset that was opened had no index, so one was built."""

    __module__ = "stoker"


class UnusedDataWarning(UserWarning):
    """A file that was opened has datasets which are not read: their length differs, or they are in another group."""

    __module__ = "stoker"


class FaultWarning(UserWarning):
    """A dataset that was opened has faults: what they concern cannot be read."""

    __module__ = "stoker"
