# SPDX-License-Identifier: Apache-2.0
"""py-lmdb writes, we read; we write, py-lmdb reads."""

import io
import json
import random
import struct
import tarfile

import pytest
from reading import assert_same_samples, read_dataset, samples_of
from samples import jpeg, multi_file_samples, noise, write_files

# argv: directory, options of lmdb.open as JSON, a name of a database or "", items as JSON [[key hex, value hex]]
WRITE = """
import json, sys, lmdb
path, options, name, items = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], json.load(open(sys.argv[4]))
keys = options.pop("keys", {})
with lmdb.open(path, map_size=1 << 28, max_dbs=4, **options) as env:
    database = env.open_db(name.encode() if name else None, **keys)
    with env.begin(write=True, db=database) as writing:
        for key, value in items:
            writing.put(bytes.fromhex(key), bytes.fromhex(value))
"""

READ = """
import json, os, sys, lmdb
found = []
with lmdb.open(sys.argv[1], subdir=os.path.isdir(sys.argv[1]), readonly=True, lock=False) as env:
    with env.begin() as reading:
        for key, value in reading.cursor():
            found.append([key.hex(), value.hex()])
            assert reading.get(key) == value
    print(json.dumps({"items": found, "stat": env.stat()}))
"""


@pytest.fixture
def write(peer_lmdb, tmp_path):
    def write(path, items, database="", **options):
        (tmp_path / "items.json").write_text(json.dumps([[key.hex(), value.hex()] for key, value in items]))
        peer_lmdb(WRITE, path, json.dumps(options), database, tmp_path / "items.json")

    return write


def values(path):
    return {key: fields for key, fields in read_dataset(path).items()}


@pytest.mark.parametrize("subdir", [True, False])
def test_values_of_every_size(write, tmp_path, subdir):
    """In leaves, at the border to overflow pages, in many pages; one leaf and a tree of several levels."""
    sizes = [0, 1, 100, 2000, *range(2015, 2040), 4079, 4080, 4081, 8176, 100_000]
    items = [(f"{i:05d}.bin".encode(), noise(i, size)) for i, size in enumerate(sizes * 20)]
    write(tmp_path / "x.lmdb", items, subdir=subdir)
    assert values(tmp_path / "x.lmdb") == {key[:-4].decode(): {"bin": value} for key, value in items}


def test_images_under_plain_keys(write, tmp_path):
    items = [(f"{i:08d}".encode(), jpeg(i)) for i in range(30)] + [(b"__len__", b"30")]
    write(tmp_path / "x", items)
    assert values(tmp_path / "x") == {key.decode(): {"image": value} for key, value in items[:30]}


def test_members(write, tmp_path):
    files = multi_file_samples(tmp_path / "files", 10)
    write(tmp_path / "x", [(name.encode(), data) for name, data in files.items()])
    assert_same_samples(values(tmp_path / "x"), samples_of(dict(sorted(files.items()))))


def test_long_keys_and_many_levels(write, tmp_path):
    items = [(b"k" * 490 + f"{i:05d}.txt".encode(), f"{i}".encode()) for i in range(3000)]
    write(tmp_path / "x", items)
    found = values(tmp_path / "x")
    assert list(found) == [key[:-4].decode() for key, _ in items]
    assert [fields["txt"] for fields in found.values()] == [str(i) for i in range(3000)]


def test_integer_keys(write, tmp_path):
    items = [(i.to_bytes(8, "little"), noise(i, i)) for i in range(300)]
    write(tmp_path / "x", items, database="only", keys={"integerkey": True})
    assert values(tmp_path / "x") == {str(i): {"data": value} for i, (_, value) in enumerate(items)}


def test_databases_by_name(write, stoker_cli, tmp_path):
    for name in ("train", "test"):
        write(tmp_path / "x", [(f"{name}{i}.bin".encode(), noise(i, 50)) for i in range(20)], database=name)
    said = stoker_cli("check", tmp_path / "x", status=2).stderr
    assert "'test' (20), 'train' (20)" in said and "::test" in said
    assert list(values(f"{tmp_path}/x::train")) == sorted(f"train{i}" for i in range(20))


