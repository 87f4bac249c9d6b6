# SPDX-License-Identifier: Apache-2.0
"""How each library writes the samples of the matrix, and reads what we have written. Run where the libraries are.

Each write_LIBRARY(root, forms) puts the samples of {form: {kind: rows}} at root/FORM/KIND; each read_LIBRARY(path) gives key -> fields.
"""

import io
import pickle
import sys
from pathlib import Path

import numpy as np
from reading import samples_of, value_of


def members(row: dict) -> dict:
    """Endings of file names -> values, as the formats that consist of files have them."""
    named = {}
    for name, value in row.items():
        if name == "image":
            named["jpg"] = value
        elif isinstance(value, str):
            named[f"{name}.txt"] = value
        elif np.ndim(value) or isinstance(value, np.floating):
            named[f"{name}.npy"] = np.asarray(value)
        else:
            named["cls" if name == "label" else f"{name}.cls"] = int(value)
    return named


def as_bytes(value) -> bytes:
    if isinstance(value, np.ndarray):
        buffer = io.BytesIO()
        np.save(buffer, value, allow_pickle=False)
        return buffer.getvalue()
    return value if isinstance(value, bytes) else str(value).encode()


def files_of(rows: list[dict]) -> dict[str, bytes]:
    return {
        f"s{i:03d}.{ending}": as_bytes(value) for i, row in enumerate(rows) for ending, value in members(row).items()
    }


