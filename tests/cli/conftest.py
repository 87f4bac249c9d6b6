# SPDX-License-Identifier: Apache-2.0
"""What tests of one command share."""

import pytest
from known_scale import KNOWN
from samples import image_folder, multi_file_samples


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


@pytest.fixture
def folder(tmp_path):
    files = image_folder(tmp_path / "folder", per_class=20)
    return tmp_path / "folder", files


@pytest.fixture
def multi(tmp_path):
    files = multi_file_samples(tmp_path / "multi", 30)
    return tmp_path / "multi", files


@pytest.fixture
def packed(stoker_cli, tmp_path):
    """A packed dataset: several shards, full index. Returns its directory."""
    image_folder(tmp_path / "source")
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--shard-size", "20K")
    return tmp_path / "packed"


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "place"
    path.mkdir()
    return path
