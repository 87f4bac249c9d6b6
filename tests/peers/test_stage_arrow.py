# SPDX-License-Identifier: Apache-2.0
"""A staged copy of what Hugging Face's `datasets` saved is again one that it loads."""

from pathlib import Path

SAVE = """
import sys
from datasets import Dataset
data = Dataset.from_dict({"text": [f"text {i}" for i in range(100)], "label": [i % 3 for i in range(100)]})
data.save_to_disk(sys.argv[1], num_shards=3)
"""
LOAD = """
import sys
from datasets import load_from_disk
data = load_from_disk(sys.argv[1])
print(len(data), data[42]["text"], data.features["label"].dtype)
"""


def test_load_from_disk_of_a_staged_copy(stoker_cli, peer_arrow, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    peer_arrow(SAVE, tmp_path / "saved")
    copied = Path(stoker_cli("stage", tmp_path / "saved", place, "--json").json["path"])
    for name in ("dataset_info.json", "state.json"):
        assert (copied / name).read_bytes() == (tmp_path / "saved" / name).read_bytes()
    assert peer_arrow(LOAD, copied) == peer_arrow(LOAD, tmp_path / "saved") == "100 text 42 int64\n"
    assert stoker_cli("check", copied, "--json").json["samples"] == 100
