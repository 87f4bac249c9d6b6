# SPDX-License-Identifier: Apache-2.0
"""Images under any name and of any kind: encoded, or arrays; and datasets whose fields differ."""

import io
from pathlib import Path

import numpy as np
import pytest
import stoker
from PIL import Image
from samples import npy, write_files
from stoker.transforms import CutMix, Resize, ToDtype
from tfrecord_bytes import example, record

COUNT = 12


def pixels(i: int, height: int = 20, width: int = 30) -> np.ndarray:
    return np.random.default_rng(i).integers(0, 256, (height, width, 3), dtype="uint8")


def png(i: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels(i)).save(buffer, "PNG")
    return buffer.getvalue()


def resized(array: np.ndarray, height: int = 8, width: int = 6) -> np.ndarray:
    return np.asarray(Image.fromarray(array).convert("RGB").resize((width, height), Image.Resampling.BILINEAR))


def check_batches(loader: stoker.Loader, name: str, wanted=pixels) -> None:
    rows = 0
    for batch in loader:
        for sample, found in zip(batch["sample"], batch[name]):
            assert np.array_equal(found, resized(wanted(int(sample))))
            rows += 1
    assert rows == COUNT


@pytest.fixture(scope="module")
def named(tmp_path_factory) -> Path:
    """Photos that are called photo.png, and their labels `kind`."""
    root = tmp_path_factory.mktemp("named")
    files = {}
    for i in range(COUNT):
        files |= {f"{i:03d}.photo.png": png(i), f"{i:03d}.kind.cls": str(i % 3).encode()}
    write_files(root / "files", files)
    stoker.pack(root / "files", root / "packed")
    return root / "packed"


@pytest.mark.parametrize("form", ["tar", "tfrecord", "arrow", "hdf5", "lmdb"])
def test_a_field_of_any_name_in_every_format(named, tmp_path, form):
    path = named
    if form != "tar":
        stoker.pack(named, tmp_path / "other", to=form)
        path = tmp_path / "other"
    field = next(name for name, field in stoker.open(path).fields.items() if field.type == "bytes")
    assert field != "image"
    loader = stoker.Loader(path, 5, [Resize((8, 6))], image=field)
    check_batches(loader, field)
    assert set(next(iter(loader))) == {field, "sample"}


def test_other_names(named):
    loader = stoker.Loader(named, 5, [Resize((8, 6))], rename={"photo.png": "image", "kind": "label"})
    check_batches(loader, "image")
    batch = next(iter(loader))
    assert set(batch) == {"image", "label", "sample"} and batch["label"].dtype == np.int64
    assert batch["label"].tolist() == [int(sample) % 3 for sample in batch["sample"]]


