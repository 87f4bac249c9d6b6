# SPDX-License-Identifier: Apache-2.0
"""HDF5 files of every kind, written by h5py, with what h5py reads from them.

Run where h5py is: hdf5_files.py DIRECTORY writes NAME.h5 and NAME.pickle (the samples) for every case,
hdf5_files.py PICKLE FILE.h5 what h5py reads from a file.
"""

import pickle
import sys
from pathlib import Path

import numpy as np

ROWS = 23
CASES = {}


def case(*versions, **options):
    """A function that fills a file; `versions` of the format in which it is written."""

    def keep(function):
        for version in versions or ("earliest", "latest"):
            CASES[f"{function.__name__}-{version}"] = (function, version, options)
        return function

    return keep


def lettered(name: str) -> str:
    """Without digits: datasets whose names differ in a number look like samples, and are refused."""
    return name.translate(str.maketrans("0123456789", "abcdefghij"))


def numbers(shape, dtype, seed=1):
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        return random.normal(size=shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)


DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i2", ">i4", ">i8", ">u8", ">f4", ">f8", "?"]


@case()
def contiguous(file):
    for dtype in DTYPES:
        file[f"array {dtype}"] = numbers((ROWS, 3, 5), dtype)
        file[f"number {dtype}"] = numbers((ROWS,), dtype)


@case()
def compact(file):
    import h5py

    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    data = numbers((ROWS, 4), "i4")
    space = h5py.h5s.create_simple(data.shape)
    made = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, space, properties)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, data)


@case()
def chunked(file):
    for dtype in DTYPES:
        file.create_dataset(f"array {dtype}", data=numbers((ROWS, 3, 5), dtype), chunks=(4, 3, 5))
        file.create_dataset(f"number {dtype}", data=numbers((ROWS,), dtype), chunks=(7,))


FILTERS = {
    "gzip": {"compression": "gzip"},
    "gzip9": {"compression": "gzip", "compression_opts": 9, "shuffle": True},
    "shuffle": {"shuffle": True},
    "lzf": {"compression": "lzf"},
    "lzf shuffle": {"compression": "lzf", "shuffle": True},
    "fletcher": {"fletcher32": True},
    "all": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf all": {"compression": "lzf", "shuffle": True, "fletcher32": True},
}


@case()
def filters(file):
    for name, options in FILTERS.items():
        for dtype in ("u1", "i2", ">i4", "f4", "f8"):
            smooth = np.cumsum(numbers((ROWS, 40), "i1"), axis=1).astype(dtype)
            file.create_dataset(f"{name} {dtype}", data=smooth, chunks=(5, 40), **options)
        file.create_dataset(f"{name} odd", data=numbers((ROWS, 3), "i8"), chunks=(4, 3), **options)


@case()
def szip(file):
    for dtype in ("i1", "u1", "i2", "u2", ">i2", "i4", ">i4", "f4", "i8", "f8"):
        for way in ("nn", "ec"):
            for pixels in (4, 8, 32):
                smooth = np.cumsum(numbers((ROWS, 64), "i1"), axis=1).astype(dtype)
                for kind, data in (("smooth", smooth), ("noise", numbers((ROWS, 64), dtype)), ("zero", smooth * 0)):
                    file.create_dataset(
                        lettered(f"{way} {pixels} {kind} {dtype}"),
                        data=data,
                        chunks=(6, 64),
                        compression="szip",
                        compression_opts=(way, pixels),
                    )
    for width in (33, 50, 127):
        file.create_dataset(
            lettered(f"width {width}"),
            data=np.cumsum(numbers((ROWS, width), "i1"), axis=1).astype("i2"),
            chunks=(6, width),
            compression="szip",
            compression_opts=("nn", 16),
        )


@case("earliest", "v110", "latest")
def indexes(file):
    """Every way in which chunks are found."""
    data = numbers((ROWS, 4, 6), "i4")
    unlimited = {"one": (None, 4, 6), "inner": (ROWS, None, 6), "two": (None, None, 6), "fixed": (100, 8, 12)}
    for packed in ({}, {"compression": "gzip"}):
        tag = " gzip" if packed else ""
        file.create_dataset("single" + tag, data=data, chunks=data.shape, **packed)
        for name, greatest in unlimited.items():
            file.create_dataset(name + tag, data=data, chunks=(2, 4, 6), maxshape=greatest, **packed)


@case("latest")
def implicit(file):
    import h5py

    for name, greatest in (("x", (ROWS, 5)), ("y", (ROWS + 30, 5))):
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4, 5))
        properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple((ROWS, 5), greatest)
        made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_INT32, space, properties)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers((ROWS, 5), "i4"))


