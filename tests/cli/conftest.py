# SPDX-License-Identifier: Apache-2.0
"""What the tests of `stoker scale` share."""

import pytest
from known_scale import KNOWN


@pytest.fixture
def here(tmp_path):
    """A directory with known.py in it."""
    (tmp_path / "known.py").write_text(KNOWN)
    return tmp_path


@pytest.fixture
def scale(stoker_cli, here):
    """scale(*words): runs `stoker scale` there."""

    def run(*words, **options):
        return stoker_cli("scale", *words, cwd=here, **options)

    return run
