# SPDX-License-Identifier: Apache-2.0
"""Datasets that the tests of the package open."""

from pathlib import Path

import pytest
import stoker
from every_format import open_quietly, write_dataset


@pytest.fixture(autouse=True)
def own_cache(request, monkeypatch, tmp_path_factory):
    if "peer_torch" not in request.fixturenames:  # that lies in the user's
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(params=["folder", "tar", "tfrecord"])
def dataset(request, tmp_path) -> stoker.Dataset:
    write_dataset(tmp_path / "data", request.param)
    return open_quietly(tmp_path / "data")


@pytest.fixture
def packed(tmp_path) -> Path:
    """A tar dataset with a full index; its shard is the only file in it."""
    write_dataset(tmp_path / "source", "folder")
    stoker.pack(tmp_path / "source", tmp_path / "packed")
    return tmp_path / "packed"
