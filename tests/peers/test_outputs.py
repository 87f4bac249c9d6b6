# SPDX-License-Identifier: Apache-2.0
"""Batches as the tensors of a framework: the same values, without a copy where that is promised, for as long as held."""

import json
from pathlib import Path

import numpy as np
import pytest
import stoker
from samples import jpeg, npy, write_files

PACKAGES = str(Path(stoker.__file__).parents[1])
COUNT = 30

# The package is put behind the framework's own, so that NumPy is the peer's.
COMMON = """
import gc, hashlib, json, sys
if sys.argv[1] not in sys.path:
    sys.path.append(sys.argv[1])
import numpy as np
import stoker
from stoker.transforms import PerBatch, RandomHorizontalFlip, RandomResizedCrop
path = sys.argv[2]
RECIPE = [RandomResizedCrop(16), RandomHorizontalFlip()]
FIELDS = ["image", "label", "score", "box", "small", "wide"]
"""

# Digests of every column, epoch by epoch; bytes only, so that signed and unsigned ones are the same.
DIGESTS = """
def digests(output):
    loader = stoker.Loader(path, 8, RECIPE, fields=FIELDS, output=output)
    found, kinds = [], {}
    for _ in range(2):
        columns = {}
        for batch in loader:
            for name, column in batch.items():
                columns.setdefault(name, hashlib.sha256()).update(np.asarray(column).tobytes())
                kinds[name] = [getattr(column.dtype, "name", str(column.dtype)[6:]), *column.shape[1:]]
        found.append({name: digest.hexdigest() for name, digest in columns.items()})
    return found, kinds
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("outputs")
    files = {}
    for i in range(COUNT):
        rng = np.random.default_rng(i)
        files |= {
            f"{i:03d}.jpg": jpeg(i, 30, 20),
            f"{i:03d}.cls": str(i % 5).encode(),
            f"{i:03d}.score.npy": npy(rng.standard_normal((), "float32")),
            f"{i:03d}.box.npy": npy(rng.standard_normal(4)),
            f"{i:03d}.small.npy": npy(rng.integers(0, 2, (2, 3)).astype(bool)),
            f"{i:03d}.wide.npy": npy(rng.integers(0, 65536, 5).astype("uint16")),
        }
    write_files(root / "files", files)
    stoker.pack(root / "files", root / "packed")
    return root / "packed"


def test_every_output_has_the_same_values(peer_torch, peer_tensorflow, dataset):
    in_torch = COMMON + DIGESTS + "print(json.dumps([digests('numpy'), digests('torch')]))"
    in_tensorflow = COMMON + DIGESTS + "print(json.dumps([digests('numpy'), digests('tensorflow')]))"
    (plain, kinds), (torch, torch_kinds) = json.loads(peer_torch(in_torch, PACKAGES, dataset))
    (again, _), (tensorflow, tensorflow_kinds) = json.loads(peer_tensorflow(in_tensorflow, PACKAGES, dataset))
    assert plain == again == torch == tensorflow
    assert plain[0] != plain[1]
    assert kinds["image"] == ["uint8", 16, 16, 3]
    assert tensorflow_kinds == kinds
    # PyTorch hardly knows unsigned numbers wider than a byte.
    assert torch_kinds == {**kinds, "sample": ["int64"], "wide": ["uint16", 5]}


def test_torch_tensors_are_the_memory_of_the_batch(peer_torch, dataset):
    script = """
kept = []
loader = stoker.Loader(path, 8, [*RECIPE, PerBatch(lambda batch: kept.append(batch) or batch)], fields=FIELDS, output="torch")
for tensors in loader:
    arrays = kept.pop()
    for name, array in arrays.items():
        assert tensors[name].data_ptr() == array.ctypes.data, name
    tensors["image"][0, 1, 2, 0] = 77
    assert arrays["image"][0, 1, 2, 0] == 77
    arrays["box"][-1, 0] = -5
    assert tensors["box"][-1, 0] == -5
"""
    peer_torch(COMMON + script, PACKAGES, dataset)


def test_dlpack(peer_torch, dataset):
    script = """
import torch
for batch in stoker.Loader(path, 8, RECIPE, fields=["image", "box"]):
    tensor = torch.from_dlpack(batch["image"])
    assert tensor.data_ptr() == batch["image"].ctypes.data and tensor.shape == batch["image"].shape
    assert np.from_dlpack(torch.from_dlpack(batch["box"])).ctypes.data == batch["box"].ctypes.data
"""
    peer_torch(COMMON + script, PACKAGES, dataset)


HELD = """
def held(framework, part):
    kept = []
    loader = stoker.Loader(path, 4, RECIPE, fields=["image", "label"], output=framework)
    for _ in range(3):
        for batch in loader:
            kept.append((part(batch["image"]), np.array(part(batch["image"]), copy=True), batch["label"]))
    del loader, batch
    other = stoker.Loader(path, 4, RECIPE, seed=9, output=framework)
    for _ in range(20):  # takes what memory the first Loader has given back
        gc.collect()
        for batch in other:
            pass
    labels = [int(label) for _, _, column in kept for label in column]
    assert len(labels) == 90 and sorted(labels) == sorted([*range(5)] * 18)
    for tensor, copy, _ in kept:
        assert np.array_equal(np.asarray(tensor), copy)
"""


def test_torch_tensors_outlive_loader_and_batch(peer_torch, dataset):
    # A view of one: what keeps the memory has to survive that, too.
    peer_torch(COMMON + HELD + "held('torch', lambda image: image[1:, ::2].permute(0, 3, 1, 2))", PACKAGES, dataset)


def test_tensorflow_tensors_outlive_loader_and_batch(peer_tensorflow, dataset):
    peer_tensorflow(COMMON + HELD + "held('tensorflow', lambda image: image[1:, ::2])", PACKAGES, dataset)
