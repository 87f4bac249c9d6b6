# SPDX-License-Identifier: Apache-2.0
"""stoker.stage(), and a Loader that reads while the data arrives."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import stoker
from every_format import write_dataset


@pytest.fixture
def shards(tmp_path) -> Path:
    write_dataset(tmp_path / "source", "folder")
    stoker.pack(tmp_path / "source", tmp_path / "packed", shard_size="4K")
    assert len(list((tmp_path / "packed").glob("*.tar"))) > 2
    return tmp_path / "packed"


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def read(loader) -> dict:
    """By sample: all fields of an epoch."""
    found = {}
    for batch in loader:
        for row, sample in enumerate(batch["sample"]):
            found[int(sample)] = {name: values[row] for name, values in batch.items() if name != "sample"}
    return found


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(
        a[sample].keys() == b[sample].keys()
        and all(np.array_equal(a[sample][name], b[sample][name]) for name in a[sample])
        for sample in a
    )


def test_stage(shards, place):
    result = stoker.stage(shards, place)
    assert result.complete and result.verified and result.place == str(place)
    assert stoker.check(result.path, compare=shards).comparison.equal
    assert stoker.stage(shards, place).reused_bytes == result.bytes


@pytest.fixture
def stopped(shards, place):
    """Another process that is stopped while it stages the same; it holds a claim."""
    script = "import stoker, sys; stoker.stage(sys.argv[1], sys.argv[2], jobs=1)"
    for _ in range(100):  # until it is stopped in the middle, which is a matter of luck
        shutil.rmtree(place)
        place.mkdir()
        process = subprocess.Popen([sys.executable, "-c", script, shards, place])
        while not [path for path in place.glob("stoker-*/*/claims/*") if os.path.lexists(path)] and process.poll() is None:
            time.sleep(0.0005)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        if [path for path in place.glob("stoker-*/*/claims/*") if os.path.lexists(path)] and process.poll() is None:
            break
        process.send_signal(signal.SIGCONT)
        process.wait()
    yield process
    process.kill()
    process.wait()


def test_stage_says_for_whom_it_waits(shards, place, stopped):
    """While it waits, as the command line does: what was said, and when."""
    said = []
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, file, line, *_: said.append(
            (time.monotonic() - begin, str(message), category, file)
        )
        result = stoker.stage(shards, place)
    assert result.complete and len(said) == 2, said
    (first, waits, category, file), (second, copies, *_) = said
    assert f"process {stopped.pid} on " in waits and "waiting 10 s for it" in waits and "copying its part here" in copies
    assert first < 5 < 9 < second, "each was said when it happened"
    assert category is RuntimeWarning and file == __file__


def test_stage_ends_where_a_notice_is_an_error(shards, place, stopped):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="claimed a part of this copy"):
            stoker.stage(shards, place)


def test_loader_says_for_whom_it_waits(tmp_path, shards, place, stopped):
    loader = stoker.Loader(shards, 4, shuffle=False, stage=place)
    with pytest.warns(RuntimeWarning, match=f"process {stopped.pid} on .* is stopped"):
        assert loader._staging[0].wait().complete


def test_loader_while_it_arrives(shards, place):
    plain = read(stoker.Loader(shards, 4, shuffle=False))
    loader = stoker.Loader(shards, 4, shuffle=False, stage=place)
    assert same(read(loader), plain)
    assert loader._staging[0].wait().complete
    assert same(read(loader), plain)


def test_what_has_arrived_is_read_there(shards, place):
    """With nothing left at the source, the copy serves a dataset that was opened before."""
    plain = read(stoker.Loader(shards, 4, shuffle=False))
    loader = stoker.Loader(shards, 4, shuffle=False, stage=place)
    loader._staging[0].wait()
    for path in shards.glob("*.tar"):
        path.unlink()
    assert same(read(loader), plain)
    again = pickle.loads(pickle.dumps(loader._datasets[0]))
    assert again[0].keys() == loader._datasets[0][0].keys(), "in another process, too"


def test_shards_that_come_later_are_found(shards, place, tmp_path):
    """Opened at the source and kept open; then there is a copy, whose bytes are told apart by being others."""
    staged = stoker.stage(shards, place)
    data, done = Path(staged.path), Path(staged.path).parent / "done"
    aside = tmp_path / "aside"
    shutil.move(data, aside)
    data.mkdir()
    dataset = stoker._dataset._open(str(shards), None, None, True, (str(data), str(done)))
    first = dataset[0]
    for path in aside.glob("*.tar"):
        (data / path.name).write_bytes(bytes(path.stat().st_size))
    assert dataset[0].keys() == first.keys(), "not looked for at every read"
    os.utime(done)  # as when one has arrived
    deadline = 200
    while deadline:
        try:
            dataset[0]
        except stoker.CorruptError:
            break
        deadline -= 1
        time.sleep(0.05)
    assert deadline, "the copy is never read"


def test_small_files_are_packed_first(tmp_path, place):
    write_dataset(tmp_path / "photos", "folder")
    loader = stoker.Loader(tmp_path / "photos", 4, shuffle=False, stage=place)
    assert loader._staging[0].wait().packed
    with pytest.warns(stoker.IndexBuiltWarning):
        plain = stoker.Loader(tmp_path / "photos", 4, shuffle=False)
    assert same(read(loader), read(plain))


def test_a_place_that_is_not_safe(shards, place):
    os.chmod(place, 0o777)  # anybody could rename what lies there
    with pytest.raises(PermissionError, match="sticky"):
        stoker.Loader(shards, stage=place)


def test_a_loader_refers_to_its_copy(shards, place):
    loader = stoker.Loader(shards, 4, stage=place)
    loader._staging[0].wait()
    (reference,) = place.glob("stoker-*/refs/*")
    assert f",{os.getpid()}," in reference.name
    child = os.fork()
    if child == 0:
        del loader
        os._exit(0)
    os.waitpid(child, 0)
    assert reference.exists(), "a fork leaves it alone"
    del loader
    assert not reference.exists()


def test_open_datasets_are_refused(shards, place):
    with pytest.raises(ValueError, match="paths"):
        stoker.Loader(stoker.open(shards), stage=place)
