# SPDX-License-Identifier: Apache-2.0
"""Messages that tell what happened and what to do: the essential words of each."""

import bz2
import io
import json
import lzma
import os
import re
import resource
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hostile import big_endian_stream
from PIL import Image
from samples import image_folder, jpeg, noise
from tar_bytes import simple_tar

TRY = """
import json, sys, warnings, stoker
heard = []
warnings.showwarning = lambda message, *rest, **more: heard.append(str(message))
warnings.simplefilter("always")
from stoker.transforms import Resize
try:
    result = eval(sys.argv[2], {"stoker": stoker, "path": sys.argv[1], "Resize": Resize, "np": __import__("numpy")})
    print(json.dumps({"result": repr(result)[:2000], "heard": heard}))
except Exception as error:
    print(json.dumps({"error": str(error), "kind": type(error).__name__, "heard": heard}))
"""


@pytest.fixture
def tried(fresh_python):
    """tried(path, expression): what an expression gives or raises, and the warnings, in a process of its own."""

    def run(path, expression: str, **options):
        return json.loads(fresh_python(TRY, path, expression, **options).stdout.splitlines()[-1])

    return run


def said(result: dict) -> str:
    return "\n".join([result.get("error", ""), *result["heard"]])


# --- A truncated shard ------------------------------------------------------------------------------


@pytest.fixture
def truncated(tmp_path, stoker_cli) -> Path:
    """Three shards of 50 samples with an index; then the last one is cut at sample 000124."""
    data = tmp_path / "data"
    data.mkdir()
    for shard in range(3):
        files = {b"%06d.bin" % i: noise(i, 1000) for i in range(50 * shard, 50 * shard + 50)}
        (data / f"shard-{shard:06d}.tar").write_bytes(simple_tar(files))
    stoker_cli("index", data, "--where", "beside")
    os.truncate(data / "shard-000002.tar", 24 * 1536 + 700)
    return data


def test_a_truncated_shard_says_what_is_missing(truncated, tried, stoker_cli):
    result = tried(truncated, "[len(batch['sample']) for batch in stoker.Loader(path, 10)]")
    assert "error" in result, result
    for words in ("shard-000002.tar", "truncated", "26 samples", "000124"):
        assert words in said(result), said(result)
    checked = stoker_cli("check", truncated, status=1)
    for words in ("shard-000002.tar", "truncated", "26 samples", "000124"):
        assert words in checked.text, repr(checked)


def test_a_truncated_shard_without_an_index_is_named(truncated, tried, stoker_cli):
    """Nobody knows how many samples there were, but the file and the cause."""
    shutil.rmtree(truncated / ".stoker")
    result = tried(truncated, "[len(batch['sample']) for batch in stoker.Loader(path, 10)]")
    assert "error" in result, result
    assert "shard-000002.tar" in said(result) and "truncated" in said(result)


# --- Archives and other files -----------------------------------------------------------------------


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("cat/1.jpg", jpeg(1))
        archive.writestr("cat/2.jpg", jpeg(2))


LZ4 = b"\x04\x22\x4d\x18\x60\x40\x82" + b"\x05\x00\x00\x80hello" + bytes(4)
ARCHIVES = {
    "zip": (zipped, ["zip archive"]),
    "bz2": (lambda path: path.write_bytes(bz2.compress(simple_tar({b"1.bin": b"1"}))), ["bzip2"]),
    "xz": (lambda path: path.write_bytes(lzma.compress(simple_tar({b"1.bin": b"1"}))), ["xz"]),
    "lz4": (lambda path: path.write_bytes(LZ4), ["LZ4"]),
}