def test_pickles_are_not_unpickled(write, stoker_cli, tmp_path):
    import pickle

    for ending in ("", ".jpg"):
        items = [(f"{i}{ending}".encode(), pickle.dumps((jpeg(i), i))) for i in range(50)]
        write(tmp_path / f"x{ending}", items)
        said = stoker_cli("check", tmp_path / f"x{ending}", status=1).stdout
        assert said.count("is a Python pickle") == 1 and "docs/formats/lmdb.md" in said and "50 entries" in said


def test_one_pickle_among_images_costs_nothing_else(write, stoker_cli, tmp_path):
    import pickle

    write(tmp_path / "x", [*((f"{i:03}".encode(), jpeg(i)) for i in range(20)), (b"classes", pickle.dumps(["a"]))])
    assert "'classes'" in stoker_cli("index", tmp_path / "x", status=1).text
    assert list(values(tmp_path / "x")) == [f"{i:03}" for i in range(20)]


def test_random_bytes_are_no_pickle(write, stoker_cli, tmp_path):
    write(tmp_path / "x", [(f"{i:05}".encode(), b"\x80\x03" + noise(i, 3000) + b"!") for i in range(40)])
    assert "40 samples" in stoker_cli("check", tmp_path / "x").stdout


def test_each_value_under_a_plain_key_is_looked_at(write, tmp_path):
    items = [(f"{i:05}".encode(), b"BMW" if i == 15 else jpeg(i)) for i in range(40)]
    write(tmp_path / "x", items)
    found = values(tmp_path / "x")
    assert found == {key.decode(): {"data" if i == 15 else "image": value} for i, (key, value) in enumerate(items)}


def test_images_and_labels_under_numbers(write, tmp_path):
    """As text recognition stores them: image-000000001, label-000000001, num-samples."""
    images = {i: jpeg(i) for i in range(1, 41)}
    items = [(b"image-%09d" % i, image) for i, image in images.items()]
    write(tmp_path / "alone", items)
    assert values(tmp_path / "alone") == {key.decode(): {"image": value} for key, value in items}
    items += [(b"label-%09d" % i, f"wörd {i}".encode()) for i in images if i != 7]
    write(tmp_path / "x", [*items, (b"num-samples", b"40")])
    expected = {f"{i:09}": {"image": image, "label": f"wörd {i}"} for i, image in images.items()}
    del expected["000000007"]["label"]
    found = values(tmp_path / "x")
    assert list(found) == list(expected)
    for key, sample in expected.items():
        assert {name: value for name, value in found[key].items() if value is not None} == sample


