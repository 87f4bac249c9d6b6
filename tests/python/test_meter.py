# SPDX-License-Identifier: Apache-2.0
"""stoker.Meter and stoker.watch: what is recorded, and that it never disturbs."""

import json
import os
import subprocess
import sys

import pytest
import stoker
from stoker import _recorder


def test_watch_counts_batches_and_samples(tmp_path):
    meter = stoker.Meter(tmp_path / "r")
    batches = [[0] * 8] * 9 + [[0] * 3]
    assert list(meter.watch(batches)) == batches
    assert len(meter.watch(batches)) == 10
    summary = meter.summary()
    assert summary["steps"] == 10 and summary["samples"] == 75 and summary["epochs"] == 1
    assert summary["source"] == "list"


def test_epochs_and_a_loader_left_midway(tmp_path):
    meter = stoker.Meter(tmp_path / "r")
    watched = meter.watch([[1, 2]] * 6, name="mine")
    for _ in range(2):
        for _ in watched:
            pass
    for number, _ in enumerate(watched):
        if number == 2:
            break
    summary = meter.summary()
    assert summary["steps"] == 6 + 6 + 3 and summary["epochs"] == 3 and summary["source"] == "mine"


def test_step_and_what_lies_between(tmp_path, monkeypatch):
    # A clock of our own: 3 ms between steps, 1 ms within.
    ticks = iter(range(0, 10**12, 1_000_000))
    times = []

    def clock():
        times.append(next(ticks))
        return times[-1]

    monkeypatch.setattr("stoker._meter._now", clock)
    meter = stoker.Meter(tmp_path / "r")
    for _ in range(200):
        for _ in range(2):
            next(ticks)
        with meter.step(samples=4):
            pass
    summary = meter.summary()
    assert summary["steps"] == 200 and summary["samples"] == 800
    assert summary["wait_share"] == pytest.approx(0.75, abs=0.01)
    assert summary["samples_per_s"]["value"] == pytest.approx(1000, rel=0.01)


def test_an_exception_passes_and_its_step_counts(tmp_path):
    meter = stoker.Meter(tmp_path / "r")
    with pytest.raises(KeyError):
        with meter.step(samples=1):
            raise KeyError("x")
    assert meter.summary()["steps"] == 1


@pytest.mark.parametrize(
    "batch, count",
    [
        ([1, 2, 3], 3),
        (["a", "b"], 2),
        ((), 0),
        (None, 0),
        (7, 0),
        ({"a": [1, 2]}, 2),
        ({}, 0),
        ([[1.0, 2.0], [3.0]], 2),
    ],
)
def test_samples_of_a_batch(batch, count):
    assert _recorder.count_samples(batch) == count


def test_samples_of_arrays():
    numpy = pytest.importorskip("numpy")
    assert _recorder.count_samples(numpy.zeros((5, 2))) == 5
    assert _recorder.count_samples({"x": numpy.zeros((5, 2)), "y": 1}) == 5
    assert _recorder.count_samples([numpy.zeros((5, 2)), numpy.zeros(3)]) == 5
    assert _recorder.count_samples(numpy.float32(3)) == 1


def test_a_directory_that_vanishes_disturbs_nothing(tmp_path):
    meter = stoker.Meter(tmp_path / "r")
    os.rename(tmp_path / "r", tmp_path / "elsewhere")
    for _ in meter.watch([[1]] * 5):
        pass
    meter.flush()
    assert meter._recorder.failure
    for _ in meter.watch([[1]] * 5):
        pass
    meter.flush()


def test_a_run_needs_a_new_directory(tmp_path):
    stoker.Meter(tmp_path / "r")
    with pytest.raises(OSError, match="is there already"):
        stoker.Meter(tmp_path / "r")


