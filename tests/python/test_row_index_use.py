# SPDX-License-Identifier: Apache-2.0
"""Row indexes of JPEG photos: of one, and of a dataset that a Loader reads."""

import io

import numpy as np
import pytest
import stoker
from PIL import Image
from samples import jpeg, noise, write_files

PHOTOS = 24


@pytest.fixture
def photos(tmp_path):
    write_files(tmp_path / "photos", {f"{i:03d}.jpg": jpeg(i, 200 + i, 150) for i in range(PHOTOS)})
    return tmp_path / "photos"


def test_of_a_photo():
    photo = jpeg(1, 300, 200)
    rows = stoker.row_index(photo)
    assert isinstance(rows, bytes) and rows
    assert stoker.row_index(memoryview(photo)) == rows
    assert stoker.row_index(photo, every=4)


@pytest.mark.parametrize("data", [b"", b"x", noise(1, 1000)])
def test_of_something_else(data):
    assert stoker.row_index(data) is None


@pytest.mark.parametrize("every", [-1, 65537])
def test_granularity_that_cannot_be(every):
    with pytest.raises(ValueError, match="every"):
        stoker.row_index(jpeg(1), every)


@pytest.mark.parametrize("every", [0, 1, 5])
def test_same_pixels(every):
    photo = jpeg(7, 300, 200)
    rows = stoker.row_index(photo, every)
    whole = np.asarray(Image.open(io.BytesIO(photo)))
    for top, left, height, width in [(0, 0, 200, 300), (100, 50, 60, 80), (184, 290, 16, 10), (33, 17, 1, 1)]:
        pixels = stoker.decode(photo, crop=(top, left, height, width), row_index=rows)
        np.testing.assert_array_equal(pixels, whole[top : top + height, left : left + width])


@pytest.mark.parametrize("rows", [b"", b"x", noise(2, 5000), bytearray(100), None])
def test_one_that_is_none_is_not_used(rows):
    photo = jpeg(3, 120, 90)
    np.testing.assert_array_equal(stoker.decode(photo, row_index=rows), stoker.decode(photo))


def test_that_of_another_photo_is_not_used():
    photo, rows = jpeg(3, 120, 90), stoker.row_index(jpeg(4, 120, 90))
    np.testing.assert_array_equal(stoker.decode(photo, row_index=rows), stoker.decode(photo))


def batches(path, **options) -> tuple[list[np.ndarray], dict]:
    loader = stoker.Loader(path, batch_size=5, transforms=[stoker.transforms.RandomResizedCrop(64)], seed=1, **options)
    return [batch["image"].copy() for batch in loader], loader.stats()


@pytest.mark.parametrize("options", [{}, {"shuffle": "blocks"}, {"cache": "ram", "cache_limit": "1M"}])
def test_same_batches_with_and_without(photos, tmp_path, options):
    result = stoker.pack(photos, tmp_path / "with")
    assert (result.row_index.photos, result.row_index.indexed) == (PHOTOS, PHOTOS) and result.row_index.left == {}
    assert result.row_index.bytes > 0 and result.row_index.percent > 0
    assert stoker.pack(photos, tmp_path / "without", row_index="none").row_index.photos == 0
    made, stats = batches(tmp_path / "with", **options)
    plain, without = batches(tmp_path / "without", **options)
    assert len(made) == len(plain) == 5
    for one, other in zip(made, plain, strict=True):
        np.testing.assert_array_equal(one, other)
    for found in (stats, without):
        assert sum(found["decoders"].values()) == PHOTOS
        assert all(isinstance(name, str) for name in found["decoders"])
    assert "own decoder, row index" not in without["decoders"]


def test_keyword_of_index(photos):
    assert stoker.index(photos, full=True, where="cache").row_index.indexed == PHOTOS
    finer = stoker.index(photos, full=True, where="cache", row_index=2).row_index
    assert finer.indexed == PHOTOS
    with pytest.raises(ValueError, match="row index"):
        stoker.index(photos, full=True, row_index=0)
