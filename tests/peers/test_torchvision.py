# SPDX-License-Identifier: Apache-2.0
"""Class directories mean what torchvision's ImageFolder says they mean: same samples, same order, same labels."""

import hashlib
import io
import json

from PIL import Image
from reading import read_dataset, split_name
from samples import jpeg, write_files

IMAGE_FOLDER = """
import json, os, sys
from torchvision.datasets import ImageFolder
root = sys.argv[1]
folder = ImageFolder(root)
print(json.dumps({"classes": folder.classes, "samples": [[os.path.relpath(path, root), label] for path, label in folder.samples]}))
"""

# Every place where one sorting rule differs from another: case, digits, punctuation around '.' and '/', depth, scripts.
NASTY = [
    "b/x.jpg", "b/X.jpg", "B/x.jpg", "10/a.jpg", "9/a.jpg", "a b/x.jpg", "a-b/x.jpg", "a/x.jpg", "a.b/x.jpg", "ab/x.jpg",
    "é/x.jpg", "z/x.jpg", "zz/x.jpg", "_/x.jpg",
    "b/deep/x.jpg", "b/deep-er/x.jpg", "b/deep.er/x.jpg", "b/deep/er/x.jpg", "b/deep/er/a.jpg", "b/a/z.jpg", "b/zz.jpg",
    "z/img1.jpg", "z/img10.jpg", "z/img2.jpg", "z/img-1.jpg", "z/img_1.jpg", "z/img 1.jpg", "z/img.jpg", "z/img+.jpg", "z/Img.JPG",
    "z/upper.JPEG", "z/mixed.Png", "z/bitmap.bmp", "z/web.webp", "z/tagged.tiff", "z/grey.pgm", "z/colour.ppm", "z/old.tif",
    "10/世界.jpg", "10/ß.jpg", "10/z.jpg",
]  # fmt: skip


def test_order_and_labels_of_image_folder(peer_torch, stoker_cli, tmp_path):
    files = {name: jpeg(i) for i, name in enumerate(NASTY)}
    write_files(tmp_path / "d", files)
    theirs = json.loads(peer_torch(IMAGE_FOLDER, tmp_path / "d"))
    assert len(theirs["samples"]) == len(NASTY)
    ours = read_dataset(tmp_path / "d")
    expected = {split_name(name)[0]: (files[name], label) for name, label in theirs["samples"]}
    assert list(ours) == list(expected)
    assert {key: (sample["image"], sample["label"]) for key, sample in ours.items()} == expected
    result = stoker_cli("check", tmp_path / "d", "--json").json
    assert [each["name"] for each in result["classes"]] == theirs["classes"]


def test_packed_it_is_still_the_same(peer_torch, stoker_cli, tmp_path):
    files = {name: jpeg(i) for i, name in enumerate(NASTY)}
    write_files(tmp_path / "d", files)
    theirs = json.loads(peer_torch(IMAGE_FOLDER, tmp_path / "d"))
    for form in ("tar", "tfrecord"):
        stoker_cli("pack", tmp_path / "d", tmp_path / form, "--to", form, "--shard-size", "5K")
        ours = read_dataset(tmp_path / form)
        assert [(key, sample["label"]) for key, sample in ours.items()] == [
            (split_name(name)[0], label) for name, label in theirs["samples"]
        ]


def test_flat_folder_has_no_labels(tmp_path):
    write_files(tmp_path / "d", {"x.jpg": jpeg(1), "y.jpg": jpeg(2)})
    assert read_dataset(tmp_path / "d") == {"x": {"image": jpeg(1)}, "y": {"image": jpeg(2)}}


def test_an_explicit_label_wins_over_directories(tmp_path):
    write_files(tmp_path / "d", {"a/x.jpg": b"1", "a/x.cls": b"8", "b/y.jpg": b"2"})
    assert read_dataset(tmp_path / "d") == {"a/x": {"image": b"1", "label": 8}, "b/y": {"image": b"2"}}


def test_files_in_the_root_beside_class_directories(tmp_path):
    write_files(tmp_path / "d", {"a/x.jpg": b"1", "b/y.jpg": b"2", "top.jpg": b"3"})
    found = read_dataset(tmp_path / "d")
    assert {key: sample.get("label") for key, sample in found.items()} == {"a/x": 0, "b/y": 1, "top": None}


def test_torch_reads_what_we_read(peer_torch, tmp_path):
    """The same pixels come out of what we hand over."""
    files = {f"c{i % 2}/p{i}.jpg": jpeg(i) for i in range(6)}
    write_files(tmp_path / "d", files)
    script = """
import hashlib, json, sys
from torchvision.datasets import ImageFolder
print(json.dumps([hashlib.sha256(image.tobytes()).hexdigest() for image, _ in ImageFolder(sys.argv[1])]))
"""
    theirs = json.loads(peer_torch(script, tmp_path / "d"))
    ours = [
        hashlib.sha256(Image.open(io.BytesIO(sample["image"])).convert("RGB").tobytes()).hexdigest()
        for sample in read_dataset(tmp_path / "d").values()
    ]
    assert theirs == ours


def test_an_index_does_not_disturb_image_folder(peer_torch, stoker_cli, tmp_path):
    """Others use the same directory: a class named .stoker would be an error, or shift every label by one."""
    write_files(tmp_path / "d", {f"c{i % 3}/p{i}.jpg": jpeg(i) for i in range(6)})
    before = json.loads(peer_torch(IMAGE_FOLDER, tmp_path / "d"))
    stoker_cli("index", tmp_path / "d")
    assert stoker_cli("check", tmp_path / "d", "--json").json["index"]["depth"] == "structure"
    assert json.loads(peer_torch(IMAGE_FOLDER, tmp_path / "d")) == before
