# SPDX-License-Identifier: Apache-2.0
"""stoker report: what it writes, and what it refuses."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from run_directory import Step, warming_up, write_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path):
    """32 samples in steps of 0.1 s, of which 0.025 s wait."""
    return write_run(tmp_path / "run", [[Step(0.025, 0.075, 32)] * 100])


def test_page_by_default(stoker_cli, run, tmp_path):
    finished = stoker_cli("report", run, cwd=tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert finished.stdout.startswith("wrote report.html: 1 run as html, ")
    assert page.startswith("<!DOCTYPE html>")
    assert "320 samples/s (320 to 320, 95 %)" in page and "25.0 % of the time" in page
    assert not re.search(r"(src|href)=", page.split("</style>")[0])
    assert "427 samples/s" in page  # 320 / 0.75


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("r.html", "<!DOCTYPE"),
        ("r.htm", "<!DOCTYPE"),
        ("r.json", "{"),
        ("r.csv", "run,figure,"),
        ("r.steps.csv", "run,host,"),
        ("r.md", "# Stoker"),
        ("r.markdown", "# Stoker"),
    ],
)
def test_format_by_suffix(stoker_cli, run, tmp_path, name, begin):
    stoker_cli("report", run, "-o", tmp_path / name)
    assert (tmp_path / name).read_text().startswith(begin)


def test_stdout(stoker_cli, run):
    assert stoker_cli("report", run, "--format", "markdown", "-o", "-").stdout.startswith("# Stoker report\n")


def test_csv_of_figures(stoker_cli, run):
    text = stoker_cli("report", run, "--format", "csv", "-o", "-").stdout
    rows = {row["figure"]: row for row in csv.DictReader(io.StringIO(text))}
    assert float(rows["throughput"]["value"]) == pytest.approx(320)
    assert float(rows["waiting for data"]["value"]) == pytest.approx(0.25)
    assert rows["throughput"]["origin"] == "measured: steps 1 to 100 of DataLoader(batch_size=32)"
    assert float(rows["CPU"]["value"]) == pytest.approx(2)


def test_csv_of_steps(stoker_cli, tmp_path):
    run = write_run(tmp_path / "run", [[Step(0.25, 0.5, 4), Step(0.5, 1, 8, epoch=1)]], loader='=cmd,"x"')
    text = stoker_cli("report", run, "--format", "steps", "-o", "-").stdout
    first, second = csv.DictReader(io.StringIO(text))
    assert (first["end_s"], first["wait_s"], first["step_s"]) == ("1.750000000", "0.250000000", "0.500000000")
    assert (second["end_s"], second["epoch"], second["samples"]) == ("3.250000000", "1", "8")
    assert first["source"] == '\'=cmd,"x"'  # no formula


def test_markdown_is_nothing_but_text(stoker_cli, tmp_path):
    hostile = "|*x*|<b>`y`[a](http://b)"
    run = write_run(tmp_path / "run", [[Step(0.025, 0.075, 32)] * 100], command=("python", hostile))
    text = stoker_cli("report", run, "--format", "markdown", "-o", "-").stdout
    assert r"\|\*x\*\|\<b\>\`y\`\[a\]\(http://b\)" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_series_keep_the_extremes(stoker_cli, tmp_path):
    steps = [Step(0.001, 0.009, 10)] * 20_000
    steps[12_345] = Step(0.901, 0.099, 10)
    run = write_run(tmp_path / "run", [steps])
    document = stoker_cli("report", run, "--json").json
    series = document["runs"][0]["series"]
    assert len(series["throughput"]["x"]) == 500
    assert min(series["throughput"]["low"]) == 10 and max(series["throughput"]["high"]) == 1000
    assert max(series["waiting"]["high"]) == 90.1 and min(series["waiting"]["low"]) == 10
    slow = series["waiting"]["high"].index(90.1)
    assert abs(series["waiting"]["x"][slow] - 12_346) <= 20
    # 40 steps of 10 samples, in 39 hundredths of a second and one second
    assert series["throughput"]["mean"][slow] == pytest.approx(400 / 1.39, rel=1e-3)


def test_compares_with_the_first(stoker_cli, tmp_path):
    a = write_run(tmp_path / "a", [[Step(0, 0.1, 10)] * 50])
    b = write_run(tmp_path / "b", [[Step(0, 0.05, 10)] * 50])
    (compared,) = stoker_cli("report", a, b, "--json").json["comparisons"]
    assert compared["verdict"] == "faster" and compared["ratio"]["value"] == pytest.approx(2)
    page = stoker_cli("report", a, b, "-o", "-").stdout
    assert "B beside A: faster, 2.00x" in page
    (reversed_,) = stoker_cli("report", b, a, "--json").json["comparisons"]
    assert reversed_["verdict"] == "slower"


def test_scaling(stoker_cli, tmp_path):
    """Amdahl with a serial tenth: 1 / (0.1 + 0.9 / n) times the 80 samples/s of one."""
    runs = []
    for count in (1, 2, 4, 8):
        seconds = 0.1 * (0.1 + 0.9 / count)
        runs.append(write_run(tmp_path / f"n{count}", [[Step(0, seconds, 8)] * 60]))
    assert stoker_cli("report", *runs, "--json").json["scaling"] is None
    document = stoker_cli("report", *runs, "--units", "1,2,4,8", "--unit", "core", "--json").json["scaling"]
    assert document["unit"] == "core" and document["model"] == "Amdahl"
    for point in document["points"]:
        expected = 1 / (0.1 + 0.9 / point["units"])
        assert point["speedup"] == pytest.approx(expected) and point["samples_per_s"] == pytest.approx(80 * expected)
    for units, rate in document["fit"]:
        assert rate == pytest.approx(80 / (0.1 + 0.9 / units), rel=1e-3)
    assert "8 cores" in document["advice"]


def test_a_run_without_steps(stoker_cli, tmp_path):
    run = write_run(tmp_path / "run", [])
    document = stoker_cli("report", run, "--json").json
    assert document["runs"][0]["verdict"].startswith("No steps were seen")
    assert "No steps were seen" in stoker_cli("report", run, "-o", "-").stdout
    stoker_cli("report", run, "--format", "tensorboard", "-o", tmp_path / "logs")


def test_a_damaged_run_is_reported_with_its_damage(stoker_cli, run):
    (file,) = run.glob("steps-*")
    file.write_bytes(file.read_bytes()[:-10])
    assert "damaged: steps-node1-100.columns" in stoker_cli("report", run, "-o", "-").stdout


def test_json_without_output_writes_nothing(stoker_cli, run, tmp_path):
    document = stoker_cli("report", run, "--json", cwd=tmp_path).json
    assert document["output"] is None and list(tmp_path.glob("report*")) == []
    document = stoker_cli("report", run, "--json", "-o", "x.html", cwd=tmp_path).json
    assert (document["output"], document["format"]) == ("x.html", "html")
    assert document["bytes"] == (tmp_path / "x.html").stat().st_size


def test_file_is_the_document(stoker_cli, run, tmp_path):
    stoker_cli("report", run, "-o", tmp_path / "r.json")
    written = json.loads((tmp_path / "r.json").read_text())
    printed = stoker_cli("report", run, "--json").json
    assert written["runs"] == printed["runs"]


def test_small_for_100000_steps(stoker_cli, tmp_path):
    run = write_run(tmp_path / "run", [warming_up(100_000, step_s=0.01)])
    assert len(stoker_cli("report", run, "-o", "-").stdout) < 2_000_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a run is missing"),
        (["RUN", "-o", "x.txt"], "its suffix does not say"),
        (["RUN", "--format", "pdf"], "--format"),
        (["RUN", "--format", "tensorboard", "-o", "-"], "writes a directory"),
        (["RUN", "--json", "-o", "-"], "both go to stdout"),
        (["RUN", "--units", "1,2"], "2 numbers for 1 runs"),
        (["RUN", "--units", "1;2"], "is no list of numbers"),
        (["RUN", "--units", "0"], "is no list of numbers"),
    ],
)
def test_wrong_use(stoker_cli, run, tmp_path, words, message):
    words = [str(run) if word == "RUN" else word for word in words]
    assert message in stoker_cli("report", *words, status=2, cwd=tmp_path).stderr
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("run", "home")] == []


def test_no_run(stoker_cli, tmp_path):
    assert "is no run directory" in stoker_cli("report", tmp_path, status=1).stderr


def test_document_is_described(stoker_cli, tmp_path):
    runs = [write_run(tmp_path / f"n{n}", [[Step(0, 0.1, 8)] * 30 for _ in range(n)]) for n in (1, 2, 4)]
    document = stoker_cli("report", *runs, "--json").json
    table = (ROOT / "docs/commands/report.md").read_text().split("## JSON")[1]
    described = set(re.findall(r"^\| `([a-z_.\[\]]+)`", table, re.MULTILINE))
    found = {name for name in document if name != "stoker"}
    found |= {f"comparisons[].{name}" for name in document["comparisons"][0]}
    found |= {f"scaling.{name}" for name in document["scaling"]}
    found |= {f"runs[].figures[].{name}" for name in document["runs"][0]["figures"][0]}
    found |= {f"runs[].series.{name}" for name in document["runs"][0]["series"]["throughput"]}
    assert found <= described


def test_options_are_described(stoker_cli):
    page = (ROOT / "docs/commands/report.md").read_text()
    for option in re.findall(r"^ +(?:-\w, )?(--[a-z]+)", stoker_cli("report", "--help").stdout, re.MULTILINE):
        assert re.search(rf"^\| `.*{option}\b", page, re.MULTILINE), option
