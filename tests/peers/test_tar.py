# SPDX-License-Identifier: Apache-2.0
"""GNU tar, bsdtar and Python's tarfile write, we read; we write, they read."""

import os
import shutil
import subprocess
import tarfile

import pytest
from reading import assert_same_samples, read_dataset, samples_of
from samples import differences, image_folder, multi_file_samples, noise, shards_of, tree, write_files
from tar_bytes import END, all_members, base256, header, member, members, padded, pax, written_by_tarfile

LONG = "d" * 60 + "/" + "e" * 60 + "/" + "f" * 60  # 182 bytes: fits prefix and name of ustar
LONGER = "g" * 90 + "/" + "h" * 250  # one component over 100 bytes: needs pax or GNU's long name


def command(*words, **options) -> str:
    done = subprocess.run(list(map(os.fspath, words)), capture_output=True, text=True, **options)
    assert done.returncode == 0 and done.stderr == "", f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Files that every kind of tar can hold, sorted as one wants them in an archive."""
    root = tmp_path_factory.mktemp("source")
    files = multi_file_samples(root, 8)
    more = {
        "empty.bin": b"",
        "block.bin": noise(1, 512),
        "more.bin": noise(2, 513),
        "räksmörgås.txt": "ö".encode(),
        "sp ace.txt": b"x",
    }
    write_files(root, more)
    files.update(more)
    return root, {name: files[name] for name in sorted(files)}


def read_archive(tmp_path, contents_from) -> dict:
    (tmp_path / "d").mkdir()
    contents_from(tmp_path / "d/x.tar")
    return read_dataset(tmp_path / "d")


def test_the_archives_of_the_tests_are_right(tmp_path):
    """tar_bytes.py decides what other tests take for an archive: GNU tar and bsdtar agree with it."""
    name = b"long/" + b"n" * 200 + b".txt"
    contents = member(b"a.txt", b"1" * 700) + pax({b"path": name, b"size": b"3"}) + header(b"x", 0) + padded(b"222")
    contents += member(b"././@LongLink", b"gnu/" + name + b"\0", kind=b"L") + member(b"x", b"3333")
    contents += header(b"big.txt", 0, size_field=base256(5)) + padded(b"55555") + END
    (tmp_path / "x.tar").write_bytes(contents)
    expected = {b"a.txt": b"1" * 700, name: b"222", b"gnu/" + name: b"3333", b"big.txt": b"55555"}
    for program in ("tar", "bsdtar"):
        (tmp_path / program).mkdir()
        command(program, "-xf", tmp_path / "x.tar", "-C", tmp_path / program)
        assert {n: d for n, d in tree(tmp_path / program).items() if isinstance(d, bytes)} == expected
    assert {os.fsencode(n): d for n, d in members(tmp_path / "x.tar").items()} == expected


# --- Theirs, read by us -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["gnu", "oldgnu", "pax", "ustar", "v7"])
def test_gnu_tar_formats(source, tmp_path, form):
    root, files = source
    found = read_archive(tmp_path, lambda to: command("tar", f"--format={form}", "-cf", to, "-C", root, *files))
    assert_same_samples(found, samples_of(files))


@pytest.mark.parametrize("form", ["gnutar", "pax", "ustar", "v7"])
def test_bsdtar_formats(source, tmp_path, form):
    root, files = source
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "COPYFILE_DISABLE": "1"}
    found = read_archive(
        tmp_path, lambda to: command("bsdtar", f"--format={form}", "-cf", to, "-C", root, *files, env=environment)
    )
    assert_same_samples(found, samples_of(files))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tarfile_formats(source, tmp_path, form):
    _, files = source
    found = read_archive(tmp_path, lambda to: to.write_bytes(written_by_tarfile(files, form)))
    assert_same_samples(found, samples_of(files))


@pytest.mark.parametrize("dotted", [False, True])
def test_whole_directory(source, tmp_path, dotted):
    """With directories as members, and names that begin with "./" as `tar cf x.tar .` writes them."""
    root, files = source
    words = ["."] if dotted else sorted(os.listdir(root))
    found = read_archive(tmp_path, lambda to: command("tar", "--sort=name", "-cf", to, "-C", root, *words))
    expected = samples_of(files)
    assert found.keys() == expected.keys()
    assert_same_samples({key: found[key] for key in expected}, expected)


@pytest.mark.parametrize("form", ["gnu", "oldgnu", "pax"])
@pytest.mark.parametrize("program", ["tar", "bsdtar", "tarfile"])
def test_long_names(tmp_path, program, form):
    files = {f"{LONG}/short.txt": b"1", f"{LONGER}.txt": b"2", "plain.txt": b"3"}
    root = tmp_path / "root"
    write_files(root, files)

    def write(to):
        if program == "tarfile":
            kind = tarfile.PAX_FORMAT if form == "pax" else tarfile.GNU_FORMAT
            to.write_bytes(written_by_tarfile(files, kind))
        else:
            option = {"gnu": "gnutar", "oldgnu": "gnutar"}.get(form, form) if program == "bsdtar" else form
            command(program, f"--format={option}", "-cf", to, "-C", root, *files)

    assert_same_samples(read_archive(tmp_path, write), samples_of(files))


def test_ustar_prefix(tmp_path):
    files = {f"{LONG}/short.txt": b"1"}
    write_files(tmp_path / "root", files)
    found = read_archive(
        tmp_path, lambda to: command("tar", "--format=ustar", "-cf", to, "-C", tmp_path / "root", *files)
    )
    assert_same_samples(found, samples_of(files))


def test_names_that_are_not_utf8(tmp_path):
    names = [b"b\xe4d.txt", b"\xff\xfe.txt"]
    write_files(tmp_path / "root", {name: b"x" + name for name in names})
    for form in ("gnu", "pax"):
        directory = tmp_path / form
        directory.mkdir()
        subprocess.run(
            ["tar", f"--format={form}", "-cf", directory / "x.tar", "-C", tmp_path / "root", *names], check=True
        )
        found = read_dataset(directory)
        assert [os.fsencode(key) for key in found] == [b"b\xe4d", b"\xff\xfe"]


def test_pax_with_sub_second_times_and_extended_attributes(source, tmp_path):
    """What makes GNU tar and tarfile write a pax header before every member."""
    root, files = source
    found = read_archive(
        tmp_path,
        lambda to: command("tar", "--format=pax", "--pax-option=comment=hello,SCHILY.xattr.user.x=y", "-cf", to, "-C", root, *files),
    )  # fmt: skip
    assert_same_samples(found, samples_of(files))


def test_global_pax_header(tmp_path):
    """As `git archive` writes one."""
    repository = tmp_path / "repository"
    write_files(repository, {"a.txt": b"1", "dir/b.txt": b"2"})
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x"],
    ):
        command("git", *words, cwd=repository)
    (tmp_path / "d").mkdir()
    command("git", "archive", "-o", tmp_path / "d/x.tar", "HEAD", cwd=repository)
    assert_same_samples(read_dataset(tmp_path / "d"), samples_of({"a.txt": b"1", "dir/b.txt": b"2"}))


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_sparse_files_are_read_right_or_named(stoker_cli, tmp_path, form):
    """GNU tar leaves holes out: the stored bytes are not the file's. Reading them as such would be silent damage."""
    root = tmp_path / "root"
    write_files(root, {"a.bin": b"a", "z.bin": b"z"})
    with open(root / "hole.bin", "wb") as file:
        file.seek(1 << 20)
        file.write(b"end")
    (tmp_path / "d").mkdir()
    command("tar", f"--format={form}", "-S", "-cf", tmp_path / "d/x.tar", "-C", root, "a.bin", "hole.bin", "z.bin")
    assert (tmp_path / "d/x.tar").stat().st_size < 1 << 19
    finished = stoker_cli("pack", tmp_path / "d", tmp_path / "packed", status=None)
    found = all_members(shards_of(tmp_path / "packed"))
    assert found["a.bin"] == b"a" and found["z.bin"] == b"z"
    if finished.returncode == 0:
        assert found["hole.bin"] == bytes(1 << 20) + b"end"
    else:
        assert finished.returncode == 1
        assert "hole" in finished.text and "sparse" in finished.text
        assert not any("hole" in name for name in found)


