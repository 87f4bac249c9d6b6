# SPDX-License-Identifier: Apache-2.0
"""Every format, every kind of damage, with and without an index: what a Loader delivers is right, and what it does not
deliver is raised by default, and counted and named with on_error="skip". Nothing is lost without a word."""

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import stoker
from samples import npy, write_files

COUNT = 40
PACKED = ["tar", "tfrecord", "hdf5", "lmdb", "arrow", "feather", "npy"]
FORMATS = [*PACKED, "parquet", "folder"]
LABELS = {1000 + i: i for i in range(COUNT)}

WRITE_PARQUET = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
root, count = sys.argv[1], int(sys.argv[2])
for shard in range(5):
    rows = range(shard * count // 5, (shard + 1) * count // 5)
    values = [np.random.default_rng(i).random(500).astype("f4") for i in rows]
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(np.concatenate(values)), 500), "label": [1000 + i for i in rows]})
    pq.write_table(table, f"{root}/train-{shard:05d}-of-00005.parquet", compression="none", use_dictionary=False)
"""


def array_of(number: int) -> np.ndarray:
    return np.random.default_rng(number).random(500).astype("f4")


def files_of(dataset: Path) -> list[Path]:
    described = ("state.json", "dataset_info.json")  # for `datasets`
    files = [path for path in sorted(dataset.rglob("*")) if path.is_file() and ".stoker" not in path.parts]
    return [path for path in files if path.name not in described]


# --- What is damaged, and how -------------------------------------------------------------------------------


def cut(share: float) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, int(file.stat().st_size * share))


def flip(at: float) -> Callable[[Path], None]:
    """One bit: at an offset, or so far into the file."""

    def damage(file: Path) -> None:
        contents = bytearray(file.read_bytes())
        contents[at if isinstance(at, int) else int(len(contents) * at)] ^= 0x10
        file.write_bytes(contents)

    return damage


def zeros(begin: float, size: int) -> Callable[[Path], None]:
    """As a file system that lost a page leaves them."""

    def damage(file: Path) -> None:
        contents = bytearray(file.read_bytes())
        first = int(len(contents) * begin) // 512 * 512
        contents[first : first + size] = bytes(len(contents[first : first + size]))
        file.write_bytes(contents)

    return damage


def rename(before: str, after: str) -> Callable[[Path], None]:
    return lambda file: os.rename(file, file.parent / f"{before}{file.name}{after}")


def swap(file: Path) -> None:
    """With another one of its kind, as a copy that mixed up names leaves them."""
    other = next(path for path in files_of(file.parent) if path.suffixes == file.suffixes and path != file)
    os.rename(file, f"{file}.swap")
    os.rename(other, file)
    os.rename(f"{file}.swap", other)


def edit_label(file: Path) -> None:
    """A label becomes another one, in place."""
    contents = file.read_bytes()
    for label in LABELS:
        other = min(LABELS.keys() - {label})
        for before, after in [
            (b"%d" % label, b"%d" % other),
            (label.to_bytes(8, "little"), other.to_bytes(8, "little")),
            (b"\n\x02" + varint(label), b"\n\x02" + varint(other)),
        ]:
            if contents.count(before) == 1 and len(before) == len(after):
                file.write_bytes(contents.replace(before, after))
                return
    raise AssertionError(f"no label in {file}")


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80, number >> 7])


FAULTS: dict[str, Callable[[Path], None]] = {
    "cut in half": cut(0.48),  # not between two records
    "cut near the end": cut(0.97),
    "cut near the beginning": cut(0.05),
    "a byte short": lambda file: os.truncate(file, file.stat().st_size - 1),
    "missing": lambda file: file.unlink(),
    "unfinished .tmp": rename("", ".tmp"),
    "unfinished .part": rename("", ".part"),
    "unfinished rsync": rename(".", ".Ab12Cd"),
    "empty": cut(0),
    "bit in the head": flip(3),
    "bit in the payload": flip(0.6),
    "bit in the tail": flip(-5),
    "zeros in the middle": zeros(0.4, 2048),
    "zeros in the head": zeros(0, 64),
    "swapped": swap,
    "label edited": edit_label,
}
# What nobody can see who has only the bytes: without an index these are the data, except where the format has checksums.
ONLY_BYTES = {"bit in the head", "bit in the payload", "bit in the tail", "zeros in the middle", "zeros in the head"}
# An empty TFRecord file is a valid one, and so are arrays of one shape in another order. Nobody knows which files a folder had: a
# field that a sample lacks is None in the batch.
VALID = {("tfrecord", "empty"), ("npy", "swapped"), ("folder", "swapped"), ("folder", "missing")}
VALID |= {("folder", fault) for fault in FAULTS if fault.startswith("unfinished")}


@pytest.fixture(scope="session")
def originals(tmp_path_factory, peer_arrow) -> Path:
    """The same samples in every format: DATASET has no index, DATASET-structure and DATASET-full have one."""
    root = tmp_path_factory.mktemp("originals")
    arrays = {f"s{i:03d}.x.npy": npy(array_of(i)) for i in range(COUNT)}
    write_files(root / "folder", {**arrays, **{f"s{i:03d}.cls": b"%d" % (1000 + i) for i in range(COUNT)}})
    for form in PACKED:
        stoker.pack(root / "folder", root / f"{form}-full", to=form, shard_size="24K")
        shutil.copytree(root / f"{form}-full", root / form)
        shutil.rmtree(root / form / ".stoker")
    (root / "parquet").mkdir()
    peer_arrow(WRITE_PARQUET, root / "parquet", str(COUNT))
    for form in FORMATS:
        shutil.copytree(root / form, root / f"{form}-structure")
        stoker.index(root / f"{form}-structure")
        if form not in PACKED:
            shutil.copytree(root / form, root / f"{form}-full")
            stoker.index(root / f"{form}-full", full=True)
    return root


def load(dataset: Path, on_error: str) -> tuple[dict[int, list], list[dict], str]:
    """What came, by label; what stats() says is bad; what was raised."""
    delivered: dict[int, list] = {}
    loader = None
    try:
        loader = stoker.Loader(dataset, 7, shuffle=False, on_error=on_error, fields=["x", "label"])
        for batch in loader:
            assert len(batch["label"])
            for label, x in zip(batch["label"], batch["x"]):
                if x is None:  # the sample lacks it, and a batch says so; counted as lost
                    continue
                delivered.setdefault(int(label), []).append(x)
    except (ValueError, OSError) as error:
        return delivered, [], f"{type(error).__name__}: {error}"
    return delivered, loader.stats()["bad"], ""


def is_right(delivered: dict[int, list]) -> bool:
    return all(
        label in LABELS and len(arrays) == 1 and np.array_equal(arrays[0], array_of(LABELS[label]))
        for label, arrays in delivered.items()
    )


@pytest.mark.parametrize("index", ["none", "structure", "full"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_undamaged(originals, form, index):
    delivered, bad, error = load(originals / (form if index == "none" else f"{form}-{index}"), "raise")
    assert (len(delivered), bad, error) == (COUNT, [], "") and is_right(delivered)


def damaged_copy(original: Path, dataset: Path, fault: str) -> None:
    """In a dataset without an index, one that a test made is not copied."""
    shutil.rmtree(dataset, ignore_errors=True)
    leave_out = None if original.name.endswith(("-structure", "-full")) else shutil.ignore_patterns(".stoker")
    shutil.copytree(original, dataset, ignore=leave_out)
    files = files_of(dataset)
    labels = [file for file in files if ".label." in file.name or file.suffix == ".cls"]
    others = [file for file in files if file not in labels]
    wanted = (labels or files) if fault == "label edited" else others
    FAULTS[fault](wanted[len(wanted) // 2])


def can_be_noticed(form: str, index: str, fault: str) -> bool:
    """Without an index, what is a valid dataset after the fault as well is the data."""
    return index != "none" or ((form, fault) not in VALID and fault != "label edited")


CASES = [
    case for case in itertools.product(FORMATS, ["none", "structure", "full"], FAULTS) if can_be_noticed(*case)
]


@pytest.mark.parametrize(("form", "index", "fault"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_damage(originals, tmp_path, form, index, fault):
    original = originals / (form if index == "none" else f"{form}-{index}")
    dataset = tmp_path / "d"
    exact = index != "none" or form == "tfrecord" or fault not in ONLY_BYTES

    damaged_copy(original, dataset, fault)
    delivered, _, error = load(dataset, "raise")
    assert is_right(delivered) or not exact, "wrong data"
    assert error or sum(map(len, delivered.values())) == COUNT, f"{COUNT - len(delivered)} samples lost without a word"

    damaged_copy(original, dataset, fault)
    delivered, bad, error = load(dataset, "skip")
    assert is_right(delivered) or not exact, "wrong data"
    lost = COUNT - sum(map(len, delivered.values()))
    known = sum(entry["samples"] or 0 for entry in bad)
    unknown = [entry for entry in bad if entry["samples"] is None]
    assert all(entry["sample"] or "unknown number" in entry["cause"] for entry in unknown)
    assert error or lost == known or (lost >= known and unknown), (lost, bad)
