# SPDX-License-Identifier: Apache-2.0
"""`stoker scale`: programs whose rates are known, real threads, what people see, CPU against GPU, its page."""

import csv
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from known_scale import ALPHA, BETA, GAMMA, RATE, known, known_rate, ran

SVG = "{http://www.w3.org/2000/svg}"


def fits_of(document: dict) -> dict:
    return {fit["model"]: fit for fit in document["fits"]}


# --- Figures ----------------------------------------------------------------------------------------


def test_known_curve(scale, here):
    """Everything follows from the formula that the program computes its rate with."""
    document = scale(*known("--threads", "1,2,4,8,16", "--repeat", "2", "--json")).json
    assert sorted(ran(here)) == [1, 1, 2, 2, 4, 4, 8, 8, 16, 16]
    assert document["axis"] == "threads" and document["scaling"] == "strong"
    assert document["measured"] == "samples_per_s"
    for point in document["points"]:
        n = point["n"]
        assert point["samples_per_s"] == pytest.approx(known_rate(n), rel=1e-9)
        assert point["speedup"] == pytest.approx(known_rate(n) / GAMMA, rel=1e-9)
        assert point["percent_of_ideal"] == pytest.approx(100 * known_rate(n) / GAMMA / n, rel=1e-9)
        assert point["runs"] == 2 and point["interval"]["value"] == pytest.approx(known_rate(n))
    assert [point["n"] for point in document["points"]] == [1, 2, 4, 8, 16]
    assert fits_of(document).keys() == {"amdahl", "gustafson", "usl"}
    usl = fits_of(document)["usl"]
    assert usl["best"] and [fit["best"] for fit in document["fits"]].count(True) == 1
    for name, truth in [("gamma", GAMMA), ("alpha", ALPHA), ("beta", BETA)]:
        assert usl[name]["value"] == pytest.approx(truth, rel=1e-6)
        assert usl[name]["low"] <= usl[name]["value"] <= usl[name]["high"]
    # 8 to 12 beside the peak at sqrt(0.95 / 0.01) = 9.7; up to 4 each thread brings 50 of 100 samples/s.
    assert document["hurts_beyond"] == max(range(1, 30), key=known_rate) == 10
    assert document["ask_for"] == next(n for n in range(1, 30) if known_rate(n + 1) - known_rate(n) < GAMMA / 2) == 4
    assert document["advice"] == (
        "16 threads: 3.9× (24 % of ideal). Beyond 4 each further thread brings under 50 %. Ask for 4."
    )
    assert document["failed"] is None and len(document["runs"]) == 10 and document["doubt"] is None


def test_speedup_by_hand(scale, here):
    """250 / 100 = 2.5 and 100 · 2.5 / 4 = 62.5; one rate in the output is enough."""
    command = "echo rate: $(case {n} in 1) echo 100;; 2) echo 160;; 4) echo 250;; esac)"
    document = scale("--procs", "4,1,2,2", "--repeat", "1", "--pattern", RATE, "--json", "--", "sh", "-c", command).json
    assert [(point["n"], point["samples_per_s"]) for point in document["points"]] == [(1, 100), (2, 160), (4, 250)]
    assert [point["speedup"] for point in document["points"]] == pytest.approx([1, 1.6, 2.5])
    assert [point["percent_of_ideal"] for point in document["points"]] == pytest.approx([100, 80, 62.5])
    assert document["advice"].startswith("4 processes: 2.5× (62 % of ideal).")
    assert all(point["interval"] is None for point in document["points"])


def test_doubts_what_no_curve_fits(scale):
    """Up, down, up: whatever the model, it misses some of them by far."""
    command = "echo rate: $(case {n} in 1) echo 100;; 2) echo 20;; 3) echo 300;; 4) echo 40;; esac)"
    document = scale(
        "--threads", "1,2,3,4", "--repeat", "1", "--pattern", RATE, "--json", "--", "sh", "-c", command
    ).json
    assert min(fit["relative_error"] for fit in document["fits"]) > 0.1
    assert "take the advice with care" in document["doubt"]


def test_one_was_not_measured(scale):
    document = scale(*known("--threads", "2,4", "--repeat", "1", "--json")).json
    assert [point["speedup"] for point in document["points"]] == pytest.approx([2, 2 * known_rate(4) / known_rate(2)])
    assert any("1 thread was not measured" in remark for remark in document["remarks"])
    assert "three numbers of threads" in document["advice"] and document["ask_for"] is None


