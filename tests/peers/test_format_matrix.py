# SPDX-License-Identifier: Apache-2.0
"""Every format written by its own library and read by us, written by us and read by its library, and turned into every other.

docs/formats/README.md is what this finds: RENEW_MATRIX=1 in the environment writes it anew.
"""

import difflib
import os

import pytest
from format_matrix import Matrix
from format_page import RENEW, excuses_in, page
from format_samples import FORMS, KINDS, LIBRARIES, READERS
from stoker_program import ROOT

PAGE = ROOT / "docs/formats/README.md"
PEERS = sorted({group for group in LIBRARIES.values() if group})


def committed() -> str:
    return PAGE.read_text() if PAGE.exists() else ""


@pytest.fixture(scope="session")
def matrix(tmp_path_factory, request) -> Matrix:
    peers = {group: request.getfixturevalue(f"peer_{group}") for group in PEERS}
    return Matrix(tmp_path_factory.mktemp("matrix"), peers, excuses_in(committed())).run()


@pytest.mark.parametrize("form", FORMS)
def test_written_by_its_library_read_by_us(matrix, form):
    for kind in KINDS:
        assert matrix.unread.get((form, kind), []) == [], kind


@pytest.mark.parametrize("to", READERS)
@pytest.mark.parametrize("form", FORMS)
def test_any_to_any(matrix, form, to):
    for kind in KINDS:
        cell = matrix.cells.get((form, kind, to))
        assert cell is None or cell.faults == [], kind


@pytest.mark.parametrize("to", READERS)
@pytest.mark.parametrize("form", FORMS)
def test_written_by_us_read_by_its_library(matrix, form, to):
    for kind in KINDS:
        cell = matrix.cells.get((form, kind, to))
        if cell is not None:
            assert set(READERS[to]) - set(matrix.missing) == set(cell.unread), kind
            assert not any(cell.unread.values()), (kind, cell.unread)


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_peer_is_missing_without_a_reason(matrix, library):
    said = matrix.missing.get(library)
    listed = matrix.excuses.get(library)
    assert said is None or listed, f"{said}\n(or list it with a reason in {PAGE}: \"- `{library}`: why\")"


def test_the_page_says_what_was_found(matrix):
    found = page(matrix)
    if os.environ.get("RENEW_MATRIX"):
        PAGE.write_text(found)
    lines = difflib.unified_diff(committed().splitlines(), found.splitlines(), "committed", "found", lineterm="")
    changes = "\n".join(lines)
    assert not changes, f"{PAGE} is not what the run found:\n{changes}\nwhere that is right, renew it: {RENEW}"


class NoPeer:
    def __call__(self, *arguments):
        pytest.fail("the peer is missing")


def test_without_its_peers(tmp_path):
    """What can be tested is, and a page with a reason for each of the others says so."""
    excuses = {"h5py": "no wheel for this Python"}
    bare = Matrix(tmp_path, dict.fromkeys(PEERS, NoPeer()), excuses)
    bare.write_all()
    assert set(bare.missing) == set(LIBRARIES) - {"numpy"}
    assert {FORMS[form][1] for form, _ in bare.rows} == {"", "numpy"}
    for form, kind in bare.rows:
        bare.read(form, kind)
    text = page(bare)
    assert excuses_in(text)["h5py"] == "no wheel for this Python"
    assert "h5py (missing) | not tested" in text and "- `lmdb`: NO REASON" in text
