# SPDX-License-Identifier: Apache-2.0
"""kill -9 at any moment, then again to the end: the bytes of an undisturbed run and nothing else."""

import random
import shutil
import signal
import subprocess
import time

import pytest
from samples import differences, image_folder, multi_file_samples, noise, tree, write_files
from stoker_program import program
from tar_bytes import simple_tar

HOWS = ["before", "after", "half"]


class Killer:
    """Runs a command under the shim until it is killed, or to its end."""

    def __init__(self, shim, environment):
        self.shim = shim
        self.environment = environment

    def at_call(self, words, at: int, how: str) -> bool:
        environment = {**self.environment, "LD_PRELOAD": str(self.shim), "KILL_AT": str(at), "KILL_HOW": how}
        done = subprocess.run([program(), *words], env=environment, capture_output=True, timeout=120)
        assert done.returncode in (0, -signal.SIGKILL), done
        return done.returncode != 0

    def after_seconds(self, words, seconds: float) -> bool:
        process = subprocess.Popen(
            [program(), *words], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        time.sleep(seconds)
        process.kill()
        _, errors = process.communicate(timeout=120)
        assert process.returncode in (0, -signal.SIGKILL), errors
        return process.returncode != 0


@pytest.fixture
def killer(shim, stoker_environment):
    return Killer(shim, stoker_environment)


def chosen(calls: int, count: int, seed: int) -> list[tuple[int, str]]:
    """Moments over the whole range: one at random in each of `count` equal parts, and the very ends."""
    rng = random.Random(seed)
    moments = [1 + int((part + rng.random()) * calls / count) for part in range(count)]
    moments += [1, 2, calls - 1, calls]
    return [(min(at, calls), HOWS[(seed + number) % 3]) for number, at in enumerate(moments)]


CASES = {
    "tar": ["--shard-size", "12K", "--jobs", "2"],
    "shuffled splits as tfrecord": ["--shard-size", "12K", "--jobs", "2", "--to", "tfrecord", "--shuffle", "1", "--split", "a=0.6,b=0.4"],
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_pack_killed_at_a_call(stoker_cli, count_calls, killer, tmp_path, home, case):
    source = tmp_path / "source"
    multi_file_samples(source, 24)
    options = CASES[case]
    calls = count_calls("pack", source, tmp_path / "whole", *options)
    whole, source_before, home_before = tree(tmp_path / "whole"), tree(source), tree(home)
    killed = 0
    for at, how in chosen(calls, 18, seed=len(case)):
        words = ["pack", source, tmp_path / "packed", *options]
        killed += killer.at_call(words, at, how)
        finished = stoker_cli(*words)
        found = differences(whole, tree(tmp_path / "packed"))
        assert found == [], f"killed {how} call {at} of {calls}\n{finished!r}"
        shutil.rmtree(tmp_path / "packed")
    assert killed >= 18
    assert differences(source_before, tree(source)) == [], "nothing is left in the source"
    assert differences(home_before, tree(home)) == [], "nothing is left in the cache"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "source", "whole"], "nor beside the destination"


def test_pack_killed_again_and_again(stoker_cli, count_calls, killer, tmp_path):
    """Each run gets a little further than the one before; other numbers of threads each time."""
    source = tmp_path / "source"
    image_folder(source, per_class=20)
    words = ["pack", source, tmp_path / "packed", "--shard-size", "10K"]
    calls = count_calls("pack", source, tmp_path / "whole", "--shard-size", "10K")
    rng = random.Random(11)
    killed = 0
    for number in range(40):
        how = HOWS[number % 3]
        if not killer.at_call([*words, "--jobs", str(rng.choice((1, 2, 5)))], 1 + rng.randrange(calls // 5), how):
            break
        killed += 1
    assert killed >= 4
    stoker_cli(*words)
    assert differences(tree(tmp_path / "whole"), tree(tmp_path / "packed")) == []


def test_pack_killed_by_the_clock(stoker_cli, killer, tmp_path):
    source = tmp_path / "source"
    write_files(source, {f"{i % 5}/{i:05d}.jpg": noise(i, 4000) for i in range(1500)})
    options = ["--shard-size", "200K", "--jobs", "2"]
    start = time.monotonic()
    stoker_cli("pack", source, tmp_path / "whole", *options)
    whole, duration = tree(tmp_path / "whole"), time.monotonic() - start
    rng = random.Random(3)
    killed = 0
    for _ in range(40):
        words = ["pack", source, tmp_path / "packed", *options]
        if killer.after_seconds(words, duration * rng.random()):
            killed += 1
        else:
            duration *= 0.8  # it was done before: this machine has become faster
        stoker_cli(*words)
        assert differences(whole, tree(tmp_path / "packed")) == []
        shutil.rmtree(tmp_path / "packed")
        if killed == 12:
            break
    assert killed >= 10


def test_overwrite_killed_at_a_call(stoker_cli, count_calls, killer, tmp_path):
    """Replacing a dataset: afterwards there is the new one, whatever happened in between."""
    source = tmp_path / "source"
    image_folder(source)
    stoker_cli("pack", source, tmp_path / "old", "--shard-size", "8K")
    stoker_cli("pack", source, tmp_path / "new", "--shard-size", "20K", "--to", "tfrecord")
    new = tree(tmp_path / "new")
    words = ["pack", source, tmp_path / "packed", "--shard-size", "20K", "--to", "tfrecord", "--overwrite"]
    shutil.copytree(tmp_path / "old", tmp_path / "packed")
    calls = count_calls(*words)
    assert differences(new, tree(tmp_path / "packed")) == []
    for at, how in chosen(calls, 8, seed=5):
        shutil.rmtree(tmp_path / "packed")
        shutil.copytree(tmp_path / "old", tmp_path / "packed")
        killer.at_call(words, at, how)
        # Whatever a reader finds now, it is not called good and wrong at once.
        between = stoker_cli("check", tmp_path / "packed", "--json", status=None)
        if between.returncode == 0:
            assert between.json["samples"] == 36
        stoker_cli(*words)
        assert differences(new, tree(tmp_path / "packed")) == [], f"killed {how} call {at} of {calls}"


@pytest.mark.parametrize("kind", ["tar", "folder"])
def test_index_killed_at_a_call(stoker_cli, count_calls, killer, tmp_path, kind):
    data = tmp_path / "d"
    if kind == "folder":
        multi_file_samples(data, 40)
    else:
        data.mkdir()
        for number in range(8):
            (data / f"{number}.tar").write_bytes(
                simple_tar({b"%d_%d.bin" % (number, i): noise(i, 900) for i in range(10)})
            )
    words = ["index", data, "--full"]
    calls = count_calls(*words)
    whole = tree(data)
    for at, how in chosen(calls, 10, seed=2):
        shutil.rmtree(data / ".stoker")
        killer.at_call(words, at, how)
        stoker_cli(*words)
        assert differences(whole, tree(data)) == [], f"killed {how} call {at} of {calls}"
    # An index that is made deeper: until the new one is whole, the old one serves.
    shutil.rmtree(data / ".stoker")
    stoker_cli("index", data)
    structure = tree(data)
    for at, how in chosen(calls, 6, seed=4):
        shutil.rmtree(data / ".stoker")
        for name, contents in structure.items():
            if name.startswith(b".stoker/") and isinstance(contents, bytes):
                write_files(data, {name: contents})
        killer.at_call(words, at, how)
        stoker_cli("check", data)
        stoker_cli(*words)
        assert differences(whole, tree(data)) == [], f"killed {how} call {at} of {calls}"


def test_other_options_after_a_kill_are_not_mixed(stoker_cli, count_calls, killer, tmp_path):
    """Half of one plan and half of another would be a wreck that looks whole."""
    source = tmp_path / "source"
    image_folder(source)
    calls = count_calls("pack", source, tmp_path / "one", "--shard-size", "10K")
    stoker_cli("pack", source, tmp_path / "other", "--shard-size", "10K", "--shuffle", "9")
    other = tree(tmp_path / "other")
    assert killer.at_call(["pack", source, tmp_path / "packed", "--shard-size", "10K"], calls // 2, "before")
    words = ["pack", source, tmp_path / "packed", "--shard-size", "10K", "--shuffle", "9"]
    finished = stoker_cli(*words, status=None)
    if finished.returncode != 0:
        assert "--overwrite" in finished.stderr
        stoker_cli(*words, "--overwrite")
    assert differences(other, tree(tmp_path / "packed")) == []


def test_source_that_changes_after_a_kill(stoker_cli, count_calls, killer, tmp_path):
    """The plan was made for other data: the result is that of the new data, or an error that says so."""
    source = tmp_path / "source"
    image_folder(source)
    words = ["pack", source, tmp_path / "packed", "--shard-size", "10K"]
    calls = count_calls("pack", source, tmp_path / "whole", "--shard-size", "10K")
    assert killer.at_call(words, calls // 2, "after")
    write_files(source, {"cat/cat_000.jpg": b"changed", "aaa/new.jpg": b"new"})
    finished = stoker_cli(*words, status=None)
    if finished.returncode != 0:
        assert "--overwrite" in finished.stderr or "changed" in finished.stderr
        stoker_cli(*words, "--overwrite")
    stoker_cli("pack", source, tmp_path / "fresh", "--shard-size", "10K")
    assert differences(tree(tmp_path / "fresh"), tree(tmp_path / "packed")) == []


def test_damaged_leftovers_are_not_believed(stoker_cli, count_calls, killer, tmp_path):
    """After a kill and a crash of the machine a finished shard may hold anything: compared before it is used again."""
    source = tmp_path / "source"
    image_folder(source)
    words = ["pack", source, tmp_path / "packed", "--shard-size", "10K", "--jobs", "1"]
    calls = count_calls("pack", source, tmp_path / "whole", "--shard-size", "10K", "--jobs", "1")
    assert killer.at_call(words, calls * 2 // 3, "before")
    shards = sorted((tmp_path / "packed").glob("*.tar"))
    assert shards
    contents = bytearray(shards[0].read_bytes())
    shards[0].write_bytes(contents[: len(contents) // 2])
    stoker_cli(*words, status=None)
    finished = stoker_cli("check", tmp_path / "packed", status=None)
    if finished.returncode == 0:
        assert differences(tree(tmp_path / "whole"), tree(tmp_path / "packed")) == []
    else:
        assert shards[0].name in finished.text


def test_two_who_write_the_same_part(stoker_cli, stoker_environment, tmp_path):
    """A node that was given up goes on while its task runs again elsewhere: what one of them completes has no holes."""
    write_files(tmp_path / "source", {f"{i:03d}.bin": noise(i % 5, 2_000_000) for i in range(100)})
    line = ["pack", tmp_path / "source", tmp_path / "packed", "--shard-size", "1G"]
    stoker_cli("pack", tmp_path / "source", tmp_path / "alone", "--shard-size", "1G")
    stoker_cli(*line, "--plan")
    (shard,) = (path.name for path in (tmp_path / "alone").glob("*.tar"))
    unfinished = tmp_path / "packed" / f".{shard}.stoker-tmp"

    def size() -> int:
        return unfinished.stat().st_size if unfinished.exists() else 0

    def begin(reached) -> subprocess.Popen:
        process = subprocess.Popen([program(), *line, "--part", "1/1"], env=stoker_environment, stderr=subprocess.PIPE)
        while not reached(size()) and process.poll() is None:
            time.sleep(0.0002)
        process.send_signal(signal.SIGSTOP)
        return process

    first = begin(lambda written: written > 60_000_000)
    before = size()
    second = begin(lambda written: 0 < written < before)
    assert size() < before, "stopped before it came as far as the first"
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=60)
    second.kill()
    second.communicate(timeout=60)
    stoker_cli(*line)
    assert differences(tree(tmp_path / "alone"), tree(tmp_path / "packed")) == []
