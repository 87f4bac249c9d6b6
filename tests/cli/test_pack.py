# SPDX-License-Identifier: Apache-2.0
"""`stoker pack`: what it writes, and that this depends on nothing but its input and options."""

import gzip
import re
import subprocess

import pytest
from packed import key_of, order_of, packed_files, without_labels
from samples import differences, jpeg, noise, shards_of, tree, write_files
from tar_bytes import BLOCK, END, members, simple_tar
from tfrecord_bytes import example, record, records

# --- What comes out -------------------------------------------------------------------------------


def test_folder_becomes_tar_with_the_original_bytes(stoker_cli, folder, tmp_path):
    source, files = folder
    stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "20K")
    found = packed_files(tmp_path / "packed")
    assert without_labels(found) == files
    labels = {name: data for name, data in found.items() if name.endswith(".cls")}
    number = {"cat": b"0", "dog": b"1", "eel": b"2"}
    assert labels == {name.replace(".jpg", ".cls"): number[name.split("/")[0]] for name in files}


def test_source_is_left_as_it_was(stoker_cli, folder, tmp_path):
    source, _ = folder
    before = tree(source)
    stoker_cli("pack", source, tmp_path / "packed")
    assert differences(before, tree(source)) == []


def test_several_files_with_one_stem_are_one_sample(stoker_cli, multi, tmp_path):
    source, files = multi
    result = stoker_cli("pack", source, tmp_path / "packed", "--json").json
    assert result["samples"] == 30
    assert packed_files(tmp_path / "packed") == files
    order = order_of(tmp_path / "packed")
    assert len(order) == len(set(order)) == 30, "the files of a sample must be neighbours"


def test_shards_are_deterministic_ustar(stoker_cli, folder, tmp_path):
    source, _ = folder
    stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "20K")
    shards = shards_of(tmp_path / "packed")
    assert len(shards) > 3
    stem = re.fullmatch(r"(.+)-000000\.tar", shards[0].name).group(1)
    assert [shard.name for shard in shards] == [f"{stem}-{number:06d}.tar" for number in range(len(shards))]
    for shard in shards:
        contents = shard.read_bytes()
        assert len(contents) % BLOCK == 0
        assert contents.endswith(END)
        # Two zero blocks and no further padding: the block before them belongs to a member.
        assert contents[-3 * BLOCK : -2 * BLOCK] != bytes(BLOCK)
        header = contents[:BLOCK]
        assert header[257:265] == b"ustar\x0000"
        assert int(header[100:107], 8) == 0o644
        assert (int(header[108:115], 8), int(header[116:123], 8), int(header[136:147], 8)) == (0, 0, 0)
        assert header[265:329] == bytes(64)
        assert header[156:157] == b"0"


def test_shard_size_is_respected(stoker_cli, tmp_path):
    files = {f"s{i:03d}.bin": noise(i, 100 + 137 * i) for i in range(120)}
    write_files(tmp_path / "folder", files)
    limit = 60_000
    stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--shard-size", str(limit))
    shards = shards_of(tmp_path / "packed")
    first = None
    for shard in reversed(shards):
        size = shard.stat().st_size
        assert size <= limit
        # Filled up: the first sample of the next shard would not have fitted, with 4 KiB to spare for an end.
        assert first is None or size + first + 4096 > limit, shard.name
        data = next(iter(members(shard).values()))
        first = BLOCK + (len(data) + BLOCK - 1) // BLOCK * BLOCK
    assert packed_files(tmp_path / "packed") == files


def test_a_sample_larger_than_a_shard_gets_one_of_its_own(stoker_cli, tmp_path):
    files = {"a.bin": b"a" * 100, "b.bin": noise("b", 50_000), "c.bin": b"c" * 100}
    write_files(tmp_path / "folder", files)
    stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--shard-size", "4K")
    assert [list(members(shard)) for shard in shards_of(tmp_path / "packed")] == [["a.bin"], ["b.bin"], ["c.bin"]]
    assert packed_files(tmp_path / "packed") == files


def test_to_tfrecord(stoker_cli, tmp_path):
    files = {"b/two.jpg": jpeg(2), "a/one.jpg": jpeg(1), "b/three.jpg": noise(3, 5000)}
    write_files(tmp_path / "folder", files)
    stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--to", "tfrecord", "--shard-size", "4K")
    shards = shards_of(tmp_path / "packed")
    stem = re.fullmatch(r"(.+)-00000-of-0000\d", shards[0].name).group(1)
    assert [shard.name for shard in shards] == [f"{stem}-{i:05d}-of-{len(shards):05d}" for i in range(len(shards))]
    found = [data for shard in shards for data in records(shard.read_bytes())]
    expected = [
        example({"__key__": [key.encode()], "image": [files[f"{key}.jpg"]], "label": [label]})
        for key, label in (("a/one", 0), ("b/three", 1), ("b/two", 1))
    ]
    assert found == expected


