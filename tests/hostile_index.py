# SPDX-License-Identifier: Apache-2.0
"""Changes indexes as an attacker would: the checksums are right afterwards."""

import json
import struct
from pathlib import Path

from tfrecord_bytes import crc32c

PAGE = 65536
HEADER = struct.Struct("<QIIQQQQQII")  # SegmentHeader in src/dataset/segment_layout.h
TABLE = struct.Struct("<HHIQQ")


def index_of(dataset: Path) -> Path:
    return dataset / ".stoker"


def write_manifest(path: Path, manifest: dict) -> None:
    """As Manifest::write() does: the first line has the checksum of all others."""
    manifest = {name: value for name, value in manifest.items() if name != "checksum"}
    body = json.dumps(manifest, indent=1)[2:] + "\n"
    path.write_text(f'{{"checksum": "crc32c-{crc32c(body.encode()):08x}",\n{body}')


def change_manifest(index: Path, change) -> None:
    """change(manifest) changes the document."""
    path = index / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    write_manifest(path, manifest)


def change_segment(index: Path, number: int, old: bytes, new: bytes) -> None:
    """Replaces bytes of a segment's tables (a path, a key) by as many others; segment and manifest agree afterwards."""
    assert len(old) == len(new)
    manifest = json.loads((index / "manifest.json").read_text())
    entry = manifest["segments"][number]
    path = index / entry["file"]
    data = bytearray(path.read_bytes())
    header = list(HEADER.unpack_from(data))
    tables, begin, pages = header[2], header[5], header[7]
    assert old in data[begin:], "there is no such text in the segment"
    data[begin:] = data[begin:].replace(old, new)
    sums = HEADER.size + tables * TABLE.size
    for page in range(pages):
        at = begin + page * PAGE
        struct.pack_into("<I", data, sums + 4 * page, crc32c(bytes(data[at : at + PAGE])))
    crc = crc32c(bytes(data[: HEADER.size - 8]) + bytes(data[HEADER.size : sums + 4 * pages]))
    struct.pack_into("<I", data, HEADER.size - 8, crc)
    path.write_bytes(data)
    entry["header_crc"] = crc
    write_manifest(index / "manifest.json", manifest)