def test_new_names_are_what_other_options_know(named):
    names = {"photo.png": "picture", "kind": "label"}
    mixing = [Resize((8, 6)), ToDtype("float32", scale=True), CutMix(num_classes=3)]
    batch = next(iter(stoker.Loader(named, 6, mixing, image="picture", rename=names)))
    assert batch["picture"].shape == (6, 8, 6, 3) and batch["label"].shape == (6, 3)
    balanced = stoker.Loader(named, 6, [Resize((8, 6))], image="picture", rename=names, weights="balanced")
    assert len(next(iter(balanced))["label"]) == 6
    only = next(iter(stoker.Loader(named, 6, fields=["label"], rename=names)))
    assert set(only) == {"label", "sample"}
    doubled = stoker.Loader(
        named, 6, [Resize((8, 6)), lambda image: image // 2], image="picture", rename=names, shuffle=False
    )
    assert np.array_equal(next(iter(doubled))["picture"][0], resized(pixels(0)) // 2)


def test_wrong_names(named):
    with pytest.raises(ValueError, match=r"no field 'image' to decode, only: .*; choose one: image=\"photo.png\""):
        stoker.Loader(named, 5, [Resize((8, 6))])
    with pytest.raises(ValueError, match=r"field 'kind' holds numbers, not images .*choose image=\"photo.png\""):
        stoker.Loader(named, 5, [Resize((8, 6))], image="kind")
    with pytest.raises(ValueError, match="rename: there is no field 'foto', only: "):
        stoker.Loader(named, 5, rename={"foto": "image"})
    with pytest.raises(ValueError, match="two fields 'kind'"):
        stoker.Loader(named, 5, rename={"photo.png": "kind"})
    with pytest.raises(ValueError, match="image 'photo.png': is for transforms"):
        stoker.Loader(named, 5, image="photo.png")
    with pytest.raises(ValueError, match="transforms change 'photo.png'"):
        stoker.Loader(named, 5, [Resize((8, 6))], image="photo.png", fields=["kind"])


def test_names_of_tfrecords(tmp_path):
    """As TensorFlow's scripts write them."""
    records = [example({"image/data": [png(i)], "image/class/label": [i % 3]}) for i in range(COUNT)]
    (tmp_path / "a.tfrecord").write_bytes(b"".join(map(record, records)))
    loader = stoker.Loader(tmp_path / "a.tfrecord", 5, [Resize((8, 6))], rename={"image/data": "image"})
    check_batches(loader, "image")


# --- Arrays -----------------------------------------------------------------------------------------------

SHAPES = {
    "height, width, 3": lambda i: pixels(i),
    "3, height, width": lambda i: pixels(i).transpose(2, 0, 1),
    "height, width": lambda i: pixels(i)[:, :, 0],
    "height, width, 1": lambda i: pixels(i)[:, :, :1],
    "1, height, width": lambda i: pixels(i)[:, :, 0][None],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_are_pictures(tmp_path, shape):
    np.savez(tmp_path / "data.npz", images=np.stack([SHAPES[shape](i) for i in range(COUNT)]), targets=np.arange(COUNT))
    loader = stoker.Loader(tmp_path / "data.npz", 5, [Resize((8, 6))], image="images")
    gray = "3" not in shape
    check_batches(loader, "images", lambda i: pixels(i)[:, :, 0] if gray else pixels(i))
    assert loader.stats()["decoders"] == {} or not any(loader.stats()["decoders"].values())


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_differing_size(tmp_path, order):
    def wanted(i):
        return pixels(i, 10 + i, 30 - i)

    write_files(
        tmp_path / "files", {f"{i:03d}.scan.npy": npy(np.asarray(wanted(i), order=order)) for i in range(COUNT)}
    )
    for index in (False, True):
        if index:
            stoker.pack(tmp_path / "files", tmp_path / "packed")
        path = tmp_path / ("packed" if index else "files")
        check_batches(stoker.Loader(path, 5, [Resize((8, 6))], image="scan"), "scan", wanted)


def test_arrays_that_are_no_pictures(tmp_path):
    np.savez(tmp_path / "data.npz", images=np.zeros((COUNT, 4, 5, 3), "float32"), targets=np.arange(COUNT))
    cause = "field 'images' holds arrays of float32 of 4 x 5 x 3, not images"
    with pytest.raises(ValueError, match=cause + ".*uint8.*leave out the transforms"):
        stoker.Loader(tmp_path / "data.npz", 5, [Resize((8, 6))], image="images")
    np.savez(tmp_path / "more.npz", images=np.zeros((COUNT, 4, 5, 7), "uint8"), targets=np.arange(COUNT))
    with pytest.raises(ValueError, match="arrays of uint8 of 4 x 5 x 7, not images"):
        stoker.Loader(tmp_path / "more.npz", 5, [Resize((8, 6))], image="images")


# --- Several datasets -------------------------------------------------------------------------------------


def test_datasets_with_different_fields_are_refused_at_once(tmp_path):
    np.savez(tmp_path / "a.npz", emb=np.zeros((6, 4), "float32"), label=np.arange(6))
    np.savez(tmp_path / "b.npz", vec=np.zeros((6, 4), "float32"), label=np.arange(6))
    both = [tmp_path / "a.npz", tmp_path / "b.npz"]
    with pytest.raises(ValueError) as error:
        stoker.Loader(both, 4, on_error="skip")
    for part in (
        "the datasets have different fields",
        "b.npz has no 'emb'",
        "only: ",
        "vec",
        'fields=["label"]',
        "rename=",
    ):
        assert part in str(error.value)
    assert sum(len(batch["label"]) for batch in stoker.Loader(both, 4, fields=["label"])) == 12
    assert sum(len(batch["emb"]) for batch in stoker.Loader(both, 4, rename={"vec": "emb"})) == 12


def test_a_field_may_be_missing_in_samples_of_one_dataset(tmp_path):
    write_files(tmp_path / "d", {"a.cls": b"1", "a.txt": b"one", "b.cls": b"2"})
    [batch] = stoker.Loader(tmp_path / "d", 4, shuffle=False)
    assert batch["txt"] == ["one", None]
