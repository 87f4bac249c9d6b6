# SPDX-License-Identifier: Apache-2.0
"""A program whose rate at each width is known, for the tests of `stoker scale`."""

import sys
from pathlib import Path

GAMMA, ALPHA, BETA = 100.0, 0.05, 0.01
RATE = "rate: ([0-9.]+)"

# Says a rate that follows the universal scalability law exactly, and notes that it ran.
KNOWN = f"""
import os, sys
n = int(sys.argv[1])
rate = {GAMMA} * n / (1 + {ALPHA} * (n - 1) + {BETA} * n * (n - 1))
with open("ran", "a") as file:
    file.write(f"{{n}}\\n")
for i in range(3):
    print(f"rate: {{rate:.9f}}")
"""


def known_rate(n: int) -> float:
    return GAMMA * n / (1 + ALPHA * (n - 1) + BETA * n * (n - 1))


def known(*words):
    return [*words, "--pattern", RATE, "--", sys.executable, "known.py", "{n}"]


def ran(here: Path) -> list[int]:
    return [int(line) for line in (here / "ran").read_text().split()]
