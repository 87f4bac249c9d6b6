# SPDX-License-Identifier: Apache-2.0
"""Makes broken, hostile and odd photos."""

import io
import random
import struct
import subprocess
import zlib

import numpy as np
from PIL import Image

SOF0, SOF2, DHT, SOS, DQT, APP1, APP2 = 0xC0, 0xC2, 0xC4, 0xDA, 0xDB, 0xE1, 0xE2
END = b"\xff\xd9"


def picture(width: int = 120, height: int = 90, seed: int = 0) -> Image.Image:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([x * 2, y * 2, x + y], axis=2) + rng.integers(-30, 30, (height, width, 3))
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def saved(form: str = "JPEG", image: Image.Image | None = None, **options) -> bytes:
    buffer = io.BytesIO()
    (image or picture()).save(buffer, form, **options)
    return buffer.getvalue()


def with_cjpeg(*options: str) -> bytes:
    return subprocess.run(["cjpeg", *options], input=saved("PPM"), capture_output=True, check=True).stdout


# --- What is wrong with them ---------------------------------------------------------------------------


def segments(data: bytes) -> list[tuple[int, bytes]]:
    """Marker and bytes of every part of a JPEG behind its first two bytes; a scan's data belong to its header."""
    found, at = [], 2
    while data[at + 1] != END[1]:
        end = at + 2 + struct.unpack_from(">H", data, at + 2)[0]
        if data[at + 1] == SOS:
            while data[end] != 0xFF or data[end + 1] == 0 or 0xD0 <= data[end + 1] <= 0xD7:
                end += 1
        found.append((data[at + 1], data[at:end]))
        at = end
    return [*found, (END[1], data[at:])]


