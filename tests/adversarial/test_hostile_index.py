# SPDX-License-Identifier: Apache-2.0
"""Indexes and plans that somebody forged: nothing outside the dataset is created, deleted or read because of them."""

import json
import os
import shutil
import struct
from pathlib import Path

import pytest
from hostile import crc32c, forge_manifest, forge_segment, only_segment
from samples import differences, image_folder, jpeg, noise, tree
from tar_bytes import simple_tar

READ = """
import sys, warnings, stoker
warnings.simplefilter("ignore")
try:
    dataset = stoker.open(sys.argv[1])
    for i in range(len(dataset)):
        try:
            print(sorted(dataset[i].items()))
        except (ValueError, OSError) as error:
            print("refused:", error)
except (ValueError, OSError) as error:
    print("refused:", error)
"""


@pytest.fixture
def planted(tmp_path, stoker_cli) -> Path:
    """A dataset several directories deep, as it was downloaded; its segment is not in its index, but above it."""
    source = tmp_path / "download/1/2/3/4/deep/data"
    source.mkdir(parents=True)
    (source / "data-000000.tar").write_bytes(simple_tar({b"%04d.bin" % i: noise(i, 300) for i in range(20)}))
    stoker_cli("index", "--full", source, "--where", "beside")
    return source


def name_segment(dataset: Path, name: str) -> None:
    """The manifest says that the segment is `name`; a copy of it is there where that is possible."""
    index = dataset / ".stoker"
    segment = only_segment(index)
    target = index / name.replace("\0", "%00")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(segment, target)
    forge_manifest(index, lambda members: members["segments"][0].update(file=name))


def outside(root: Path, *inside: Path) -> dict:
    """Everything below `root` that is not below one of `inside`."""
    kept = {}
    hidden = [os.fsencode(path.relative_to(root)) for path in inside]
    for name, contents in tree(root).items():
        if not any(name == each or name.startswith(each + b"/") for each in hidden):
            kept[name] = contents
    return kept


def hostile_names(root: Path) -> dict[str, str]:
    return {
        "parent": "../../../planted.seg",
        "far parent": "../" * 6 + "planted.seg",
        "hidden parent": "x/../../../../planted.seg",
        "absolute": str(root / "absolute.seg"),
        "double slash": "//" + str(root / "absolute.seg").lstrip("/"),
        "percent": "%2e%2e/%2e%2e/%2e%2e/planted.seg",
        "dot": ".",
        "parent alone": "..",
        "empty": "",
        "nul": "a.seg\0/../../../../planted.seg",
        "escaped nul": "a%00.seg",
    }


NAMES = sorted(hostile_names(Path("/")))


@pytest.mark.parametrize("kind", NAMES)
def test_pack_takes_no_segment_from_outside(kind, planted, tmp_path, stoker_cli):
    """Taking over the segments of a forged index must not write next to the destination."""
    name = hostile_names(tmp_path)[kind]
    if name in (".", "..", ""):
        forge_manifest(planted / ".stoker", lambda members: members["segments"][0].update(file=name))
    else:
        name_segment(planted, name)
    destination = tmp_path / "mine/x/deep/packed"
    destination.parent.mkdir(parents=True)
    before = outside(tmp_path, destination, tmp_path / "home")
    stoker_cli("pack", planted, destination, status=None)
    assert not differences(before, outside(tmp_path, destination, tmp_path / "home"))


@pytest.mark.parametrize("kind", NAMES)
def test_stage_takes_no_segment_from_outside(kind, planted, tmp_path, stoker_cli):
    """Copying a forged index must not write above the copy, and a copy that is there is that of the source."""
    name = hostile_names(tmp_path)[kind]
    if name in (".", "..", ""):
        forge_manifest(planted / ".stoker", lambda members: members["segments"][0].update(file=name))
    else:
        name_segment(planted, name)
    place = tmp_path / "place"
    place.mkdir()
    before = outside(tmp_path, place, tmp_path / "home")
    staged = stoker_cli("stage", planted, place, "--json", status=None)
    assert not differences(before, outside(tmp_path, place, tmp_path / "home"))
    stray = [
        path for path in place.rglob("*.seg") if path.parent.name != ".stoker" and ".stoker" not in path.parts[-3:]
    ]
    assert not stray, f"segments outside of an index: {stray}"
    if staged.returncode == 0:
        copy = Path(staged.json["path"])
        assert (copy / "data-000000.tar").read_bytes() == (planted / "data-000000.tar").read_bytes()


