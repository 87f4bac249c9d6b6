# SPDX-License-Identifier: Apache-2.0
"""docs/formats/README.md, written from what the matrix of formats found."""

import re

from format_samples import FORMS, KINDS, LIBRARIES, READERS

RENEW = "RENEW_MATRIX=1 build/venv/bin/python -m pytest tests/peers/test_format_matrix.py"

BEGIN = """\
# Formats

Stoker reads each of these formats where it lies, writes most of them, and turns any into any other: the tables are what
tests/peers/test_format_matrix.py found, and it fails where they are not what it finds. It is not edited by hand; this writes it anew:

    {renew}

The [index](index.md), which lies beside the data, and [runs](run.md), which `stoker time` writes, have pages of their own; so have
[splits](splits.md), several datasets in one directory, and [what is not read](not-read.md).

## With their own libraries

{formats}

*Equal* means every value of every sample with its name, dtype and shape, whatever its byte order. Numbers are typed where the format types
them: tar and lmdb hold decimal digits, tfrecord an int64; a tfrecord does not tell text from bytes to anyone who has no index of it.

## Any to any

`stoker pack A B --to FORMAT`, then `stoker check B --compare A`:

| | |
|---|---|
| ⇄ | the same samples, and again the same when B is packed back to the format of A |
| → | the same samples; the format of A is not written, so there is no way back |
| lossy: *fields* | the format cannot express these fields: `pack` names them and writes nothing; with `--lossy` the others are there, equal |
"""

END = """
## Missing peers

Libraries that could not be asked, each with its reason; one that is missing and not listed here fails the test.

{missing}
"""


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def library_of(matrix, name: str) -> str:
    return f"{name} {matrix.versions[name]}" if name in matrix.versions else f"{name} (missing)"


def verdict(count: int, faults: bool) -> str:
    if count == 0:
        return "not tested"
    return "FAILED" if faults else f"{count:,} samples equal"


def format_row(matrix, name: str) -> list[str]:
    forms = [form for form, (of, _) in FORMS.items() if of == name]
    libraries = dict.fromkeys([FORMS[form][1] for form in forms] + READERS.get(name, []))
    read = {one: rows for one, rows in matrix.rows.items() if one[0] in forms}
    written = [(one, cell) for one, cell in matrix.cells.items() if one[2] == name and cell.unread]
    count = sum(len(matrix.rows[one[:2]]) * len(cell.unread) for one, cell in written)
    return [
        f"[{name}]({'arrow' if name == 'feather' else name}.md)",
        "" if forms == [name] else ", ".join(form for form in forms if form != name),
        ", ".join(library_of(matrix, library) for library in libraries if library) or "plain files",
        verdict(sum(map(len, read.values())), any(matrix.unread[one] for one in read)),
        verdict(count, any(any(cell.unread.values()) for _, cell in written)) if name in READERS else "not written",
    ]


def cell_text(cell) -> str:
    if cell.faults:
        return "FAILED"
    if cell.lossy:
        return "lossy: " + ", ".join(sorted(cell.lossy))
    return "⇄" if cell.back else "→"


def pairs(matrix, kind: str) -> str:
    rows = []
    for form in FORMS:
        cells = [matrix.cells.get((form, kind, to)) for to in READERS]
        if any(cells):
            rows.append([form, *(cell_text(cell) for cell in cells)])
        elif FORMS[form][1] in matrix.missing:
            rows.append([form, *(["not tested"] * len(READERS))])
    return f"\n**{kind}**: {KINDS[kind]}\n\n" + table(["from \\ to", *READERS], rows) + "\n"


def page(matrix) -> str:
    head = ["format", "also as", "its library", "written by it, read by us", "written by us, read by it"]
    names = dict.fromkeys(name for name, _ in FORMS.values())
    formats = table(head, [format_row(matrix, name) for name in names])
    missing = [f"- `{library}`: {matrix.excuses.get(library, 'NO REASON')}" for library in matrix.missing]
    text = BEGIN.format(renew=RENEW, formats=formats)
    return text + "".join(pairs(matrix, kind) for kind in KINDS) + END.format(missing="\n".join(missing) or "None.")


def excuses_in(text: str) -> dict[str, str]:
    """Library -> reason, of those that a page lists as missing."""
    listed = re.findall(r"^- `(\w+)`: (\S.*)$", text.partition("## Missing peers")[2], re.MULTILINE)
    return {library: reason for library, reason in listed if library in LIBRARIES}