def columns(rows: list[dict]) -> dict[str, list]:
    """Name -> a value per row, None where there is none."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def write_webdataset(root, forms):
    import webdataset

    for kind, rows in forms["tar"].items():
        target = root / "tar" / kind
        target.mkdir(parents=True)
        with webdataset.ShardWriter(f"{target}/d-%06d.tar", maxcount=5, verbose=0) as sink:
            for i, row in enumerate(rows):
                sink.write({"__key__": f"s{i:03d}", **members(row)})


def read_webdataset(path):
    import webdataset

    shards = sorted(map(str, path.glob("*.tar")))
    return {
        sample["__key__"]: dict(
            value_of(suffix, data) for suffix, data in sample.items() if not suffix.startswith("__")
        )
        for sample in webdataset.WebDataset(shards, shardshuffle=False)
    }


def write_tensorflow(root, forms):
    import tensorflow as tf

    def feature(value):
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        if np.asarray(value).dtype.kind == "f":
            return tf.train.Feature(float_list=tf.train.FloatList(value=np.ravel(value)))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=np.ravel(value)))

    for kind, rows in forms["tfrecord"].items():
        target = root / "tfrecord" / kind
        target.mkdir(parents=True)
        with tf.io.TFRecordWriter(str(target / "d-00000-of-00001")) as writer:
            for row in rows:
                features = tf.train.Features(feature={name: feature(value) for name, value in row.items()})
                writer.write(tf.train.Example(features=features).SerializeToString())


def read_tensorflow(path):
    import tensorflow as tf

    shards = sorted(str(each) for each in path.iterdir() if each.is_file())
    found = {}
    for record in tf.data.TFRecordDataset(shards):  # compares both checksums of every record
        fields = {}
        for name, feature in tf.train.Example.FromString(record.numpy()).features.feature.items():
            kind = feature.WhichOneof("kind")
            values = list(getattr(feature, kind).value)
            if name.endswith(".npy"):
                fields[name[:-4]] = np.load(io.BytesIO(values[0]))
            elif kind == "bytes_list" or len(values) == 1:
                fields[name] = values[0]
            else:
                fields[name] = np.array(values, "int64" if kind == "int64_list" else "float32")
        found[fields.pop("__key__").decode()] = fields
    return found


def write_h5py(root, forms):
    import h5py

    (root / "hdf5").mkdir()
    for kind, rows in forms["hdf5"].items():
        target = root / "hdf5" / kind
        target.mkdir()
        with h5py.File(target / "d.h5", "w") as file:
            for name, values in columns(rows).items():
                if isinstance(values[0], str):
                    file.create_dataset(name, data=values, dtype=h5py.string_dtype())
                elif isinstance(values[0], bytes) or kind == "ragged" and np.ndim(values[0]):
                    data = [np.frombuffer(v, "u1") if isinstance(v, bytes) else v for v in values]
                    made = file.create_dataset(name, (len(rows),), h5py.vlen_dtype(data[0].dtype))
                    for i, value in enumerate(data):
                        made[i] = value
                else:
                    packed = {"chunks": (5, 3, 4), "compression": "gzip", "shuffle": True} if name == "grid" else {}
                    file.create_dataset(name, data=np.array(values), **packed)


def read_h5py(path):
    import h5py

    found = {}
    for shard in sorted(path.glob("*.h5")):
        with h5py.File(shard) as file:
            keys = file["__key__"].asstr()[...]
            for name, made in file.items():
                values = made.asstr()[...] if h5py.check_string_dtype(made.dtype) else made[...]
                sequence = h5py.check_vlen_dtype(made.dtype)
                for key, value in zip(keys, values, strict=True):
                    value = value.tobytes() if sequence == np.uint8 else value
                    found.setdefault(key, {})[name] = value
    return {key: {name: value for name, value in fields.items() if name != "__key__"} for key, fields in found.items()}


def write_lmdb(root, forms):
    import lmdb

    (root / "lmdb").mkdir()
    for kind, rows in forms["lmdb"].items():
        with lmdb.open(str(root / "lmdb" / kind), map_size=1 << 24) as made, made.begin(write=True) as writing:
            for name, data in files_of(rows).items():
                writing.put(name.encode(), data)


def read_lmdb(path):
    import lmdb

    with lmdb.open(str(path), readonly=True, lock=False) as made, made.begin() as reading:
        return samples_of({key.decode(): value for key, value in reading.cursor()})


def arrow_table(kind, rows):
    import pyarrow as pa

    made = {}
    for name, values in columns(rows).items():
        some = next(value for value in values if value is not None)
        if isinstance(some, (bytes, str)):
            made[name] = pa.array(values)
            continue
        element = pa.from_numpy_dtype(some.dtype)
        for k, size in enumerate(reversed(some.shape)):
            varies = kind == "ragged" and k == some.ndim - 1
            element = pa.list_(element) if varies else pa.list_(element, size)
        made[name] = pa.array([value.tolist() for value in values], type=element)
    return pa.table(made)


def write_pyarrow(root, forms):
    import pyarrow as pa
    from pyarrow import feather

    for form in ("IPC file", "IPC stream", "feather"):
        for kind, rows in forms[form].items():
            target = root / form / kind
            target.mkdir(parents=True)
            table = arrow_table(kind, rows)
            if form == "feather":
                feather.write_feather(table, target / "d.feather")  # compressed with LZ4
                continue
            new = pa.ipc.new_file if form == "IPC file" else pa.ipc.new_stream
            with new(target / "d.arrow", table.schema) as writer:
                writer.write_table(table, max_chunksize=5)


def arrow_value(column, i):
    """A cell as NumPy has it, by the column's type."""
    import pyarrow as pa

    kind, cell = column.type, column[i]
    if not cell.is_valid:
        return None
    if pa.types.is_struct(kind):  # an Image of `datasets`
        return cell["bytes"].as_py()
    if pa.types.is_nested(kind):
        while pa.types.is_nested(kind):
            kind = kind.value_type
        return np.array(cell.as_py(), kind.to_pandas_dtype())
    value = cell.as_py()
    return value if isinstance(value, (bytes, str)) else np.dtype(kind.to_pandas_dtype()).type(value)


def arrow_rows(table):
    found = {}
    for i in range(table.num_rows):
        fields = {}
        for name in table.column_names:
            value = arrow_value(table[name], i)
            metadata = table.field(name).metadata or {}
            if metadata.get(b"stoker:encoding") == b"npy" and value is not None:
                value = np.load(io.BytesIO(value))
            if value is not None:
                fields[name] = value
        found[fields.pop("__key__").decode()] = fields
    return found


def read_pyarrow(path):
    import pyarrow as pa

    found = {}
    for shard in sorted(path.glob("*.arrow")):
        with pa.ipc.open_stream(shard) as reader:
            found.update(arrow_rows(reader.read_all()))
    for shard in sorted(path.glob("*.feather")):
        with pa.ipc.open_file(shard) as reader:
            found.update(arrow_rows(reader.read_all()))
    return found


