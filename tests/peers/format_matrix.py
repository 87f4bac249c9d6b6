# SPDX-License-Identifier: Apache-2.0
"""Makes the matrix of formats: writes every form with its library, packs each to every format, reads that with its library."""

import os
import pickle
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import format_peers
import numpy as np
import pytest
import stoker
from format_samples import FORMS, KINDS, LIBRARIES, READERS, differences, make, written_as
from reading import read_dataset
from samples import jpeg, write_files
from stoker_program import Finished, clean_environment, program

TESTS = Path(__file__).resolve().parent.parent
SCRIPT = "import sys\nsys.path[:0] = {paths!r}\nimport format_peers\nformat_peers.run(*sys.argv[1:])"
TYPED = {"hdf5", "arrow", "feather", "parquet", "npy"}  # formats that say how wide a number is
LOSSY = re.compile(r'lossy: field "(.*?)"')


@dataclass
class Cell:
    """What came of packing one dataset to one format."""

    lossy: list[str] = field(default_factory=list)  # fields that the format cannot express
    back: bool = False  # packed back to the format it came from, and the same
    faults: list[str] = field(default_factory=list)
    unread: dict[str, list[str]] = field(default_factory=dict)  # library -> what it does not read as it should


def said_in(to: str, samples: dict[str, dict]) -> dict[str, dict]:
    """The samples as a format lets others read them: not every one says what is text, or how wide an integer is."""

    def said(value):
        if to == "tfrecord" and isinstance(value, str):
            return value.encode()
        return int(value) if to in ("tar", "tfrecord", "lmdb") and isinstance(value, np.integer) else value

    return {key: {name: said(value) for name, value in fields.items()} for key, fields in samples.items()}


