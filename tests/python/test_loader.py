# SPDX-License-Identifier: Apache-2.0
"""stoker.Loader: every sample, the same pixels whatever the threads and ranks, exact resume, bad samples."""

import gc
import hashlib
import io
import random
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import stoker
from PIL import Image
from samples import write_files
from stoker.transforms import RandomHorizontalFlip, RandomResizedCrop, Resize

RECIPE = [RandomResizedCrop(32), RandomHorizontalFlip()]
COUNT = 61


def photo(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    size = (int(rng.integers(20, 90)), int(rng.integers(20, 90)), 3)
    buffer = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, size, dtype="uint8")).save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("loader")
    write_files(root / "photos", {f"{'ab'[i % 2]}/{i:03d}.jpg": photo(i) for i in range(COUNT)})
    stoker.pack(root / "photos", root / "train", shard_size="40K")
    return root / "train"


def fingerprints(loader) -> dict[int, list[str]]:
    """What comes out of what is left of an epoch: by sample, one hash of label and pixels for each time it came."""
    found: dict[int, list[str]] = {}
    for batch in loader:
        take(batch, found)
    return found


def take(batch, found) -> None:
    for row, sample in enumerate(batch["sample"]):
        digest = hashlib.sha256(batch["image"][row].tobytes() + bytes([batch["label"][row]])).hexdigest()
        found.setdefault(int(sample), []).append(digest)


def test_every_sample_comes_once_with_its_label(dataset):
    loader = stoker.Loader(dataset, 8, [Resize((24, 32))])
    assert len(loader) == 8
    batches = list(loader)
    assert [len(batch["image"]) for batch in batches] == [8] * 7 + [5]
    ds = stoker.open(dataset)
    seen = []
    for batch in batches:
        assert batch["image"].shape[1:] == (24, 32, 3) and batch["image"].dtype == np.uint8
        for image, label, sample in zip(batch["image"], batch["label"], batch["sample"]):
            assert label == ds[int(sample)]["label"]
            assert np.array_equal(image, stoker.decode(ds[int(sample)]["image"], size=(24, 32)))
            seen.append(int(sample))
    assert sorted(seen) == list(range(COUNT)) and seen != sorted(seen)


def test_order_as_it_lies_and_drop_last(dataset):
    loader = stoker.Loader(dataset, 8, [Resize((8, 8))], shuffle=False, drop_last=True)
    samples = np.concatenate([batch["sample"] for batch in loader])
    assert samples.tolist() == list(range(56))


def test_epochs_and_seeds_differ_and_repeat(dataset):
    def epochs(seed, count=2):
        loader = stoker.Loader(dataset, 16, RECIPE, seed=seed)
        return [[(batch["sample"].tolist(), batch["image"].tobytes()) for batch in loader] for _ in range(count)]

    first = epochs(1)
    assert first == epochs(1)
    assert first[0] != first[1] and first[0] != epochs(2, 1)[0]


