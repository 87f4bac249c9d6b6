# SPDX-License-Identifier: Apache-2.0
"""`stoker stage`: what arrives, what is used again, what does not fit, what is listed and cleaned."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import tomllib
from samples import image_folder, noise, remove_copy, write_files
from staged import bytes_of, files_of, flip, pack_photos, same_files, unfinished
from tar_bytes import simple_tar

UID = os.geteuid()


@pytest.fixture
def packed(stoker_cli, tmp_path):
    return pack_photos(stoker_cli, tmp_path)


def test_shards_arrive(stoker_cli, packed, place):
    result = stoker_cli("stage", packed, place, "--json").json
    staged = place / f"stoker-{UID}" / os.path.basename(os.path.dirname(result["path"])) / "data"
    assert result["path"] == str(staged) and result["place"] == str(place)
    assert result["complete"] and result["verified"] and not result["packed"] and not result["checksums_made"]
    assert result["reused_bytes"] == 0 and result["bytes"] == result["staged_bytes"] == bytes_of(packed)
    assert same_files(packed, staged)
    assert stoker_cli("check", staged, "--compare", packed, "--json").json["comparison"]["equal"]
    assert unfinished(place) == []
    assert (place / f"stoker-{UID}").stat().st_mode & 0o7777 == 0o700


def test_what_is_there_is_used_again(stoker_cli, packed, place):
    stoker_cli("stage", packed, place)
    again = stoker_cli("stage", packed, place, "--json").json
    assert again["reused_bytes"] == again["bytes"] and again["verified"]
    # As a site does that deletes what nobody touches.
    (staged,) = place.glob("stoker-*/*/data")
    gone = sorted(staged.glob("*.tar"))[1:3]
    sizes = sum(path.stat().st_size for path in gone)
    for path in gone:
        path.unlink()
    healed = stoker_cli("stage", packed, place, "--json").json
    assert healed["bytes"] - healed["reused_bytes"] == sizes and healed["complete"]
    assert same_files(packed, staged)
    shutil.rmtree(staged / ".stoker")
    stoker_cli("stage", packed, place)
    stoker_cli("check", staged)


def test_small_files_are_packed(stoker_cli, tmp_path, place):
    image_folder(tmp_path / "photos")
    result = stoker_cli("stage", tmp_path / "photos", place, "--json").json
    assert result["packed"] and result["complete"] and result["verified"] and result["format"] == "tar"
    assert stoker_cli("check", result["path"], "--compare", tmp_path / "photos", "--json").json["comparison"]["equal"]
    assert not (tmp_path / "photos/.stoker").exists()
    again = stoker_cli("stage", tmp_path / "photos", place, "--json").json
    assert again["path"] == result["path"] and again["reused_bytes"] == again["bytes"]
    # Another picture: the copy is made anew, nothing is mixed.
    write_files(tmp_path / "photos", {"cat/new.jpg": noise("new", 500)})
    changed = stoker_cli("stage", tmp_path / "photos", place, "--json").json
    assert changed["samples"] == result["samples"] + 1 and changed["reused_bytes"] == 0
    assert unfinished(place) == []


def test_without_checksums_they_are_made(stoker_cli, tmp_path, place):
    data = tmp_path / "d"
    data.mkdir()
    for number in range(3):
        files = {b"%d_%d.bin" % (number, i): noise((number, i), 3000) for i in range(10)}
        (data / f"{number}.tar").write_bytes(simple_tar(files))
    result = stoker_cli("stage", data, place, "--json").json
    assert result["verified"] and result["checksums_made"]
    assert stoker_cli("check", result["path"], "--json").json["index"]["depth"] == "full"
    assert stoker_cli("check", result["path"], "--compare", data, "--json").json["comparison"]["equal"]


def test_a_single_file(stoker_cli, tmp_path, place):
    (tmp_path / "x.tar").write_bytes(simple_tar({b"%d.bin" % i: noise(i, 900) for i in range(10)}))
    (tmp_path / "other").write_text("is not copied")
    result = stoker_cli("stage", tmp_path / "x.tar", place, "--json").json
    assert result["path"].endswith("/data/x.tar") and files_of(place.glob("stoker-*/x*/data").__next__()) == ["x.tar"]
    assert stoker_cli("check", result["path"], "--json").json["samples"] == 10
    (listed,) = stoker_cli("stage", "--list", place, "--json").json["staged"]
    assert listed["path"] == result["path"]


def test_names_of_all_kinds(stoker_cli, tmp_path, place):
    source = tmp_path / "a 'b' $(touch hacked); \"\n"
    source.mkdir()
    (source / "sub").mkdir()
    for name in ["it's $(touch hacked).tar", "sub/new\nline.tar"]:
        (source / name).write_bytes(simple_tar({b"x%d.bin" % len(name): noise(name, 700)}))
    result = stoker_cli("stage", f"{source}::all", place, "--json", cwd=tmp_path).json
    assert result["complete"] and result["shards"] >= 1
    assert "\n" not in stoker_cli("stage", "--list", place).stdout.split("of ")[1].split("whose")[0].strip()
    assert not list(tmp_path.rglob("hacked"))


def test_damage_is_named(stoker_cli, packed, place):
    shard = sorted(packed.glob("*.tar"))[2]
    contents = bytearray(shard.read_bytes())
    contents[600] ^= 1
    shard.write_bytes(contents)
    finished = stoker_cli("stage", packed, place, "--json", status=1)
    result = finished.json
    assert not result["verified"] and not result["complete"] and result["missing_shards"] == 1
    assert {fault["shard"] for fault in result["faults"]} == {shard.name}
    expected = stoker_cli("check", packed, "--json", status=1).json["faults"]
    assert {fault["sample"] for fault in result["faults"]} <= {fault["sample"] for fault in expected}
    assert not list(place.rglob(shard.name)), "what is damaged does not arrive"


def test_a_source_that_is_no_longer_what_was_indexed(stoker_cli, packed, place):
    shard = sorted(packed.glob("*.tar"))[0]
    shard.write_bytes(shard.read_bytes() + b"more")
    finished = stoker_cli("stage", packed, place, status=1)
    assert shard.name in finished.stderr and "stoker index" in finished.stderr
    assert unfinished(place) == []


def test_no_room(stoker_cli, packed, small_file_system):
    small = small_file_system(120_000)
    finished = stoker_cli("stage", packed, small, status=1)
    assert "--partial" in finished.stderr and re.search(r"small-0: [0-9.]+ kB needed, [0-9.]+ kB free", finished.stderr)
    result = stoker_cli("stage", packed, small, "--partial", "--json").json
    assert not result["complete"] and result["verified"] and 0 < result["staged_bytes"] < 120_000
    assert result["missing_shards"] > 0 and unfinished(small) == []
    stoker_cli("stage", "--clean", small)
    assert list(small.iterdir()) == [], "nothing is left"


def test_disk_full_meanwhile(stoker_cli, tmp_path, small_file_system):
    """A folder's size is not known before: the disk says no, and what to do."""
    write_files(tmp_path / "photos", {f"{i:03d}.jpg": noise(i, 50_000) for i in range(40)})
    small = small_file_system(1_000_000)
    finished = stoker_cli("stage", tmp_path / "photos", small, status=1)
    assert re.search(r"small-0: needs 2.\d+ MB, \d+ kB free; a folder is staged whole or not at all", finished.stderr), finished
    assert unfinished(small) == []


