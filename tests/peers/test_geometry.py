# SPDX-License-Identifier: Apache-2.0
"""Crops and resizes of the Loader are torchvision's, to the last bit, though only what is needed is decoded."""

import json
from pathlib import Path

import pytest
import stoker
from samples import write_files

PACKAGES = str(Path(stoker.__file__).parents[1])

COMMON = """
import io, json, sys, warnings
sys.path.append(sys.argv[1])
warnings.simplefilter("ignore")
import numpy as np
from PIL import Image
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional as F
import stoker
from stoker import transforms as T

def photos(folder, rng, sizes):
    for i, (height, width) in enumerate(sizes):
        pixels = np.kron(rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3)), np.ones((8, 8, 1)))[:height, :width]
        image = Image.fromarray(pixels.astype("uint8"))
        if i % 3 == 2:
            image.save(f"{folder}/{i:03d}.png")
        else:
            image.save(f"{folder}/{i:03d}.jpg", quality=90, subsampling=[0, 2][i % 2])

def batches(folder, transforms, seed=0, epochs=1):
    loader = stoker.Loader(folder, 16, transforms, shuffle=False, seed=seed)
    ds = stoker.open(folder)
    for _ in range(epochs):
        for batch in loader:
            for picture, sample in zip(batch["image"], batch["sample"]):
                yield picture, Image.open(io.BytesIO(ds[int(sample)]["image"])).convert("RGB")
"""

FIXED = (
    COMMON
    + """
folder = sys.argv[2]
rng = np.random.default_rng(1)
sizes = [tuple(map(int, rng.integers(8, 200, 2))) for _ in range(40)] + [(1, 1), (1, 30), (30, 1), (64, 64), (224, 256)]
photos(folder, rng, sizes)
modes = {"nearest": "NEAREST", "bilinear": "BILINEAR", "bicubic": "BICUBIC", "lanczos": "LANCZOS", "box": "BOX"}
compared = 0
for name, mode in modes.items():
    mode = InterpolationMode[mode]
    for ours, theirs in [
        ([T.Resize(64, name), T.CenterCrop(56)], [v2.Resize(64, mode), v2.CenterCrop(56)]),
        ([T.Resize(37, name), T.CenterCrop((24, 31))], [v2.Resize(37, mode), v2.CenterCrop((24, 31))]),
        ([T.Resize(20, name, max_size=33), T.CenterCrop((40, 17))], [v2.Resize(20, mode, max_size=33), v2.CenterCrop((40, 17))]),
        ([T.Resize((33, 70), name)], [v2.Resize((33, 70), mode)]),
        ([T.CenterCrop(50)], [v2.CenterCrop(50)]),
        ([T.Resize((20, 20), name), T.CenterCrop(24), T.CenterCrop((30, 22))],
         [v2.Resize((20, 20), mode), v2.CenterCrop(24), v2.CenterCrop((30, 22))]),
        ([T.CenterCrop((30, 90)), T.CenterCrop(61)], [v2.CenterCrop((30, 90)), v2.CenterCrop(61)]),
        ([T.Resize((50, 40), name), T.CenterCrop((44, 41)), T.RandomHorizontalFlip(1), T.CenterCrop((20, 11))],
         [v2.Resize((50, 40), mode), v2.CenterCrop((44, 41)), v2.RandomHorizontalFlip(1), v2.CenterCrop((20, 11))]),
    ]:
        theirs = v2.Compose(theirs)
        for picture, photo in batches(folder, ours):
            expected = np.asarray(theirs(photo))
            assert picture.shape == expected.shape, (ours, photo.size)
            assert np.array_equal(picture, expected), (ours, photo.size, np.abs(picture.astype(int) - expected).max())
            compared += 1
print(compared)
"""
)

