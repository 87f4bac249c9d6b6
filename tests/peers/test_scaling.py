# SPDX-License-Identifier: Apache-2.0
"""Curves of real programs: what `stoker scale` says of them is what follows from their own output, with SciPy."""

import json
import os
import re
import subprocess
from statistics import mean

import pytest

OPENMP = """
#include <omp.h>
#include <stdio.h>
int main(void) {
  const long count = 60000000;
  double sum = 0;
  const double begin = omp_get_wtime();
  #pragma omp parallel for reduction(+ : sum)
  for (long i = 1; i <= count; ++i) sum += 1.0 / i;
  printf("rate: %.6f M/s, %.3f\\n", count * 1e-6 / (omp_get_wtime() - begin), sum);
}
"""

MATMUL = """
import time, torch
a = torch.rand(768, 768)
torch.mm(a, a)
begin = time.perf_counter()
for _ in range(30):
    torch.mm(a, a)
print(f"rate: {30 / (time.perf_counter() - begin):.6f} products/s with {torch.get_num_threads()} threads")
"""

# docs/internals/statistics.md says what the fit is: least squares of N / X (for Gustafson X), weighted by the fit before, nothing
# below zero. Written so that every coefficient only has to be positive, that is a question for SciPy's nnls.
FIT = """
import json, sys
import numpy as np
from scipy.optimize import nnls
n, rate = np.array(json.loads(sys.argv[1])).T
one = np.ones_like(n)
found = {}
for name, columns, target in [
    ("amdahl", [n, one], n / rate),  # alpha N + (1 - alpha), over gamma
    ("gustafson", [n, one], rate),  # (1 - alpha) N + alpha, times gamma
    ("usl", [one, n - 1, n * (n - 1)], n / rate),
]:
    matrix, weight = np.array(columns).T, 1 / target
    for _ in range(200):
        x, _ = nnls(matrix * weight[:, None], target * weight)
        weight = 1 / (matrix @ x)
    if name == "amdahl":
        found[name] = [1 / (x[0] + x[1]), x[0] / (x[0] + x[1]), None]
    elif name == "gustafson":
        found[name] = [x[0] + x[1], x[1] / (x[0] + x[1]), None]
    else:
        found[name] = [1 / x[0], x[1] / x[0], x[2] / x[0]]
print(json.dumps(found))
"""


@pytest.fixture
def curve_is_right(stoker_cli, peer_scipy, tmp_path):
    def check(*command):
        document = stoker_cli(
            "scale", "--threads", "1,2,3", "--repeat", "2", "--output", "sweep", "--json",
            "--pattern", "rate: ([0-9.]+)", "--", *command, cwd=tmp_path,
        ).json  # fmt: skip
        said = {n: [] for n in (1, 2, 3)}
        for run in document["runs"]:
            text = (tmp_path / "sweep" / f"n{run['n']}-r{run['repeat']}.log").read_text()
            said[run["n"]].append(float(re.search(r"rate: ([0-9.]+)", text).group(1)))
        assert [len(rates) for rates in said.values()] == [2, 2, 2]
        for point in document["points"]:
            rates = said[point["n"]]
            assert point["samples_per_s"] == pytest.approx(mean(rates), rel=1e-9)
            assert point["speedup"] == pytest.approx(mean(rates) / mean(said[1]), rel=1e-9)
            assert point["percent_of_ideal"] == pytest.approx(100 * point["speedup"] / point["n"], rel=1e-9)
        points = [(n, rate) for n, rates in said.items() for rate in rates]
        by_hand = json.loads(peer_scipy(FIT, json.dumps(points)))
        for fit in document["fits"]:
            gamma, alpha, beta = by_hand[fit["model"]]
            assert fit["gamma"]["value"] == pytest.approx(gamma, rel=1e-4), fit
            assert fit["alpha"]["value"] == pytest.approx(alpha, rel=1e-4, abs=1e-6), fit
            if beta is not None:
                assert fit["beta"]["value"] == pytest.approx(beta, rel=1e-4, abs=1e-6), fit
        assert {fit["model"] for fit in document["fits"]} == by_hand.keys()
        return tmp_path / "sweep"

    return check


def test_openmp(curve_is_right, tmp_path):
    (tmp_path / "sum.c").write_text(OPENMP)
    subprocess.run(["gcc", "-O1", "-fopenmp", "sum.c", "-o", "sum"], cwd=tmp_path, check=True)
    curve_is_right("./sum")


def test_torch_matmul(curve_is_right, peer_torch, tmp_path):
    (tmp_path / "matmul.py").write_text(MATMUL)
    logs = curve_is_right(peer_torch.interpreter(), "matmul.py")
    for n in range(1, min(3, os.cpu_count()) + 1):  # torch takes no more threads than there are cores
        assert f"with {n} threads" in (logs / f"n{n}-r1.log").read_text()