def write_datasets(root, forms):
    from datasets import ClassLabel, Dataset, Features, Image, List, Value

    def feature(kind, name, some):
        if name == "image":
            return Image()
        if name == "label":
            return ClassLabel(names=["cat", "dog", "eel"])
        if isinstance(some, str):
            return Value("string")
        made = Value(str(some.dtype))
        for k, size in enumerate(reversed(some.shape)):
            made = List(made, length=-1 if kind == "ragged" and k == some.ndim - 1 else size)
        return made

    for form in ("save_to_disk", "parquet"):
        for kind, rows in forms[form].items():
            all_fields = {name: value for row in rows for name, value in row.items()}
            features = Features({name: feature(kind, name, value) for name, value in all_fields.items()})
            plain = {name: [None if v is None else v if isinstance(v, (bytes, str)) else v.tolist() for v in values]
                     for name, values in columns(rows).items()}  # fmt: skip
            if "image" in plain:
                plain["image"] = [{"bytes": value, "path": None} for value in plain["image"]]
            made = Dataset.from_dict(plain, features=features)
            target = root / form / kind
            if form == "save_to_disk":
                made.save_to_disk(target, num_shards=2)
            else:
                target.mkdir(parents=True)
                made.to_parquet(target / "train-00000-of-00001.parquet")


def read_datasets(path):
    from datasets import Image, load_from_disk

    made = load_from_disk(str(path))
    if "image" in made.features and isinstance(made.features["image"], Image):
        made = made.cast_column("image", Image(decode=False))
    typed = arrow_rows(made.data.table)
    for row in made:  # what row access gives is what the table has
        key = row.pop("__key__").decode()
        for name, value in row.items():
            value = value["bytes"] if isinstance(value, dict) else value
            expected = typed[key].get(name)
            if isinstance(expected, np.ndarray) and isinstance(value, bytes):
                continue  # an .npy file
            assert value == (expected.tolist() if hasattr(expected, "tolist") else expected), (key, name, value)
    return typed


def write_numpy(root, forms):
    import struct

    for form in ("npy", "npz", "idx", "CIFAR-10"):
        target = root / form / "arrays"
        target.mkdir(parents=True)
        arrays = {name: np.array(values) for name, values in columns(forms[form]["arrays"]).items()}
        if form == "npy":
            for name, array in arrays.items():
                np.save(target / f"{name}.npy", array)
        elif form == "npz":
            np.savez(target / "d.npz", **arrays)
        elif form == "idx":
            for name, end in (("image", "images-idx3-ubyte"), ("label", "labels-idx1-ubyte")):
                array = arrays[name]
                head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
                (target / f"train-{end}").write_bytes(head + array.tobytes())
        else:
            records = np.concatenate([arrays["label"][:, None], arrays["image"].reshape(len(arrays["label"]), -1)], 1)
            (target / "data_batch_1.bin").write_bytes(records.tobytes())


def read_numpy(path):
    found = {}
    for keys in sorted(path.glob("*.__key__.npy")):
        group = keys.name.removesuffix("__key__.npy")
        for array in sorted(path.glob(f"{group}*.npy")):
            if array != keys:
                name = array.name.removeprefix(group).removesuffix(".npy")
                for key, value in zip(np.load(keys), np.load(array), strict=True):
                    found.setdefault(key.decode(), {})[name] = value
    return found


def run(action: str, library: str, request: str, answer: str) -> None:
    """`request` is a pickle of what write_LIBRARY takes, or of {name: path} to read; `answer` one of what came of it."""
    asked = pickle.loads(Path(request).read_bytes())
    function = globals()[f"{action}_{library}"]
    if action == "write":
        result = function(*asked)
    else:
        result = {}
        for name, path in asked.items():
            try:
                result[name] = function(path)
            except Exception as error:  # of one dataset: the others are read all the same
                result[name] = f"{type(error).__name__}: {error}"
    version = sys.modules[library].__version__
    Path(answer).write_bytes(pickle.dumps((version, result)))