def test_wall_time_where_no_rate_is_told(scale):
    """Strong: one piece of work by the time; weak: n pieces. The document's own seconds give the speedups."""
    words = ["--threads", "1,2", "--repeat", "2", "--json", "--", "sh", "-c", "sleep 0.0{n}"]
    for weak in (False, True):
        document = scale(*(["--weak"] if weak else []), *words).json
        assert document["measured"] == "seconds" and document["scaling"] == ("weak" if weak else "strong")
        one, two = document["points"]
        assert "samples_per_s" not in one and one["seconds"] > 0.01 and two["seconds"] > 0.02
        assert two["speedup"] == pytest.approx((2 if weak else 1) * one["seconds"] / two["seconds"])
        assert two["percent_of_ideal"] == pytest.approx(100 * two["speedup"] / 2)
        # Two runs: the mean rate is half their sum, and 95 % of it lie within 12.706 times half their difference.
        a, b = (1 / run["seconds"] for run in document["runs"] if run["n"] == 1)
        mean, wide = (a + b) / 2, 12.7062 * abs(a - b) / 2
        assert one["seconds"] == pytest.approx(1 / mean)
        if wide < mean:
            assert one["interval"]["low"] == pytest.approx(1 / (mean + wide), rel=1e-4)
            assert one["interval"]["high"] == pytest.approx(1 / (mean - wide), rel=1e-4 * mean / (mean - wide))
        else:
            assert one["interval"] is None
    assert "wall time" in scale(*[word for word in words if word != "--json"]).stdout


def test_predictions_end_at_four_times(scale):
    document = scale(*known("--threads", "1,2,4,8", "--repeat", "1", "--predict", "6,32,33", "--json")).json
    six, last, beyond = document["predictions"]
    assert six["rate"]["value"] == pytest.approx(known_rate(6), rel=1e-6) and six["refused"] is None
    assert last["rate"]["value"] == pytest.approx(known_rate(32), rel=1e-6)
    assert beyond["rate"] is None and "more than 4 times the 8 threads" in beyond["refused"]
    text = scale(*known("--threads", "1,2", "--repeat", "1", "--predict", "4")).stdout
    assert "4 threads: not predicted: three widths or more must be measured" in text


# --- What people see ----------------------------------------------------------------------------------


def test_text_csv_svg(scale, here):
    finished = scale(
        *["--threads", "1,2,4,8", "--repeat", "2", "--csv", "c.csv", "--svg", "c.svg", "--pattern", RATE],
        *["--", sys.executable, "known.py", "{n}", "<&>\"'\x1b"],
    )
    assert (
        "8 threads: 4.2× (52 % of ideal). Beyond 4 each further thread brings under 50 %. Ask for 4." in finished.stdout
    )
    assert "●" in finished.stdout and "usl" in finished.stdout and "strong scaling" in finished.stdout
    assert "More than 10 threads make it slower." in finished.stdout
    assert finished.stderr.count("stoker: run ") == 8 and "run 8 of 8" in finished.stderr
    assert max(map(len, finished.stdout.splitlines())) <= 120
    rows = list(csv.DictReader((here / "c.csv").open()))
    assert [int(row["n"]) for row in rows] == [1, 2, 4, 8] and {row["runs"] for row in rows} == {"2"}
    for row in rows:
        assert float(row["samples_per_s"]) == pytest.approx(known_rate(int(row["n"])))
        assert float(row["percent_of_ideal"]) == pytest.approx(float(row["speedup"]) / int(row["n"]) * 100)
    picture = ElementTree.parse(here / "c.svg").getroot()
    assert len(picture.findall(f"{SVG}circle")) == 4 and len(picture.findall(f"{SVG}polyline")) == 1
    assert len([line for line in picture.findall(f"{SVG}line") if line.get("class") == "interval"]) == 4
    assert any("known.py {n} <&>\"'" in (text.text or "") for text in picture.findall(f"{SVG}text"))


def test_plain_where_the_locale_is(scale):
    text = scale(*known("--threads", "1,2,4", "--repeat", "1"), env={"LC_ALL": "C"}).stdout
    assert text.isascii() and "o" in text and "4 threads: 3.1x (79 % of ideal)" in text


def test_output_of_the_command_is_kept_apart(scale, here):
    document = scale(*known("--threads", "1", "--repeat", "1", "--output", "sweep", "--json")).json
    assert (here / "sweep/n1-r1.log").read_text().count("rate: 100.0") == 3
    assert document["output"] == "sweep" and (here / "sweep/n1-r1/run.json").exists()


# --- What the command is given --------------------------------------------------------------------------