def test_the_place_is_chosen(stoker_cli, packed, small_file_system, tmp_path):
    large, little = small_file_system(5_000_000), small_file_system(3_000_000)
    # On every machine of the tests /dev/shm may be larger: a dataset on it excludes it.
    source = f"/dev/shm/stoker-test-{os.getpid()}"
    shutil.copytree(packed, source)
    try:
        variables = {"SLURM_TMPDIR": str(little), "TMPDIR": str(large)}
        result = stoker_cli("stage", source, "--json", env=variables).json
    finally:
        shutil.rmtree(source)
    choices = [line for line in result["why"].splitlines() if "$" in line]
    assert any("$SLURM_TMPDIR" in line for line in choices) and any("$TMPDIR" in line for line in choices)
    assert "/dev/shm: the dataset lies on the same file system" in result["why"]
    if not os.path.isdir("/scr") and not os.path.isdir("/local/scratch"):
        assert result["place"] == str(large)
    else:
        remove_copy(result["path"])


def test_list_and_clean(stoker_cli, packed, place, tmp_path):
    assert stoker_cli("stage", "--list", place, "--json").json["staged"] == []
    stoker_cli("stage", packed, place)
    site = tmp_path / "site.toml"
    site.write_text(f'[[place]]\npath = "{tmp_path}"\npurge_days = 30\n')
    (item,) = stoker_cli("stage", "--list", place, "--json", env={"STOKER_SITE": str(site)}).json["staged"]
    assert item["source"] == str(packed) and item["own"] and item["owner"] == UID and item["complete"]
    assert item["references"] == [] and 0 <= item["age_s"] < 3600 and 29.9 < item["purged_in_days"] <= 30
    assert item["bytes"] > bytes_of(packed)
    assert str(packed) in stoker_cli("stage", "--list", place).stdout
    kept = stoker_cli("stage", "--clean", "--older", "7d", place, "--json").json
    assert len(kept["kept"]) == 1 and kept["removed"] == []
    assert len(stoker_cli("stage", "--clean", place, "--json").json["removed"]) == 1
    assert list(place.iterdir()) == []


