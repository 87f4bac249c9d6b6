# SPDX-License-Identifier: Apache-2.0
"""Shards for tests that damage one of them, and what may be raised then."""

from hostile import example, record
from samples import noise
from tar_bytes import simple_tar

FAILURES = (ValueError, OSError, RuntimeError)

SHARDS, EACH = 3, 20


def shard_bytes(shard: int, form: str) -> bytes:
    numbers = range(shard * EACH, (shard + 1) * EACH)
    if form == "tar":
        return simple_tar({b"%06d.bin" % i: noise(i, 1500) for i in numbers})
    return b"".join(record(example(bin=noise(i, 1500), __key__=b"%06d" % i)) for i in numbers)


def name_of(shard: int, form: str) -> str:
    return f"x-{shard:06d}.tar" if form == "tar" else f"x-{shard:05d}-of-{SHARDS:05d}"


def rows(loader) -> list[bytes]:
    return [bytes(value) for batch in loader for value in batch["bin"]]


GOOD = {form: {noise(i, 1500) for i in range(SHARDS * EACH)} for form in ("tar", "tfrecord")}