@pytest.mark.parametrize("kind", ["parent", "hidden parent", "absolute"])
def test_an_index_with_segments_elsewhere_is_not_believed(kind, planted, tmp_path, stoker_cli):
    """The segment is valid and where the manifest says, but that is not in the index."""
    name_segment(planted, hostile_names(tmp_path)[kind])
    checked = stoker_cli("check", planted, "--json", status=None)
    if checked.returncode == 0:
        assert checked.json["index"] is None, "the index was used although its segment is outside"


def test_a_segment_in_a_linked_directory_is_not_believed(planted, tmp_path, stoker_cli):
    index = planted / ".stoker"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (index / "sub").symlink_to(elsewhere)
    shutil.copy(only_segment(index), elsewhere / "x.seg")
    forge_manifest(index, lambda members: members["segments"][0].update(file="sub/x.seg"))
    checked = stoker_cli("check", planted, "--json", status=None)
    if checked.returncode == 0:
        assert checked.json["index"] is None, "the segment was read through a link that leads out"
    place = tmp_path / "place"
    place.mkdir()
    before = tree(elsewhere)
    stoker_cli("stage", planted, place, status=None)
    stoker_cli("pack", planted, tmp_path / "packed", status=None)
    assert not differences(before, tree(elsewhere))


@pytest.mark.parametrize("name", ["../../thesis.tex", "../../../thesis.tex", "sub/thesis.tex"])
def test_overwrite_deletes_no_segment_outside(name, planted, tmp_path, stoker_cli):
    """pack --overwrite removes what the old index names; a forged one names the user's thesis."""
    destination = tmp_path / "work/packed"
    stoker_cli("pack", planted, destination)
    index = destination / ".stoker"
    if name.startswith("sub/"):
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (index / "sub").symlink_to(elsewhere)
    thesis = Path(os.path.normpath(index / name)) if name.startswith("..") else elsewhere / "thesis.tex"
    thesis.write_text("three years of work")
    forge_manifest(index, lambda members: members["segments"][0].update(file=name))
    image_folder(tmp_path / "photos")
    stoker_cli("pack", tmp_path / "photos", destination, "--overwrite", status=None)
    assert thesis.exists() and thesis.read_text() == "three years of work"


@pytest.mark.parametrize("target", ["absolute", "../thesis.tex", "../../thesis.tex"])
def test_overwrite_deletes_no_shard_outside(target, tmp_path, stoker_cli):
    """The same with the name of a shard inside a segment, whose checksums all match."""
    destination = tmp_path / "work/packed"
    thesis = tmp_path / "t.tex" if target == "absolute" else Path(os.path.normpath(destination / target))
    wanted = str(thesis) if target == "absolute" else target
    shard = "s" * (len(wanted) - len("-000000.tar")) + "-000000.tar"
    source = tmp_path / shard.removesuffix("-000000.tar")
    image_folder(source)
    stoker_cli("pack", source, destination)
    forge_segment(destination / ".stoker", shard.encode(), wanted.encode())
    (destination / shard).unlink()
    thesis.write_text("three years of work")
    image_folder(tmp_path / "other", per_class=3)
    stoker_cli("pack", tmp_path / "other", destination, "--overwrite", status=None)
    assert thesis.exists() and thesis.read_text() == "three years of work"


