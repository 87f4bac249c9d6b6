# SPDX-License-Identifier: Apache-2.0
"""The samples of the matrix of formats, and what each way of writing them can say. Needs nothing but NumPy."""

import numpy as np

COUNT = 12
KINDS = {
    "photos": "JPEG images, int64 labels, captions",
    "arrays": "float32 and uint8 arrays of two dimensions, int64 and float64 numbers",
    "ragged": "arrays whose length varies, a caption that every third sample lacks, int64 labels",
}

# How a dataset lies there -> its format, and the library that writes it.
FORMS = {
    "folder": ("folder", ""),
    "tar": ("tar", "webdataset"),
    "tfrecord": ("tfrecord", "tensorflow"),
    "hdf5": ("hdf5", "h5py"),
    "lmdb": ("lmdb", "lmdb"),
    "IPC file": ("arrow", "pyarrow"),
    "IPC stream": ("arrow", "pyarrow"),
    "save_to_disk": ("arrow", "datasets"),
    "feather": ("feather", "pyarrow"),
    "parquet": ("parquet", "datasets"),
    "npy": ("npy", "numpy"),
    "npz": ("npy", "numpy"),
    "idx": ("npy", "numpy"),
    "CIFAR-10": ("npy", "numpy"),
}
# Library -> the peer in whose environment it is; "" is that of the tests.
LIBRARIES = {
    "webdataset": "webdataset",
    "tensorflow": "tensorflow",
    "h5py": "hdf5",
    "lmdb": "lmdb",
    "pyarrow": "arrow",
    "datasets": "arrow",
    "numpy": "",
}
# Format we write -> the libraries that open it.
READERS = {
    "tar": ["webdataset"],
    "tfrecord": ["tensorflow"],
    "hdf5": ["h5py"],
    "lmdb": ["lmdb"],
    "arrow": ["pyarrow", "datasets"],
    "feather": ["pyarrow"],
    "npy": ["numpy"],
}


def make(jpeg) -> dict[str, list[dict]]:
    """Kind -> its samples; `jpeg` makes an image of a number."""
    rng = np.random.default_rng(3)
    photos = [
        {"image": jpeg(i), "label": np.int64(i % 3), "caption": f"number {i}: gr\u00fc\u00dfe" + "!" * (i % 5)}
        for i in range(COUNT)
    ]
    arrays = [
        {
            "grid": rng.normal(size=(3, 4)).astype("float32"),
            "pixels": rng.integers(0, 256, (4, 5), dtype="uint8"),
            "count": np.int64(rng.integers(-(2**60), 2**60)),
            "weight": np.float64(rng.normal()),
        }
        for _ in range(COUNT)
    ]
    ragged = [
        {
            "tokens": rng.integers(-1000, 1000, 2 + i % 4),
            "points": rng.normal(size=(1 + i % 3, 2)).astype("float32"),
            "label": np.int64(i % 3),
            **({"caption": f"number {i}"} if i % 3 else {}),
        }
        for i in range(COUNT)
    ]
    return {"photos": photos, "arrays": arrays, "ragged": ragged}


def images_of(shape) -> list[dict]:
    """What idx and CIFAR-10's batches hold: bytes alone."""
    rng = np.random.default_rng(5)
    return [
        {"image": rng.integers(0, 256, shape, dtype="uint8"), "label": np.uint8(rng.integers(10))} for _ in range(COUNT)
    ]


def in_lists(value):
    """A value as a tf.train.Example can say it: lists without dimensions, and no text."""
    if isinstance(value, str):
        return value.encode()
    if np.issubdtype(value.dtype, np.floating) if isinstance(value, (np.ndarray, np.generic)) else False:
        return np.ravel(value).astype("float32") if np.ndim(value) else np.float32(value)
    if isinstance(value, np.ndarray):
        return value.ravel().astype("int64")
    return value


def written_as(form: str, kind: str, rows: list[dict]) -> list[dict] | None:
    """The samples as they are in this form; nothing where it cannot hold such."""
    if form in ("idx", "CIFAR-10"):
        return images_of((28, 28) if form == "idx" else (3, 32, 32)) if kind == "arrays" else None
    if FORMS[form][0] == "npy":
        return [{**row, "turned": np.arange(i, i + 3).astype(">i2")} for i, row in enumerate(rows)] if kind == "arrays" else None
    if form == "hdf5" and kind == "arrays":
        return [{**row, "turned": np.arange(i, i + 3).astype(">i2")} for i, row in enumerate(rows)]
    if form == "hdf5" and kind == "ragged":  # nothing may be absent, and one dimension may vary
        return [{"tokens": row["tokens"], "label": row["label"]} for row in rows]
    if form == "tfrecord":
        return [{name: in_lists(value) for name, value in row.items()} for row in rows]
    return rows


def same_value(found, expected) -> bool:
    """Equal in value and shape, and in dtype where both sides have one."""
    if isinstance(expected, (np.ndarray, np.generic)):
        if isinstance(found, (bytes, str)):
            return False
        typed = isinstance(found, (np.ndarray, np.generic))
        found, expected = np.asarray(found), np.asarray(expected)
        if typed and found.dtype.newbyteorder("=") != expected.dtype.newbyteorder("="):
            return False
        return found.shape == expected.shape and bool(np.all(found == expected))
    return type(found) is type(expected) and found == expected


def differences(found: dict[str, dict], expected: dict[str, dict]) -> list[str]:
    """What is not as it should be, in words; the order of the samples does not matter."""
    if found.keys() != expected.keys():
        return [f"keys {sorted(found)} instead of {sorted(expected)}"]
    words = []
    for key, fields in expected.items():
        if found[key].keys() != fields.keys():
            words.append(f"{key}: fields {sorted(found[key])} instead of {sorted(fields)}")
            continue
        for name, value in fields.items():
            if not same_value(found[key][name], value):
                words.append(f"{key}, {name}: {found[key][name]!r} instead of {value!r}")
    return words