def test_fields_keep_their_types_in_tfrecord(stoker_cli, multi, tmp_path):
    source, files = multi
    stoker_cli("pack", source, tmp_path / "packed", "--to", "tfrecord")
    (shard,) = shards_of(tmp_path / "packed")
    found = records(shard.read_bytes())
    keys = sorted({key_of(name) for name in files})
    assert len(found) == len(keys)
    expected = []
    for key in keys:
        features = {
            "__key__": [key.encode()],
            "image": [files[f"{key}.jpg"]],
            "json": [files[f"{key}.json"]],
            "label": [int(files[f"{key}.cls"])],
            "npy.npy": [files[f"{key}.npy"]],
        }
        if f"{key}.txt" in files:
            features["txt"] = [files[f"{key}.txt"]]
        expected.append(example(features))
    assert found == expected


def test_round_trip_through_every_format(stoker_cli, multi, tmp_path):
    source, files = multi
    stoker_cli("pack", source, tmp_path / "tar", "--shard-size", "20K")
    stoker_cli("pack", tmp_path / "tar", tmp_path / "tfrecord", "--to", "tfrecord", "--shard-size", "30K")
    stoker_cli("pack", tmp_path / "tfrecord", tmp_path / "again", "--shard-size", "20K")
    for made in ("tar", "tfrecord", "again"):
        stoker_cli("check", source, "--compare", tmp_path / made)
    # tfrecord knows neither suffixes nor text: what the files are called may differ, their bytes may not.
    assert sorted(packed_files(tmp_path / "again").values()) == sorted(files.values())


def test_one_file_is_a_dataset(stoker_cli, tmp_path):
    files = {b"x.jpg": jpeg(1), b"y.jpg": jpeg(2)}
    (tmp_path / "one").mkdir()
    (tmp_path / "one/data.tar").write_bytes(simple_tar(files))
    (tmp_path / "one/other.tar").write_bytes(simple_tar({b"z.jpg": jpeg(3)}))
    stoker_cli("pack", tmp_path / "one/data.tar", tmp_path / "packed")
    assert packed_files(tmp_path / "packed") == {"x.jpg": jpeg(1), "y.jpg": jpeg(2)}


# --- The same bytes, whatever the number of threads -------------------------------------------------


@pytest.mark.parametrize("form", ["tar", "tfrecord"])
def test_jobs_do_not_change_a_byte(stoker_cli, multi, tmp_path, form):
    source, _ = multi
    trees = []
    for jobs in ("1", "2", "5"):
        stoker_cli("pack", source, tmp_path / f"jobs{jobs}", "--jobs", jobs, "--to", form, "--shard-size", "10K")
        trees.append(tree(tmp_path / f"jobs{jobs}"))
    assert any(name.startswith(b".stoker/") for name in trees[0])
    assert len(shards_of(tmp_path / "jobs1")) > 3
    assert differences(trees[0], trees[1]) == []
    assert differences(trees[0], trees[2]) == []


def test_jobs_do_not_change_a_shuffled_split(stoker_cli, folder, tmp_path):
    source, _ = folder
    options = ["--shuffle", "3", "--split", "train=0.7,val=0.3", "--shard-size", "15K"]
    for jobs in ("1", "5"):
        stoker_cli("pack", source, tmp_path / f"jobs{jobs}", "--jobs", jobs, *options)
    assert differences(tree(tmp_path / "jobs1"), tree(tmp_path / "jobs5")) == []


def test_times_and_owners_of_the_source_do_not_matter(stoker_cli, folder, tmp_path):
    source, _ = folder
    stoker_cli("pack", source, tmp_path / "first")
    subprocess.run(f"find {source} -exec touch -d 2001-02-03 {{}} +; chmod -R 700 {source}", shell=True, check=True)
    stoker_cli("pack", source, tmp_path / "second")
    assert differences(tree(tmp_path / "first"), tree(tmp_path / "second")) == []


# --- Where it goes ---------------------------------------------------------------------------------


def test_destination_inside_source_is_refused(stoker_cli, folder):
    source, _ = folder
    before = tree(source)
    for destination in (source / "packed", source, source / "cat" / "deep" / "packed"):
        finished = stoker_cli("pack", source, destination, status=2)
        assert str(destination) in finished.stderr
        assert differences(before, tree(source)) == []


