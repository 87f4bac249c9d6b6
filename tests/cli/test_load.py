# SPDX-License-Identifier: Apache-2.0
"""`stoker load`: rates, stages and a verdict, of the real loader."""

import pytest
from samples import jpeg, write_files


@pytest.fixture
def photos(tmp_path):
    write_files(tmp_path / "d", {f"{'ab'[i % 2]}/{i:03d}.jpg": jpeg(i, 60, 40) for i in range(50)})
    return tmp_path / "d"


def test_document(stoker_cli, photos):
    result = stoker_cli(
        "load", photos, "--epochs", "3", "--batch", "16", "--crop", "32", "--threads", "2", "--json"
    ).json
    assert [epoch["samples"] for epoch in result["epochs"]] == [50] * 3
    for epoch in result["epochs"]:
        assert epoch["samples_per_s"] == pytest.approx(50 / epoch["seconds"])
    assert [stage["name"] for stage in result["stages"]] == ["fetch", "decode"]
    assert 1 <= result["stages"][1]["threads"] <= 2 and result["stages"][1]["busy_s"] > 0
    assert result["limit"] in ("fetch", "decode", "step") and result["limit"] + " limits" in result["verdict"]
    assert result["next"] and result["mixing"] == 1 and result["kept_in_memory"] == 0
    assert result["bad"] == []


def test_text(stoker_cli, photos):
    text = stoker_cli("load", photos, "--order", "sequential").stdout
    assert text.count("samples/s, ") == 2 and "stage   threads" in text and " limits: " in text


def test_raw_samples_need_no_photo(stoker_cli, tmp_path):
    write_files(tmp_path / "d", {f"{i:02d}.txt": b"x" * i for i in range(40)})
    stoker_cli("pack", tmp_path / "d", tmp_path / "p")
    result = stoker_cli("load", tmp_path / "p", "--raw", "--cold", "--json").json
    assert [epoch["samples"] for epoch in result["epochs"]] == [40, 40]
    assert result["epochs"][0]["bytes_per_s"] * result["epochs"][0]["seconds"] == pytest.approx(sum(range(40)))
    assert [stage["name"] for stage in result["stages"]] == ["fetch"]
    assert 0 <= result["kept_in_memory"] <= 1


def test_orders(stoker_cli, photos):
    for order, mixing in [("shuffled", 1), ("sequential", 0), ("blocks", 1)]:  # one window holds all of it
        result = stoker_cli("load", photos, "--order", order, "--crop", "8", "--json").json
        assert [epoch["samples"] for epoch in result["epochs"]] == [50, 50] and result["mixing"] == mixing


def test_bad_photo_is_named_and_skipped_when_asked(stoker_cli, photos):
    data = (photos / "a/004.jpg").read_bytes()
    (photos / "a/004.jpg").write_bytes(data[: len(data) // 2])
    refused = stoker_cli("load", photos, status=1)
    assert "a/004" in refused.stderr and "ends too early" in refused.stderr
    finished = stoker_cli("load", photos, "--skip-bad", "--json").json
    assert [epoch["samples"] for epoch in finished["epochs"]] == [49, 49]
    [bad] = finished["bad"]
    assert (bad["shard"], bad["sample"], bad["field"]) == ("a/004.jpg", "a/004", "image") and "ends too early" in bad[
        "cause"
    ]


def test_wrong_use(stoker_cli, photos, tmp_path):
    for words in (["--crop", "0"], ["--batch", "0"], ["--epochs", "x"], ["--order", "random"], ["--threads", "0"]):
        assert words[0] in stoker_cli("load", photos, *words, status=2).stderr
    assert "--raw" in stoker_cli("load", photos, "--raw", "--crop", "8", status=2).stderr
    write_files(tmp_path / "texts", {"a.txt": b"no photo"})
    assert "--image" in stoker_cli("load", photos, "--raw", "--image", "image", status=2).stderr
    assert "no field 'image'" in stoker_cli("load", tmp_path / "texts", status=2).stderr


def test_photos_of_any_name(stoker_cli, tmp_path):
    write_files(tmp_path / "d", {f"{i:02d}.photo.jpg": jpeg(i, 60, 40) for i in range(20)})
    stoker_cli("pack", tmp_path / "d", tmp_path / "p")
    refused = stoker_cli("load", tmp_path / "p", status=2).stderr
    assert "no field 'image' to decode, only: photo.jpg; choose one: --image photo.jpg" in refused
    result = stoker_cli("load", tmp_path / "p", "--image", "photo.jpg", "--crop", "8", "--json").json
    assert [epoch["samples"] for epoch in result["epochs"]] == [20, 20]


def test_damage_is_named(stoker_cli, photos):
    data = (photos / "a/004.jpg").read_bytes()
    (photos / "a/004.jpg").write_bytes(data[:-2] + bytes(20) + data[-2:])
    finished = stoker_cli("load", photos, "--epochs", "8", "--skip-bad", "--json").json
    [bad] = finished["bad"]  # not in every epoch: a crop may not reach the end
    assert bad["sample"] == "a/004" and "extraneous bytes before marker 0xd9" in bad["cause"]