def test_links_and_directories(stoker_cli, tmp_path):
    root = tmp_path / "root"
    write_files(root, {"a.txt": b"1", "dir/b.txt": b"2"})
    os.link(root / "a.txt", root / "hard.txt")
    os.symlink("a.txt", root / "soft.txt")
    (tmp_path / "d").mkdir()
    command("tar", "-cf", tmp_path / "d/x.tar", "-C", root, "a.txt", "dir", "hard.txt", "soft.txt")
    result = stoker_cli("check", tmp_path / "d", "--json", status=1).json
    assert result["samples"] == 2
    # `hard` and `soft` have no bytes of their own in the archive: named, not silently left out.
    assert len(result["faults"]) == 2
    text = stoker_cli("check", tmp_path / "d", status=1).text
    assert "hard" in text and "soft" in text


def test_appended_archives(source, tmp_path):
    root, files = source
    names = list(files)

    def write(to):
        command("tar", "-cf", to, "-C", root, *names[:5])
        command("tar", "-rf", to, "-C", root, *names[5:])

    assert_same_samples(read_archive(tmp_path, write), samples_of(files))


def test_sizes_are_what_the_header_says_not_more(tmp_path, stoker_cli):
    """Blocking factors pad the end of an archive with zeros: no fault."""
    write_files(tmp_path / "root", {"a.txt": b"1"})
    (tmp_path / "d").mkdir()
    command("tar", "-b", "200", "-cf", tmp_path / "d/x.tar", "-C", tmp_path / "root", "a.txt")
    assert (tmp_path / "d/x.tar").stat().st_size == 200 * 512
    assert stoker_cli("check", tmp_path / "d", "--json").json["faults"] == []