def test_destination_inside_source_through_a_link_is_refused(stoker_cli, folder, tmp_path):
    source, _ = folder
    (tmp_path / "alias").symlink_to(source)
    before = tree(source)
    stoker_cli("pack", source, tmp_path / "alias" / "packed", status=2)
    stoker_cli("pack", tmp_path / "alias", source / "packed", status=2)
    assert differences(before, tree(source)) == []


def test_destination_that_holds_other_things(stoker_cli, folder, tmp_path):
    source, _ = folder
    write_files(tmp_path / "packed", {"thesis.tex": b"years of work"})
    finished = stoker_cli("pack", source, tmp_path / "packed", status=None)
    assert finished.returncode in (1, 2)
    assert str(tmp_path / "packed") in finished.stderr
    assert tree(tmp_path / "packed") == {b"thesis.tex": b"years of work"}
    stoker_cli("pack", source, tmp_path / "packed", "--overwrite", status=None)
    assert (tmp_path / "packed/thesis.tex").read_bytes() == b"years of work", "never deletes what it did not write"


def test_destination_not_empty_needs_overwrite(stoker_cli, folder, tmp_path):
    source, _ = folder
    stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "20K")
    before = tree(tmp_path / "packed")
    finished = stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "40K", status=None)
    assert finished.returncode in (1, 2)
    assert "--overwrite" in finished.stderr
    assert differences(before, tree(tmp_path / "packed")) == []
    stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "40K", "--overwrite")
    stoker_cli("pack", source, tmp_path / "fresh", "--shard-size", "40K")
    assert differences(tree(tmp_path / "fresh"), tree(tmp_path / "packed")) == []


def test_overwrite_from_tar_to_tfrecord_leaves_no_old_shard(stoker_cli, folder, tmp_path):
    source, _ = folder
    stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "20K")
    stoker_cli("pack", source, tmp_path / "packed", "--to", "tfrecord", "--overwrite")
    stoker_cli("pack", source, tmp_path / "fresh", "--to", "tfrecord")
    assert differences(tree(tmp_path / "fresh"), tree(tmp_path / "packed")) == []


def test_finished_pack_run_again_does_nothing(stoker_cli, folder, tmp_path):
    source, files = folder
    stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "20K")
    before = tree(tmp_path / "packed")
    times = {path: path.stat().st_mtime_ns for path in shards_of(tmp_path / "packed")}
    result = stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "20K", "--json").json
    assert result["samples"] == len(files)
    assert result["already_complete"] is True
    assert differences(before, tree(tmp_path / "packed")) == []
    assert times == {path: path.stat().st_mtime_ns for path in shards_of(tmp_path / "packed")}


def test_run_again_after_the_source_grew_is_not_called_complete(stoker_cli, folder, tmp_path):
    source, files = folder
    stoker_cli("pack", source, tmp_path / "packed")
    write_files(source, {"dog/new.jpg": jpeg(77)})
    finished = stoker_cli("pack", source, tmp_path / "packed", status=None)
    if finished.returncode == 0:
        assert "dog/new.jpg" in packed_files(tmp_path / "packed")
    else:
        assert "--overwrite" in finished.stderr
        assert without_labels(packed_files(tmp_path / "packed")) == files


def test_another_source_of_the_same_name_is_not_called_complete(stoker_cli, tmp_path):
    write_files(tmp_path / "one/train", {"a.txt": b"1"})
    write_files(tmp_path / "two/train", {"b.txt": b"2"})
    stoker_cli("pack", tmp_path / "one/train", tmp_path / "packed")
    finished = stoker_cli("pack", tmp_path / "two/train", tmp_path / "packed", status=None)
    assert finished.returncode in (1, 2), "the destination holds something else"
    assert "--overwrite" in finished.stderr
    assert packed_files(tmp_path / "packed") == {"a.txt": b"1"}


def test_source_that_moved_is_the_same_source(stoker_cli, tmp_path):
    """Which way a path is written does not matter, nor where the data lies: the bytes do."""
    write_files(tmp_path / "one/train", {"a.txt": b"1"})
    stoker_cli("pack", tmp_path / "one/train", tmp_path / "first")
    stoker_cli("pack", "one/../one/train/", tmp_path / "second", cwd=tmp_path)
    assert differences(tree(tmp_path / "first"), tree(tmp_path / "second")) == []
    (tmp_path / "one").rename(tmp_path / "elsewhere")
    stoker_cli("pack", tmp_path / "elsewhere/train", tmp_path / "third")
    assert differences(tree(tmp_path / "first"), tree(tmp_path / "third")) == []