def test_environment_and_cores(scale, here):
    allowed = len(os.sched_getaffinity(0))
    script = (
        "import os; print(*[os.environ[f'{x}_NUM_THREADS'] for x in ('OMP', 'MKL', 'OPENBLAS')], "
        "len(os.sched_getaffinity(0)))"
    )
    for words, cores in [([], 1), (["--no-pin"], allowed)]:
        output = f"sweep{len(words)}"
        most = str(allowed + 1)
        document = scale(
            *["--threads", f"1,{most}", "--repeat", "1", "--output", output, "--json", *words],
            *["--", sys.executable, "-c", script],
        ).json
        assert (here / output / "n1-r1.log").read_text() == f"1 1 1 {cores}\n"
        assert (here / output / f"n{most}-r1.log").read_text() == f"{most} {most} {most} {allowed}\n"
        assert any(f"{most} threads: more than the" in remark for remark in document["remarks"])


def test_narrows_gpus(scale, here):
    command = ["--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]
    words = ["--repeat", "1", "--output", "sweep", "--json", *command]
    environment = {"CUDA_VISIBLE_DEVICES": "4,6,7"}
    document = scale("--gpus", "1,2", *words, env=environment).json
    assert (here / "sweep/n1-r1.log").read_text() == "4\n" and (here / "sweep/n2-r1.log").read_text() == "4,6\n"
    assert json.loads((here / "sweep/n2-r1/run.json").read_text())["visible_gpus"] == "4,6"
    assert document["axis"] == "gpus"
    assert "only 3 may be used" in scale("--gpus", "1,4", *words, env=environment, status=2).stderr
    assert "only 0 may be used" in scale("--gpus", "1", *words, env={"CUDA_VISIBLE_DEVICES": ""}, status=2).stderr


@pytest.mark.parametrize(
    ("axis", "name", "given"),
    [
        ("--procs", "torchrun", "--nproc-per-node 2 a b"),
        ("--gpus", "torchrun", "--nproc-per-node 2 a b"),
        ("--procs", "mpirun", "-n 2 a b"),
        ("--threads", "mpirun", "a b"),
        ("--nodes", "srun", "-N 2 a b"),
    ],
)
def test_launchers_are_told_how_many(scale, here, axis, name, given):
    """A stand-in says what it was called with: the real ones are not everywhere."""
    (here / "bin").mkdir()
    (here / "bin" / name).write_text('#!/bin/sh\nprintf "%s omp=%s\\n" "$*" "$OMP_NUM_THREADS"\n')
    (here / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{here}/bin:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "0,1"}
    scale(axis, "2", "--repeat", "1", "--output", "sweep", "--", name, "a", "b", env=environment)
    threads = {"--threads": "2", "--nodes": ""}.get(axis, "1")
    assert (here / "sweep/n2-r1.log").read_text() == f"{given} omp={threads}\n"


def test_nodes_are_srun(scale, here):
    (here / "srun").write_text('#!/bin/sh\necho "$@"\n')
    (here / "srun").chmod(0o755)
    path = {"PATH": f"{here}:{os.environ['PATH']}"}
    scale("--nodes", "1,3", "--repeat", "1", "--output", "sweep", "--", "./train", "x", env=path)
    assert (here / "sweep/n3-r1.log").read_text() == "-N 3 ./train x\n"


def test_openmp(scale, here):
    """Threads of a real OpenMP program; what it says was computed with as many as it was given."""
    (here / "sum.c").write_text(
        "#include <omp.h>\n#include <stdio.h>\nint main(void) {\n"
        "  double sum = 0;\n  int threads = 0;\n"
        "  #pragma omp parallel\n  #pragma omp single\n  threads = omp_get_num_threads();\n"
        "  #pragma omp parallel for reduction(+ : sum)\n"
        "  for (long i = 1; i <= 20000000; ++i) sum += 1.0 / i;\n"
        '  printf("%d threads, %.6f\\n", threads, sum);\n  return 0;\n}\n'
    )
    subprocess.run(["gcc", "-O1", "-fopenmp", "sum.c", "-o", "sum"], cwd=here, check=True)
    document = scale("--threads", "1,2,4", "--repeat", "1", "--output", "sweep", "--json", "--", "./sum").json
    for n in (1, 2, 4):
        assert (here / f"sweep/n{n}-r1.log").read_text() == f"{n} threads, 17.388459\n"
    assert document["measured"] == "seconds" and len(document["points"]) == 3
    assert all(point["seconds"] > 0 and point["speedup"] > 0 for point in document["points"])
    assert document["points"][0]["percent_of_ideal"] == pytest.approx(100)


# --- CPU against GPU -------------------------------------------------------------------------------------


@pytest.fixture
def two_runs(stoker_cli, here):
    """100 samples/s on so many cores as there are, 1000 on what is said to be two GPUs."""
    for name, rate, gpus in [("cpu", 100, ""), ("gpu", 1000, "0,1")]:
        command = ["sh", "-c", f"for i in 1 2 3 4; do echo rate: {rate}; done"]
        words = ["--run", name, "--pattern", RATE, "--json", "--", *command]
        stoker_cli("time", *words, cwd=here, env={"CUDA_VISIBLE_DEVICES": gpus})
    for name in ("cpu", "gpu"):
        info = json.loads((here / name / "run.json").read_text())
        (here / name / "run.json").write_text(json.dumps({**info, "cores": 8}))
    return here


def test_is_the_gpu_worth_it(scale, two_runs):
    """8 cores make 100/s, 45,000 an hour each; two GPUs 1000/s, 1,800,000 an hour each: 40 core-hours."""
    words = ["--cpu-run", "cpu", "--gpu-run", "gpu"]
    document = scale(*words, "--json").json
    assert (document["cores"], document["gpus"], document["measured"]) == (8, 2, "samples_per_s")
    assert document["per_core_hour"] == pytest.approx(45_000) and document["per_gpu_hour"] == pytest.approx(1_800_000)
    assert document["gpu_speedup"]["value"] == pytest.approx(10)
    assert document["core_hours_per_gpu_hour"]["value"] == pytest.approx(40) and document["cost_ratio"] is None
    assert "up to the price of 40 core-hours" in document["advice"]
    cheap = scale(*words, "--price-core-hour", "0.05", "--price-gpu-hour", "1", "--json").json
    assert cheap["cost_ratio"]["value"] == pytest.approx(0.5) and "The GPU is worth it" in cheap["advice"]
    dear = scale(*words, "--price-core-hour", "0.05", "--price-gpu-hour", "4").stdout
    assert "The GPU is not worth it" in dear and "costs 2 times as much on the GPU" in dear
    # What the site's file says counts where no option does.
    (two_runs / "site.toml").write_text("[price]\ncore_hour = 0.05\ngpu_hour = 4\n")
    site = {"STOKER_SITE": str(two_runs / "site.toml")}
    assert scale(*words, env=site).stdout == dear
    assert scale(*words, "--price-gpu-hour", "1", "--json", env=site).json["cost_ratio"] == cheap["cost_ratio"]


def test_worth_of_runs_that_say_nothing(stoker_cli, scale, two_runs):
    stoker_cli("time", "--run", "bad", "--", "false", cwd=two_runs, status=1)
    assert "failed" in scale("--cpu-run", "bad", "--gpu-run", "gpu", status=2).stderr
    assert "no run directory" in scale("--cpu-run", "none", "--gpu-run", "gpu", status=1).stderr
    stoker_cli("time", "--run", "quiet", "--", "sleep", "0.05", cwd=two_runs)
    assert "time of the whole run" in scale("--cpu-run", "quiet", "--gpu-run", "gpu").stdout


# --- Its page ------------------------------------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs/commands/scale.md"


def members(value, path=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield path + key
            yield from members(inner, f"{path}{key}.")
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner, path.removesuffix(".") + "[].")


def test_page(scale, two_runs):
    page = PAGE.read_text()
    listed = scale("--help").stdout.split("options:\n")[1].split("examples:\n")[0]
    options = set(re.findall(r"^\s+(?:-\w, )?(--[a-z-]+)", listed, re.MULTILINE))
    assert set(re.findall(r"^\| (?:`-\w`, )?`(--[a-z-]+)", page, re.MULTILINE)) == options
    assert max(map(len, scale("--help").stdout.splitlines())) <= 100
    described = set(re.findall(r"^\| `([a-z_.\[\]]+)`", page.split("## JSON")[1], re.MULTILINE))
    sweep = scale(*known("--threads", "1,2,4", "--repeat", "2", "--predict", "3,99", "--json")).json
    failed = scale("--threads", "1", "--json", "--", "false", status=1).json
    worth = scale(
        *["--cpu-run", "cpu", "--gpu-run", "gpu", "--json"], *["--price-core-hour", "1"], "--price-gpu-hour", "1"
    ).json
    timed = scale("--threads", "1", "--json", "--", "true").json
    found = {name for document in (sweep, failed, worth, timed) for name in members(document)}
    found = {re.sub(r"\.(value|low|high)$", "", name) for name in found if not name.startswith("stoker")}
    assert found == described - {"points[].steps_per_s"}
