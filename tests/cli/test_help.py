# SPDX-License-Identifier: Apache-2.0
"""What the program says about itself, and that the pages in docs/commands say the same."""

import re
import sys
from pathlib import Path

import pytest
from samples import jpeg
from test_time import STEPS

ROOT = Path(__file__).resolve().parents[2]

COMMANDS = ("pack", "index", "check", "load", "stage", "time", "probe", "job")
NEED_SLURM = {"job"}  # what they print is compared in tests/slurm


def options_of(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def test_version(stoker_cli):
    version = re.search(r"project\(stoker VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert stoker_cli("--version").stdout == f"stoker {version}\n"


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help(stoker_cli, words):
    finished = stoker_cli(*words)
    assert finished.stderr == ""
    for name in COMMANDS:
        assert f"stoker {name}" in finished.stdout


def test_without_arguments(stoker_cli):
    finished = stoker_cli(status=2)
    assert finished.stdout == "" and "usage: stoker" in finished.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(stoker_cli, name):
    page = stoker_cli(name, "--help").stdout
    assert page.startswith(f"usage: stoker {name} ")
    assert "examples:\n" in page and f"  stoker {name} " in page.split("examples:\n")[1]
    own = {"load": {"--threads"}, "time": {"--run"}, "probe": {"--threads"}, "job": {"--watch"}}.get(name, {"--jobs"})
    assert {"--help", "--json"} | own <= options_of(page)
    assert max(map(len, page.splitlines())) <= 100
    # Behind a command of the user's, options are its own.
    behind = [name, "--help", "--nonsense"] if name == "time" else [name, "x", "--help", "--nonsense"]
    for words in (["help", name], [name, "-h"], behind):
        assert stoker_cli(*words).stdout == page


@pytest.mark.parametrize("name", COMMANDS)
def test_page_names_every_option(stoker_cli, name):
    page = (ROOT / f"docs/commands/{name}.md").read_text()
    options = options_of(stoker_cli(name, "--help").stdout.split("options:\n")[1].split("examples:\n")[0])
    named = {
        option for line in page.splitlines() if line.startswith("| `-") for option in options_of(line.split("|")[1])
    }
    assert named == options


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NEED_SLURM])
def test_page_describes_every_json_member(stoker_cli, tmp_path, name):
    (tmp_path / "d/cat").mkdir(parents=True)
    (tmp_path / "d/cat/a.jpg").write_bytes(jpeg(1))
    words = {
        "pack": ["d", "packed"],
        "index": ["d"],
        "check": ["d", "--compare", "d"],
        "load": ["d"],
        "stage": ["d", "place"],
        "time": [],
        "probe": ["d", "d/cat", "--bytes", "32M", "--seconds", "1"],
    }[name]
    stoker_cli("index", "d", cwd=tmp_path)
    (tmp_path / "place").mkdir()
    if name == "time":
        (tmp_path / "steps.py").write_text(STEPS)
        words = ["--", sys.executable, "steps.py", "100", "0.004"]
    document = stoker_cli(name, "--json", *words, cwd=tmp_path).json
    table = (ROOT / f"docs/commands/{name}.md").read_text().split("## JSON")[1]
    described = re.findall(r"^\| `([a-z_0-9.\[\]]+)`", table, re.MULTILINE)

    def members(value, path=""):
        if isinstance(value, dict):
            if "per_s" in value:  # described once
                path = "rate."
            for key, inner in value.items():
                yield path + key
                yield from members(inner, f"{path}{key}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield from members(value[0], path.removesuffix(".") + "[].")

    found = set(members(document))
    assert {name for name in found if not name.startswith("stoker")} <= set(described)
    # Members of lists that are empty here are described as well, and nothing else.
    assert {name for name in described if "[]." not in name} <= found


def test_every_format_is_named(stoker_cli, tmp_path):
    """As the program lists them where it refuses something: in its help, in the pages, in the package."""
    (tmp_path / "x").write_text("no dataset")
    read = stoker_cli("check", tmp_path / "x", status=1).stderr.partition("formats known here are ")[2].strip().split(", ")
    written = stoker_cli("pack", "a", "b", "--to", "x", status=2).stderr.partition("should be one of ")[2].strip().split(", ")
    assert set(written) < set(read) and len(read) == 9
    help_page, pack_page = stoker_cli("pack", "--help").stdout, (ROOT / "docs/commands/pack.md").read_text()
    (to_help,) = re.findall(r"--to FORMAT(.*?)--shard-size", help_page, re.DOTALL)
    (to_page,) = re.findall(r"^\| `--to FORMAT` .*$", pack_page, re.MULTILINE)
    package = {name: (ROOT / f"python/stoker/{name}.py").read_text() for name in ("_commands", "_dataset")}
    (to_package,) = re.findall(r"^ *to: format to write.*$", package["_commands"], re.MULTILINE)
    for name in written:
        assert all(re.search(rf"\b{name}\b", text) for text in (to_help, to_page, to_package)), name
    for name in read:
        readme = (ROOT / "README.md").read_text()
        for text in (help_page.split("options:")[0], pack_page.split("## Examples")[0], package["_dataset"], readme):
            assert re.search(rf"\b{name}\b", text) or (name == "feather" and text == readme), name
