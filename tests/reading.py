# SPDX-License-Identifier: Apache-2.0
"""Reads datasets through the Python package, and says what fields the files of a sample should become."""

import io
import warnings

import numpy as np

IMAGES = {"jpg", "jpeg", "png", "ppm", "bmp", "pgm", "tif", "tiff", "webp", "gif"}


def read_dataset(path) -> dict[str, dict]:
    """Key -> fields of every sample, in order."""
    import stoker

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stoker.IndexBuiltWarning)
        dataset = stoker.open(path)
    samples = dict(zip(dataset.keys(), dataset, strict=True))
    assert len(samples) == len(dataset)
    return samples


def split_name(name: str) -> tuple[str, str]:
    """WebDataset's rule: the key goes up to the first dot of the base name."""
    directory, slash, base = name.rpartition("/")
    stem, _, suffix = base.partition(".")
    return directory + slash + stem, suffix


def value_of(suffix: str, data: bytes):
    """Name and value of the field that a file becomes."""
    name, _, ending = suffix.rpartition(".")
    if suffix.lower() in IMAGES:
        return "image", data
    if ending == "cls":
        return name or "label", int(data)
    if ending in ("txt", "json"):
        return name or ending, data.decode()
    if ending == "npy":
        return name or "npy", np.load(io.BytesIO(data))
    return suffix or "data", data


def samples_of(files: dict) -> dict[str, dict]:
    """Key -> fields, as the files with these names and contents should be read."""
    found: dict[str, dict] = {}
    for name, data in files.items():
        key, suffix = split_name(name)
        field, value = value_of(suffix, data)
        assert field not in found.get(key, {}), (key, field)
        found.setdefault(key, {})[field] = value
    return found


def same_value(a, b) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


def assert_same_samples(found: dict[str, dict], expected: dict[str, dict]) -> None:
    assert list(found) == list(expected)
    for key, fields in expected.items():
        assert found[key].keys() == fields.keys(), key
        for name, value in fields.items():
            assert same_value(found[key][name], value), f"{key}, {name}: {found[key][name]!r} is not {value!r}"
