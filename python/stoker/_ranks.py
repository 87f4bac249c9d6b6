# SPDX-License-Identifier: Apache-2.0
"""Which of the processes that train together this one is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

# What each launcher sets for the processes that it starts. Slurm's SLURM_NTASKS is not here: it is set in a batch script
# as well, which is one process, however many tasks the job may start.
_VARIABLES = [
    ("RANK", "WORLD_SIZE"),  # torchrun
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH, Intel MPI
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),  # MVAPICH2
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun
]


def _from_environment(environment: Mapping[str, str]) -> tuple[int, int]:
    for rank, world in _VARIABLES:
        if rank in environment and world in environment:
            try:
                found = int(environment[rank]), int(environment[world])
            except ValueError:
                raise ValueError(f"{rank}={environment[rank]!r}, {world}={environment[world]!r}: should be numbers") from None
            if not 0 <= found[0] < found[1]:
                raise ValueError(f"{rank}={found[0]} of {world}={found[1]} makes no sense: give rank and world_size")
            return found
    return 0, 1


def ranks(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """As given; else what torch.distributed says where it was initialised; else what the launcher has set; else one."""
    if (rank is None) != (world_size is None):
        raise ValueError("rank, world_size: give both, or none of them")
    if rank is not None and world_size is not None:
        if world_size < 1 or not 0 <= rank < world_size:
            raise ValueError(f"rank {rank}: should be 0 to {world_size - 1}")
        return rank, world_size
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return _from_environment(os.environ)
