# SPDX-License-Identifier: Apache-2.0
"""stoker.torch in a real PyTorch: the one changed line in somebody's script."""

import json
from pathlib import Path

import pytest
import stoker
from samples import jpeg, write_files

PACKAGES = str(Path(stoker.__file__).parents[1])

# The package is put behind torch's own, so that NumPy and Pillow are the peer's.
BOTH = """
import hashlib, json, sys, warnings
sys.path.append(sys.argv[1])
warnings.simplefilter("ignore")
import torch, torchvision
from torchvision import transforms
import stoker.torch

folder, dataset, start = sys.argv[2:]
crop = transforms.Compose([transforms.Resize(32), transforms.CenterCrop(24), transforms.ToTensor()])

def everything(data):
    context = None if start == "none" else start
    loader = torch.utils.data.DataLoader(data, 4, num_workers=0 if context is None else 2, multiprocessing_context=context)
    pixels = hashlib.sha256()
    labels = []
    for images, targets in loader:
        pixels.update(images.numpy().tobytes())
        labels += targets.tolist()
    return [pixels.hexdigest(), labels, data.classes, data.class_to_idx, data.targets, len(data)]

if __name__ == "__main__":
    theirs = everything(torchvision.datasets.ImageFolder(folder, crop))
    ours = everything(stoker.torch.ImageFolder(dataset, crop))
    print(json.dumps([theirs, ours]))
"""


@pytest.mark.parametrize("start", ["none", "fork", "forkserver"])
@pytest.mark.parametrize("form", ["folder", "tar", "tfrecord"])
def test_image_folder_is_torchvisions(peer_torch, tmp_path, form, start):
    write_files(tmp_path / "photos", {f"{'abc'[i % 3]}/{i:02d}.jpg": jpeg(i, 50, 40) for i in range(20)})
    dataset = tmp_path / "photos"
    if form != "folder":
        dataset = tmp_path / "packed"
        stoker.pack(tmp_path / "photos", dataset, to=form, shard_size="10K")
    theirs, ours = json.loads(peer_torch(BOTH, PACKAGES, tmp_path / "photos", dataset, start))
    assert ours == theirs


def test_without_labels_it_says_so(peer_torch, tmp_path):
    write_files(tmp_path / "d", {"a.jpg": jpeg(1)})
    script = """
import sys, warnings
sys.path.append(sys.argv[1])
warnings.simplefilter("ignore")
import stoker.torch
try:
    stoker.torch.ImageFolder(sys.argv[2])
except ValueError as error:
    print(error)
"""
    assert "no field 'label'" in peer_torch(script, PACKAGES, tmp_path / "d")


def test_fields_of_other_names(peer_torch, tmp_path):
    write_files(tmp_path / "d", {f"{i}.photo.jpg": jpeg(i) for i in range(3)})
    write_files(tmp_path / "d", {f"{i}.kind.cls": str(i).encode() for i in range(3)})
    script = """
import sys, warnings
sys.path.append(sys.argv[1])
warnings.simplefilter("ignore")
import stoker.torch
data = stoker.torch.ImageFolder(sys.argv[2], image="photo.jpg", label="kind")
print(data.targets, [label for image, label in data])
try:
    stoker.torch.ImageFolder(sys.argv[2])
except ValueError as error:
    print(error)
"""
    found = peer_torch(script, PACKAGES, tmp_path / "d")
    assert "[0, 1, 2] [0, 1, 2]" in found
    assert "no field 'image', only: " in found and "choose one with image=" in found