def test_a_reference_keeps_it(stoker_cli, packed, place):
    """Of a process that runs, and of one that does not; of a job, where nobody can be asked."""
    stoker_cli("stage", packed, place, env={"SLURM_JOB_ID": "77", "PATH": "/nowhere"})
    (listed,) = stoker_cli("stage", "--list", place, "--json", env={"PATH": "/nowhere"}).json["staged"]
    assert listed["references"] == ["job,77"]
    assert stoker_cli("stage", "--clean", place, "--json", env={"PATH": "/nowhere"}).json["removed"] == []
    # Its own job has ended when it says so.
    cleaned = stoker_cli("stage", "--clean", place, "--json", env={"SLURM_JOB_ID": "77", "PATH": "/nowhere"}).json
    assert len(cleaned["removed"]) == 1


def test_a_job_that_is_gone(stoker_cli, packed, place, tmp_path):
    """By what squeue lists; a program of that name that says what the real one does for `--format=%A`."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "squeue").write_text("#!/bin/sh\nprintf '41\\n77\\n'\n")
    (tools / "squeue").chmod(0o755)
    env = {"PATH": f"{tools}:{os.environ['PATH']}"}
    stoker_cli("stage", packed, place, env={"SLURM_JOB_ID": "77", **env})
    assert stoker_cli("stage", "--clean", place, "--json", env=env).json["removed"] == []
    (tools / "squeue").write_text("#!/bin/sh\nprintf '41\\n'\n")
    assert len(stoker_cli("stage", "--clean", place, "--json", env=env).json["removed"]) == 1


@pytest.mark.parametrize(
    "words",
    [[], ["a", "b", "c"], ["--list", "--clean"], ["x", "--older", "7d"], ["--clean", "--older", "soon"], ["--list", "--partial"]],
)
def test_wrong_use(stoker_cli, words):
    assert stoker_cli("stage", *words, status=2).stderr.startswith("stoker: ")


def test_the_place_does_not_exist(stoker_cli, packed, tmp_path):
    assert "nowhere" in stoker_cli("stage", packed, tmp_path / "nowhere", status=1).stderr


def test_does_it_pay(stoker_cli, packed, small_file_system):
    """From profiles, here of known rates: copying at 1 MB/s, reading at 1 and at 10 MB/s."""
    place = small_file_system(100_000_000)
    unknown = stoker_cli("stage", packed, place, "--json").json["payoff"]
    assert unknown["copy_s"] is None and "stoker probe" in unknown["known_from"]
    stoker_cli("stage", "--clean", place)
    for path in (packed, place):
        stoker_cli("probe", path, "--bytes", "32M", "--seconds", "1", "--only", "storage")
    cache = stoker_cli("probe", place, "--bytes", "32M", "--seconds", "1", "--only", "storage", "--json").json["profiles"][0]
    rates = {str(packed): 1e6, str(place): 1e7}
    for name in os.listdir(os.path.dirname(cache)):
        profile = os.path.join(os.path.dirname(cache), name)
        with open(profile) as file:
            document = json.load(file)
        for one in document["places"]:
            for rate in one["rates"]:
                rate.update(per_s=rates[one["path"]], least=rates[one["path"]] / 2, most=rates[one["path"]] * 2)
        with open(profile, "w") as file:
            json.dump(document, file)
    payoff = stoker_cli("stage", packed, place, "--json").json["payoff"]
    size = bytes_of(packed)
    assert payoff["copy_s"]["value"] == pytest.approx(size / 1e6)
    assert (payoff["copy_s"]["least"], payoff["copy_s"]["most"]) == pytest.approx((size / 2e6, size / 0.5e6))
    assert payoff["epoch_saves_s"]["value"] == pytest.approx(size / 1e6 - size / 1e7)
    assert payoff["pays_after_epochs"]["value"] == pytest.approx(1 / 0.9)


def test_a_file_system_that_shares_blocks(stoker_cli, packed, tmp_path):
    """A clone takes no time, and its bytes are verified all the same."""
    if os.geteuid() != 0:
        pytest.fail("mounts a file system: needs root")
    image, mount = tmp_path / "image", tmp_path / "xfs"
    mount.mkdir()
    with open(image, "wb") as file:
        file.truncate(400 << 20)
    subprocess.run(["/usr/sbin/mkfs.xfs", "-q", "-m", "reflink=1", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, mount]).returncode != 0:
        pytest.fail("this kernel has no xfs, or no loop devices: modprobe xfs loop")
    try:
        shutil.copytree(packed, mount / "packed")
        (mount / "place").mkdir()
        result = stoker_cli("stage", mount / "packed", mount / "place", "--json").json
        assert result["verified"] and result["complete"]
        (staged,) = (mount / "place").glob("stoker-*/*/data")
        assert same_files(packed, staged)
    finally:
        subprocess.run(["umount", mount], check=True)


def test_what_is_next_to_the_shards_comes_along(stoker_cli, packed, place):
    """Other programs know a dataset by such files; what is large, hidden or of another kind is not the dataset's."""
    (packed / "classes.json").write_text('["cat"]')
    (packed / "thesis.tex").write_text("no")
    (packed / ".secret.json").write_text("no")
    copied = Path(stoker_cli("stage", packed, place, "--json").json["path"])
    assert (copied / "classes.json").read_text() == '["cat"]' and not (copied / "thesis.tex").exists()
    assert not (copied / ".secret.json").exists()
    (packed / "classes.json").write_text('["dog"]')
    stoker_cli("stage", packed, place)
    assert (copied / "classes.json").read_text() == '["dog"]'