def test_missing_source(stoker_cli, tmp_path):
    finished = stoker_cli("pack", tmp_path / "nowhere", tmp_path / "packed", status=None)
    assert finished.returncode in (1, 2)
    assert str(tmp_path / "nowhere") in finished.stderr
    assert not (tmp_path / "packed").exists()


def test_destination_is_a_file(stoker_cli, folder, tmp_path):
    source, _ = folder
    (tmp_path / "file").write_bytes(b"mine")
    finished = stoker_cli("pack", source, tmp_path / "file", status=None)
    assert finished.returncode in (1, 2)
    assert str(tmp_path / "file") in finished.stderr
    assert (tmp_path / "file").read_bytes() == b"mine"


# --- Compressed sources -----------------------------------------------------------------------------

TAR_FILES = {
    f"k{i}.{suffix}".encode(): noise(f"{i}{suffix}", 300 * i + 5) for i in range(9) for suffix in ("bin", "jpg")
}


@pytest.mark.parametrize("ending", ["tar.gz", "tgz", "tar.zst"])
def test_compressed_tar_source(stoker_cli, tmp_path, ending):
    (tmp_path / "plain").mkdir()
    (tmp_path / "small").mkdir()
    names = list(TAR_FILES)
    for number, some in enumerate((names[:8], names[8:])):
        contents = simple_tar({name: TAR_FILES[name] for name in some})
        (tmp_path / f"plain/d-{number}.tar").write_bytes(contents)
        if ending == "tar.zst":
            contents = subprocess.run(["zstd", "-q", "-c"], input=contents, stdout=subprocess.PIPE, check=True).stdout
        else:
            contents = gzip.compress(contents)
        (tmp_path / f"small/d-{number}.{ending}").write_bytes(contents)
    stoker_cli("pack", tmp_path / "small", tmp_path / "packed", "--shard-size", "6K", "--jobs", "3")
    assert len(shards_of(tmp_path / "packed")) > 2
    assert packed_files(tmp_path / "packed") == {name.decode(): data for name, data in TAR_FILES.items()}
    stoker_cli("check", tmp_path / "packed", "--compare", tmp_path / "plain")
    finished = stoker_cli("index", tmp_path / "small", status=1)
    assert "stoker pack" in finished.stderr
    assert not (tmp_path / "small/.stoker").exists()


