# SPDX-License-Identifier: Apache-2.0
"""Compares every #include in src/ and python/ with the table of layers in docs/ARCHITECTURE.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def read_layers(text: str) -> dict[str, set[str]]:
    """Folder -> folders it may include, from the Markdown table `folder | … | may include`.

    The last column names folders ("base, os"), "the above" for every row before it, "all", or a dash for none.
    """
    layers: dict[str, set[str]] = {}
    everything: list[str] = []
    inside = False
    for line in text.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|") or len(cells) < 3:
            inside = False
            continue
        if cells[0].lower() == "folder" and cells[-1].lower() == "may include":
            inside = True
            continue
        if not inside or set(cells[0]) <= set("-: "):
            continue
        folders = [name.strip().strip("`").removeprefix("src/").rstrip("/") for name in cells[0].split(",")]
        allowed: set[str] = set()
        for part in re.split(r"[,;]", cells[-1].replace("`", "")):
            part = part.strip()
            if part == "all":
                everything += folders
            elif part == "the above":
                allowed |= set(layers)
            elif part not in ("", "-", "–", "—"):
                allowed.add(part.split()[0].removeprefix("src/").rstrip("/"))
        for folder in folders:
            layers[folder] = set(allowed)
    for folder in everything:
        layers[folder] = set(layers)
    return layers


def violations(root: Path, layers: dict[str, set[str]]) -> list[str]:
    """What in root/src and root/python does not follow the table, one line each."""
    found = []
    files = sorted([*root.glob("src/**/*.h"), *root.glob("src/**/*.cpp"), *root.glob("python/**/*.[hc]*")])
    for file in files:
        if file.suffix not in (".h", ".cpp"):
            continue
        parts = file.relative_to(root).parts
        folder = "python" if parts[0] == "python" else (parts[1] if len(parts) > 2 else "")
        name = file.relative_to(root)
        if folder not in layers:
            found.append(f"{name}: its folder is not in the table of layers")
            continue
        for include in INCLUDE.findall(file.read_text()):
            target = include.split("/")[0] if "/" in include else folder
            if target == folder:
                base = root / "python" if folder == "python" else root / "src"
                if not ((base / include).is_file() or (file.parent / include).is_file()):
                    found.append(f'{name}: "{include}" does not exist')
            elif target not in layers:
                found.append(f'{name}: "{include}" is in no folder of the table of layers')
            elif target not in layers[folder]:
                found.append(f'{name}: {folder} may not include {target} ("{include}")')
            elif not (root / "src" / include).is_file():
                found.append(f'{name}: "{include}" does not exist')
    return found


def test_includes_follow_the_table() -> None:
    layers = read_layers((ROOT / "docs/ARCHITECTURE.md").read_text())
    assert {"base", "os", "dataset", "format", "cli", "python"} <= set(layers), "the table was not understood"
    assert list(ROOT.glob("src/*/*.cpp")), "no sources found"
    assert violations(ROOT, layers) == []


TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: : [^;]*)? \{")


def types_of(text: str) -> set[str]:
    """The types that a file defines at namespace scope, outside anonymous namespaces."""
    names, scopes = set(), []
    for line in text.splitlines():
        if opened := re.match(r"namespace ?([\w:]*) \{", line):
            scopes.append(opened[1])
        elif line.startswith("}  // namespace"):
            scopes.pop()
        elif (defined := TYPE.match(line)) and scopes and all(scopes):
            names.add("::".join([*scopes, defined[1]]))
    return names


def test_every_type_is_defined_once() -> None:
    """Two of one name are one to the linker, which then takes the code of either for both."""
    where: dict[str, list[str]] = {}
    for file in [*ROOT.glob("src/**/*.h"), *ROOT.glob("src/**/*.cpp"), *ROOT.glob("python/*.[hc]*")]:
        for name in types_of(file.read_text()):
            where.setdefault(name, []).append(str(file.relative_to(ROOT)))
    assert "stoker::Reader" in where and "stoker::Error" in where
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_types_are_found() -> None:
    text = "namespace a {\nnamespace {\nstruct B {\n};\n}  // namespace\nclass C final : public D {\n};\nstruct E;\n}  // namespace a\n"
    assert types_of(text) == {"a::C"}


TABLE = """
| folder | what lives there | may include |
|---|---|---|
| src/base | errors | – |
| `src/os` | files | base |
| src/pack, src/stage | features | the above |
| src/trace | another | base, os; pack where named |
| src/cli | commands | all |
| python/ | bindings | all |
"""


def test_table_is_understood() -> None:
    layers = read_layers(TABLE)
    assert layers["base"] == set()
    assert layers["os"] == {"base"}
    assert layers["stage"] == {"base", "os"}
    assert layers["trace"] == {"base", "os", "pack"}
    assert layers["cli"] == layers["python"] == {"base", "os", "pack", "stage", "trace", "cli", "python"}


@pytest.mark.parametrize(
    ("file", "include", "complaint"),
    [
        ("src/base/error.h", "base/text.h", None),
        ("src/base/error.h", "text.h", None),
        ("src/os/file.cpp", "base/text.h", None),
        ("src/base/error.h", "os/clock.h", "base may not include os"),
        ("src/stage/stage.cpp", "pack/pack.h", "stage may not include pack"),
        ("src/cli/main.cpp", "pack/pack.h", None),
        ("python/bind_pack.cpp", "pack/pack.h", None),
        ("src/os/file.cpp", "helpers/text.h", "in no folder of the table"),
        ("src/helpers/text.cpp", "base/text.h", "not in the table"),
        ("src/os/file.cpp", "base/gone.h", "does not exist"),
        ("src/main.cpp", "base/text.h", "not in the table"),
    ],
)
def test_made_up_include(tmp_path: Path, file: str, include: str, complaint: str) -> None:
    for existing in ("src/base/text.h", "src/os/clock.h", "src/pack/pack.h"):
        (tmp_path / existing).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / existing).write_text("#pragma once\n")
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(f'#include <vector>\n#include "{include}"\n')
    found = violations(tmp_path, read_layers(TABLE))
    if complaint is None:
        assert found == []
    else:
        assert len(found) == 1 and complaint in found[0]