def test_a_forked_child_writes_a_file_of_its_own(tmp_path):
    meter = stoker.Meter(tmp_path / "r")
    watched = meter.watch([[1, 2]] * 4)
    iterator = iter(watched)
    next(iterator)
    child = os.fork()
    if child == 0:
        for _ in iterator:
            pass
        meter._recorder.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for _ in iterator:
        pass
    meter.flush()
    names = sorted(path.name for path in (tmp_path / "r").glob("steps-*"))
    assert len(names) == 2 and f"-{child}.columns" in "".join(names)


def test_within_stoker_time_it_joins_the_run(tmp_path, stoker_cli):
    script = (
        "import stoker\n"
        "for batch in stoker.watch([[0] * 4] * 70, name='mine'): pass\n"
        "meter = stoker.Meter()\n"
        "print(meter.run)\n"
    )
    path = os.path.dirname(os.path.dirname(stoker.__file__))
    finished = stoker_cli(
        "time", "--json", "--run", tmp_path / "r", "--", sys.executable, "-c", script, env={"PYTHONPATH": path}
    )
    first, document = finished.stdout.split("\n", 1)
    assert first == str(tmp_path / "r")
    document = json.loads(document)
    assert document["source"] == "mine" and document["steps"] == 70 and document["samples"] == 280


def test_watch_makes_a_run_of_its_own(tmp_path):
    script = "import stoker\nfor batch in stoker.watch([[0] * 4] * 3): pass\n"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    (run,) = (tmp_path / "stoker-runs").iterdir()
    assert (run / "run.json").exists() and len(list(run.glob("steps-*"))) == 1


class Odd:
    def shape(self):
        return 3


class Raises:
    @property
    def shape(self):
        raise RuntimeError("no shape")


@pytest.mark.parametrize("batch", [Odd(), Raises(), [Raises()], {"a": Odd()}])
def test_odd_batches_are_not_counted_and_not_disturbed(tmp_path, batch):
    meter = stoker.Meter(tmp_path / "r")
    assert [each is batch for each in meter.watch([batch] * 3)] == [True] * 3
    assert meter.summary()["samples"] == 0


def test_batches_are_counted_as_their_loader_makes_them():
    class Picture:
        shape = (3, 8, 8)

    def count(batch, size, last):
        return _recorder.counter_for(batch, size)(last)

    assert count([Picture()] * 8, 8, [Picture()] * 5) == 5  # a list of samples
    assert count(([Picture()] * 8, [1] * 8), 8, ([Picture()] * 5, [1] * 5)) == 5  # fields of lists
    assert count([{"image": Picture()}] * 8, 8, [{"image": Picture()}] * 2) == 2
    assert count({"step": 1, "x": [1] * 8}, 8, {"step": 1, "x": [1] * 3}) == 3
    assert count([1] * 8, 8, [1] * 8) == 8
    assert count([1] * 7, None, [1] * 7) == 7


def test_ranks_share_a_run(tmp_path):
    script = "import stoker\nmeter = stoker.Meter('r')\nfor batch in meter.watch([[0] * 4] * 70): pass\nmeter.flush()\n"
    for rank in ("0", "1"):
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            check=True,
            env={**os.environ, "RANK": rank, "WORLD_SIZE": "2"},
        )
    assert len(list((tmp_path / "r").glob("steps-*"))) == 2


def test_a_fork_does_not_record_the_parents_step(tmp_path):
    meter = stoker.Meter(tmp_path / "r")
    iterator = iter(meter.watch([[1, 2]] * 4))
    next(iterator)
    child = os.fork()
    if child == 0:
        meter._recorder.close()
        os._exit(0)
    os.waitpid(child, 0)
    for _ in iterator:
        pass
    summary = meter.summary()
    assert summary["steps"] == 4 and len(summary["ranks"]) == 1


def test_run_goes_where_no_other_user_can_replace_it(tmp_path, monkeypatch):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.chdir(tmp_path / "open")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.warns(RuntimeWarning, match="the run is recorded in .* is writable by everybody"):
        meter = stoker.Meter()
    assert meter.run.startswith(str(tmp_path / "state/stoker/runs/"))
