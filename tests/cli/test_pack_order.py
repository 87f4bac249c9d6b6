# SPDX-License-Identifier: Apache-2.0
"""`stoker pack`: which samples it takes, and in which order."""

import re

from packed import key_of, order_of, packed_files, without_labels
from samples import differences, jpeg, tree, write_files


def test_order_without_shuffle_is_that_of_the_source(stoker_cli, folder, tmp_path):
    source, files = folder
    stoker_cli("pack", source, tmp_path / "packed", "--shard-size", "20K")
    assert order_of(tmp_path / "packed") == sorted(key_of(name) for name in files)


def test_shuffle(stoker_cli, folder, tmp_path):
    source, files = folder
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        stoker_cli("pack", source, tmp_path / name, "--shuffle", seed, "--shard-size", "20K")
    assert differences(tree(tmp_path / "a"), tree(tmp_path / "b")) == []
    orders = {name: order_of(tmp_path / name) for name in "ac"}
    assert orders["a"] != orders["c"]
    for order in orders.values():
        assert sorted(order) == sorted(key_of(name) for name in files)
        assert order != sorted(order)
        # Shuffled over everything, not within a shard or a class: the first third holds every class.
        assert {key.split("/")[0] for key in order[:20]} == {"cat", "dog", "eel"}
    assert without_labels(packed_files(tmp_path / "c")) == files


def test_split_has_the_shares_asked_for(stoker_cli, tmp_path):
    write_files(tmp_path / "folder", {f"x{i:05d}.txt": b"%d" % i for i in range(2000)})
    stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--split", "train=0.8,val=0.15,test=0.05")
    assert sorted(path.name for path in (tmp_path / "packed").iterdir() if path.is_dir()) == ["test", "train", "val"]
    counts = {name: len(packed_files(tmp_path / "packed" / name)) for name in ("train", "val", "test")}
    assert sum(counts.values()) == 2000
    # Five standard deviations of a binomial distribution: 89, 80, 49.
    assert abs(counts["train"] - 1600) < 90 and abs(counts["val"] - 300) < 80 and abs(counts["test"] - 100) < 50


def test_split_stays_when_data_is_added(stoker_cli, tmp_path):
    write_files(tmp_path / "folder", {f"x{i:05d}.txt": b"%d" % i for i in range(0, 400, 2)})
    options = ["--split", "train=0.5,val=0.5"]
    stoker_cli("pack", tmp_path / "folder", tmp_path / "before", *options)
    write_files(tmp_path / "folder", {f"x{i:05d}.txt": b"%d" % i for i in range(1, 400, 2)})
    stoker_cli("pack", tmp_path / "folder", tmp_path / "after", *options, "--shuffle", "7", "--jobs", "1")
    for name in ("train", "val"):
        before, after = packed_files(tmp_path / "before" / name), packed_files(tmp_path / "after" / name)
        assert before.keys() <= after.keys()
        assert len(after) > len(before)


def test_each_split_is_a_dataset(stoker_cli, folder, tmp_path):
    source, files = folder
    result = stoker_cli("pack", source, tmp_path / "packed", "--split", "train=0.5,val=0.5", "--json").json
    counts = [stoker_cli("check", tmp_path / "packed" / name, "--json").json["samples"] for name in ("train", "val")]
    assert sum(counts) == result["samples"] == len(files)
    assert min(counts) > 0


def test_include_and_exclude(stoker_cli, folder, tmp_path):
    source, files = folder
    stoker_cli("pack", source, tmp_path / "cats", "--include", "cat/*")
    assert without_labels(packed_files(tmp_path / "cats")) == {n: d for n, d in files.items() if n.startswith("cat/")}
    stoker_cli("pack", source, tmp_path / "two", "--include", "cat/*", "--include", "eel/*")
    assert {name.split("/")[0] for name in packed_files(tmp_path / "two")} == {"cat", "eel"}
    result = stoker_cli("pack", source, tmp_path / "rest", "--exclude", "dog/*", "--exclude", "*_00?.jpg", "--json")
    kept = {name for name in files if not name.startswith("dog/") and not re.search(r"_00\d\.jpg$", name)}
    assert without_labels(packed_files(tmp_path / "rest")).keys() == kept
    assert result.json["samples"] == len(kept)
    assert result.json["filtered"] == len(files) - len(kept)