def joined(parts: list[tuple[int, bytes]]) -> bytes:
    return b"\xff\xd8" + b"".join(part for _, part in parts)


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def truncated() -> dict[str, bytes]:
    """At every marker, within its first bytes, and at many places between."""
    kinds = {
        "baseline": saved(quality=90),
        "progressive": saved(progressive=True),
        "restart": with_cjpeg("-restart", "1"),
        "gray": saved(image=picture().convert("L")),
    }
    found = {}
    for name, data in kinds.items():
        begins = [len(joined(segments(data)[:i])) for i in range(len(segments(data)))]
        places = {begin + more for begin in begins for more in (0, 1, 2, 3, 5)} | {*range(3, len(data), 61)}
        found |= {f"{name} cut at {at}": data[:at] for at in sorted(places) if at < len(data)}
    for form in ("PNG", "GIF", "WEBP", "BMP"):
        data = saved(form)
        found |= {f"{form} cut at {at}": data[:at] for at in range(3, len(data) - 30, len(data) // 23)}
    return found


def with_wrong_tables() -> dict[str, bytes]:
    found = {}
    for name, data in {"baseline": saved(quality=90), "progressive": saved(progressive=True)}.items():
        parts = segments(data)
        tables = [i for i, (marker, _) in enumerate(parts) if marker in (DHT, DQT)]
        for i in tables:
            marker, part = parts[i]
            what = f"{name}, {'Huffman' if marker == DHT else 'quantisation'} table {i}"
            bodies = {
                "zeros": bytes(len(part) - 4),
                "ones": b"\xff" * (len(part) - 4),
                "no such number": b"\x7f" + part[5:],
                "more codes than there can be": part[4:5] + b"\xff" * 16 + part[21:],
                "one code": part[4:5] + b"\1" + bytes(15) + b"\0",
                "empty": b"",
                "short": part[4:9],
            }
            found[f"{what}: missing"] = joined(parts[:i] + parts[i + 1 :])
            for kind, body in bodies.items():
                found[f"{what}: {kind}"] = joined([*parts[:i], (marker, segment(marker, body)), *parts[i + 1 :]])
        for marker in (DHT, DQT):
            found[f"{name}, none of {marker:x}"] = joined([part for part in parts if part[0] != marker])
        swapped = list(parts)
        swapped[tables[0]], swapped[tables[-1]] = swapped[tables[-1]], swapped[tables[0]]
        found[f"{name}, tables in another order"] = joined(swapped)
    return found


def resized(data: bytes, width: int, height: int, form: str = "JPEG") -> bytes:
    """Says to be of this size."""
    if form == "JPEG":
        at = next(data.index(part) for marker, part in segments(data) if marker in (SOF0, SOF2))
        return data[: at + 5] + struct.pack(">HH", height, width) + data[at + 9 :]
    at, layout = {"PNG": (16, ">II"), "GIF": (6, "<HH"), "BMP": (18, "<ii")}[form]
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, width, height)
    if form == "PNG":
        struct.pack_into(">I", changed, 29, zlib.crc32(changed[12:29]))
    return bytes(changed)


def with_lying_sizes() -> dict[str, bytes]:
    found = {}
    sizes = [(65500, 90), (65500, 65500), (0, 0), (0, 90), (120, 0), (8000, 8000), (121, 91), (1, 1), (65500, 1000)]
    for name, data in {"baseline": saved(quality=90), "progressive": saved(progressive=True)}.items():
        found |= {f"{name} says {w} x {h}": resized(data, w, h) for w, h in sizes}
    for form in ("PNG", "GIF", "BMP"):
        found |= {f"{form} says {w} x {h}": resized(saved(form), w, h, form) for w, h in sizes[:-1]}
    found["PNG says 4294967295 x 4294967295"] = resized(saved("PNG"), 2**32 - 1, 2**32 - 1, "PNG")
    found["BMP says -120 x -90"] = resized(saved("BMP"), -120, -90, "BMP")
    found["BMP says 2147483647 x 1"] = resized(saved("BMP"), 2**31 - 1, 1, "BMP")
    return found


def overwritten() -> dict[str, bytes]:
    data = saved(quality=90)
    middle = len(data) // 2
    found = {
        "no bytes": b"",
        "one byte": b"\xff",
        "zeros": bytes(5000),
        "only the first two bytes": b"\xff\xd8" + bytes(5000),
        "only markers": b"\xff\xd8" + b"\xff" * 5000,
        "begin and end": b"\xff\xd8\xff\xd9",
        "a text": b"This was a photo once, before the download failed.\n" * 9,
        "a page instead of a photo": b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
        "a text that begins as a BMP": b"BMW makes cars and motorcycles. " * 9,
        "zeros in the middle": data[:middle] + bytes(1000) + data[middle + 1000 :],
        "zeros from the middle on": data[:middle] + bytes(len(data) - middle),
        "two photos": data + data,
        "another photo in the middle": data[:middle] + data,
    }
    for form in ("JPEG", "PNG", "GIF", "WEBP", "BMP"):
        data = saved(form)
        for seed in range(40):
            rng = random.Random(f"{form}{seed}")
            flipped = bytearray(data)
            for _ in range(20):
                # Half of them in the headers, where a byte means most.
                at = rng.randrange(len(data) if rng.random() < 0.5 else 200)
                flipped[at] ^= rng.randrange(1, 256)
            found[f"{form} with flipped bytes, {seed}"] = bytes(flipped)
    return found


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(*chunks: bytes, width: int = 1, height: int = 1, rows: int = 1) -> bytes:
    """`chunks` lie behind the header, before the pixels of so many rows."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes((1 + 3 * width) * rows)))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + pixels + chunk(b"IEND", b"")


def bomb_of_scans(side: int, scans: int) -> bytes:
    """A gray photo in which every scan is in order, refines one coefficient by one bit, and says in a few bytes that
    nothing changes in any block."""
    blocks = (-(-side // 8)) ** 2
    codes = "0" + "1" * 14  # the next 32,767 blocks
    bits = (codes * (blocks // 32767 + 1)).encode()
    bits += b"1" * (-len(bits) % 8)
    nothing = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    one_code = b"\1" + bytes(15)
    parts = [
        segment(DQT, b"\0" + b"\1" * 64),
        segment(SOF2, struct.pack(">BHHB", 8, side, side, 1) + b"\1\x11\0"),
        segment(DHT, b"\x00" + one_code + b"\x00"),
        segment(DHT, b"\x10" + one_code + b"\xe0"),
        segment(SOS, b"\1\1\0\0\0\0") + bytes(blocks // 8 + 1),
    ]
    for number in range(scans):
        coefficient, bit = 1 + number // 14, 13 - number % 14
        before = 0 if bit == 13 else bit + 1
        parts.append(segment(SOS, bytes([1, 1, 0, coefficient, coefficient, before << 4 | bit])) + nothing)
    return b"\xff\xd8" + b"".join(parts) + END


def hostile() -> dict[str, bytes]:
    """Small files that want much."""
    eight_megabytes = zlib.compress(bytes(7_900_000), 9)
    behind_another = png(width=300, height=300, rows=300)
    return {
        "PNG bomb": resized(png(), 50_000, 50_000, "PNG"),
        "PNG of 13,000 x 13,000 without pixels": png(width=13_000, height=13_000),
        "PNG with many texts": png(*(chunk(b"zTXt", b"%d\0\0" % i + eight_megabytes) for i in range(300))),
        "PNG with a profile that unfolds": png(chunk(b"iCCP", b"a\0\0" + eight_megabytes)),
        # Who believes the first bytes takes it for one pixel, and libpng for 300 x 300.
        "PNG with its header in second place": behind_another[:8]
        + chunk(b"abCd", bytes([0, 0, 0, 1] * 2))
        + behind_another[8:],
        "882 scans": bomb_of_scans(500, 882),
        "200 scans of a large photo": bomb_of_scans(8000, 200),
        "scans again and again": joined(
            [*segments(saved(progressive=True))[:-1]] + segments(saved(progressive=True))[-2:] * 3000
        ),
        "4,000 restart markers": with_cjpeg("-restart", "1B") + b"\xff\xd0" * 4000,
        "12 bits": with_precision(12),
        "lossless": with_frame(0xC3),
        "hierarchical": with_frame(0xC5),
    }


def with_precision(bits: int) -> bytes:
    return b"".join([b"\xff\xd8"] + [p[:4] + bytes([bits]) + p[5:] if m == SOF0 else p for m, p in segments(saved())])


def with_frame(marker: int) -> bytes:
    return b"".join(
        [b"\xff\xd8"] + [b"\xff" + bytes([marker]) + p[2:] if m == SOF0 else p for m, p in segments(saved())]
    )


def odd_but_good() -> dict[str, bytes]:
    data = saved(quality=90)
    parts = segments(data)
    profile = [(APP2, segment(APP2, b"ICC_PROFILE\0" + bytes([1 + i % 255, 255]) + bytes(65_000))) for i in range(100)]
    return {
        "a PNG that is called .jpg": saved("PNG"),
        "arithmetic": with_cjpeg("-arithmetic"),
        "huge EXIF": joined([(APP1, segment(APP1, b"Exif\0\0" + b"\xff" * 65_000))] * 50 + parts),
        "huge profile": joined(profile + parts),
        "noise behind its end": data + random.Random(0).randbytes(50_000),
        "fill bytes before a marker": data[:2] + b"\xff" * 1000 + data[2:],
    }


# --- What becomes of them ------------------------------------------------------------------------------

# Runs apart, so that a crash is a failure of the test and not of pytest.