@pytest.mark.parametrize("named", ["plainly", "as a tar"])
@pytest.mark.parametrize("kind", sorted(ARCHIVES))
def test_an_archive_is_called_by_its_name(kind, named, tmp_path, tried, stoker_cli):
    make, words = ARCHIVES[kind]
    path = tmp_path / (f"data.{kind}" if named == "plainly" else "data.tar")
    make(path)
    result = tried(path, "len(stoker.open(path))")
    checked = stoker_cli("check", path, status=None)
    for text in (said(result), checked.text):
        shown = text.replace(str(path), "").replace(path.name, "")
        for word in words:
            assert word.lower() in shown.lower(), text
        assert "pack" in shown or "unpack" in shown or "decompress" in shown, text
    assert "error" in result, result


def test_pack_of_a_zip_does_what_the_message_says(tmp_path, tried, stoker_cli):
    """Where `stoker pack` is advised it works; otherwise the advice is to unpack."""
    zipped(tmp_path / "data.zip")
    message = said(tried(tmp_path / "data.zip", "len(stoker.open(path))"))
    packed = stoker_cli("pack", tmp_path / "data.zip", tmp_path / "packed", "--json", status=None)
    if "stoker pack" in message:
        assert packed.returncode == 0 and packed.json["samples"] == 2, repr(packed)
    else:
        assert packed.returncode == 1 and "unpack" in packed.text


@pytest.mark.parametrize("name", ["x.arrow", "x.arrows", "x"])
def test_a_big_endian_stream_is_called_so(name, tmp_path, tried, stoker_cli):
    (tmp_path / name).write_bytes(big_endian_stream())
    result = tried(tmp_path / name, "len(stoker.open(path))")
    assert "big-endian" in said(result) and "error" in result, result
    assert "big-endian" in stoker_cli("check", tmp_path / name, status=1).text


def test_the_big_endian_stream_is_one(peer_arrow, tmp_path):
    """pyarrow reads what the test above is about, so the test is about the right thing."""
    (tmp_path / "x").write_bytes(big_endian_stream())
    script = "import sys, pyarrow as pa\nprint(len(pa.ipc.open_stream(sys.argv[1]).read_all().schema.names))"
    assert peer_arrow(script.replace("sys.argv[1]", "pa.OSFile(sys.argv[1])"), tmp_path / "x") == "0\n"


TEXTS = """
import sys, numpy as np, h5py
with h5py.File(sys.argv[1], "w") as f:
    f["x"] = np.arange(50.0)
    f["words"] = np.array([[b"one", b"two", b"three of these"]] * 50, dtype="S14")
    f.create_dataset("names", (50,), np.dtype(("S14", (3,))))
"""


def test_several_texts_in_a_sample(tmp_path, peer_hdf5, stoker_cli):
    peer_hdf5(TEXTS, tmp_path / "x.h5")
    checked = stoker_cli("check", tmp_path / "x.h5", status=None)
    for name in ("words", "names"):
        assert re.search(rf"{name}.*several texts in (a|one) sample", checked.text), repr(checked)


# --- The Loader -------------------------------------------------------------------------------------


@pytest.fixture
def image_arrays(tmp_path) -> Path:
    data = tmp_path / "arrays"
    data.mkdir()
    np.save(data / "images.npy", np.zeros((20, 16, 16, 3), "u1"))
    np.save(data / "targets.npy", np.arange(20))
    return data


def test_the_field_to_decode_is_offered(image_arrays, tried):
    result = tried(image_arrays, "next(iter(stoker.Loader(path, 4, [Resize((8, 8))])))")
    assert 'image="images"' in said(result), result


def test_a_field_of_any_name_is_decoded(tmp_path, tried):
    """image="image_data": photos that another tool stored under its own name."""
    data = tmp_path / "data"
    data.mkdir()
    files = {}
    for i in range(8):
        files[b"%03d.image_data" % i] = jpeg(i)
        files[b"%03d.cls" % i] = b"3"
    (data / "x-000000.tar").write_bytes(simple_tar(files))
    result = tried(
        data,
        "[sorted((k, np.shape(v)) for k, v in b.items() if k != 'sample') "
        "for b in stoker.Loader(path, 4, [Resize((8, 8))], image='image_data')]",
    )
    assert "error" not in result, result
    assert "(4, 8, 8, 3)" in result["result"], result
    refused = tried(data, "next(iter(stoker.Loader(path, 4, [Resize((8, 8))])))")
    assert 'image="image_data"' in said(refused), refused