# Where a random crop lies is not known, but it must be one of those that there are, each as often as the others.
RANDOM = (
    COMMON
    + """
folder = sys.argv[2]
rng = np.random.default_rng(2)
photos(folder, rng, [(9, 7)] * 6)
def possible(photo, size, padding, fill, mode):
    padded = np.asarray(F.pad(photo, padding, fill=fill, padding_mode=mode))
    return [padded[y:y + size[0], x:x + size[1]].tobytes()
            for y in range(padded.shape[0] - size[0] + 1) for x in range(padded.shape[1] - size[1] + 1)]
result = []
for ours, size, padding, fill, mode in [
    (T.RandomCrop((5, 4)), (5, 4), [0, 0, 0, 0], 0, "constant"),
    (T.RandomCrop((9, 7), padding=2), (9, 7), [2, 2, 2, 2], 0, "constant"),
    (T.RandomCrop((9, 7), padding=(1, 2), fill=(7, 8, 9)), (9, 7), [1, 2, 1, 2], (7, 8, 9), "constant"),
    (T.RandomCrop((8, 8), padding=(1, 2, 3, 0), padding_mode="reflect"), (8, 8), [1, 2, 3, 0], 0, "reflect"),
    (T.RandomCrop((8, 8), padding=3, padding_mode="symmetric"), (8, 8), [3, 3, 3, 3], 0, "symmetric"),
    (T.RandomCrop((8, 8), padding=3, padding_mode="edge"), (8, 8), [3, 3, 3, 3], 0, "edge"),
    (T.RandomCrop((12, 5), pad_if_needed=True), (12, 5), [0, 3, 0, 3], 0, "constant"),
    (T.RandomCrop((12, 9), padding=1, pad_if_needed=True, padding_mode="reflect"), (12, 9), [1, 2, 1, 2], 0, "reflect"),
]:
    for flips in (0.0, 1.0):
        counts = {}
        for picture, photo in batches(folder, [ours, T.RandomHorizontalFlip(flips)], epochs=60):
            if flips:
                picture = picture[:, ::-1]
            places = possible(photo, size, padding, fill, mode)
            found = places.index(np.ascontiguousarray(picture).tobytes())  # raises where there is no such crop
            counts[found] = counts.get(found, 0) + 1
        result.append([len(set(places)), len(places), len(counts), 360])
print(json.dumps(result))
"""
)


def test_what_is_not_random_is_equal(peer_torch, tmp_path):
    assert int(peer_torch(FIXED, PACKAGES, tmp_path)) == 5 * 8 * 45


def test_random_crops_are_crops(peer_torch, tmp_path):
    for different, places, found, draws in json.loads(peer_torch(RANDOM, PACKAGES, tmp_path)):
        # Some places look alike; of the others nearly all should have come.
        assert found > 0.8 * min(different, places * (1 - (1 - 1 / places) ** draws)), (different, places, found)


def test_a_photo_too_small_for_its_crop_says_what_helps(tmp_path):
    from samples import jpeg
    from stoker.transforms import RandomCrop

    write_files(tmp_path / "d", {"a.jpg": jpeg(1, 20, 20)})
    stoker.index(tmp_path / "d")
    with pytest.raises(stoker.UnsupportedError, match="'a'.*pad_if_needed=True helps"):
        list(stoker.Loader(tmp_path / "d", 1, [RandomCrop(40)]))


def test_two_kinds_of_padding_are_refused(tmp_path):
    from samples import jpeg
    from stoker.transforms import CenterCrop, RandomCrop, Resize

    write_files(tmp_path / "d", {"a.jpg": jpeg(1, 20, 20)})
    stoker.index(tmp_path / "d")
    for steps in ([RandomCrop(28, padding=4, fill=9), CenterCrop(40)],
                  [CenterCrop(24), RandomCrop(32, padding=4, padding_mode="reflect")]):  # fmt: skip
        with pytest.raises(stoker.UnsupportedError, match="different padding"):
            list(stoker.Loader(tmp_path / "d", 1, [Resize((20, 20)), *steps]))
