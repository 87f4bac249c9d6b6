# SPDX-License-Identifier: Apache-2.0
"""Which samples a Loader takes, and in what order: blocks, subsets, weights, several datasets, ranks."""

import collections
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import stoker
from samples import write_files
from stoker._ranks import _from_environment

COUNT = 300


def array(value: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(value))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    """Arrays that say which sample they are; the first 250 are of one class."""
    root = tmp_path_factory.mktemp("orders")
    files = {}
    for i in range(COUNT):
        files[f"{i:04d}.x.npy"] = array(np.full(16, i, dtype="int32"))
        files[f"{i:04d}.cls"] = b"0" if i < 250 else b"1"
    write_files(root / "files", files)
    stoker.pack(root / "files", root / "packed", shard_size="100K")
    return root / "packed"


def samples(loader) -> list[int]:
    found = []
    for batch in loader:
        assert (batch["x"][:, 0] == batch["sample"]).all()
        found += batch["sample"].tolist()
    return found


def test_block_shuffle_has_every_sample_once_and_says_how_well_it_mixes(dataset):
    loader = stoker.Loader(dataset, 16, shuffle="blocks", block_size="2K", window_size="8K")
    first, second = samples(loader), samples(loader)
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert first != second and first != sorted(first)
    assert 0 < loader.stats()["mixing"] < 1
    full = stoker.Loader(dataset, 16)
    samples(full)
    assert full.stats()["mixing"] == 1
    by_rank = [
        samples(stoker.Loader(dataset, 7, shuffle="blocks", block_size="2K", window_size="8K", rank=r, world_size=3))
        for r in range(3)
    ]
    assert sorted(sum(by_rank, [])) == list(range(COUNT))
    assert [by_rank[i % 3][i // 3] for i in range(COUNT)] == first  # the same order, shared out


def test_block_shuffle_resumes(dataset):
    def make(**words):
        return stoker.Loader(dataset, 16, shuffle="blocks", block_size="2K", window_size="8K", **words)

    whole = samples(make())
    begun = make()
    taken = [s for _, batch in zip(range(5), begun) for s in batch["sample"].tolist()]
    rest = make(threads=1)
    rest.load_state_dict(begun.state_dict())
    assert taken + samples(rest) == whole
    other = stoker.Loader(dataset, 16)
    with pytest.raises(ValueError, match="order is"):
        other.load_state_dict(begun.state_dict())


def test_subsets_and_slices(dataset):
    assert samples(stoker.Loader(dataset, 8, subset=[5, 3, 200], shuffle=False)) == [5, 3, 200]
    assert sorted(samples(stoker.Loader(dataset, 8, subset=np.arange(10, 40)))) == list(range(10, 40))
    ds = stoker.open(dataset)
    assert sorted(samples(stoker.Loader(ds[280:], 8))) == list(range(280, 300))
    assert samples(stoker.Loader(ds[::-100], 8, shuffle=False)) == [299, 199, 99]
    assert samples(stoker.Loader(ds[100:], 8, subset=[0, 1], shuffle=False)) == [100, 101]
    with pytest.raises(ValueError, match="subset"):
        stoker.Loader(dataset, 8, subset=[])
    with pytest.raises(ValueError, match="subset"):
        stoker.Loader(dataset, 8, subset=[-1])


def test_weights(dataset):
    weights = np.zeros(COUNT)
    weights[[3, 7]] = 1, 3
    loader = stoker.Loader(dataset, 50, weights=weights)
    counts = collections.Counter(sum((samples(loader) for _ in range(10)), []))
    assert set(counts) == {3, 7} and sum(counts.values()) == 10 * COUNT
    assert 0.7 < counts[7] / 3000 < 0.8
    with pytest.raises(ValueError, match="shuffle"):
        stoker.Loader(dataset, 8, weights=weights, shuffle=False)


def test_balanced_classes(dataset):
    loader = stoker.Loader(dataset, 50, weights="balanced")
    labels = np.concatenate([batch["label"] for batch in loader])
    assert collections.Counter(labels.tolist()) == {0: 150, 1: 150}
    # Nobody is left out for long: five thirds of an epoch go through the large class once.
    loader = stoker.Loader(dataset, 50, weights="balanced")
    seen = set(sum((samples(loader) for _ in range(2)), []))
    assert seen == set(range(COUNT))


def test_several_datasets(dataset):
    both = stoker.Loader([dataset, stoker.open(dataset)[:100]], 32, fields=["label"])
    found = np.concatenate([batch["sample"] for batch in both])
    assert sorted(found) == [*range(COUNT), *range(COUNT, COUNT + 100)]
    mixed = stoker.Loader([dataset, stoker.open(dataset)[:100]], 32, fields=["label"], mix=[1, 3])
    found = np.concatenate([batch["sample"] for batch in mixed])
    assert len(found) == 400 and np.count_nonzero(found >= COUNT) == 300
    assert collections.Counter(found[found >= COUNT].tolist()) == {COUNT + i: 3 for i in range(100)}


def test_every_sample_once_over_the_ranks_of_srun_mpi_and_torchrun(dataset):
    script = (
        "import stoker, sys\n"
        "loader = stoker.Loader(sys.argv[1], 8, fields=['label'], uneven='drop')\n"
        "print(*[s for batch in loader for s in batch['sample'].tolist()])"
    )
    # The batch script of a Slurm job is one process, however many tasks the job has.
    others = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}
    for rank, world in [("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                        ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")]:  # fmt: skip
        found = []
        for i in range(3):
            environment = {**os.environ, **others, rank: str(i), world: "3"}
            run = subprocess.run(
                [sys.executable, "-c", script, dataset], env=environment, capture_output=True, text=True
            )
            assert run.returncode == 0, run.stderr
            found += map(int, run.stdout.split())
        assert sorted(found) == list(range(COUNT))
    assert _from_environment(others) == (0, 1)
    with pytest.raises(ValueError, match="RANK=5"):
        _from_environment({"RANK": "5", "WORLD_SIZE": "3"})
    with pytest.raises(ValueError, match="numbers"):
        _from_environment({"RANK": "a", "WORLD_SIZE": "3"})


def test_nothing_is_not_everything(dataset):
    with pytest.raises(ValueError, match="no sample in it"):
        stoker.Loader(stoker.open(dataset)[0:0], 8)
    with pytest.raises(ValueError, match="weights"):
        stoker.Loader(dataset, 8, weights=[])
    with pytest.raises(ValueError, match="mix, weights"):
        stoker.Loader([dataset, dataset], 8, mix=[1, 1], weights="balanced")
    with pytest.raises(ValueError, match="there is no sample -1"):
        stoker.Loader(dataset, 8, subset=[-1, 3])


def test_classes_of_several_datasets_must_be_the_same(tmp_path):
    for name, classes in [("a", ["cat", "dog"]), ("b", ["dog", "elk"]), ("c", ["cat", "dog"])]:
        write_files(tmp_path / name, {f"{one}/{i}.txt": b"x" for one in classes for i in range(3)})
        stoker.index(tmp_path / name)
    with pytest.raises(ValueError, match="different classes"):
        stoker.Loader([tmp_path / "a", tmp_path / "b"], 4)
    labels = [label for batch in stoker.Loader([tmp_path / "a", tmp_path / "c"], 4) for label in batch["label"]]
    assert collections.Counter(labels) == {0: 6, 1: 6}


def test_a_state_belongs_to_its_data(dataset, tmp_path):
    write_files(tmp_path / "files", {f"other{i:04d}.cls": b"1" for i in range(COUNT)})
    stoker.pack(tmp_path / "files", tmp_path / "packed")
    other = stoker.Loader(tmp_path / "packed", 8, fields=["label"])
    with pytest.raises(ValueError, match="data is"):
        stoker.Loader(dataset, 8).load_state_dict(other.state_dict())


def test_a_state_ends_an_iteration_under_way(dataset):
    loader = stoker.Loader(dataset, 10)
    iterator = iter(loader)
    next(iterator)
    loader.load_state_dict({**loader.state_dict(), "position": 250})
    with pytest.raises(RuntimeError, match="another iteration"):
        next(iterator)
    assert len(samples(loader)) == 50
