# SPDX-License-Identifier: Apache-2.0
"""Broken photos among good ones: what the Loader does with them."""

import random
from pathlib import Path

import numpy as np
import pytest
import stoker
from broken_photos import DQT, bomb_of_scans, joined, picture, png, resized, saved, segments, with_precision
from samples import write_files
from stoker.transforms import Resize

RECIPE = [Resize((16, 16))]


def bad_photos() -> dict[str, bytes]:
    data = saved(quality=90)
    return {
        "cut": data[: len(data) // 2],
        "empty": b"",
        "zeros": bytes(3000),
        "text": b"not a photo\n" * 30,
        "no-tables": joined([part for part in segments(data) if part[0] != DQT]),
        "65500": resized(data, 65500, 65500),
        "0": resized(data, 0, 0),
        "12-bits": with_precision(12),
        "png-bomb": resized(png(), 50_000, 50_000, "PNG"),
        "half-a-png": saved("PNG")[:2000],
        "882-scans": bomb_of_scans(500, 882),
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> Path:
    """A bad photo behind every two good ones, packed, in two classes."""
    root = tmp_path_factory.mktemp("mixed")
    files = {}
    for number, (name, data) in enumerate(bad_photos().items()):
        files[f"{'ab'[number % 2]}/{number:02d}-1-good.jpg"] = saved(image=picture(60, 40, number))
        files[f"{'ab'[number % 2]}/{number:02d}-2-good.jpg"] = saved("PNG", image=picture(40, 60, number))
        files[f"{'ab'[number % 2]}/{number:02d}-3-{name}.jpg"] = data
    write_files(root / "photos", files)
    stoker.pack(root / "photos", root / "packed", shard_size="100K")
    return root / "packed"


def goods_and_bads(dataset: Path) -> tuple[dict[int, np.ndarray], list[str]]:
    ds = stoker.open(dataset)
    keys = list(ds.keys())
    goods = {i: stoker.decode(ds[i]["image"], size=(16, 16)) for i, key in enumerate(keys) if key.endswith("good")}
    return goods, [key for key in keys if not key.endswith("good")]


@pytest.mark.parametrize("name", bad_photos())
def test_raise_names_the_sample(tmp_path, name):
    files = {f"a/{i}.jpg": saved(image=picture(seed=i)) for i in range(4)}
    write_files(tmp_path / "photos", {**files, f"a/2-{name}.jpg": bad_photos()[name]})
    stoker.pack(tmp_path / "photos", tmp_path / "packed")
    with pytest.raises((stoker.CorruptError, stoker.UnsupportedError), match=f"a/2-{name}"):
        list(stoker.Loader(tmp_path / "packed", 2, RECIPE, on_error="raise"))


@pytest.mark.parametrize("threads", [1, 4])
def test_skip_delivers_the_good_ones(mixed, threads):
    goods, bads = goods_and_bads(mixed)
    loader = stoker.Loader(mixed, 5, RECIPE, on_error="skip", threads=threads)
    found = {}
    for batch in loader:
        found |= {int(sample): image for sample, image in zip(batch["sample"], batch["image"])}
    assert found.keys() == goods.keys() and all(np.array_equal(found[i], goods[i]) for i in goods)
    bad = loader.stats()["bad"]
    assert sorted(fault["sample"] for fault in bad) == sorted(bads)
    assert all(len(fault["cause"]) > 20 and fault["sample"] in fault["message"] for fault in bad)


@pytest.mark.parametrize("threads", [1, 4])
def test_replace_fills_with_good_ones(mixed, threads):
    goods, bads = goods_and_bads(mixed)
    loader = stoker.Loader(mixed, 5, RECIPE, on_error="replace", threads=threads)
    rows = 0
    for batch in loader:
        rows += len(batch["image"])
        for sample, image in zip(batch["sample"], batch["image"]):
            assert np.array_equal(image, goods[int(sample)])
    assert rows == len(goods) + len(bads)
    assert sorted(fault["sample"] for fault in loader.stats()["bad"]) == sorted(bads)


def test_checksum_names_every_flipped_sample(tmp_path):
    """Twenty bytes within a photo, most of which libjpeg would not notice: 100 of 100 are named."""
    write_files(tmp_path / "photos", {f"{'ab'[i % 2]}/{i:02d}.jpg": saved(image=picture(40, 30, i)) for i in range(10)})
    stoker.pack(tmp_path / "photos", tmp_path / "packed")
    ds = stoker.open(tmp_path / "packed")
    keys = list(ds.keys())
    (shard,) = (tmp_path / "packed" / shard.path for shard in ds.shards)
    photos = [bytes(ds[i]["image"]) for i in range(len(keys))]
    good = shard.read_bytes()
    for seed in range(100):
        rng = random.Random(seed)
        number = rng.randrange(len(keys))
        contents = bytearray(good)
        for at in rng.sample(range(len(photos[number])), 20):
            contents[good.index(photos[number]) + at] ^= rng.randrange(1, 256)
        shard.write_bytes(contents)
        loader = stoker.Loader(tmp_path / "packed", 4, RECIPE, on_error="skip", threads=1)
        assert sum(len(batch["image"]) for batch in loader) == len(keys) - 1
        (bad,) = loader.stats()["bad"]
        assert bad["sample"] == keys[number] and "checksum" in bad["cause"]