@case()
def pieces(file):
    data = numbers((ROWS, 10, 12), "i2")
    for chunk in ((4, 5, 12), (4, 3, 12), (1, 10, 5), (3, 10, 20), (30, 11, 12), (2, 4, 5)):
        greatest = tuple(max(a, b) for a, b in zip(data.shape, chunk, strict=True))
        for packed in ({}, {"compression": "gzip", "shuffle": True}):
            file.create_dataset(lettered(f"{chunk} {len(packed)}"), data=data, chunks=chunk, maxshape=greatest, **packed)


@case()
def never_written(file):
    file.create_dataset("contiguous", (ROWS, 3), "i4")
    file.create_dataset("filled", (ROWS, 3), "i4", fillvalue=-7)
    for name, options in {"plain": {}, "packed": {"compression": "gzip"}}.items():
        made = file.create_dataset(f"some {name}", (ROWS, 4), "f4", chunks=(2, 2), fillvalue=0.5, **options)
        made[3:5] = 9
        made[10, 3] = 11
        numbers_ = file.create_dataset(f"number {name}", (ROWS,), ">i2", chunks=(3,), fillvalue=77, **options)
        numbers_[4] = 5
    import h5py

    file.create_dataset("text", (ROWS,), h5py.string_dtype())


@case()
def text(file):
    import h5py

    words = ["", "a", "gr\u00fc\u00df", "x" * 30, "\u65e5\u672c", "with\nline"]
    words = [f"{words[i % 6]}{i}" if i % 6 else "" for i in range(ROWS)]
    plain = [word.encode("ascii", "replace")[:12] for word in words]
    file.create_dataset("variable", data=words, dtype=h5py.string_dtype())
    file.create_dataset("variable ascii", data=plain, dtype=h5py.string_dtype("ascii"))
    file.create_dataset("fixed", data=[w.encode() for w in words], dtype=h5py.string_dtype("utf-8", 40))
    file.create_dataset("bytes", data=np.array(plain, "S12"))
    file.create_dataset("packed", data=words, dtype=h5py.string_dtype(), chunks=(5,), compression="gzip")
    for name, padding in (("c", h5py.h5t.STR_NULLTERM), ("fortran", h5py.h5t.STR_SPACEPAD)):
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(13)
        kind.set_strpad(padding)
        space = h5py.h5s.create_simple((ROWS,))
        made = h5py.h5d.create(file.id, name.encode(), kind, space)
        padded = [p.ljust(13) if name == "fortran" else p + b"\0" for p in plain]
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(padded, "S13"), kind)


@case()
def variable(file):
    import h5py

    random = np.random.default_rng(3)
    for name, options in {"plain": {}, "packed": {"chunks": (4,), "compression": "gzip", "shuffle": True}}.items():
        for dtype in ("u1", "i1", "i4", "f8"):
            made = file.create_dataset(f"{name} {dtype}", (ROWS,), h5py.vlen_dtype(np.dtype(dtype)), **options)
            for i in range(ROWS):
                if i % 5 != 4:
                    made[i] = numbers((int(random.integers(0, 900)),), dtype, i)
    images = file.create_dataset("image", (ROWS,), h5py.vlen_dtype(np.uint8))
    for i in range(ROWS):
        images[i] = np.frombuffer(b"\xff\xd8\xff" + bytes([i]) * 9000 * (i % 3 + 1), "u1")


@case()
def compound(file):
    kind = np.dtype([("a", "i4"), ("b", ">f8"), ("c", "u1", (3, 2)), ("s", "S5"), ("in", [("x", "f4"), ("y", "?")])])
    rows = np.zeros(ROWS, kind)
    rows["a"] = numbers(ROWS, "i4")
    rows["b"] = numbers(ROWS, ">f8")
    rows["c"] = numbers((ROWS, 3, 2), "u1")
    rows["s"] = [b"ab"[: i % 3] + b"c" for i in range(ROWS)]
    rows["in"]["x"] = numbers(ROWS, "f4")
    rows["in"]["y"] = numbers(ROWS, "?")
    file.create_dataset("table", data=rows)
    file.create_dataset("packed", data=rows, chunks=(5,), compression="gzip")
    file.create_dataset("complex", data=numbers((ROWS, 3), "f8") + 1j * numbers((ROWS, 3), "f8", 2))


@case()
def table(file):
    """One dataset of compounds: its members are the fields, without the name of the dataset."""
    rows = np.zeros(ROWS, [("index", "i8"), ("values", "f4", (4,))])
    rows["index"] = np.arange(ROWS)
    rows["values"] = numbers((ROWS, 4), "f4")
    file["table"] = rows


