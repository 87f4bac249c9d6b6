# SPDX-License-Identifier: Apache-2.0
"""TFRecord files and tf.train.Example messages byte by byte, without TensorFlow: right and wrong ones."""

import struct


def _table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


TABLE = _table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes, *, length: int = -1) -> bytes:
    """`length` other than that of the data makes a wrong record whose checksums are right."""
    head = struct.pack("<Q", len(data) if length < 0 else length)
    return head + masked(head) + data + masked(data)


def records(contents: bytes) -> list[bytes]:
    """The records of a file; every checksum is verified."""
    found, at = [], 0
    while at < len(contents):
        head = contents[at : at + 8]
        (length,) = struct.unpack("<Q", head)
        assert contents[at + 8 : at + 12] == masked(head), f"checksum of the length at {at}"
        data = contents[at + 12 : at + 12 + length]
        assert len(data) == length, f"record at {at} is cut off"
        assert contents[at + 12 + length : at + 16 + length] == masked(data), f"checksum of the data at {at}"
        found.append(data)
        at += 16 + length
    return found


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def feature(values: list, *, packed: bool = True) -> bytes:
    """A tf.train.Feature: of bytes, of int, or of float, by the first value."""
    if values and isinstance(values[0], bytes):
        return delimited(1, b"".join(delimited(1, value) for value in values))
    if values and isinstance(values[0], float):
        if packed:
            return delimited(2, delimited(1, struct.pack(f"<{len(values)}f", *values)))
        return delimited(2, b"".join(b"\x0d" + struct.pack("<f", value) for value in values))
    if packed:
        return delimited(3, delimited(1, b"".join(varint(value) for value in values)))
    return delimited(3, b"".join(b"\x08" + varint(value) for value in values))


def example(features: dict[str, list], *, packed: bool = True) -> bytes:
    entries = b""
    for name, values in features.items():
        entries += delimited(1, delimited(1, name.encode()) + delimited(2, feature(values, packed=packed)))
    return delimited(1, entries)
