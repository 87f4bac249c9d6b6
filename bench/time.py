# SPDX-License-Identifier: Apache-2.0
"""What `stoker time` costs: a loop of torch steps with and without it, turn by turn, and recording a step by itself.

    bench/time.py [--stoker build/release/stoker] [--python PYTHON_WITH_TORCH] [--rounds 300] [--steps 50]

Both processes live all the time and take turns of --steps steps, so that a slow neighbour meets both alike; while it is the
plain one's turn, stoker itself is stopped. A ratio is of one round; its median comes with a 95 % interval.
"""

import argparse
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

# A step is as many matrix products as take about 2 ms. Each line of the input is the number of steps of a turn.
LOOP = """
import sys, time, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
a = torch.rand(256, 256)
def step(repeat):
    for _ in range(repeat):
        torch.mm(a, a)
for _ in range(100):
    step(1)
begin = time.perf_counter()
for _ in range(200):
    step(1)
repeat = max(1, round(0.002 * 200 / (time.perf_counter() - begin)))
print("ready", repeat, flush=True)
repeat = int(sys.stdin.readline())
for line in sys.stdin:
    steps = int(line)
    loader = DataLoader(TensorDataset(torch.zeros(steps * 4, 2)), batch_size=4)
    begin = time.perf_counter()
    for (batch,) in loader:
        step(repeat)
    print("turn", (time.perf_counter() - begin) / steps * 1e6, flush=True)
"""

RECORD = """
import sys, time, tempfile
sys.path.insert(0, sys.argv[1])
from _recorder import Recorder, Watch, WatchedIterator
count = 200_000
def loop(iterator):
    begin = time.perf_counter()
    for _ in iterator:
        pass
    return (time.perf_counter() - begin) / count * 1e6
batches = [[0]] * count
plain = min(loop(iter(batches)) for _ in range(5))
recorder = Recorder(tempfile.mkdtemp())
watched = min(loop(WatchedIterator(iter(batches), Watch(recorder, recorder.add_loader("x")))) for _ in range(5))
print(watched - plain)
"""


class Loop:
    """A process that runs steps when it is told to."""

    def __init__(self, command: list, script: pathlib.Path):
        self.process = subprocess.Popen(
            [*command, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def answer(self, word: str) -> float:
        for line in self.process.stdout:
            if line.startswith(word):
                return float(line.split()[1])
        raise SystemExit("the loop ended early")

    def tell(self, number: int) -> None:
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()

    def turn(self, steps: int) -> float:
        self.tell(steps)
        return self.answer("turn")


def median_interval(values: list[float]) -> tuple[float, float, float]:
    """Of independent values, by their ranks."""
    values = sorted(values)
    half = 0.98 * math.sqrt(len(values))
    low, high = int(len(values) / 2 - half), int(len(values) / 2 + half)
    return statistics.median(values), values[max(low, 0)], values[min(high, len(values) - 1)]


def compare(options, program: str, scratch: str) -> None:
    script = pathlib.Path(scratch) / "loop.py"
    script.write_text(LOOP)
    plain = Loop([options.python], script)
    timed = Loop([program, "time", "--json", "--run", f"{scratch}/run", "--", options.python], script)
    repeat = round(statistics.mean([plain.answer("ready"), timed.answer("ready")]))
    ratios, steps = [], []
    for loop in (plain, timed):
        loop.tell(repeat)
        loop.turn(options.steps)
    for number in range(options.rounds):
        found = {}
        for loop in (plain, timed) if number % 2 else (timed, plain):
            os.kill(timed.process.pid, signal.SIGCONT if loop is timed else signal.SIGSTOP)
            found[loop] = loop.turn(options.steps)
        os.kill(timed.process.pid, signal.SIGCONT)
        ratios.append(found[timed] / found[plain])
        steps.append(found[plain])
    for loop in (plain, timed):
        loop.process.communicate()
    middle, low, high = median_interval(ratios)
    print(
        f"a step of {statistics.median(steps):.0f} us under stoker time: {middle:.4f}x ({low:.4f} to {high:.4f}, 95 %),"
        f" {len(ratios)} rounds of {options.steps} steps"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    program = str(pathlib.Path(options.stoker).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        compare(options, program, scratch)
    recorder = pathlib.Path(__file__).resolve().parent.parent / "python/stoker"
    cost = subprocess.run([options.python, "-c", RECORD, recorder], capture_output=True, text=True, check=True).stdout
    print(f"recording a step: {float(cost):.2f} us")


if __name__ == "__main__":
    main()
