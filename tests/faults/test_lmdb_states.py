# SPDX-License-Identifier: Apache-2.0
"""LMDB environments as they are found: not ours to write, with a writer's lock file, of other machines, changed since."""

import os
import subprocess
import warnings

import pytest
import stoker
from reading import read_dataset
from samples import noise

# argv: path, first and last number, how large the values are
WRITE = """
import random, sys, lmdb
path, first, last, size = sys.argv[1], *map(int, sys.argv[2:5])
with lmdb.open(path, map_size=1 << 26) as made, made.begin(write=True) as writing:
    for i in range(first, last):
        writing.put(b"%05d.bin" % i, random.Random(f"{i}").randbytes(size * (1 + i % 3)))
"""


def expected(first: int, last: int, size: int) -> dict:
    return {f"{i:05d}": {"bin": noise(i, size * (1 + i % 3))} for i in range(first, last)}


def test_a_directory_that_cannot_be_written(peer_lmdb, as_other_user):
    """Nothing is created in it, no lock is taken, and the index goes to the reader's cache."""
    path = as_other_user.directory / "x"
    peer_lmdb(WRITE, path, "0", "50", "900")
    (path / "lock.mdb").unlink()
    before = sorted(os.listdir(path))
    (path / "data.mdb").chmod(0o444)
    path.chmod(0o555)
    assert "50 samples" in as_other_user("check", path).stdout
    indexed = as_other_user("index", path, "--full", "--json").json
    assert indexed["samples"] == 50 and indexed["in_cache"]
    assert "every byte matches" in as_other_user("check", path).stdout
    assert sorted(os.listdir(path)) == before == ["data.mdb"]


# A reader and a writer that were killed: their slots stay in the lock file, the writer's pages are not committed.
KILLED = '''
import subprocess, sys, lmdb
DIES = """
import os, signal, sys, lmdb
transaction = lmdb.open(sys.argv[1], map_size=1 << 26).begin(write=sys.argv[2] == "write")
transaction.get(b"00001.bin")
if sys.argv[2] == "write":
    for i in range(1000, 2000):
        transaction.put(b"%05d.bin" % i, b"never" * 300)
os.kill(os.getpid(), signal.SIGKILL)
"""
with lmdb.open(sys.argv[1], map_size=1 << 26) as made:  # who opens an environment alone clears its table
    for how in ("read", "write"):
        subprocess.run([sys.executable, "-c", DIES, sys.argv[1], how])
    print(made.info()["num_readers"])
'''


def test_the_slots_of_processes_that_were_killed(peer_lmdb, tmp_path, stoker_cli):
    peer_lmdb(WRITE, tmp_path / "x", "0", "50", "900")
    assert int(peer_lmdb(KILLED, tmp_path / "x")) >= 1, "the table should have a stale reader"
    lock = (tmp_path / "x/lock.mdb").read_bytes()
    assert read_dataset(tmp_path / "x") == expected(0, 50, 900)
    assert stoker_cli("check", tmp_path / "x", "--json").json["faults"] == []
    assert (tmp_path / "x/lock.mdb").read_bytes() == lock


PAGE_SIZE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
long sysconf(int name) {
  long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
  return name == _SC_PAGESIZE ? atol(getenv("PAGE_SIZE")) : real(name);
}
"""


@pytest.mark.parametrize("size", [8192, 16384, 32768])
@pytest.mark.parametrize("value", [40, 3000, 70_000])
def test_other_page_sizes(peer_lmdb, tmp_path, stoker_cli, size, value):
    """As a machine with larger pages writes it: liblmdb takes its page size from the system's."""
    (tmp_path / "page.c").write_text(PAGE_SIZE)
    shim = tmp_path / "page.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, tmp_path / "page.c", "-ldl"], check=True)
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(shim), "PAGE_SIZE": str(size)}
    arguments = [tmp_path / "x", "0", "60", str(value)]
    subprocess.run([peer_lmdb.interpreter(), "-c", WRITE, *arguments], env=environment, check=True)
    written = (tmp_path / "x/data.mdb").read_bytes()
    assert int.from_bytes(written[40:44], "little") == size, "the file should have pages of this size"
    assert read_dataset(tmp_path / "x") == expected(0, 60, value)
    stoker_cli("pack", tmp_path / "x", tmp_path / "packed", "--to", "lmdb")
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "x")


REPLACE = """
import sys, lmdb
with lmdb.open(sys.argv[1], map_size=1 << 26) as made:
    for round in range(4):  # pages freed in one transaction are used again two later
        with made.begin(write=True) as writing:
            for i in range(0, 50):
                writing.put(b"%05d.bin" % i, bytes([round]) * 3000)
"""


@pytest.mark.parametrize("full", [False, True])
def test_changed_after_it_was_indexed(peer_lmdb, tmp_path, stoker_cli, full):
    """A writer uses freed pages again: what the index points at may be something else by now. Never read for right."""
    path = tmp_path / "x"
    peer_lmdb(WRITE, path, "0", "50", "900")
    stoker.index(path, full=full)
    peer_lmdb(REPLACE, path)
    assert "changed" in stoker_cli("check", path, status=1).text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = {key: sample["bin"] for key, sample in read_dataset(path).items()}
        except (stoker.CorruptError, OSError) as error:
            assert "data.mdb" in str(error)
        else:
            assert found == {f"{i:05d}": b"\3" * 3000 for i in range(50)}
    stoker.index(path, full=full)
    assert {key: sample["bin"] for key, sample in read_dataset(path).items()} == {
        f"{i:05d}": b"\3" * 3000 for i in range(50)
    }


def test_a_lost_value_is_named_by_its_key(peer_lmdb, tmp_path, stoker_cli):
    peer_lmdb(WRITE, tmp_path / "x", "0", "30", "5000")
    path = tmp_path / "x/data.mdb"
    data = bytearray(path.read_bytes())
    at = data.index(noise(7, 10000))
    data[at - 6 : at - 4] = b"\0\0"  # flags of the page that its value begins in
    path.write_bytes(data)
    found = stoker_cli("check", tmp_path / "x", status=1).text
    assert "the entry '00007.bin': its value in page" in found and "node" not in found
    assert len(read_dataset(tmp_path / "x")) == 29
