# SPDX-License-Identifier: Apache-2.0
"""Looks at what `stoker stage` brought to a place, and damages it."""

import filecmp

from samples import image_folder


def pack_photos(stoker_cli, tmp_path):
    """Twelve shards and more, with a full index."""
    image_folder(tmp_path / "photos", per_class=30)
    stoker_cli("pack", tmp_path / "photos", tmp_path / "packed", "--shard-size", "12K")
    return tmp_path / "packed"


def files_of(directory) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.is_file())


def same_files(a, b) -> bool:
    """As cmp compares them."""
    names = files_of(a)
    return names == files_of(b) and filecmp.cmpfiles(a, b, names, shallow=False)[1:] == ([], [])


def unfinished(place) -> list[str]:
    """What only a stage at work may have."""
    found = []
    for name in ("claims", "parts"):
        found += [str(path) for path in place.glob(f"stoker-*/*/{name}/*")]
    return found + [str(path) for path in place.glob("stoker-*/refs/*")]


def bytes_of(directory) -> int:
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file())


def flip(path, at=700):
    contents = bytearray(path.read_bytes())
    contents[at] ^= 1
    path.write_bytes(contents)
