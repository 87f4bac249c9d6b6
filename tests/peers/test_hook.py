# SPDX-License-Identifier: Apache-2.0
"""`stoker time` on scripts that nobody edited, in the frameworks' own environments, which have no stoker."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from stoker_program import clean_environment, program

TORCH = """
import torch
from torch.utils.data import DataLoader, TensorDataset

def main():
    train = DataLoader(TensorDataset(torch.randn(100, 4), torch.zeros(100)), batch_size=8, num_workers={workers})
    check = DataLoader(TensorDataset(torch.randn(20, 4)), batch_size=5)
    model = torch.nn.Linear(4, 1)
    for epoch in range(3):
        for pixels, labels in train:
            model(pixels).sum().backward()
        with torch.no_grad():
            for (pixels,) in check:
                model(pixels)
        torch.save(model.state_dict(), "model.pt")

if __name__ == "__main__":
    main()
"""

RANKS = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
data = TensorDataset(torch.randn(160, 4))
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
for epoch in range(2):
    for (pixels,) in loader:
        model(pixels).sum().backward()
dist.barrier()
dist.destroy_process_group()
"""

SHARED = """
import torch
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler

class Pictures(Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, number):
        return torch.zeros(3, 4, 4), number

data = Pictures()
train = DataLoader(data, 8, sampler=SubsetRandomSampler(range(80)), collate_fn=lambda x: tuple(zip(*x)))
check = DataLoader(data, 8, sampler=SubsetRandomSampler(range(80, 100)))
for epoch in range(2):
    for pictures, labels in train:
        torch.mm(torch.rand(300, 300), torch.rand(300, 300))
    with torch.no_grad():
        for pictures, labels in check:
            pass
"""

SHARDS = """
import torch
from torch.utils.data import DataLoader, TensorDataset

for shard in range(10):
    data = TensorDataset(torch.zeros(20, 250_000))
    loader = DataLoader(data, batch_size=5, num_workers=0)
    for batch in loader:
        pass
"""

PERSISTENT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    loader = DataLoader(TensorDataset(torch.zeros(80, 4)), batch_size=8, num_workers=1, persistent_workers=True)
    for epoch in range(3):
        for number, batch in enumerate(loader):
            if number == 4:
                break
"""

LIGHTNING = """
import pytorch_lightning as lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, number):
        return self.layer(batch[0]).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Model(), DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8))
"""

TRAINER = """
import torch
from transformers import Trainer, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels=None):
        return {"loss": (self.layer(x) - 1).pow(2).mean(), "logits": self.layer(x)}

data = [{"x": torch.randn(4), "labels": torch.tensor(0.0)} for _ in range(64)]
arguments = TrainingArguments("out", per_device_train_batch_size=8, num_train_epochs=2, report_to=[], save_strategy="no",
                              logging_strategy="no", disable_tqdm=True, use_cpu=True)
Trainer(Model(), arguments, train_dataset=data).train()
"""

KERAS = """
import keras
import numpy as np

model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.zeros((96, 4), "float32"), np.zeros((96, 1), "float32"), batch_size=8, epochs=2, verbose=0)
"""

TF_DATA = """
import tensorflow as tf

data = tf.data.Dataset.from_tensor_slices(tf.zeros((60, 4))).batch(6)
for epoch in range(2):
    for pixels in data:
        pass
"""


@pytest.fixture
def timed(tmp_path):
    """timed(peer, script, *command): the document of `stoker time` on it; {python} and {script} stand in the command."""

    def run(peer, text, *command, variables=None):
        python = os.environ.get(f"STOKER_PEER_{peer.upper()}")
        if not python:
            pytest.fail(f"no environment of {peer}: ./test makes it")
        script = tmp_path / "train.py"
        script.write_text(text)
        words = [word.format(python=python, script=script) for word in command or ("{python}", "{script}")]
        (tmp_path / "home").mkdir(exist_ok=True)
        environment = {**clean_environment(tmp_path / "home"), "TF_CPP_MIN_LOG_LEVEL": "3", **(variables or {})}
        finished = subprocess.run(
            [program(), "time", "--json", "--run", tmp_path / "run", "--", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert finished.returncode == 0, finished.stderr
        return json.loads(finished.stdout[finished.stdout.index('{\n  "stoker"') :])

    return run


def expect_torch(document, epochs=3):
    assert document["steps"] == 13 * epochs and document["samples"] == 100 * epochs
    assert document["epochs"] == epochs
    assert document["source"].startswith("DataLoader(TensorDataset, ")
    assert document["wait_share"] is not None and 0 <= document["wait_share"] <= 1
    events = "\n".join(document["events"])
    assert "checkpoint (torch.save) took " in events and f"in {epochs} turns" in events


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader(timed, workers):
    expect_torch(timed("torch", TORCH.replace("{workers}", str(workers))))


def test_through_bash_and_m(timed, tmp_path):
    expect_torch(timed("torch", TORCH.replace("{workers}", "0"), "bash", "-c", "{python} -m train"))


def test_own_sitecustomize_still_runs(timed, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("open('it-ran', 'w').close()\n")
    expect_torch(timed("torch", TORCH.replace("{workers}", "0"), variables={"PYTHONPATH": str(own)}))
    assert (tmp_path / "it-ran").exists()


def test_ranks(timed):
    document = timed("torch", RANKS, "{python}", "-m", "torch.distributed.run", "--nproc-per-node", "2", "{script}")
    assert [each["rank"] for each in document["ranks"]] == [0, 1]
    assert document["steps"] == 40 and document["samples"] == 320


def test_training_and_evaluation_over_one_dataset(timed):
    document = timed("torch", SHARED)
    assert document["steps"] == 20 and document["samples"] == 160 and document["epochs"] == 2


def test_a_dataset_for_each_shard_is_let_go(timed):
    document = timed("torch", SHARDS)
    assert document["steps"] == 40 and document["samples"] == 200 and document["epochs"] == 10
    # Ten shards of 20 MB; torch itself takes most of the rest.
    assert document["peak_anonymous_bytes"] < 500 << 20


def test_persistent_workers_and_an_epoch_left_midway(timed):
    document = timed("torch", PERSISTENT)
    assert document["steps"] == 15 and document["epochs"] == 3


def test_lightning(timed):
    document = timed("torch", LIGHTNING)
    assert document["steps"] == 16 and document["samples"] == 128


def test_hugging_face_trainer(timed):
    document = timed("torch", TRAINER, variables={"HF_HUB_OFFLINE": "1"})
    assert document["steps"] == 16 and document["samples"] == 128 and document["epochs"] == 2


def test_keras_fit(timed):
    document = timed("tensorflow", KERAS)
    assert document["steps"] == 24 and document["samples"] == 192
    assert document["wait_share"] is None  # fetching is part of the compiled step


def test_tf_data(timed):
    document = timed("tensorflow", TF_DATA)
    assert document["steps"] == 20 and document["samples"] == 120 and document["epochs"] == 2


def test_stoker_loader(timed, tmp_path):
    import stoker
    from samples import jpeg, write_files

    write_files(tmp_path / "photos", {f"{i:02d}.jpg": jpeg(i, 50, 40) for i in range(30)})
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "stoker").symlink_to(Path(stoker.__file__).parent)
    script = "import stoker\nfor epoch in range(2):\n    for batch in loader: pass\n".replace(
        "for epoch", "loader = stoker.Loader('photos', batch_size=5)\nfor epoch", 1
    )
    document = timed("torch", script, variables={"PYTHONPATH": str(packages)})
    assert document["source"] == "stoker.Loader" and document["steps"] == 12 and document["samples"] == 60
