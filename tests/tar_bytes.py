# SPDX-License-Identifier: Apache-2.0
"""Tar archives byte by byte, right and wrong ones, and a plain reader of them through Python's tarfile."""

import io
import tarfile

BLOCK = 512
END = bytes(2 * BLOCK)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def octal(value: int, width: int) -> bytes:
    return b"%0*o\0" % (width - 1, value)


def base256(value: int) -> bytes:
    """GNU's form of a size that octal digits cannot hold: bit 7 of the first byte set, big-endian."""
    return (value | 1 << 95).to_bytes(12, "big")


def header(name: bytes, size: int, kind: bytes = b"0", *, size_field: bytes = b"", link: bytes = b"", prefix: bytes = b"",
           magic: bytes = b"ustar\x0000", checksum: int = -1) -> bytes:  # fmt: skip
    block = bytearray(BLOCK)
    block[0:100] = name.ljust(100, b"\0")
    block[100:124] = octal(0o644, 8) + octal(0, 8) + octal(0, 8)
    block[124:136] = size_field.ljust(12, b"\0") if size_field else octal(size, 12)
    block[136:148] = octal(0, 12)
    block[148:156] = b" " * 8
    block[156:157] = kind
    block[157:257] = link.ljust(100, b"\0")
    block[257:265] = magic
    block[345:500] = prefix.ljust(155, b"\0")
    assert len(block) == BLOCK
    block[148:156] = octal(sum(block) if checksum < 0 else checksum, 7) + b" "
    return bytes(block)


def member(name: bytes, data: bytes, **options) -> bytes:
    return header(name, len(data), **options) + padded(data)


def pax(records: dict[bytes, bytes], kind: bytes = b"x") -> bytes:
    body = b""
    for key, value in records.items():
        length = len(key) + len(value) + 3
        while len(b"%d" % length) + len(key) + len(value) + 3 != length:
            length = len(b"%d" % length) + len(key) + len(value) + 3
        body += b"%d %s=%s\n" % (length, key, value)
    return member(b"PaxHeaders/x", body, kind=kind)


def simple_tar(files: dict[bytes, bytes]) -> bytes:
    return b"".join(member(name, data) for name, data in files.items()) + END


def members(path) -> dict[str, bytes]:
    """Name -> bytes of every regular file in an archive, as Python's tarfile reads it, in its order."""
    found: dict[str, bytes] = {}
    with tarfile.open(path, errors="surrogateescape") as archive:
        for info in archive:
            assert info.isreg(), info
            assert info.name not in found, f"twice: {info.name}"
            found[info.name] = archive.extractfile(info).read()
    return found


def all_members(paths) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in paths:
        for name, data in members(path).items():
            assert name not in found, f"twice: {name}"
            found[name] = data
    return found


def written_by_tarfile(files: dict, form: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