def replace_names(value, old: str, new: str):
    """The same JSON value with each text that ends in `old` replaced."""
    if isinstance(value, dict):
        return {replace_names(key, old, new): replace_names(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [replace_names(each, old, new) for each in value]
    return new if isinstance(value, str) and value.endswith(old) else value


@pytest.mark.parametrize("directory", ["..", "../..", "/", "sub", "a/../.."])
def test_a_forged_directory_of_a_plan_reaches_nothing_outside(directory, tmp_path, stoker_cli):
    """A plan also says in which sub-directory each split goes."""
    source = tmp_path / "photos"
    image_folder(source)
    destination = tmp_path / "work/packed"
    stoker_cli("pack", source, destination, "--split", "train=0.5,val=0.5", "--plan")
    plan = next(destination.rglob("plan.json"))
    if directory == "/":
        directory = str(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    if directory == "sub":
        (destination / "sub").symlink_to(tmp_path / "elsewhere")
    members = json.loads(plan.read_text())
    plan.write_text(json.dumps(replace_exactly(members, "train", directory)))
    before = outside(tmp_path, destination, tmp_path / "home")
    stoker_cli("pack", source, destination, "--split", "train=0.5,val=0.5", status=None)
    assert not differences(before, outside(tmp_path, destination, tmp_path / "home"))


def replace_exactly(value, old: str, new: str):
    """The same JSON value with each member `directory` that is `old` replaced."""
    if isinstance(value, dict):
        return {
            key: new if key == "directory" and each == old else replace_exactly(each, old, new)
            for key, each in value.items()
        }
    return [replace_exactly(each, old, new) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["../thesis.tex", "../../thesis.tex", "/absolute", "sub/thesis.tex"])
@pytest.mark.parametrize("option", ["--overwrite", "--part=1/1", ""])
def test_a_forged_plan_reaches_nothing_outside(name, option, tmp_path, stoker_cli):
    """plan.json says which shards an unfinished pack will write; a forged one names the user's thesis."""
    source = tmp_path / "photos"
    image_folder(source)
    destination = tmp_path / "work/packed"
    stoker_cli("pack", source, destination, "--plan")
    plan = next(destination.rglob("plan.json"))
    assert "photos-000000.tar" in plan.read_text(), "the plan names no shard: this test has to be adapted"
    name = str(tmp_path / "absolute.tex") if name == "/absolute" else name
    if name.startswith("sub/"):
        (tmp_path / "elsewhere").mkdir()
        (destination / "sub").symlink_to(tmp_path / "elsewhere")
        thesis = tmp_path / "elsewhere/thesis.tex"
    else:
        thesis = Path(os.path.normpath(destination / name))
    thesis.write_text("three years of work")
    forge_plan(plan, name)
    before = outside(tmp_path, destination, tmp_path / "home")
    words = [option] if option else []
    if option == "--overwrite":
        words += ["--shuffle", "7"]
    stoker_cli("pack", source, destination, *words, status=None)
    assert not differences(before, outside(tmp_path, destination, tmp_path / "home"))
    assert thesis.read_text() == "three years of work"


def forge_plan(plan: Path, name: str) -> None:
    members = json.loads(plan.read_text())
    plan.write_text(json.dumps(replace_names(members, "photos-000000.tar", name)))


SHARD = "ssssssssssss-000000.tar"


def test_a_shard_path_in_a_segment_reads_nothing_outside(tmp_path, stoker_cli, fresh_python):
    """A segment with right checksums names a tar of somebody else as its shard; it has the same layout."""
    public, secret = tmp_path / "public", tmp_path / "secretx"
    public.mkdir()
    secret.mkdir()
    hidden = b"the secret of another user" * 10
    (public / SHARD).write_bytes(simple_tar({b"0000.bin": bytes(len(hidden))}))
    target = secret / "s-00000.tar"
    target.write_bytes(simple_tar({b"0000.bin": hidden}))
    stoker_cli("index", public, "--where", "beside")
    about = (public / SHARD).stat()
    os.utime(target, ns=(about.st_mtime_ns, about.st_mtime_ns))
    forge_segment(public / ".stoker", SHARD.encode(), b"../secretx//s-00000.tar")
    (public / SHARD).unlink()
    read = fresh_python(READ, public)
    assert "secret of another" not in read.stdout
    stoker_cli("pack", public, tmp_path / "packed", status=None)
    place = tmp_path / "place"
    place.mkdir()
    stoker_cli("stage", public, place, status=None)
    for copied in (tmp_path / "packed", place):
        found = [name for name, data in tree(copied).items() if isinstance(data, bytes) and hidden in data]
        assert not found, f"copied from outside: {found}"


@pytest.mark.parametrize("key", ["../secret0", "x/../../s0"])
def test_a_key_in_a_segment_reads_nothing_outside(key, tmp_path, stoker_cli, fresh_python):
    """The files of a folder are found by the keys of its index."""
    data = tmp_path / "data"
    hidden = b"the secret of another user"
    for each in ("cat", "dog"):
        (data / each).mkdir(parents=True)
        (data / each / "xxx000.bin").write_bytes(bytes(len(hidden)))
    stolen = Path(os.path.normpath(data / f"{key}.bin"))
    stolen.write_bytes(hidden)
    for path in [stolen, *data.rglob("*.bin")]:
        os.utime(path, ns=(10**18, 10**18))
    (data / "x").mkdir()
    stoker_cli("index", data, "--where", "beside")
    assert len(key) == len("cat/xxx000")
    forge_segment(data / ".stoker", b"cat/xxx000", key.encode())
    read = fresh_python(READ, data)
    assert "secret of another" not in read.stdout
    stoker_cli("pack", data, tmp_path / "packed", status=None)
    found = [name for name, each in tree(tmp_path / "packed").items() if isinstance(each, bytes) and hidden in each]
    assert not found, f"packed from outside: {found}"


@pytest.mark.parametrize("member", ["samples", "shards", "bytes", "header_crc"])
@pytest.mark.parametrize("value", [-1, 2**63, 2**64 - 1, 1e300, "9" * 400, None, [], {}])
def test_counts_of_a_manifest_are_not_believed(member, value, planted, stoker_cli):
    """Whatever a count says, the program ends by itself, in little memory."""
    forge_manifest(planted / ".stoker", lambda members: members["segments"][0].update({member: value}))
    stoker_cli("check", planted, status=None, memory=4 << 30)


@pytest.mark.parametrize("offset", range(8, 60, 4))
def test_lengths_of_a_segment_are_not_believed(offset, planted, stoker_cli):
    """A number in the header of a segment is the largest there is; its checksum matches."""
    index = planted / ".stoker"
    segment = only_segment(index)
    data = bytearray(segment.read_bytes())
    tables, pages = struct.unpack_from("<I", data, 12)[0], struct.unpack_from("<Q", data, 48)[0]
    before = struct.unpack_from("<I", data, 56)[0]
    struct.pack_into("<I", data, offset, 0xFFFFFFF0)
    after = crc32c(bytes(data[:56]) + bytes(data[64 : 64 + 24 * tables + 4 * pages]))
    struct.pack_into("<I", data, 56, after)
    segment.write_bytes(data)

    def change(members):
        text = (
            json.dumps(members["segments"][0]).replace(f"{before:08x}", f"{after:08x}").replace(str(before), str(after))
        )
        members["segments"][0] = json.loads(text)
        new = members["segments"][0]["file"]
        segment.rename(index / new)

    forge_manifest(index, change)
    stoker_cli("check", planted, status=None, memory=4 << 30)


@pytest.mark.parametrize("command", ["index", "index --full", "pack", "pack --overwrite"])
def test_a_linked_index_directory_writes_nothing_elsewhere(command, planted, tmp_path, stoker_cli):
    """A downloaded dataset has a link `.stoker` that leads to a directory of the user."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "thesis.tex").write_text("work")
    before = tree(victim)
    image_folder(tmp_path / "photos", per_class=3)
    if command.startswith("index"):
        shutil.rmtree(planted / ".stoker")
        (planted / ".stoker").symlink_to(victim)
        stoker_cli(*command.split(), planted, status=None)
    else:
        destination = tmp_path / "packed"
        if "--overwrite" in command:
            stoker_cli("pack", planted, destination)
            shutil.move(destination / ".stoker", victim / "index")
            before = tree(victim)
            (destination / ".stoker").symlink_to(victim / "index")
        else:
            destination.mkdir()
            (destination / ".stoker").symlink_to(victim)
        stoker_cli(*command.split(), tmp_path / "photos", destination, status=None)
    assert not differences(before, tree(victim))


def test_a_list_of_files_reads_nothing_outside(tmp_path, stoker_cli, fresh_python):
    """state.json of a folder of Hugging Face names its files."""
    for name, value in (("secret", b"the secret of another user"), ("public", b"something that all may know")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_bytes(value)
        stoker_cli("pack", tmp_path / name, tmp_path / f"{name}-packed", "--to", "arrow")
        shutil.rmtree(tmp_path / f"{name}-packed/.stoker")
    data = tmp_path / "public-packed"
    (hidden,) = (tmp_path / "secret-packed").glob("*.arrow")
    for target in (f"../secret-packed/{hidden.name}", str(hidden)):
        state = json.loads((data / "state.json").read_text())
        state["_data_files"] = [{"filename": target}]
        (data / "state.json").write_text(json.dumps(state))
        for path in data.glob("*.arrow"):
            path.unlink()
        assert "secret of another" not in fresh_python(READ, data).stdout
        packed = tmp_path / "packed"
        stoker_cli("pack", data, packed, status=None)
        stoker_cli("stage", data, tmp_path, status=None)
        found = [
            name
            for root in (packed, *tmp_path.glob("stoker-*"))
            for name, each in tree(root).items()
            if isinstance(each, bytes) and b"secret of another" in each
        ]
        assert not found, f"copied from outside: {found}"


@pytest.mark.parametrize("name", ["v1..2", "a...b", "x..", "100%", "a b", "ü", "%2e%2e"])
def test_names_with_dots_that_lead_nowhere_are_fine(name, tmp_path, stoker_cli):
    """`..` as a component is refused, not as part of a name; percent signs are escaped, not taken for dots."""
    data = tmp_path / "data"
    data.mkdir()
    for shard in range(2):
        (data / f"{name}-{shard:06d}.tar").write_bytes(simple_tar({b"%04d.bin" % shard: noise(shard, 300)}))
    stoker_cli("index", "--full", data, "--where", "beside")
    assert stoker_cli("check", data, "--json").json["index"]["depth"] == "full"
    place = tmp_path / "place"
    place.mkdir()
    copy = stoker_cli("stage", data, place, "--json").json["path"]
    stoker_cli("check", copy, "--compare", data)
    stoker_cli("pack", data, tmp_path / "packed")


ROWS = """
import random, sys, warnings
from pathlib import Path
import numpy as np, stoker
from stoker.transforms import RandomResizedCrop
warnings.simplefilter("ignore")
def pixels():
    return np.concatenate([batch["image"] for batch in stoker.Loader(sys.argv[1], 4, [RandomResizedCrop(32)], seed=3)])
right = pixels()
(rows,) = Path(sys.argv[1]).glob(".stoker/*.rows")
good = rows.read_bytes()
for seed in range(60):
    damage = random.Random(seed)
    data = bytearray(good)
    for _ in range(damage.choice([1, 4, 64])):
        data[damage.randrange(len(data))] = damage.choice([0, 255, 127, 128, damage.randrange(256)])
    rows.write_bytes(bytes(data) if seed % 5 else bytes(data[: damage.randrange(len(data))]))
    try:
        found = pixels()
    except (ValueError, OSError):
        continue
    assert found.shape == right.shape and (found == right).all(), f"other pixels with damage {seed}"
print("good")
"""


def test_damaged_row_indexes_give_no_other_pixels(tmp_path, stoker_cli, fresh_python):
    """A row index says where to begin decoding: what it says is checked, or the photo is decoded as a whole."""
    for i in range(4):
        (tmp_path / "photos/a").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"photos/a/{i}.jpg").write_bytes(jpeg(i, 320, 240))
    stoker_cli("pack", tmp_path / "photos", tmp_path / "packed")
    assert fresh_python(ROWS, tmp_path / "packed").stdout == "good\n"