def test_labels_do_not_depend_on_the_filter(stoker_cli, folder, tmp_path):
    """Two packs of one folder must agree on what label 2 means."""
    source, _ = folder
    stoker_cli("pack", source, tmp_path / "eels", "--include", "eel/*")
    found = packed_files(tmp_path / "eels")
    assert {data for name, data in found.items() if name.endswith(".cls")} == {b"2"}


def test_limit(stoker_cli, folder, tmp_path):
    source, files = folder
    result = stoker_cli("pack", source, tmp_path / "packed", "--limit", "7", "--json").json
    assert result["samples"] == 7
    assert order_of(tmp_path / "packed") == sorted(key_of(name) for name in files)[:7]
    stoker_cli("pack", source, tmp_path / "dogs", "--limit", "3", "--include", "dog/*")
    assert order_of(tmp_path / "dogs") == ["dog/dog_000", "dog/dog_001", "dog/dog_002"]
    result = stoker_cli("pack", source, tmp_path / "all", "--limit", "1000", "--json").json
    assert result["samples"] == len(files)


def test_a_filter_that_leaves_nothing_is_said(stoker_cli, folder, tmp_path):
    source, _ = folder
    finished = stoker_cli("pack", source, tmp_path / "packed", "--include", "bird/*", status=None)
    assert finished.returncode in (1, 2)
    assert "bird/*" in finished.stderr or "no sample" in finished.stderr.lower()


def test_hidden_files_are_counted_not_packed(stoker_cli, tmp_path):
    write_files(tmp_path / "folder", {"a.jpg": jpeg(1), ".DS_Store": b"x", "._a.jpg": b"y", "b.jpg": jpeg(2)})
    result = stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--json").json
    assert result["samples"] == 2 and result["hidden"] == 2
    assert packed_files(tmp_path / "packed").keys() == {"a.jpg", "b.jpg"}
    assert "2" in stoker_cli("pack", tmp_path / "folder", tmp_path / "packed2").text


def test_list_gives_labels_that_lie_elsewhere(stoker_cli, tmp_path):
    write_files(tmp_path / "folder", {"p/a.jpg": jpeg(1), "p/b.jpg": jpeg(2), "q/c.jpg": jpeg(3)})
    (tmp_path / "list.csv").write_text('path,label,caption\nq/c.jpg,4,"one, two"\np/a.jpg,9,three\n')
    stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--list", tmp_path / "list.csv")
    assert packed_files(tmp_path / "packed") == {
        "p/a.jpg": jpeg(1), "p/a.cls": b"9", "p/a.caption.txt": b"three",
        "q/c.jpg": jpeg(3), "q/c.cls": b"4", "q/c.caption.txt": b"one, two",
    }  # fmt: skip
    (tmp_path / "list.jsonl").write_text(
        '{"path": "q/c.jpg", "label": 4, "caption": "one, two"}\n{"path": "p/a.jpg", "label": 9, "caption": "three"}\n'
    )
    stoker_cli("pack", tmp_path / "folder", tmp_path / "packed2", "--list", tmp_path / "list.jsonl")
    assert packed_files(tmp_path / "packed2") == packed_files(tmp_path / "packed")


def test_list_that_names_a_missing_file(stoker_cli, tmp_path):
    write_files(tmp_path / "folder", {"a.jpg": jpeg(1)})
    (tmp_path / "list.csv").write_text("path,label\na.jpg,1\ngone.jpg,2\n")
    finished = stoker_cli("pack", tmp_path / "folder", tmp_path / "packed", "--list", tmp_path / "list.csv", status=1)
    assert "gone.jpg" in finished.text
