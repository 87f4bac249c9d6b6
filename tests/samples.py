# SPDX-License-Identifier: Apache-2.0
"""Makes the datasets of the tests, and looks at directories as a whole. The same bytes every time."""

import contextlib
import io
import os
import random
import shutil
import socket
import stat
from pathlib import Path

import numpy as np
from PIL import Image


def noise(seed, size: int) -> bytes:
    return random.Random(f"{seed}").randbytes(size)


def jpeg(seed: int, width: int = 24, height: int = 16) -> bytes:
    """A real, small JPEG."""
    rng = np.random.default_rng(seed)
    buffer = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype="uint8")).save(buffer, "JPEG", quality=70)
    return buffer.getvalue()


def npy(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def write_files(root, files: dict) -> None:
    """Names are relative paths, str or bytes, so that any name can be written."""
    for name, contents in files.items():
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(contents)


def image_folder(root: Path, per_class: int = 12, size: int = 3000, classes=("cat", "dog", "eel")) -> dict[str, bytes]:
    """Class directories of files that end in .jpg: mostly noise of 1 to `size` bytes, a few real pictures."""
    files = {}
    for number, name in enumerate(classes):
        for i in range(per_class):
            length = 1 + random.Random(f"{name}{i}").randrange(size)
            files[f"{name}/{name}_{i:03d}.jpg"] = jpeg(1000 * number + i) if i % 5 == 0 else noise(f"{name}{i}", length)
    write_files(root, files)
    return files


def multi_file_samples(root: Path, count: int = 20) -> dict[str, bytes]:
    """Samples of five files each: picture, class, JSON, text, array; every third has no text."""
    files = {}
    for i in range(count):
        key = f"{'left' if i % 2 else 'right'}/sample{i:04d}"
        files[f"{key}.jpg"] = jpeg(i)
        files[f"{key}.cls"] = str(i % 7).encode()
        files[f"{key}.json"] = f'{{"id": {i}, "name": "sample \\u00e9 {i}"}}'.encode()
        files[f"{key}.npy"] = npy(np.arange(i + 1, dtype="float32") / 3)
        if i % 3:
            files[f"{key}.txt"] = f"caption {i}: grüße, 世界\n".encode()
    write_files(root, files)
    return files


def tree(root) -> dict[bytes, object]:
    """Everything below a directory, hidden or not: name -> bytes of a file, target of a link, kind of the rest."""
    root = os.fsencode(root)
    found = {}
    for directory, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.join(directory, name)
            mode = os.lstat(path).st_mode
            relative = os.path.relpath(path, root)
            if stat.S_ISLNK(mode):
                found[relative] = ("link", os.readlink(path))
            elif stat.S_ISDIR(mode):
                found[relative] = "directory"
            elif stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    found[relative] = file.read()
            else:
                found[relative] = "special"
    return found


def differences(a: dict, b: dict) -> list[str]:
    """What differs between two trees, in words; short where the trees are large."""
    found = [f"only in the first: {name!r}" for name in sorted(a.keys() - b.keys())]
    found += [f"only in the second: {name!r}" for name in sorted(b.keys() - a.keys())]
    found += [f"different: {name!r}" for name in sorted(a.keys() & b.keys()) if a[name] != b[name]]
    return found


def remove_copy(path: str) -> None:
    """What `stoker stage` has made, at a place that is not the test's own: this copy, and directories that are empty then."""
    copy = Path(path).parent
    shutil.rmtree(copy)
    for directory in (copy.parent / "refs", copy.parent):
        with contextlib.suppress(OSError):
            directory.rmdir()


def shards_of(directory: Path) -> list[Path]:
    """The files of a packed dataset in order, without its index."""
    return sorted(path for path in Path(directory).iterdir() if path.is_file() and not path.name.startswith("."))


def make_socket(path: Path) -> None:
    """Bound by a relative name: a socket's path is limited to 108 bytes."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)
