# SPDX-License-Identifier: Apache-2.0
"""Looks at what `stoker pack` wrote, and damages it."""

import os

from samples import shards_of
from tar_bytes import all_members


def packed_files(destination) -> dict[str, bytes]:
    return all_members(shards_of(destination))


def without_labels(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in found.items() if not name.endswith(".cls")}


def key_of(name: str) -> str:
    directory, _, base = name.rpartition("/")
    return (directory + "/" if directory else "") + base.split(".")[0]


def order_of(destination) -> list[str]:
    keys = []
    for name in packed_files(destination):
        if not keys or keys[-1] != key_of(name):
            keys.append(key_of(name))
    return keys


def flip(path, offset: int, bit: int = 0) -> None:
    contents = bytearray(path.read_bytes())
    contents[offset] ^= 1 << bit
    times = path.stat()
    path.write_bytes(contents)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