def test_a_field_that_does_not_exist_is_an_error_with_choices(image_arrays, tried):
    result = tried(image_arrays, "next(iter(stoker.Loader(path, 4, [Resize((8, 8))], image='pictures')))")
    assert "error" in result and "images" in said(result), result


def test_datasets_with_different_fields_are_refused_at_once(tmp_path, tried):
    for name, ending in (("a", "emb"), ("b", "vec")):
        (tmp_path / name).mkdir()
        files = {b"%03d.%s" % (i, ending.encode()): b"1234" for i in range(8)}
        (tmp_path / name / "x-000000.tar").write_bytes(simple_tar(files))
    result = tried(tmp_path, "stoker.Loader([path + '/a', path + '/b'], 4)")
    assert "error" in result, "refused only later, or never"
    assert "different fields" in said(result), result
    assert "emb" in said(result) and "vec" in said(result)


def tiff() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (20, 20), (1, 2, 3)).save(buffer, "TIFF")
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["p0.tif", "p0.jpg"])
def test_a_tiff_is_called_so(name, tmp_path, tried):
    data = tmp_path / "data/cat"
    data.mkdir(parents=True)
    (data / name).write_bytes(tiff())
    result = tried(tmp_path / "data", "next(iter(stoker.Loader(path, 1, [Resize((8, 8))])))")
    assert "TIFF" in said(result) and "not decoded" in said(result), result
    result = tried(data / name, "stoker.decode(open(path, 'rb').read())")
    assert "TIFF" in said(result), result


# --- Room and memory --------------------------------------------------------------------------------


def test_a_folder_that_does_not_fit_says_how_much_is_needed(tmp_path, stoker_cli, small_file_system):
    image_folder(tmp_path / "photos", per_class=300, size=20_000)
    place = small_file_system(2 << 20)
    done = stoker_cli("stage", tmp_path / "photos", place, status=1)
    assert re.search(r"[0-9.]+ MB (are )?(needed|free)", done.text), repr(done)
    assert re.search(r"need(s|ed)", done.text) and "free" in done.text, repr(done)
    assert "whole or not at all" in done.text, repr(done)


@pytest.mark.parametrize("how", ["load", "sample"])
def test_a_sample_larger_than_memory_is_named(how, tmp_path, tried, stoker_cli):
    """A sparse file of 4.29 GB in 2 GB of address space: the file and its size, not "out of memory" alone."""
    data = tmp_path / "data"
    data.mkdir()
    with (data / "a.bin").open("wb") as file:
        file.truncate(4_290_000_000)
    (data / "b.bin").write_bytes(b"1")
    memory = 3 << 30
    if how == "load":
        text = stoker_cli("load", data, "--raw", "--epochs", "1", status=1, memory=memory).text
    else:

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

        text = said(tried(data, "len(stoker.open(path)['a']['bin'])", preexec_fn=limit))
    assert "a.bin" in text and "4.29 GB" in text, text


def test_a_missing_program_is_said_by_time(tmp_path, stoker_cli):
    done = stoker_cli("time", "--plain", "--", "/nosuch/prog", cwd=tmp_path, status=127)
    assert "/nosuch/prog" in done.stderr


def test_an_empty_sample_list_is_no_success(tmp_path, stoker_cli):
    """pack of a source that does not exist: the word and the path, exit status 1."""
    done = stoker_cli("pack", tmp_path / "nosuch", tmp_path / "y", status=1)
    assert "nosuch" in done.stderr
    assert not (tmp_path / "y").exists()
