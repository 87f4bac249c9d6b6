# SPDX-License-Identifier: Apache-2.0
"""pack(), index() and check(): the same words as on the command line, and results to work with."""

import copy
import dataclasses
import inspect
import pickle
import re

import pytest
import stoker
from every_format import COUNT, KEYS, fields_of, open_quietly, same, write_dataset
from samples import noise, write_files
from tar_bytes import simple_tar


@pytest.fixture
def source(tmp_path):
    write_dataset(tmp_path / "source", "folder")
    return tmp_path / "source"


@pytest.mark.parametrize("to", ["tar", "tfrecord"])
def test_pack(source, tmp_path, to):
    result = stoker.pack(source, tmp_path / "to", to=to)
    assert (result.source_format, result.format) == ("folder", to)
    assert (result.samples, result.shards, result.left_out, result.filtered) == (COUNT, 1, (), 0)
    assert result.datasets == (str(tmp_path / "to"),)
    assert not result.already_complete
    (shard,) = (file for file in (tmp_path / "to").iterdir() if file.is_file())
    assert result.bytes == shard.stat().st_size
    assert 0 < result.payload_bytes < result.bytes
    assert result.seconds > 0
    ds = stoker.open(tmp_path / "to")
    assert (ds.depth, ds.format) == ("full", to)
    assert all(same(ds[key], fields_of(key)) for key in KEYS)
    assert repr(result).startswith(f"<PackResult: 25 samples in 1 {to} shard, ")
    assert stoker.pack(source, tmp_path / "to", to=to).already_complete


def test_shard_size(source, tmp_path):
    small = stoker.pack(source, tmp_path / "a", shard_size="8K")
    assert small.shards > 3
    number = stoker.pack(source, tmp_path / "b", shard_size=8000)
    assert number.shards == small.shards
    assert len(stoker.open(tmp_path / "a").shards) == small.shards


def test_shuffle(source, tmp_path):
    stoker.pack(source, tmp_path / "a", shuffle=1, jobs=1)
    stoker.pack(source, tmp_path / "b", shuffle=1, jobs=2)
    stoker.pack(source, tmp_path / "c", shuffle=2)
    a, b, c = (list(stoker.open(tmp_path / name).keys()) for name in "abc")
    assert a == b != c
    assert sorted(a) == sorted(c) == sorted(KEYS)
    assert a != KEYS


def test_split(source, tmp_path):
    as_dict = stoker.pack(source, tmp_path / "a", split={"train": 0.7, "val": 0.3})
    as_text = stoker.pack(source, tmp_path / "b", split="train=0.7,val=0.3")
    assert as_dict.datasets == (str(tmp_path / "a/train"), str(tmp_path / "a/val"))
    assert as_text.samples == as_dict.samples == COUNT
    for name in ("train", "val"):
        a, b = stoker.open(tmp_path / "a" / name), stoker.open(tmp_path / "b" / name)
        assert list(a.keys()) == list(b.keys())
        assert 0 < len(a) < COUNT


def test_filters(source, tmp_path):
    result = stoker.pack(source, tmp_path / "a", include="a/*", exclude=["a/00*"])
    kept = [key for key in KEYS if key.startswith("a/") and not key.startswith("a/00")]
    assert sorted(stoker.open(tmp_path / "a").keys()) == kept
    assert result.filtered == COUNT - len(kept)
    stoker.pack(source, tmp_path / "b", include=["a/*", "b/*"], limit=4)
    assert len(stoker.open(tmp_path / "b")) == 4


def test_overwrite(source, tmp_path):
    stoker.pack(source, tmp_path / "to", limit=5)
    with pytest.raises((ValueError, FileExistsError), match="overwrite"):
        stoker.pack(source, tmp_path / "to", limit=6)
    assert len(stoker.open(tmp_path / "to")) == 5
    stoker.pack(source, tmp_path / "to", limit=6, overwrite=True)
    assert len(stoker.open(tmp_path / "to")) == 6


