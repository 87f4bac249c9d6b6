# SPDX-License-Identifier: Apache-2.0
"""PyTorch Lightning with a stoker.Loader as its train_dataloader.

    python examples/lightning_fit.py DATASET [--epochs N] [--checkpoints DIRECTORY]

Lightning keeps the Loader's state in its checkpoints. Send the process SIGTERM and start it again: it goes on with the
batch behind the last one that it trained with.
"""

import argparse
import os

import pytorch_lightning as lightning
import stoker
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from stoker.transforms import RandomHorizontalFlip, RandomResizedCrop
from torch import nn


class Classifier(lightning.LightningModule):
    def __init__(self, dataset: str, batch_size: int):
        super().__init__()
        self.data = stoker.open(dataset)
        self.batch_size = batch_size
        classes = len(self.data.classes)
        self.model = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, classes)
        )

    def train_dataloader(self):
        # Made here, not before: by now Lightning has started its processes, and each takes its share.
        return stoker.Loader(self.data, self.batch_size, [RandomResizedCrop(32), RandomHorizontalFlip()], output="torch")

    def training_step(self, batch, _):
        image = batch["image"].permute(0, 3, 1, 2).float() / 127.5 - 1
        loss = nn.functional.cross_entropy(self.model(image), batch["label"])
        self.print(f"epoch {self.current_epoch}, step {self.global_step}: loss {loss.item():.6f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


parser = argparse.ArgumentParser()
parser.add_argument("dataset")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--checkpoints", default="checkpoints")
options = parser.parse_args()

lightning.seed_everything(0, verbose=False)
checkpoint = ModelCheckpoint(options.checkpoints, filename="{epoch}", save_last=True, save_on_exception=True)
trainer = lightning.Trainer(
    accelerator="cpu",
    max_epochs=options.epochs,
    callbacks=[checkpoint],
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
last = os.path.join(options.checkpoints, "last.ckpt")
trainer.fit(Classifier(options.dataset, options.batch_size), ckpt_path=last if os.path.exists(last) else None)
print(trainer.train_dataloader.verdict())