def test_a_truncated_file_loses_only_what_is_gone(write, stoker_cli, tmp_path):
    """Keys in any order, so that pages of the tree lie anywhere."""
    order = random.Random(1).sample(range(20000), 20000)
    write(tmp_path / "x", [(f"{i:08d}".encode(), noise(i, 200)) for i in order])
    path = tmp_path / "x/data.mdb"
    contents = path.read_bytes()[: path.stat().st_size // 2 // 4096 * 4096]
    path.write_bytes(contents)

    def entries(number):
        """Of what can still be reached: a page that branches off behind the cut leads nowhere."""
        page = contents[number * 4096 :][:4096]
        if not page:
            return 0
        flags, lower = struct.unpack_from("<HH", page, 10)
        if flags & 2:
            return (lower - 16) // 2
        nodes = struct.unpack_from(f"<{(lower - 16) // 2}H", page, 16)
        return sum(entries(int.from_bytes(page[node : node + 6], "little")) for node in nodes)

    metas = [(struct.unpack_from("<Q", contents, at + 144)[0], at) for at in (0, 4096)]
    root = struct.unpack_from("<Q", contents, max(metas)[1] + 128)[0]
    found = stoker_cli("check", tmp_path / "x", status=1).text
    assert f"{entries(root):,} samples" in found and "the file ends before them" in found
    assert "point at each other" not in found


def test_a_file_of_another_kind_is_no_database(stoker_cli, tmp_path):
    write_files(tmp_path / "x", {"inventory.mdb": noise(1, 9000), **{f"{i}.txt": b"text" for i in range(5)}})
    assert "folder, " in stoker_cli("check", tmp_path / "x").stdout


def test_several_values_under_a_key(write, peer_lmdb, stoker_cli, tmp_path):
    items = [(b"%02d.bin" % (i // 2), b"%d" % i) for i in range(60)] + [(b"x.bin", b"3")]
    write(tmp_path / "x", items, database="d", keys={"dupsort": True})
    said = stoker_cli("check", tmp_path / "x", status=1).stdout
    assert said.count("several values") == 1 and "30 entries" in said


def test_read_only_with_a_stale_reader(write, tmp_path, stoker_cli):
    """The lock file is nobody's business but a writer's."""
    write(tmp_path / "x", [(b"1.bin", b"one"), (b"2.bin", b"two")])
    (tmp_path / "x/lock.mdb").write_bytes(b"\xff" * 8192)
    (tmp_path / "x").chmod(0o555)
    try:
        assert stoker_cli("check", tmp_path / "x").stdout
    finally:
        (tmp_path / "x").chmod(0o755)


@pytest.mark.parametrize("count", [0, 1, 5, 200])
def test_what_we_write(peer_lmdb, stoker_cli, tmp_path, count):
    files = multi_file_samples(tmp_path / "files", count)
    files |= {"big.bin": noise(1, 300_000), "a-1.txt": b"before", "a.txt": b"behind", "edge.bin": noise(2, 2025)}
    write_files(tmp_path / "folder", files)
    stoker_cli("pack", tmp_path / "folder", tmp_path / "out", "--to", "lmdb")
    found = json.loads(peer_lmdb(READ, tmp_path / "out"))
    items = {bytes.fromhex(key).decode(): bytes.fromhex(value) for key, value in found["items"]}
    assert_same_samples(samples_of(items), samples_of(dict(sorted(files.items()))))
    assert list(items) == sorted(items) and found["stat"]["entries"] == len(items)
    stoker_cli("check", tmp_path / "folder", "--compare", tmp_path / "out")


@pytest.mark.parametrize("around, key", [(9, "k" * 480), (81, "k" * 480), (204, "")], ids=["long", "levels", "short"])
def test_no_branch_has_a_single_page_below_it(peer_lmdb, stoker_cli, tmp_path, around, key):
    """One leaf more than a branch takes: LMDB ends the process where it meets a branch with one child."""
    with tarfile.open(tmp_path / "all.tar", "w") as tar:
        for i in range(2 * around + 10):
            add = tarfile.TarInfo(f"{i:06d}{key}.bin")
            add.size = 1400  # two in a leaf
            tar.addfile(add, io.BytesIO(noise(i, add.size)))
    for leaves in range(around - 4, around + 5):
        out = tmp_path / f"out-{leaves}"
        stoker_cli("pack", tmp_path / "all.tar", out, "--to", "lmdb", "--limit", str(2 * leaves))
        found = json.loads(peer_lmdb(READ, out))
        assert len(found["items"]) == found["stat"]["entries"] == 2 * leaves


def test_what_we_write_can_be_added_to(write, peer_lmdb, stoker_cli, tmp_path):
    write_files(tmp_path / "folder", {f"{i}.bin": noise(i, 5000) for i in range(100)})
    stoker_cli("pack", tmp_path / "folder", tmp_path / "out", "--to", "lmdb")
    write(tmp_path / "out", [(b"new.bin", b"new")])
    assert len(json.loads(peer_lmdb(READ, tmp_path / "out"))["items"]) == 101
    stoker_cli("index", tmp_path / "out")
    assert read_dataset(tmp_path / "out")["new"] == {"bin": b"new"}
