# SPDX-License-Identifier: Apache-2.0
"""Datasets in other processes: pickled, forked, spawned."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import warnings

import pytest
import stoker
from every_format import COUNT, KEYS, fields_of, same
from samples import write_files


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(dataset, protocol):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(dataset, protocol))
    assert (again.path, again.index_directory, len(again)) == (dataset.path, dataset.index_directory, COUNT)
    assert same(again[3], fields_of(KEYS[3]))


def test_pickle_is_small_whatever_the_dataset(dataset):
    assert len(pickle.dumps(dataset)) < 500


def test_pickled_view(dataset):
    view = dataset[20:2:-3]
    again = pickle.loads(pickle.dumps(view))
    assert list(again.keys()) == list(view.keys()) == KEYS[20:2:-3]
    assert len(copy.copy(view)) == len(copy.deepcopy(view)) == len(view)


def test_pickle_keeps_verify(packed):
    (shard,) = packed.glob("*.tar")
    contents = bytearray(shard.read_bytes())
    contents[contents.index(fields_of(KEYS[0])["image"])] ^= 1
    shard.write_bytes(contents)
    pickle.loads(pickle.dumps(stoker.open(packed, verify=False)))[0]
    with pytest.raises(stoker.CorruptError):
        pickle.loads(pickle.dumps(stoker.open(packed)))[0]


def test_pickle_of_an_index_in_the_cache(tmp_path, packed, monkeypatch):
    """Opened again where the index was, even where the cache of the other process is elsewhere."""
    import shutil

    shutil.rmtree(packed / ".stoker")
    stoker.index(packed, where="cache")
    data = pickle.dumps(stoker.open(packed))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    assert same(pickle.loads(data)[0], fields_of(KEYS[0]))


def test_pickle_of_a_vanished_dataset(packed):
    data = pickle.dumps(stoker.open(packed))
    packed.rename(packed.parent / "away")
    with pytest.raises(FileNotFoundError):
        pickle.loads(data)


def labels(dataset: stoker.Dataset) -> list[int]:
    return [sample["label"] for sample in dataset]


def one(arguments) -> dict:
    dataset, number = arguments
    return dataset[number]


def fails(dataset: stoker.Dataset) -> None:
    dataset[0]


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_pool(dataset, method):
    expected = [fields_of(key)["label"] for key in KEYS]
    assert labels(dataset) == expected  # threads and open files are there before the fork
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(labels, [dataset] * 3).get(60) == [expected] * 3
        samples = pool.map_async(one, [(dataset, number) for number in range(COUNT)]).get(60)
    assert all(same(found, fields_of(key)) for found, key in zip(samples, KEYS))


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_error_in_a_worker(packed, method):
    ds = stoker.open(packed)
    (shard,) = packed.glob("*.tar")
    shard.write_bytes(shard.read_bytes()[:-512])
    with multiprocessing.get_context(method).Pool(1) as pool:
        with pytest.raises(stoker.CorruptError, match=shard.name):
            pool.apply_async(fails, [ds]).get(60)


def in_child(work) -> None:
    """Runs `work` in a fork of this process; fails where it raises, dies or does not end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            work()
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_fork_and_go_on(dataset):
    list(dataset)

    def read() -> None:
        assert all(same(found, fields_of(key)) for found, key in zip(dataset, KEYS))
        assert len(dataset.read_many(range(COUNT))) == COUNT
        assert dataset.index_of(KEYS[7]) == 7
        in_child(lambda: dataset[0])  # a grandchild

    in_child(read)
    read()
    in_child(read)


def test_fork_in_the_middle_of_an_iteration(dataset):
    iterator = iter(dataset)
    found = [next(iterator) for _ in range(3)]

    def finish() -> None:
        rest = list(iterator)
        assert all(same(sample, fields_of(key)) for sample, key in zip(found + rest, KEYS, strict=True))

    in_child(finish)
    in_child(finish)
    finish()


def test_fork_and_drop_the_iterator(dataset):
    holder = [iter(dataset)]
    next(holder[0])
    in_child(holder.clear)
    assert len(list(holder[0])) == COUNT - 1


def test_fork_while_threads_read(dataset):
    import threading

    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            dataset.read_many(range(COUNT))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            in_child(lambda: dataset.read_many(range(COUNT)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_loader_in_a_process_that_was_forked(tmp_path):
    """Its threads are the parent's: what was under way is not there, but it can begin anew, and end."""
    write_files(tmp_path / "d", {f"{i:03d}.cls": str(i).encode() for i in range(100)})
    stoker.pack(tmp_path / "d", tmp_path / "p")
    script = """
import os, sys
import stoker
for how in ("anew", "go on", "drop", "exit"):
    loader = stoker.Loader(sys.argv[1], 4, cache="ram", cache_limit="1M")
    iterator = iter(loader)
    next(iterator)
    child = os.fork()
    if child == 0:
        if how == "anew":
            sys.exit(0 if sum(len(batch["label"]) for batch in loader) == 100 else 1)
        if how == "go on":
            try:
                for batch in iterator: pass
            except ValueError as error:
                sys.exit(0 if "begin a new iteration" in str(error) else 1)
            sys.exit(1)
        if how == "drop":
            del loader, iterator
            os._exit(0)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0, how
    assert 4 + sum(len(batch["label"]) for batch in iterator) == 100
print("done")
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "p"], capture_output=True, text=True, timeout=60)
    assert done.stdout == "done\n", done.stderr