def test_same_pixels_for_any_number_of_threads_and_ranks(dataset):
    whole = fingerprints(stoker.Loader(dataset, 16, RECIPE, threads=1))
    assert fingerprints(stoker.Loader(dataset, 5, RECIPE, threads=8)) == whole
    for world in (2, 3, 7):
        together: dict[int, list[str]] = {}
        lengths = set()
        for rank in range(world):
            found = fingerprints(stoker.Loader(dataset, 4, RECIPE, rank=rank, world_size=world))
            lengths.add(sum(map(len, found.values())))
            for sample, digests in found.items():
                together.setdefault(sample, []).extend(digests)
        assert lengths == {-(-COUNT // world)}
        assert {sample: set(digests) for sample, digests in together.items()} == {
            sample: set(digests) for sample, digests in whole.items()
        }


def test_resume_is_exact_with_other_ranks_and_threads(dataset):
    rng = random.Random(5)
    for _ in range(200):
        seed, epoch = rng.randrange(1000), rng.randrange(3)
        before, after, batch_size = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 9)
        undisturbed = stoker.Loader(dataset, 16, RECIPE, seed=seed)
        undisturbed.load_state_dict({**undisturbed.state_dict(), "epoch": epoch})
        whole = fingerprints(undisturbed)
        loaders = [
            stoker.Loader(dataset, batch_size, RECIPE, seed=seed, rank=r, world_size=before) for r in range(before)
        ]
        for loader in loaders:
            loader.load_state_dict({**loader.state_dict(), "epoch": epoch})
        steps = rng.randint(0, len(loaders[0]) - 1)
        found: dict[int, list[str]] = {}
        states = []
        for loader in loaders:
            for _, batch in zip(range(steps), loader):
                take(batch, found)
            states.append(loader.state_dict())
        assert all(state == states[0] for state in states)
        for rank in range(after):
            loader = stoker.Loader(
                dataset, rng.randint(1, 9), RECIPE, seed=seed, rank=rank, world_size=after, threads=3
            )
            loader.load_state_dict(states[0])
            for batch in loader:
                take(batch, found)
            assert loader.state_dict()["epoch"] == epoch + 1
        assert {s: set(d) for s, d in found.items()} == {s: set(d) for s, d in whole.items()}
        # Once each, but for what pads the last turn.
        assert sum(map(len, found.values())) <= COUNT + after - 1


@pytest.mark.parametrize("drop_last", [False, True])
def test_state_behind_the_last_batch_is_that_of_the_next_epoch(dataset, drop_last):
    """Whoever counts batches never asks for the one behind the last: there the epoch is not over yet."""
    loader = stoker.Loader(dataset, 4, fields=["label"], drop_last=drop_last)
    whole = [[batch["sample"].tolist() for batch in loader] for _ in range(2)]
    loader.set_epoch(0)
    batches = iter(loader)
    assert [next(batches)["sample"].tolist() for _ in range(len(loader))] == whole[0]
    resumed = stoker.Loader(dataset, 4, fields=["label"], drop_last=drop_last)
    resumed.load_state_dict(loader.state_dict())
    assert resumed.state_dict()["epoch"] == 1
    assert [batch["sample"].tolist() for batch in resumed] == whole[1]


def test_set_epoch(dataset):
    loader = stoker.Loader(dataset, 4, fields=["label"])
    assert loader.sampler is loader

    def epoch():
        return [batch["sample"].tolist() for batch in loader]

    whole = [epoch() for _ in range(3)]
    for number in (1, 0, 2):
        loader.sampler.set_epoch(number)
        assert epoch() == whole[number]
    loader.set_epoch(1)
    for _ in zip(range(2), loader):
        pass
    state = loader.state_dict()
    loader.set_epoch(1)  # left midway: from the start
    assert epoch() == whole[1]
    loader.load_state_dict(state)
    assert len(loader) == len(whole[1])
    loader.set_epoch(1)  # resumed midway: from there
    assert epoch() == whole[1][2:]
    loader.load_state_dict(state)
    loader.set_epoch(2)
    assert epoch() == whole[2]
    with pytest.raises(ValueError, match="epoch -1"):
        loader.set_epoch(-1)


def test_state_of_another_loader_is_refused(dataset):
    loader = stoker.Loader(dataset, 4, RECIPE, seed=1)
    for change in ({"seed": 2}, {"turns": 7}, {"order": 1}, {"version": 9}):
        with pytest.raises(ValueError, match=next(iter(change))):
            loader.load_state_dict({**loader.state_dict(), **change})


def test_batches_stay_what_they_are(dataset):
    loader = stoker.Loader(dataset, 4, RECIPE)
    kept = [(batch, {name: array.copy() for name, array in batch.items()}) for _ in range(3) for batch in loader]
    del loader
    gc.collect()
    for batch, copies in kept:
        assert all(np.array_equal(batch[name], copies[name]) for name in copies)


def test_iterators_may_be_dropped_midway(dataset):
    loader = stoker.Loader(dataset, 2, RECIPE)
    threads = threading.active_count()
    for epoch in range(20):
        for _, _batch in zip(range(2), loader):
            assert loader.state_dict()["epoch"] == epoch
    assert threading.active_count() == threads
    assert sum(len(batch["image"]) for batch in loader) == COUNT  # a whole epoch


def test_two_iterations_at_once_are_refused(dataset):
    loader = stoker.Loader(dataset, 2, RECIPE)
    first = iter(loader)
    next(first)
    second = iter(loader)
    next(second)
    with pytest.raises(RuntimeError, match="make a Loader for each"):
        next(first)
    assert sum(len(batch["image"]) for batch in second) == COUNT - 2


def broken_copy(dataset: Path, to: Path) -> tuple[Path, str]:
    """The same dataset with twenty bytes flipped within one photo."""
    ds = stoker.open(dataset)
    key = ds.keys()[17]
    to.mkdir()
    for shard in ds.shards:
        data = bytearray((dataset / shard.path).read_bytes())
        at = data.find(ds[key]["image"])
        if at >= 0:
            for i in range(20):
                data[at + 300 + 7 * i] ^= 0x10
        (to / shard.path).write_bytes(bytes(data))
    shutil.copytree(dataset / ".stoker", to / ".stoker")
    return to, key


def test_bad_samples_are_named_skipped_or_replaced(dataset, tmp_path):
    broken, key = broken_copy(dataset, tmp_path / "broken")
    with pytest.raises(stoker.CorruptError, match=key):
        list(stoker.Loader(broken, 8, RECIPE))
    skipping = stoker.Loader(broken, 8, RECIPE, on_error="skip")
    rows = [len(batch["image"]) for batch in skipping]
    assert sum(rows) == COUNT - 1 and len(rows) == 8
    assert [fault["sample"] for fault in skipping.stats()["bad"]] == [key]
    assert "checksum" in skipping.stats()["bad"][0]["cause"]
    whole = fingerprints(stoker.Loader(dataset, 8, RECIPE))
    once = fingerprints(stoker.Loader(broken, 8, RECIPE, on_error="replace", threads=1))
    assert once == fingerprints(stoker.Loader(broken, 5, RECIPE, on_error="replace", threads=4))
    assert sum(map(len, once.values())) == COUNT
    assert all(set(digests) == set(whole[sample]) for sample, digests in once.items())
    number = stoker.open(dataset).keys().index(key)
    assert number not in once


def test_dataset_that_vanishes_while_training(dataset, tmp_path):
    shutil.copytree(dataset, tmp_path / "gone")
    loader = stoker.Loader(tmp_path / "gone", 2, RECIPE, threads=1)
    iterator = iter(loader)
    next(iterator)
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises((OSError, ValueError)):
        for _ in range(3):
            list(iterator)
            iterator = iter(loader)


def test_ctrl_c_while_waiting(dataset):
    loader = stoker.Loader(dataset, 61, [Resize((4000, 4000))], threads=1)
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(loader)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < 5


def test_statistics(dataset):
    loader = stoker.Loader(dataset, 16, RECIPE, threads=2)
    list(loader)
    stats = loader.stats()
    assert stats["samples"] == COUNT and stats["bytes"] > 0 and stats["seconds"] > 0 and stats["bad"] == []
    assert stats["stages"]["decode"]["threads"] == 2
    assert 0 < stats["stages"]["decode"]["busy"] <= 2 * stats["seconds"] + 0.1
    assert stats["waited"] <= stats["seconds"] + 0.1


def test_wrong_use(dataset, tmp_path):
    for words in (
        {"batch_size": 0},
        {"rank": 2, "world_size": 2},
        {"threads": -1},
        {"on_error": "ignore"},
        {"uneven": "no"},
        {"output": "jax"},
        {"rank": 1},
        {"mix": [1, 2]},
        {"weights": [1.0]},
        {"subset": [99]},
        {"fields": ["depth"]},
        {"cache": "ram"},
        {"shuffle": "half"},
        {"block_size": "0", "shuffle": "blocks"},
    ):
        with pytest.raises(ValueError, match=next(iter(words))):
            stoker.Loader(dataset, **{"batch_size": 4, "transforms": RECIPE, **words})
    with pytest.raises(ValueError, match="a second step that resizes"):
        stoker.Loader(dataset, 4, [*RECIPE, Resize((4, 4))])
    with pytest.raises(ValueError, match="keeps the shape"):
        stoker.Loader(dataset, 4, [Resize(32)])
    with pytest.raises(ValueError, match="3.5 is neither of stoker.transforms nor a function"):
        stoker.Loader(dataset, 4, [*RECIPE, 3.5])
    with pytest.raises(ValueError, match="scale"):
        RandomResizedCrop(8, scale=(0, 1))
    write_files(tmp_path / "texts", {"a.txt": b"no photo"})
    stoker.index(tmp_path / "texts")
    with pytest.raises(ValueError, match="no field 'image'"):
        list(stoker.Loader(tmp_path / "texts", 4, RECIPE))
    assert [len(batch["image"]) for batch in stoker.Loader(dataset, 1000, RECIPE)] == [COUNT]