def test_compressed_source_is_not_shuffled_at_random_cost(stoker_cli, tmp_path):
    """It can only be read front to back: done anyway, or refused with what to do instead."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.tar.gz").write_bytes(gzip.compress(simple_tar(TAR_FILES)))
    finished = stoker_cli("pack", tmp_path / "d", tmp_path / "packed", "--shuffle", "1", status=None)
    if finished.returncode == 0:
        assert packed_files(tmp_path / "packed") == {name.decode(): data for name, data in TAR_FILES.items()}
    else:
        assert finished.returncode == 2 and "pack" in finished.stderr and "--shuffle" in finished.stderr
        assert not (tmp_path / "packed").exists()


def test_several_gzip_members_are_one_stream(stoker_cli, tmp_path):
    contents = simple_tar(TAR_FILES)
    (tmp_path / "d").mkdir()
    cut = len(contents) // 3
    (tmp_path / "d/x.tar.gz").write_bytes(gzip.compress(contents[:cut]) + gzip.compress(contents[cut:]))
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed")
    assert packed_files(tmp_path / "packed") == {name.decode(): data for name, data in TAR_FILES.items()}


def test_compressed_tfrecord_source(stoker_cli, tmp_path):
    data = [noise(i, 10 * i + 1) for i in range(20)]
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.tfrecord.gz").write_bytes(
        gzip.compress(b"".join(record(example({"image": [each], "label": [i]})) for i, each in enumerate(data)))
    )
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed", "--to", "tar")
    found = packed_files(tmp_path / "packed")
    assert {n: d for n, d in found.items() if n.endswith(".cls")} == {f"x-{i:08d}.cls": b"%d" % i for i in range(20)}
    assert [d for n, d in found.items() if not n.endswith(".cls")] == data
    finished = stoker_cli("index", tmp_path / "d", status=1)
    assert "stoker pack" in finished.stderr


def test_damaged_compressed_source_is_named(stoker_cli, tmp_path):
    contents = bytearray(gzip.compress(simple_tar(TAR_FILES)))
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut/x.tar.gz").write_bytes(contents[:-4000])
    (tmp_path / "flipped").mkdir()
    contents[len(contents) // 2] ^= 0x10
    (tmp_path / "flipped/x.tar.gz").write_bytes(contents)
    for name in ("cut", "flipped"):
        finished = stoker_cli("pack", tmp_path / name, tmp_path / f"packed-{name}", status=1)
        assert "x.tar.gz" in finished.text


# --- What it says ------------------------------------------------------------------------------------


def test_summary(stoker_cli, folder, tmp_path):
    source, files = folder
    finished = stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "20K")
    assert f"{len(files)} samples" in finished.stdout
    assert f"{len(shards_of(tmp_path / 'packed'))} tar shards" in finished.stdout
    assert "/s" in finished.stdout, "the rate"
    assert str(tmp_path / "packed") in finished.stdout
    assert re.search(r"stoker (check|open|index)", finished.stdout), "what to do next"
    assert "\x1b" not in finished.text


def test_json(stoker_cli, folder, tmp_path):
    source, files = folder
    finished = stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "20K", "--json")
    result = finished.json
    shards = shards_of(tmp_path / "packed")
    assert result["stoker"]["schema"] == 1 and result["stoker"]["command"] == "pack"
    assert result["source_format"] == "folder"
    assert result["format"] == "tar"
    assert result["samples"] == len(files)
    assert result["shards"] == len(shards)
    assert result["bytes"] == sum(shard.stat().st_size for shard in shards)
    assert result["payload_bytes"] >= sum(map(len, files.values()))
    assert result["left_out"] == []
    assert result["filtered"] == 0 and result["hidden"] == 0
    assert result["shards_reused"] == 0 and result["already_complete"] is False
    assert result["datasets"] == [str(tmp_path / "packed")]
    assert result["seconds"] > 0


def test_json_of_a_failure(stoker_cli, tmp_path):
    finished = stoker_cli("pack", tmp_path / "nowhere", tmp_path / "packed", "--json", status=None)
    assert finished.returncode in (1, 2)
    assert "nowhere" in finished.json["error"]["message"]


# --- What cannot be read ------------------------------------------------------------------------------


def test_same_key_twice(stoker_cli, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.tar").write_bytes(simple_tar({b"one.jpg": b"first", b"two.jpg": b"2"}))
    (tmp_path / "d/b.tar").write_bytes(simple_tar({b"three.jpg": b"3", b"one.jpg": b"second"}))
    finished = stoker_cli("pack", tmp_path / "d", tmp_path / "packed", status=1)
    assert "one" in finished.text and "b.tar" in finished.text
    assert packed_files(tmp_path / "packed") == {"one.jpg": b"first", "two.jpg": b"2", "three.jpg": b"3"}
    result = stoker_cli("pack", tmp_path / "d", tmp_path / "packed2", "--skip-bad", "--json").json
    assert [(fault["shard"], fault["sample"]) for fault in result["left_out"]] == [("b.tar", "one")]


def test_bad_sample_is_left_out_and_named(stoker_cli, tmp_path):
    good, bad = record(example({"x": [b"good"]})), bytearray(record(example({"x": [b"bad"]})))
    bad[-5] ^= 1  # the last byte of the data
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.tfrecord").write_bytes(good + bad + good)
    finished = stoker_cli("pack", tmp_path / "d", tmp_path / "packed", "--to", "tfrecord", status=1)
    assert "x.tfrecord" in finished.text and "checksum" in finished.text
    (shard,) = shards_of(tmp_path / "packed")
    assert len(records(shard.read_bytes())) == 2
    result = stoker_cli("pack", tmp_path / "d", tmp_path / "packed2", "--to", "tfrecord", "--skip-bad", "--json").json
    assert len(result["left_out"]) == 1
    assert len(good) <= result["left_out"][0]["offset"] <= len(good) + len(bad)


def test_a_byte_that_changed_since_it_was_packed(stoker_cli, tmp_path):
    """The checksums of the source's own index are compared on the way, whatever the target is."""
    (tmp_path / "d").mkdir()
    for i in range(3):
        (tmp_path / f"d/{i}.bin").write_bytes(bytes([i]) * 1000)
    stoker_cli("pack", tmp_path / "d", tmp_path / "packed")
    (shard,) = (tmp_path / "packed").glob("*.tar")
    contents = bytearray(shard.read_bytes())
    contents[512] ^= 1  # the first byte of the first sample
    shard.write_bytes(contents)
    for target in ("tar", "tfrecord", "arrow"):
        finished = stoker_cli("pack", tmp_path / "packed", tmp_path / target, "--to", target, status=1)
        assert f"{shard.name}: offset 512" in finished.text and "checksum" in finished.text