def test_list(tmp_path):
    write_files(tmp_path / "data", {"a.jpg": b"A", "b.jpg": b"B"})
    (tmp_path / "list.jsonl").write_text('{"path": "b.jpg", "label": 3}\n{"path": "a.jpg", "label": 4}\n')
    stoker.pack(tmp_path / "data", tmp_path / "to", list=tmp_path / "list.jsonl")
    ds = stoker.open(tmp_path / "to")
    assert ds["b"] == {"image": b"B", "label": 3}
    assert ds["a"] == {"image": b"A", "label": 4}


@pytest.fixture
def damaged(tmp_path):
    """Same key twice: the second cannot be told from the first, so it is left out."""
    files = simple_tar({b"a.txt": b"1", b"b.txt": b"2"})[:-1024] + simple_tar({b"a.txt": b"3", b"c.txt": b"4"})
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/x.tar").write_bytes(files)
    return tmp_path / "damaged"


def test_left_out_is_an_error(damaged, tmp_path):
    with pytest.raises(stoker.LeftOutError, match="skip_bad") as caught:
        stoker.pack(damaged, tmp_path / "to")
    result = caught.value.result
    assert isinstance(result, stoker.PackResult)
    (fault,) = result.left_out
    assert (fault.sample, fault.shard) == ("a", "x.tar")
    assert fault.offset > 0
    assert str(fault) in str(caught.value)
    assert fault.cause in str(fault)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.result == result and str(again) == str(caught.value)
    assert sorted(stoker.open(tmp_path / "to").keys()) == ["a", "b", "c"], "the rest is written"


def test_skip_bad(damaged, tmp_path):
    result = stoker.pack(damaged, tmp_path / "to", skip_bad=True)
    assert result.samples == 3
    assert len(result.left_out) == 1
    assert "1 left out" in repr(result)


def test_index(source):
    result = stoker.index(source)
    assert (result.format, result.depth, result.samples, result.faults) == ("folder", "structure", COUNT, ())
    assert result.directory == str(source / ".stoker")
    assert not result.in_cache
    assert "structure index of 25 samples" in repr(result)
    assert open_quietly(source).depth == "structure"
    assert stoker.index(source, full=True, jobs=2).depth == "full"
    assert stoker.open(source).depth == "full"


def test_index_in_the_cache(source, tmp_path):
    result = stoker.index(source, where="cache")
    assert result.in_cache
    assert not (source / ".stoker").exists()
    assert stoker.open(source).index_directory == result.directory
    assert not result.directory.startswith(str(source))


def test_check(source, tmp_path):
    stoker.pack(source, tmp_path / "to")
    result = stoker.check(tmp_path / "to")
    assert result.good
    assert (result.format, result.samples, result.shards, result.faults) == ("tar", COUNT, 1, ())
    assert (result.index_depth, result.checksums_compared) == ("full", True)
    assert result.index_directory == str(tmp_path / "to/.stoker")
    assert result.verified_bytes > 0
    assert result.fields == stoker.open(tmp_path / "to").fields
    sizes = [len(fields_of(key)["image"]) for key in KEYS]
    assert (result.sizes["image"].total, result.sizes["image"].smallest) == (sum(sizes), min(sizes))
    assert result.sizes["image"].largest == max(sizes)
    assert sum(result.classes.values()) == COUNT
    assert result.comparison is None
    assert repr(result).startswith("<CheckResult: good: 25 samples in 1 tar shard, ")


def test_check_of_bad_data_is_no_exception(packed):
    (shard,) = packed.glob("*.tar")
    contents = bytearray(shard.read_bytes())
    contents[contents.index(fields_of(KEYS[2])["image"])] ^= 1
    shard.write_bytes(contents)
    result = stoker.check(packed)
    assert not result.good
    assert result.fault_count == len(result.faults) >= 1
    assert KEYS[2] in {fault.sample for fault in result.faults}
    assert all(fault.shard == shard.name for fault in result.faults)
    assert "BAD" in repr(result)


