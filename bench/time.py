# SPDX-License-Identifier: Apache-2.0
"""What `stoker time` costs: a loop of torch steps with and without it, interleaved, and recording a step by itself.

    bench/time.py [--stoker build/release/stoker] [--python PYTHON_WITH_TORCH] [--rounds 9] [--steps 2000]

Each script measures its own loop, so that starting does not count. CPU time beside wall time: on a shared machine the latter says
more about the neighbours.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

# Steps of about 2 ms: a matrix product that is as long as that is calibrated once, and given.
LOOP = """
import sys, time, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
steps, size, repeat = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
loader = DataLoader(TensorDataset(torch.zeros(steps * 4, 2)), batch_size=4)
a = torch.rand(size, size)
def step():
    for _ in range(repeat):
        torch.mm(a, a)
for _ in range(50):
    step()
begin, cpu = time.perf_counter(), time.process_time()
for (batch,) in loader:
    step()
print("loop", (time.perf_counter() - begin) / steps * 1e6, (time.process_time() - cpu) / steps * 1e6)
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


def loop_of(command: list, script: pathlib.Path, arguments: list[str]) -> tuple[float, float]:
    output = subprocess.run([*command, script, *arguments], capture_output=True, text=True, check=True).stdout
    line = next(line for line in output.splitlines() if line.startswith("loop "))
    return float(line.split()[1]), float(line.split()[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stoker", default="build/release/stoker")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()
    program = str(pathlib.Path(options.stoker).resolve())
    recorder = pathlib.Path(__file__).resolve().parent.parent / "python/stoker"
    with tempfile.TemporaryDirectory() as scratch:
        script = pathlib.Path(scratch) / "loop.py"
        script.write_text(LOOP)
        size, repeat = 256, 1
        for _ in range(4):  # until a step takes about 2 ms
            wall, _ = loop_of([options.python], script, ["200", str(size), str(repeat)])
            repeat = max(1, round(repeat * 2000 / wall))
        arguments = [str(options.steps), str(size), str(repeat)]
        walls, cpus, plain = [], [], []
        for number in range(options.rounds):
            timed = [program, "time", "--json", "--run", f"{scratch}/run{number}", "--", options.python]
            both = [([options.python], "plain"), (timed, "timed")]
            found = {}
            for command, name in both if number % 2 else both[::-1]:
                found[name] = loop_of(command, script, arguments)
            walls.append(found["timed"][0] / found["plain"][0])
            cpus.append(found["timed"][1] / found["plain"][1])
            plain.append(found["plain"][0])
        for name, ratios in (("wall", walls), ("CPU", cpus)):
            middle, least, most = statistics.median(ratios), min(ratios), max(ratios)
            print(f"a step of {statistics.median(plain):.0f} us under stoker time, {name} time: {middle:.4f}x ({least:.4f} to {most:.4f})")
        cost = subprocess.run([options.python, "-c", RECORD, recorder], capture_output=True, text=True, check=True).stdout
        print(f"recording a step: {float(cost):.2f} us")


if __name__ == "__main__":
    main()
