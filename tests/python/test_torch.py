# SPDX-License-Identifier: Apache-2.0
"""A dataset goes into PyTorch's DataLoader as it is, whatever way its workers are started."""

import json
from pathlib import Path

import pytest
import stoker
from every_format import COUNT, KEYS, fields_of

# The package of this interpreter, in that of the peer: both are the same Python.
LOADER = """
import json, sys
root, method, packages = sys.argv[1:]
sys.path.append(packages)
import stoker, torch
from torch.utils.data import DataLoader, Subset

ds = stoker.open(root)
options = {"num_workers": 2, "multiprocessing_context": method} if method else {}
in_order = DataLoader(ds, batch_size=4, collate_fn=list, **options)
sizes = [len(sample["image"]) for batch in in_order for sample in batch]
shuffled = DataLoader(ds, batch_size=4, shuffle=True, collate_fn=list, **options)
torch.manual_seed(1)
seen = sorted(len(sample["image"]) for batch in shuffled for sample in batch)
part = DataLoader(Subset(ds, [3, 1]), batch_size=2, collate_fn=list)
array = torch.from_numpy(ds[5]["extra"])
array += 1  # writable
labels = torch.from_numpy(ds.column("label"))
print(json.dumps({"sizes": sizes, "seen": seen, "part": [len(s["image"]) for b in part for s in b],
                  "array": array.tolist(), "labels": labels.tolist()}))
"""


@pytest.mark.parametrize("method", ["", "fork", "spawn"])
def test_data_loader(peer_torch, packed, method):
    found = json.loads(peer_torch(LOADER, packed, method, Path(stoker.__file__).parent.parent))
    sizes = [len(fields_of(key)["image"]) for key in KEYS]
    assert found["sizes"] == sizes
    assert found["seen"] == sorted(sizes)
    assert found["part"] == [sizes[3], sizes[1]]
    assert found["array"] == (fields_of(KEYS[5])["extra"] + 1).tolist()
    assert found["labels"] == [fields_of(key)["label"] for key in KEYS]
    assert len(found["labels"]) == COUNT


BATCHES = """
import sys
root, packages = sys.argv[1:]
sys.path.append(packages)
import stoker
from torch.utils.data import DataLoader

calls = []
read_many = stoker.Dataset.read_many
stoker.Dataset.read_many = lambda self, numbers, fields=None: calls.append(len(numbers)) or read_many(self, numbers, fields)
list(DataLoader(stoker.open(root), batch_size=10, collate_fn=list))
print(calls)
"""


def test_batch_is_read_in_one_go(peer_torch, packed):
    assert json.loads(peer_torch(BATCHES, packed, Path(stoker.__file__).parent.parent)) == [10, 10, 5]