# --- Ours, read by them ----------------------------------------------------------------------------------


@pytest.fixture
def packed(stoker_cli, source, tmp_path):
    """What `pack` makes of `source` with names of every length added; and the files that must come out again."""
    root, files = source
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    more = {f"{LONG}/short.txt": b"1", f"{LONGER}.txt": b"2"}
    for length in (98, 99, 100, 101, 102, 154, 155, 156, 250):
        more[f"{'n' * (length - 4)}.bin"] = b"%d" % length
        more[f"{'p' * length}/x.bin"] = b"%d" % length
    more[f"{'q' * 154}/{'r' * 96}.bin"] = b"255 in all"
    write_files(copy, more)
    # Names that are no text in any common encoding, and others that need care.
    odd = {
        b"n\xe4t utf8.bin": b"1",
        b"new\nline.bin": b"2",
        b"tab\there.bin": b"3",
        "ünï/cödé.bin".encode(): b"4",
        b" lead.bin": b"5",
    }
    write_files(copy, odd)
    stoker_cli("pack", copy, tmp_path / "packed", "--shard-size", "30K")
    assert len(shards_of(tmp_path / "packed")) > 1
    return tmp_path / "packed", copy


@pytest.mark.parametrize("program", ["tar", "bsdtar"])
def test_extracted_files_are_the_originals(packed, tmp_path, program):
    directory, original = packed
    (tmp_path / "out").mkdir()
    for shard in shards_of(directory):
        command(program, "-xf", shard, "-C", tmp_path / "out", env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert differences(tree(original), tree(tmp_path / "out")) == []


def test_listing_is_clean(packed):
    directory, original = packed
    count = 0
    for shard in shards_of(directory):
        lines = command("tar", "-tvf", shard, env={**os.environ, "TZ": "UTC"}).splitlines()
        count += len(lines)
        assert all(line.startswith("-rw-r--r-- 0/0 ") and "1970-01-01 00:00" in line for line in lines)
        command("bsdtar", "-tvf", shard, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert count == sum(isinstance(data, bytes) for data in tree(original).values())


def test_tarfile_reads_the_originals(packed):
    directory, original = packed
    found = {os.fsencode(name): data for name, data in all_members(shards_of(directory)).items()}
    assert found == {name: data for name, data in tree(original).items() if isinstance(data, bytes)}


def test_pax_headers_only_where_needed(packed):
    directory, _ = packed
    for shard in shards_of(directory):
        with tarfile.open(shard, errors="surrogateescape") as archive:
            for info in archive:
                raw = os.fsencode(info.name)
                # A path fits ustar when some slash leaves at most 155 bytes before it and 100 after it.
                cuts = [i for i, byte in enumerate(raw) if byte == 0x2F]
                fits = len(raw) <= 100 or any(i <= 155 and 0 < len(raw) - i - 1 <= 100 for i in cuts)
                assert ("path" in info.pax_headers) == (not fits), info.name


def test_gnu_tar_compares_them_with_the_source(stoker_cli, tmp_path):
    """`tar --compare` looks at sizes and contents of the files on disk."""
    image_folder(tmp_path / "source")
    stoker_cli("pack", tmp_path / "source", tmp_path / "packed", "--exclude", "nothing/*")
    (shard,) = shards_of(tmp_path / "packed")
    names = [name for name in members(shard) if not name.endswith(".cls")]
    done = subprocess.run(
        ["tar", "--compare", "-f", shard, "-C", tmp_path / "source", *names], capture_output=True, text=True
    )
    complaints = [
        line for line in done.stdout.splitlines() if "time differs" not in line and "Mode differs" not in line
    ]
    complaints = [line for line in complaints if "Uid differs" not in line and "Gid differs" not in line]
    assert complaints == [] and len(names) == 36
