# SPDX-License-Identifier: Apache-2.0
"""Plans of an unfinished pack that somebody changed, for every format: they name what the format would write, or are refused."""

import json
import shutil

import numpy as np
import pytest
from samples import npy, tree, write_files


@pytest.fixture
def begun(stoker_cli, tmp_path):
    """begun("npy"): a pack to that format that has been planned; next to the plan is what the user keeps there."""
    write_files(
        tmp_path / "numbers",
        {
            "images.npy": npy(np.arange(96, dtype=np.uint8).reshape(6, 4, 4)),
            "labels.npy": npy(np.arange(6)),
        },
    )

    def begin(to):
        destination = tmp_path / "work/begun"
        stoker_cli("pack", tmp_path / "numbers", destination, "--to", to, "--plan")
        kept = {"thesis.tex": b"years", ".bashrc": b"alias", "numbers-000000.backup": b"older", "sub/x": b"x"}
        write_files(destination, kept)
        write_files(destination.parent, {"x": b"outside"})
        return destination, destination / ".stoker/pack/plan.json"

    return begin


FORMATS = ["tar", "tfrecord", "hdf5", "lmdb", "arrow", "feather", "npy"]


def test_formats_that_are_written_are_all_tried(stoker_cli):
    words = " ".join(stoker_cli("pack", "--help").stdout.partition("--to FORMAT")[2].split("--shard-size")[0].split())
    assert words == f"format to write: {FORMATS[0]} (default), {', '.join(FORMATS[1:-1])} or {FORMATS[-1]}"


@pytest.mark.parametrize("to", FORMATS)
def test_plans_name_what_the_format_would_write(stoker_cli, begun, tmp_path, to):
    """Whatever the format: no shard, ending, split or source of a plan makes `pack` write or remove something else."""
    destination, path = begun(to)
    good = json.loads(path.read_text())
    elsewhere = ["thesis.tex", ".bashrc", "../x", "sub/../../x", "sub/x", "/tmp/x", "numbers-000000.backup", ""]
    changes = []
    for name in elsewhere:
        changes.append(lambda plan, name=name: plan["datasets"][0]["shards"][0].update(name=name))
        changes.append(lambda plan, name=name: plan.update(endings=[name]))
        changes.append(lambda plan, name=name: plan.update(endings=[*plan["endings"], name]))
        changes.append(lambda plan, name=name: plan["datasets"][0].update(directory=name))
    for ending in (".backup", "/../../x", ".tex", "x.npy", ".npy", ".a/../b.npy"):
        changes.append(lambda plan, ending=ending: plan.update(endings=[ending]))
        changes.append(lambda plan, ending=ending: plan.update(endings=[*plan["endings"], ending]))
    changes += [
        lambda plan: plan.update(endings=[]),
        lambda plan: plan.update(endings=plan["endings"] * 2),
        lambda plan: plan.update(endings=[*plan["endings"][1:], ".other.npy"]),
        lambda plan: plan["options"].update(to="folder"),
    ]
    for number, change in enumerate(changes):
        plan = json.loads(json.dumps(good))
        change(plan)
        if plan == good:
            continue
        path.write_text(json.dumps(plan))
        before = tree(tmp_path / "work")
        for options in ([], ["--overwrite"], ["--part", "1/1"]):
            finished = stoker_cli("pack", tmp_path / "numbers", destination, "--to", to, *options, status=1)
            assert "the plan of an unfinished pack is damaged" in finished.stderr, (number, plan, finished)
            assert tree(tmp_path / "work") == before
    path.write_text(json.dumps(good))
    stoker_cli("pack", tmp_path / "numbers", destination, "--to", to)


def test_plan_of_arrays_without_one_of_the_fields(stoker_cli, begun, tmp_path):
    """Endings that the format could give, of other fields than those that are packed: one file is missing, or one too many."""
    for change in (
        lambda endings: endings[:-1],
        lambda endings: [*endings, ".other.npy"],
        lambda endings: [*endings[:-1], ".o.npy"],
    ):
        destination, path = begun("npy")
        plan = json.loads(path.read_text())
        plan["endings"] = change(plan["endings"])
        path.write_text(json.dumps(plan))
        for options in ([], ["--part", "1/1"]):
            finished = stoker_cli("pack", tmp_path / "numbers", destination, "--to", "npy", *options, status=1)
            assert "the plan of an unfinished pack is damaged" in finished.stderr
        assert not list(destination.glob("*.npy"))
        shutil.rmtree(destination)