def test_a_place_of_the_site(stoker_cli, packed, tmp_path):
    """Another kind of file system than is known to be a node's own is taken where the site says so."""
    site = tmp_path / "site.toml"
    site.write_text(f'[[place]]\npath = "{tmp_path}/fast"\nlocal = true\n')
    (tmp_path / "fast").mkdir()
    why = stoker_cli("stage", packed, "--json", env={"STOKER_SITE": str(site)}).json
    assert f"{tmp_path}/fast" in why["why"]
    remove_copy(why["path"])
    site.write_text("[[place]]\nlocal = true\n")
    refused = stoker_cli("stage", packed, env={"STOKER_SITE": str(site)}, status=1)
    assert f"{site}: line 1" in refused.stderr and "path is missing" in refused.stderr


def test_the_file_that_the_guide_shows(stoker_cli, packed, place, tmp_path):
    guide = Path(__file__).resolve().parents[2] / "docs/guides/site.md"
    shown = re.search(r"```toml\n(.*?)```", guide.read_text(), re.DOTALL)[1]
    said = tomllib.loads(shown)
    site = tmp_path / "site.toml"
    site.write_text(shown)
    env = {"STOKER_SITE": str(site), "SCRATCH": str(place)}
    script = stoker_cli("stage", "--before-job", packed, "--print", env=env).stdout
    assert f"--partition={said['transfer']['partition']}\n" in script and f"--account={said['slurm']['account']}\n" in script
    stoker_cli("stage", packed, place)
    (item,) = stoker_cli("stage", "--list", place, "--json", env=env).json["staged"]
    days = said["place"][0]["purge_days"]
    assert days - 0.1 < item["purged_in_days"] <= days


# --- What was verified when -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["full index", "no checksums", "folder"])
def test_a_copy_that_is_damaged_later(stoker_cli, packed, place, tmp_path, kind):
    source = {"full index": packed, "no checksums": tmp_path / "plain", "folder": tmp_path / "photos"}[kind]
    if kind == "no checksums":
        source.mkdir()
        for shard in packed.glob("*.tar"):
            shutil.copy(shard, source)
    first = stoker_cli("stage", source, place, "--json").json
    assert first["verified"] and first["verified_now"] and first["repaired"] == []
    copied = Path(first["path"])
    shard = sorted(copied.glob("*.tar"))[0]
    whole = shard.read_bytes()
    flip(shard)
    for path in (place / f"stoker-{UID}").glob("*/done/*"):
        os.utime(path, (1_000_000_000, 1_000_000_000), follow_symlinks=False)
    again = stoker_cli("stage", source, place)
    assert "verified: when it was staged" in again.stdout and "not read again: --verify reads it" in again.stdout
    assert "every sample" not in again.stdout and "every byte" not in again.stdout
    if kind != "folder":
        assert " d " in again.stdout.split("verified:")[1], "how long ago"
    document = stoker_cli("stage", source, place, "--json").json
    assert document["verified"] and not document["verified_now"]
    repaired = stoker_cli("stage", source, place, "--verify", "--json").json
    assert repaired["repaired"] == [shard.name] and repaired["verified_now"] and shard.read_bytes() == whole
    assert repaired["verified_at"] > 1_700_000_000
    nothing = stoker_cli("stage", source, place, "--verify")
    assert "repaired" not in nothing.stdout and "read again now" in nothing.stdout
    assert stoker_cli("check", copied, "--json").json["faults"] == []


def test_a_damaged_index_of_a_copy_is_brought_again(stoker_cli, packed, place):
    copied = Path(stoker_cli("stage", packed, place, "--json").json["path"])
    segment = sorted(path for path in (copied / ".stoker").iterdir() if path.name != "manifest.json")[0]
    whole = segment.read_bytes()
    flip(segment, len(whole) // 2)
    stoker_cli("stage", packed, place, "--verify")
    assert segment.read_bytes() == whole
