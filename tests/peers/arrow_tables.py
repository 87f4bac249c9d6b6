# SPDX-License-Identifier: Apache-2.0
"""Columns of every type that is read, as Python values; run here and where pyarrow is."""

import numpy as np

ROWS = 25


def image(i):
    return b"\xff\xd8\xff" + bytes([i % 256, 255 - i % 256]) * (i * 37 % 500)


def number(i, dtype):
    if dtype == "bool":
        return i % 3 == 0
    if dtype.startswith("float"):
        return float(np.dtype(dtype).type(i / 8 - 1))
    least = int(np.iinfo(dtype).min)
    most = int(np.iinfo(dtype).max)
    return (least, most, 0, i)[i % 4]


NUMBERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
NUMBERS += ["float16", "float32", "float64", "bool"]


def rows(count=ROWS, nulls=True):
    """A dict per row; what is null is not in it."""
    made = []
    for i in range(count):
        row = {
            "image": image(i),
            "caption": f"gr\u00fc\u00df dich {i} " + "x" * (i * 7 % 40),
            "blob": bytes([i]) * (i % 5),
            "large": bytes(range(i)),
            "longer": "lang" * i,
            "fixed": bytes([i, 1, 2, 3]),
            "box": np.arange(i, i + 4, dtype="float32"),
            "grid": np.arange(i, i + 6, dtype="int16").reshape(2, 3),
            "tokens": np.arange(i % 6, dtype="int64") * i,
            "points": np.arange(2 * (i % 4), dtype="float64").reshape(-1, 2),
            "mask": np.array([k % 2 == i % 2 for k in range(i % 4)], dtype="bool"),
            "words": [f"w{k}".encode() for k in range(i % 4)],
            "kind": ("cat", "dog", "a bird that is longer than twelve bytes")[i % 3],
            "meta.depth": i * 3,
            "meta.note": f"note {i}",
        }
        for dtype in NUMBERS:
            row[dtype] = number(i, dtype)
        if nulls:
            for k, name in enumerate(sorted(row)):
                if name not in ("image", "meta.depth", "meta.note") and (i + k) % 6 == 0:
                    del row[name]
        made.append(row)
    return made