@case()
def other_types(file):
    import h5py

    file["enum"] = np.arange(ROWS) % 3
    kind = h5py.enum_dtype({"cat": 0, "dog": 1, "eel": 2}, basetype="i2")
    file.create_dataset("label", data=np.arange(ROWS) % 3, dtype=kind)
    file.create_dataset("opaque", data=np.array([bytes([i, 0, 255, i]) for i in range(ROWS)], "V4"))
    file.create_dataset("array type", data=numbers((ROWS, 2, 3), "f4"), dtype=np.dtype("f4"))
    file["single value"] = 3
    file.create_dataset("empty", dtype="f4", shape=None)
    file["named type"] = np.dtype("i4")
    file.create_dataset("by name", data=numbers((ROWS, 2), "i4"), dtype=file["named type"])
    file["nothing in it"] = np.zeros((ROWS, 0, 3), "f4")


@case()
def attributes(file):
    """So many that headers continue elsewhere."""
    file["x"] = numbers((ROWS, 4), "i4")
    for i in range(60):
        file["x"].attrs[f"attribute {i}"] = f"value {i}" * 20
        file.attrs[f"attribute {i}"] = np.arange(i)


@case()
def many_links(file):
    for i in range(300):
        file[f"field {i:03d}"] = np.arange(ROWS) + i


@case(track_order=True)
def ordered(file):
    for name in "zyxabc":
        file.create_dataset(name, data=numbers((ROWS, 2), "i4"), track_order=True)


@case(userblock_size=2048)
def user_block(file):
    file["x"] = numbers((ROWS, 3), "i4")
    file.create_dataset("y", data=numbers((ROWS, 3), "i4"), chunks=(4, 3), compression="gzip")


@case()
def grown(file):
    made = file.create_dataset("x", (2, 3), "i4", maxshape=(None, 3), chunks=(4, 3))
    for size in (7, 900, ROWS):
        made.resize((size, 3))
        made[:] = numbers((size, 3), "i4")
    many = file.create_dataset("y", (ROWS, 3000), "u1", maxshape=(None, 3000), chunks=(1, 3000), fletcher32=True)
    many[:] = numbers((ROWS, 3000), "u1")
    file["z"] = __import__("h5py").SoftLink("/x")


@case()
def filter_masks(file):
    """Chunks that were written without some of the filters."""
    import zlib

    made = file.create_dataset("x", (ROWS, 8), "i4", chunks=(1, 8), compression="gzip", shuffle=True)
    made[:] = numbers((ROWS, 8), "i4")
    row = np.arange(8, dtype="i4")
    made.id.write_direct_chunk((3, 0), row.tobytes(), filter_mask=3)
    made.id.write_direct_chunk((4, 0), zlib.compress(row.tobytes()), filter_mask=1)


def plain(value, kind):
    """As the package gives it: numbers as Python's, text as str, arrays little-endian."""
    import h5py

    string = h5py.check_string_dtype(kind)
    if string is not None:
        value = value if isinstance(value, bytes) else value.encode()
        return value.decode()
    if h5py.check_vlen_dtype(kind) is not None:
        return value.tobytes() if value.dtype == np.uint8 else value.astype(value.dtype.newbyteorder("<"))
    if isinstance(value, np.void) and not value.dtype.names:
        return value.tobytes()
    if np.ndim(value) == 0:
        return value.item() if kind.kind != "b" else int(value)
    return np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<")))


def add_fields(name, value, kind, found):
    if kind.names:
        for member in kind.names:
            add_fields(f"{name}.{member}" if name else member, value[member], kind[member], found)
    elif kind.kind == "c":
        for member, part in (("r", value.real), ("i", value.imag)):
            found[f"{name}.{member}"] = np.ascontiguousarray(part)
    elif kind.kind == "S" and kind.subdtype is None and np.ndim(value) == 0:
        found[name] = bytes(value).decode()
    else:
        found[name] = plain(value, kind)


def samples_of(file):
    import h5py

    sets = {name: file[name] for name in sorted(file) if isinstance(file[name], h5py.Dataset) and file[name].shape}
    bare = len(sets) == 1
    samples = []
    read = {name: each[...] for name, each in sets.items()}
    for i in range(ROWS):
        found = {}
        for name, each in sets.items():
            value = read[name][i]
            if name == "fortran":
                value = value.rstrip(b" ")
            add_fields("" if bare and each.dtype.names else name, value, each.dtype, found)
        samples.append(found)
    return samples


def write_all(directory: Path) -> None:
    import h5py

    for name, (fill, version, options) in CASES.items():
        with h5py.File(directory / f"{name}.h5", "w", libver=version, **options) as file:
            fill(file)
        with h5py.File(directory / f"{name}.h5", "r") as file:
            (directory / f"{name}.pickle").write_bytes(pickle.dumps(samples_of(file)))


def read_one(target: Path, source: Path) -> None:
    import h5py

    with h5py.File(source, "r") as file:
        target.write_bytes(pickle.dumps(samples_of(file)))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write_all(Path(sys.argv[1]))
    else:
        read_one(Path(sys.argv[1]), Path(sys.argv[2]))
