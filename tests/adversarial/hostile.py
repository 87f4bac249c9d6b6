# SPDX-License-Identifier: Apache-2.0
"""Helpers that forge indexes, build foreign files byte by byte, and judge whether a path can be trusted."""

import json
import os
import re
import stat
import struct
from pathlib import Path

from samples import noise
from tar_bytes import simple_tar
from tfrecord_bytes import crc32c

DEEP = 400_000


def nested(levels: int = DEEP) -> str:
    """A JSON value that a recursive parser does not survive."""
    return "[" * levels + "]" * levels


def nested_objects(levels: int = DEEP) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# --- Forged indexes ---------------------------------------------------------------------------------


def sealed(body: str) -> str:
    """The text of a manifest whose checksum is right, whatever it says."""
    return f'{{"checksum": "crc32c-{crc32c(body.encode()):08x}",\n{body}'


def manifest_body(index: Path) -> str:
    first, _, body = (index / "manifest.json").read_text().partition("\n")
    assert re.fullmatch(r'\{"checksum": "crc32c-[0-9a-f]{8}",', first), first
    assert sealed(body) == f"{first}\n{body}", "the checksum is not computed as the documentation says"
    return body


def forge_manifest(index: Path, change) -> None:
    """change(members) edits the members of a manifest in place; the checksum is made to match."""
    members = json.loads("{" + manifest_body(index))
    change(members)
    (index / "manifest.json").write_text(sealed(json.dumps(members, indent=1)[1:]))


def forge_body(index: Path, member: str, value: str) -> None:
    """Adds a member in front of all others, as text."""
    (index / "manifest.json").write_text(sealed(f'"{member}": {value},\n{manifest_body(index)}'))


def only_segment(index: Path) -> Path:
    (segment,) = index.glob("*.seg")
    return segment


def forge_segment(index: Path, old: bytes, new: bytes) -> None:
    """Replaces bytes of equal length in the tables of the only segment; all checksums are made to match."""
    assert len(old) == len(new)
    segment = only_segment(index)
    data = bytearray(segment.read_bytes())
    tables, begin, pages = (struct.unpack_from(f, data, at)[0] for f, at in (("<I", 12), ("<Q", 32), ("<Q", 48)))
    assert old in data[begin:]
    data[begin:] = data[begin:].replace(old, new)
    sums = 64 + 24 * tables
    for page in range(pages):
        part = bytes(data[begin + page * 65536 : begin + (page + 1) * 65536])
        struct.pack_into("<I", data, sums + 4 * page, crc32c(part))
    before = struct.unpack_from("<I", data, 56)[0]
    after = crc32c(bytes(data[:56]) + bytes(data[64 : sums + 4 * pages]))
    struct.pack_into("<I", data, 56, after)
    segment.unlink()
    name = segment.name.replace(f"{before:08x}", f"{after:08x}")
    (index / name).write_bytes(data)

    def change(members):
        (described,) = members["segments"]
        shown = json.dumps(described["header_crc"])
        described["file"] = name
        text = shown.replace(f"{before:08x}", f"{after:08x}")
        described["header_crc"] = after if shown == str(before) else json.loads(text)

    forge_manifest(index, change)


# --- Whom a path can be trusted to ------------------------------------------------------------------


def who_can_swap(path, uid: int) -> list[str]:
    """Directories on the way to `path` in which somebody else than `uid` and root can rename what leads on."""
    weak = []
    path = Path(os.path.realpath(path))
    for child, parent in zip([path, *path.parents], path.parents, strict=False):
        about = parent.stat()
        if about.st_uid not in (0, uid):
            weak.append(f"{parent} belongs to {about.st_uid}")
        elif about.st_mode & (stat.S_IWOTH | stat.S_IWGRP):
            if not about.st_mode & stat.S_ISVTX:
                weak.append(f"{parent} has mode {about.st_mode & 0o7777:o}")
            elif child.exists() and child.lstat().st_uid not in (0, uid):
                weak.append(f"{child} belongs to {child.lstat().st_uid}")
    return weak


# --- Records, archives, FlatBuffers -----------------------------------------------------------------


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def example(**features) -> bytes:
    """A tf.train.Example of bytes and integers."""
    body = b""
    for name, value in features.items():
        if isinstance(value, int):
            feature = _field(3, _field(1, _varint(value)))
        else:
            feature = _field(1, _field(1, value))
        body += _field(1, _field(1, name.encode()) + _field(2, feature))
    return _field(1, body)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def big_endian_stream() -> bytes:
    """The schema message of an Arrow stream that says its buffers are big-endian; it has no columns."""
    message = struct.pack("<II", 20, 0)  # the table is at 20, so that the length of the body is aligned
    message += struct.pack("<6H", 12, 20, 4, 6, 8, 12) + struct.pack("<iHBxIq", 12, 4, 1, 20, 0)  # V5, Schema, at 48
    message += struct.pack("<4H", 8, 12, 4, 8) + struct.pack("<iHxxI", 8, 1, 4) + struct.pack("<I", 0)  # 1: big-endian
    assert len(message) == 64
    return struct.pack("<Ii", 0xFFFFFFFF, len(message)) + message + struct.pack("<Ii", 0xFFFFFFFF, 0)


def tar_of(prefix: str, count: int) -> bytes:
    return simple_tar({f"{prefix}{i:04d}.bin".encode(): noise(f"{prefix}{i}", 200) for i in range(count)})