def test_check_quick(packed):
    result = stoker.check(packed, quick=True)
    assert result.good
    assert result.verified_bytes < stoker.check(packed).verified_bytes


def test_compare(source, tmp_path):
    stoker.pack(source, tmp_path / "same", to="tfrecord", shuffle=3)
    stoker.pack(source, tmp_path / "fewer", limit=10)
    same_samples = stoker.check(tmp_path / "same", compare=source)
    assert same_samples.good
    assert same_samples.comparison.equal and same_samples.comparison.compared == COUNT
    fewer = stoker.check(tmp_path / "fewer", compare=source)
    assert not fewer.good and fewer.fault_count == 0
    assert (fewer.comparison.only_here, fewer.comparison.only_there) == (0, COUNT - 10)
    assert fewer.comparison.examples and all(isinstance(example, str) for example in fewer.comparison.examples)
    assert "differs" in repr(fewer)


def test_compare_without_keys(tmp_path):
    for name in "ab":
        write_files(tmp_path / name, {f"{name}{i}.bin": noise(i, 50) for i in range(5)})
    assert not stoker.check(tmp_path / "a", compare=tmp_path / "b").good
    assert stoker.check(tmp_path / "a", compare=tmp_path / "b", ignore_keys=True).good


def test_results_are_plain_values(source, tmp_path):
    results = [
        stoker.pack(source, tmp_path / "to"),
        stoker.index(source),
        stoker.check(source, compare=tmp_path / "to"),
    ]
    for result in results:
        assert pickle.loads(pickle.dumps(result)) == result
        assert copy.deepcopy(result) == result
        assert "samples" in dataclasses.asdict(result)
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.samples = 0


@pytest.mark.parametrize("command", ["pack", "index", "check"])
def test_same_words_as_the_command_line(stoker_cli, command):
    """Every option of the program is one of the function's, and the other way round."""
    shown = stoker_cli(command, "--help").stdout
    options = {name.replace("-", "_") for name in re.findall(r"^ +(?:-\w, )?--([a-z-]+)", shown, re.MULTILINE)}
    parameters = inspect.signature(getattr(stoker, command)).parameters.values()
    keywords = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    # Jobs of Slurm, and the parts that they write, are the program's business.
    jobs = {"slurm", "tasks", "partition", "account", "time", "sbatch", "print", "no_wait", "plan", "part"}
    assert options - {"help", "json"} - (jobs if command == "pack" else set()) == keywords


@pytest.mark.parametrize("command", ["pack", "index", "check"])
def test_same_results_as_the_command_line(stoker_cli, source, tmp_path, command):
    words = [source, tmp_path / "to"] if command == "pack" else [source]
    printed = stoker_cli(command, *words, "--json").json
    words = [source, tmp_path / "again"] if command == "pack" else [source]
    result = dataclasses.asdict(getattr(stoker, command)(*words))
    printed.pop("stoker")
    if command == "check":  # the index is one object there
        printed.pop("index")
        assert result.pop("index_depth") == result.pop("index_directory") == None  # noqa: E711
        result["fields"] = list(result["fields"])
        printed["fields"] = [field["name"] for field in printed["fields"]]
        assert result.pop("sizes").keys() == set(printed["fields"])
        printed["classes"] = {count["name"]: count["samples"] for count in printed["classes"]}
    printed["row_index"]["left"] = {left["to"]: left["photos"] for left in printed["row_index"]["left"]}
    assert printed.keys() - {"seconds"} == result.keys() - {"seconds"}
    for name in printed.keys() - {"seconds", "datasets", "segments_reused"}:
        assert result[name] == (tuple(printed[name]) if isinstance(result[name], tuple) else printed[name]), name