class Matrix:
    """All that the run finds; `peers` are those of conftest.py by their names."""

    def __init__(self, root: Path, peers: dict, excuses: dict[str, str]):
        self.root = root
        self.peers = peers
        self.home = root / "home"
        self.home.mkdir()
        self.excuses = excuses  # library -> why it may be missing
        self.versions: dict[str, str] = {}
        self.missing: dict[str, str] = {}  # library -> what was said when it was asked
        samples = make(jpeg)
        self.rows: dict[tuple[str, str], list[dict]] = {}  # (form, kind) -> samples as that form has them
        for form in FORMS:
            for kind in KINDS:
                rows = written_as(form, kind, samples[kind])
                if rows is not None:
                    self.rows[form, kind] = rows
        self.expected: dict[tuple[str, str], dict[str, dict]] = {}  # the same by the keys that we read
        self.unread: dict[tuple[str, str], list[str]] = {}  # what we do not read as it was written
        self.cells: dict[tuple[str, str, str], Cell] = {}  # (form, kind, format packed to)

    def run(self) -> "Matrix":
        self.write_all()
        for form, kind in self.rows:
            self.read(form, kind)
        jobs = [(form, kind, to) for form, kind in self.rows for to in READERS]
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            for job, cell in zip(jobs, pool.map(lambda job: self.pack(*job), jobs), strict=True):
                self.cells[job] = cell
        self.read_by_libraries()
        return self

    # --- Their files ------------------------------------------------------------------------------------

    def ask(self, action: str, library: str, request):
        """What format_peers.py answers where the library is; None where it is missing."""
        if library in self.missing:
            return None
        asked, answer = self.root / f"{action}-{library}.asked", self.root / f"{action}-{library}.answer"
        asked.write_bytes(pickle.dumps(request))
        arguments = [action, library, str(asked), str(answer)]
        if group := LIBRARIES[library]:
            try:
                self.peers[group](SCRIPT.format(paths=[str(TESTS), str(TESTS / "peers")]), *arguments)
            except (pytest.fail.Exception, AssertionError) as error:
                if isinstance(error, AssertionError) and f"No module named '{library}'" not in str(error):
                    raise
                self.missing[library] = str(error)
                return None
        else:
            format_peers.run(*arguments)
        version, result = pickle.loads(answer.read_bytes())
        self.versions[library] = version.split(".")[0]
        return result

    def write_all(self) -> None:
        for library in LIBRARIES:
            forms = {form: {} for form, (_, writer) in FORMS.items() if writer == library}
            for (form, kind), rows in self.rows.items():
                if form in forms:
                    forms[form][kind] = rows
            self.ask("write", library, (self.root, forms))
        for kind in KINDS:
            write_files(self.root / "folder" / kind, format_peers.files_of(self.rows["folder", kind]))
        self.rows = {one: rows for one, rows in self.rows.items() if FORMS[one[0]][1] not in self.missing}

    def path(self, form: str, kind: str) -> Path:
        return self.root / form / kind

    def read(self, form: str, kind: str) -> None:
        """Values in the order in which they were written: keys are the format's affair."""
        rows = self.rows[form, kind]
        try:
            found = read_dataset(self.path(form, kind))
        except Exception as error:
            self.unread[form, kind] = [f"{type(error).__name__}: {error}"]
            self.expected[form, kind] = dict(enumerate(rows))
            return
        keys = list(found) if len(found) == len(rows) else range(len(rows))
        self.expected[form, kind] = dict(zip(keys, rows, strict=True))
        self.unread[form, kind] = differences(found, self.expected[form, kind])
        if FORMS[form][0] in TYPED:
            fields = stoker.open(self.path(form, kind)).fields
            for name, value in rows[0].items():
                if isinstance(value, np.generic) and fields[name].dtype != value.dtype.name:
                    self.unread[form, kind].append(f"{name} is {fields[name].dtype}, should be {value.dtype.name}")

    # --- Our files --------------------------------------------------------------------------------------

    def stoker(self, *arguments) -> Finished:
        command = [program(), *map(str, arguments)]
        environment = clean_environment(self.home)
        return Finished(subprocess.run(command, env=environment, capture_output=True, timeout=120))

    def packed(self, form: str, kind: str, to: str) -> Path:
        return self.root / "packed" / to / form / kind

    def pack(self, form: str, kind: str, to: str) -> Cell:
        cell = Cell()
        source, target = self.path(form, kind), self.packed(form, kind, to)
        target.parent.mkdir(parents=True, exist_ok=True)
        done = self.stoker("pack", source, target, "--to", to)
        cell.lossy = LOSSY.findall(done.stderr)
        if cell.lossy:
            if target.exists():
                cell.faults.append("refused, but something was written")
            done = self.stoker("pack", source, target, "--to", to, "--lossy")
            if LOSSY.findall(done.stdout) != cell.lossy:
                cell.faults.append(f"not the same is said with --lossy:\n{done!r}")
        if done.returncode != 0:
            cell.faults.append(repr(done))
            return cell
        cell.faults += differences(read_dataset(target), self.expected_of(form, kind, cell))
        if not cell.lossy:
            cell.faults += self.compare(source, target)
            cell.back = self.pack_back(form, kind, target, cell)
        return cell

    def compare(self, one: Path, other: Path) -> list[str]:
        compared = self.stoker("check", other, "--compare", one)
        same = compared.returncode == 0 and "same samples as" in compared.stdout
        return [] if same else [repr(compared)]

    def pack_back(self, form: str, kind: str, packed: Path, cell: Cell) -> bool:
        came_from = FORMS[form][0]
        if came_from not in READERS:
            return False
        target = packed.with_name(packed.name + "-back")
        done = self.stoker("pack", packed, target, "--to", came_from)
        cell.faults += [repr(done)] if done.returncode else self.compare(self.path(form, kind), target)
        return True

    def expected_of(self, form: str, kind: str, cell: Cell) -> dict[str, dict]:
        return {
            key: {name: value for name, value in fields.items() if name not in cell.lossy}
            for key, fields in self.expected[form, kind].items()
        }

    def read_by_libraries(self) -> None:
        for library in LIBRARIES:
            paths = {}
            for form, kind, to in self.cells:
                target = self.packed(form, kind, to)
                if library in READERS[to] and target.exists():
                    paths[form, kind, to] = target
            answer = self.ask("read", library, paths)
            for one, found in (answer or {}).items():
                cell = self.cells[one]
                expected = said_in(one[2], self.expected_of(*one[:2], cell))
                cell.unread[library] = [found] if isinstance(found, str) else differences(found, expected)
