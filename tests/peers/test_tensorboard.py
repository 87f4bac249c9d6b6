# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own reader gives back the scalars that `stoker report --format tensorboard` wrote."""

import json

import pytest
from run_directory import TIME_OF_DAY_NS, Step, write_run

READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
found.Reload()
tags = found.Tags()["scalars"]
print(json.dumps({tag: [[e.wall_time, e.step, e.value] for e in found.Scalars(tag)] for tag in tags}))
"""

MULTIPLEX = """
import json, sys
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.backend.event_processing import data_provider
from tensorboard.context import RequestContext
runs = EventMultiplexer().AddRunsFromDirectory(sys.argv[1])
runs.Reload()
provider = data_provider.MultiplexerDataProvider(runs, sys.argv[1])
listed = provider.list_scalars(RequestContext(), experiment_id="", plugin_name="scalars")
print(json.dumps({run: sorted(tags) for run, tags in listed.items()}))
"""


def test_scalars_are_those_of_the_steps(stoker_cli, peer_tensorboard, tmp_path):
    # Two ranks of 16 samples; a step of 0.25 s of which the first waits 0.125 s and the second 0.0625 s.
    ranks = [[Step(0.125, 0.125, 16)] * 40, [Step(0.0625, 0.1875, 16)] * 40]
    run = write_run(tmp_path / "run", ranks, cores=4, looks_every_s=0.5)
    stoker_cli("report", run, "--format", "tensorboard", "-o", tmp_path / "logs")
    found = json.loads(peer_tensorboard(READ, tmp_path / "logs/run"))
    begin = TIME_OF_DAY_NS * 1e-9
    assert found["training/samples_per_s"] == [
        [pytest.approx(begin + 1 + 0.25 * i, abs=1e-6), i, 128.0] for i in range(1, 41)
    ]
    assert [value for _, _, value in found["training/step_s"]] == [0.25] * 40
    assert [value for _, _, value in found["training/wait_share"]] == [0.375] * 40
    looks = found["resources/cpu_cores"]
    assert len(looks) == 22 and all(value == 2.0 for _, _, value in looks)  # 11 s, the first only begins
    assert [step for _, step, _ in looks] == [min(40, max(0, 2 * i - 4)) for i in range(1, 23)]
    assert found["resources/memory_bytes"][0][2] == 2_000_001_024.0  # 2,000,001,000 as a float


def test_every_run_is_listed(stoker_cli, peer_tensorboard, tmp_path):
    for place in ("x", "y"):
        write_run(tmp_path / place / "same", [[Step(0.01, 0.09, 8)] * 5])
    write_run(tmp_path / "%odd\n", [[Step(0.01, 0.09, 8)] * 5])
    logs = tmp_path / "logs"
    for _ in range(2):  # written again, it is not there twice
        stoker_cli("report", "x/same", "y/same", "%odd\n", "--format", "tensorboard", "-o", logs, cwd=tmp_path)
    listed = json.loads(peer_tensorboard(MULTIPLEX, logs))
    assert set(listed) == {"same", "same-2", "%25odd%0A"}
    assert all("training/samples_per_s" in tags for tags in listed.values())
    assert len(list(logs.rglob("*tfevents*"))) == 3
